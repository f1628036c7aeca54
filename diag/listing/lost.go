package listing

import (
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Lost are the values of a device, or of all with an empty name, that ibstat and
// ibv_devinfo show and that could not be read: what is printed for them is a default. A
// line each, without its end, such as "mlx5_1: ports/1/rate: EINVAL". Counters and
// partition keys are not shown, and not told.
func Lost(s *snapshot.Snapshot, device string) []string {
	var lines []string
	for _, p := range s.Problems {
		rest, ok := strings.CutPrefix(p.Place, "sys/class/infiniband/")
		if !ok {
			continue
		}
		name, file, ok := strings.Cut(rest, "/")
		if !ok || device != "" && name != device || !shown(file) {
			continue
		}
		lines = append(lines, name+": "+file+": "+p.Why)
	}
	return lines
}

// shown reports whether a file of a device is one that the listings show.
func shown(file string) bool {
	for _, not := range []string{"hw_counters", "/counters", "/pkeys", "device/", "tc/", "node_desc", "parent"} {
		if strings.Contains("/"+file, not) {
			return false
		}
	}
	return true
}
