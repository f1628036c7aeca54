package snapshot_test

import (
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Devices of one name in several processes keep apart.
func TestLabels(t *testing.T) {
	s := snapshot.Snapshot{Devices: []snapshot.Device{
		{Name: "mlx5_0"}, {Name: "vrb_lo", PID: 7}, {Name: "vrb_lo", PID: 8}, {Name: "vrb_lo", PID: 8}, {Name: "vrb_lo"}, {Name: "vrb_eth0", PID: 7},
	}}
	want := []string{"mlx5_0", "vrb_lo@7", "vrb_lo@8", "vrb_lo@8#2", "vrb_lo", "vrb_eth0"}
	if got := s.Labels(); !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

// A device of a process is found again by process and GUID when its name has changed;
// another process's device that has taken its name is not it.
func TestSame(t *testing.T) {
	own := func(name string, pid int, guid string) snapshot.Device {
		return snapshot.Device{Name: name, Kind: snapshot.Verbena, PID: pid, NodeGUID: snapshot.Known(guid)}
	}
	before := &snapshot.Snapshot{Devices: []snapshot.Device{
		{Name: "mlx5_0", NodeGUID: snapshot.Known("a")}, own("vrb_lo", 7, "a"), own("vrb_lo-9", 9, "b"), own("vrb_lo-9-2", 9, "c"),
	}}
	for _, tc := range []struct {
		now  snapshot.Device
		want string
	}{
		{snapshot.Device{Name: "mlx5_0"}, "mlx5_0"}, // without its GUID
		{snapshot.Device{Name: "mlx5_1"}, ""},
		{own("vrb_lo", 7, "a"), "vrb_lo"},
		{own("vrb_lo", 9, "b"), "vrb_lo-9"}, // 7 has closed
		{own("vrb_lo-9", 9, "c"), "vrb_lo-9-2"},
		{own("vrb_lo", 10, "a"), ""}, // a new process took the name
		{own("mlx5_0", 10, "a"), ""},
		{snapshot.Device{Name: "vrb_lo"}, ""}, // the kernel has one of that name now
		{own("vrb_lo", 9, "d"), ""},           // another device of the process
	} {
		got := ""
		if d := before.Same(&tc.now); d != nil {
			got = d.Name
		}
		if got != tc.want {
			t.Errorf("%s of %d with %s is %q, want %q", tc.now.Name, tc.now.PID, tc.now.NodeGUID.Or(""), got, tc.want)
		}
	}
}
