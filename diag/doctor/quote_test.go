package doctor_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// What a recording calls things is a word of the shell in a command that people copy,
// and short everywhere.
func TestCommandsQuoteNames(t *testing.T) {
	w := newWorld()
	const evil = "mlx5_0'; curl x|sh; echo $(id) `id` '"
	for _, h := range []*snapshot.Snapshot{w.before, w.after} {
		h.Devices[0].Name = evil
		h.Devices[0].Ports[0].State = snapshot.Known(1)
		h.Devices[0].QPs = snapshot.Known([]snapshot.QP{{Port: 1, LQPN: 17, Type: "RC", State: "INIT"}})
		h.Devices[0].PCI.Address = strings.Repeat("x", 5000)
	}
	w.dev().PCI.LinkWidth = snapshot.Known(4)
	w.noPeer = true
	quoted := "'" + strings.ReplaceAll(evil, "'", `'\''`) + "'"
	said := 0
	for _, f := range doctor.Examine(w.input(), builtin(t)).Findings {
		for _, c := range append(f.Fix, f.Verify) {
			if strings.Contains(c, "curl") {
				said++
				if strings.Contains(strings.ReplaceAll(c, quoted, ""), "curl") {
					t.Errorf("%s: %s", f.Rule, c)
				}
			}
			if len(c) > 1000 {
				t.Errorf("%s: a command of %d bytes", f.Rule, len(c))
			}
		}
	}
	if said == 0 {
		t.Error("no command names the device")
	}
}
