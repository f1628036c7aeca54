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
