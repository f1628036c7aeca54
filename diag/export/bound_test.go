package export_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// A counter that is bound to one queue pair is that queue pair's, one of several is a
// series of its own, and neither comes unasked.
func TestBoundCounters(t *testing.T) {
	count := func(n uint64) snapshot.Counters {
		return snapshot.Counters{{Name: "packet_seq_err", Value: snapshot.Known(n)}}
	}
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "mlx5_0", Kind: snapshot.Hardware, Driver: snapshot.Known("mlx5_core"), Bound: snapshot.Known([]snapshot.BoundCounter{
		{Port: 1, ID: 4, QPs: []uint32{178}, Counters: count(7)},
		{Port: 1, ID: 5, QPs: []uint32{179, 180}, Counters: count(9)},
	})}}}
	got := text(t, collector(s, export.Options{PerQP: 10}))
	for _, want := range []string{
		`rdma_qp_raw_total{device="mlx5_0",port="1",qpn="178",raw="packet_seq_err"} 7`,
		`rdma_bound_counter_qps{counter="5",device="mlx5_0",port="1"} 2`,
		`rdma_bound_counter_raw_total{counter="5",device="mlx5_0",port="1",raw="packet_seq_err"} 9`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no line %s in\n%s", want, got)
		}
	}
	if got := text(t, collector(s, export.Options{PerQP: 1})); strings.Contains(got, "rdma_bound_counter") {
		t.Error("more than the queue pairs that were asked for")
	}
	if got := text(t, collector(s, export.Options{})); strings.Contains(got, "rdma_bound_counter") || strings.Contains(got, "rdma_qp_raw_total") {
		t.Error("unasked")
	}
}
