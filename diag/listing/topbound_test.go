package listing

import (
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Queue pairs of the kernel are in a frame by the counters that are bound to them.
func TestTopBoundCounters(t *testing.T) {
	at := func(second int, n uint64) *snapshot.Snapshot {
		count := func(n uint64) snapshot.Counters {
			return snapshot.Counters{{Name: "packet_seq_err", Value: k(n)}, {Name: "rx_write_requests", Value: k(n)}}
		}
		return &snapshot.Snapshot{Taken: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC), Devices: []snapshot.Device{{
			Name: "mlx5_0", Kind: snapshot.Hardware, Driver: k("mlx5_core"), Ports: []snapshot.Port{{Number: 1}},
			QPs: k([]snapshot.QP{{LQPN: 178, Type: "RC", State: "RTS", Comm: "one"}, {LQPN: 179, Type: "RC", State: "RTS"}, {LQPN: 180, Type: "UD", State: "RTS"}}),
			Bound: k([]snapshot.BoundCounter{
				{Port: 1, ID: 4, QPs: []uint32{178}, Counters: count(n)},
				{Port: 1, ID: 5, Type: k("RC"), Comm: "two", QPs: []uint32{180, 179}, Counters: count(2 * n)},
				{Port: 1, ID: 6, QPs: []uint32{181}, Counters: count(5)},
			}),
		}}}
	}
	f := TopOf(snapshot.Window{Before: at(0, 0), After: at(2, 10)})
	if len(f.QPs) != 2 {
		t.Fatalf("%+v, want the two that moved", f.QPs)
	}
	one, two := f.QPs[0], f.QPs[1]
	if one.QPN != 178 || one.QPs != 0 || one.State != "RTS" || one.Program != "one" || one.TxBits != nil || or0(one.Retransmits) != 5 {
		t.Errorf("one queue pair: %+v", one)
	}
	if two.QPN != 179 || two.QPs != 2 || two.Type != "RC" || two.Program != "two" || or0(two.Retransmits) != 10 {
		t.Errorf("two together: %+v", two)
	}
	text := string(f.Text(0, 0, false))
	if !strings.Contains(text, "mlx5_0:178 ") || !strings.Contains(text, "mlx5_0:179+1 ") {
		t.Errorf("the frame is\n%s", text)
	}
	for _, n := range f.Notes {
		if strings.Contains(n, "rdma statistic") {
			t.Errorf("there are bound counters, and a note: %s", n)
		}
	}
}
