package report_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

type writer = io.Writer

func writeWith(r *result.Run, f func(io.Writer, *result.Run) error) func(io.Writer) error {
	return func(w io.Writer) error { return f(w, r) }
}

// HPCC's rule for addresses, by hand: node 2 is 11.0.2.1, node 300 = 256 + 44 is
// 11.1.44.1. Times are whole nanoseconds, rounded down: 342.000999 us are
// 342000 ns. Flows stand in the order in which they finished.
func TestFCT(t *testing.T) {
	r := sample()
	for len(r.Nodes) < 301 {
		r.Nodes = append(r.Nodes, result.Node{})
	}
	r.Flows[1].SrcNode = 300
	r.Flows[1].Finish = 600 * us
	got := string(written(t, writeWith(r, report.WriteFCT)))
	want := "0b000201 0b000001 50000 4791 1000000 0 342000 90000\n" +
		"0b000401 0b000001 50002 4791 1000000 0 344000 90000\n" +
		"0b000501 0b000001 50003 4791 1000000 0 345000 90000\n" +
		"0b000501 0b000101 50100 4791 2000000 10000 470000 176000\n" +
		"0b012c01 0b000001 50001 4791 1000000 0 600000 90000\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A frame is logged where it arrives: leaf0 stops the peer of its port 3, which
// is spine0 (node 8, a switch), port 0, interface 1. It takes the 72 B of preamble
// and frame, 5.76 ns at 100 Gb/s, and the link's 1 us: 20 us become 21005 ns.
// Repeated stops are not in the file.
func TestPFC(t *testing.T) {
	got := string(written(t, writeWith(sample(), report.WritePFC)))
	want := "21005 8 1 1 1\n" + // leaf0 stops spine0
		"41005 7 1 4 1\n" + // spine0 stops leaf1, port 3
		"61005 5 0 1 1\n" + // leaf1 stops host5
		"81005 5 0 1 0\n" +
		"101005 7 1 4 0\n" +
		"171005 8 1 1 0\n" +
		"181005 7 1 2 1\n" + // host4 stops leaf1, port 1
		"186005 7 1 2 0\n" +
		"191005 6 1 5 1\n" // spine1 stops leaf0, port 4
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r := sample()
	r.Shape.Gap = 0 // 64 B: 5.12 ns
	r.Pauses = r.Pauses[:1]
	if got := string(written(t, writeWith(r, report.WritePFC))); got != "21005 8 1 1 1\n" {
		t.Errorf("without gap: %q", got)
	}
}

// A slow link delays more, so arrival can change the order.
func TestPFCOrderIsOfArrival(t *testing.T) {
	r := &result.Run{Nodes: []result.Node{
		{Switch: true, Ports: []result.Port{{Peer: 1, Rate: sim.Gbps, Delay: 10 * us}, {Peer: 2, Rate: sim.Gbps, Delay: us}}},
		{Ports: []result.Port{{Peer: 0}}},
		{Ports: []result.Port{{Peer: 0, PeerPort: 1}}},
	}}
	r.Pauses = []result.Pause{{At: 0, Port: 0, On: true}, {At: 5 * us, Port: 1, On: true}}
	// 64 B at 1 Gb/s are 512 ns: arrivals at 10512 and 6512 ns.
	if got, want := string(written(t, writeWith(r, report.WritePFC))), "6512 2 0 1 1\n10512 1 0 1 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Lengths of all priorities of a port add up; counts are cumulative; hosts are
// not switches.
func TestQlen(t *testing.T) {
	r := &result.Run{Nodes: fabric()}
	add := func(node, port int32, prio uint8, step sim.Time, v ...int64) {
		r.Series = append(r.Series, result.Series{Kind: result.QueueBytes, Node: node, Port: port, Prio: prio, Flow: -1, Step: step, Values: v})
	}
	add(spine0, 1, 3, us, 0, 999, 1000, 3500)
	add(leaf0, 2, 0, 2*us, 500, 500)
	add(leaf0, 2, 3, us, 0, 600, 0, 2000) // sums 500, 1100, 500, 2500
	add(host1, 0, 3, us, 7000, 7000)
	r.Series = append(r.Series, result.Series{Kind: result.PortRate, Node: leaf0, Values: []int64{1}})
	got := string(written(t, func(w io.Writer) error { return report.WriteQlen(w, r, 2*us) }))
	want := "time: 2000\n6 3 2 1\n8 2 2 1\n" +
		"time: 3000\n6 3 2 1 1\n8 2 2 1 0 1\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	once := string(written(t, func(w io.Writer) error { return report.WriteQlen(w, r, 0) }))
	if want := "time: 3000\n6 3 2 1 1\n8 2 2 1 0 1\n"; once != want {
		t.Errorf("at the end alone: %q", once)
	}
	if none := written(t, func(w io.Writer) error { return report.WriteQlen(w, &result.Run{}, us) }); len(none) != 0 {
		t.Errorf("of nothing: %q", none)
	}
}

// Neither a tiny interval nor an absurd length makes the file absurd.
func TestQlenIsBounded(t *testing.T) {
	r := &result.Run{Nodes: fabric()}
	r.Series = []result.Series{{Kind: result.QueueBytes, Node: leaf0, Flow: -1, Step: sim.Second, Values: []int64{-5, 1 << 62, 0}}}
	once := written(t, func(w io.Writer) error { return report.WriteQlen(w, r, 0) })
	if len(once) > 1<<20 {
		t.Errorf("a block of %d bytes", len(once))
	}
}
