package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

const us = sim.Microsecond

// chain is switches in a row, port 0 towards the left, port 1 to the right, at
// 100 Gb/s.
func chain(n int) *result.Run {
	r := &result.Run{End: 1000 * us}
	for i := range n {
		r.Nodes = append(r.Nodes, result.Node{Switch: true, Ports: []result.Port{
			{Peer: int32(i - 1), PeerPort: 1, Rate: 100 * sim.Gbps},
			{Peer: int32(i + 1), PeerPort: 0, Rate: 100 * sim.Gbps},
		}})
	}
	r.Nodes[0].Ports[0].Peer, r.Nodes[n-1].Ports[1].Peer = -1, -1
	return r
}

func on(at sim.Time, node, port int32) result.Pause {
	return result.Pause{At: at, Node: node, Port: port, Egress: -1, On: true, Prio: 3}
}

func off(at sim.Time, node, port int32) result.Pause {
	return result.Pause{At: at, Node: node, Port: port, Egress: -1, Prio: 3}
}

// Stops of node 0 by node 1: what is resumed ends then; what is repeated goes on;
// what nobody resumes or repeats ends after 65535 quanta of 512 bit times, which
// are 335.5392 us at 100 Gb/s; what lasts at the end ends with the run.
func TestStops(t *testing.T) {
	const longest = 335539200 * sim.Picosecond
	refresh := func(p result.Pause) result.Pause { p.Refresh = true; return p }
	for _, c := range []struct {
		name   string
		pauses []result.Pause
		want   []span
	}{
		{"resumed", []result.Pause{on(10*us, 1, 0), off(30*us, 1, 0)}, []span{{10 * us, 30 * us}}},
		{"twice", []result.Pause{on(10*us, 1, 0), off(30*us, 1, 0), on(40*us, 1, 0), off(41*us, 1, 0)}, []span{{10 * us, 30 * us}, {40 * us, 41 * us}}},
		{"repeated", []result.Pause{on(0, 1, 0), refresh(on(300*us, 1, 0)), off(600*us, 1, 0)}, []span{{0, 600 * us}}},
		{"ran out", []result.Pause{on(0, 1, 0), off(600*us, 1, 0)}, []span{{0, longest}}},
		{"ran out, then again", []result.Pause{on(0, 1, 0), on(500*us, 1, 0), off(501*us, 1, 0)}, []span{{0, longest}, {500 * us, 501 * us}}},
		{"to the end", []result.Pause{on(900*us, 1, 0)}, []span{{900 * us, 1000 * us}}},
		{"resumed only", []result.Pause{off(900*us, 1, 0)}, nil},
		{"nobody there", []result.Pause{on(10*us, 0, 0), on(10*us, 7, 0), on(10*us, 1, 9)}, nil},
	} {
		r := chain(3)
		r.Pauses = c.pauses
		all := stops(r)
		var got []span
		var sum sim.Time
		for _, s := range all {
			if s.node != 0 || s.port != 1 || s.by != 1 || s.byPort != 0 || s.prio != 3 {
				t.Errorf("%s: %+v", c.name, s)
			}
			got = append(got, s.spans...)
		}
		for _, s := range got {
			sum += s.To - s.From
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if len(all) == 1 && all[0].total != sum {
			t.Errorf("%s: total %v, want %v", c.name, all[0].total, sum)
		}
	}
}

// Priorities are stopped apart; a global PAUSE is none of them.
func TestStopsByPriority(t *testing.T) {
	r := chain(2)
	other := on(20*us, 1, 0)
	other.Prio = 4
	global := on(30*us, 1, 0)
	global.Cause = result.CauseGlobal
	r.Pauses = []result.Pause{on(10*us, 1, 0), other, global, off(40*us, 1, 0)}
	all := stops(r)
	if len(all) != 3 || all[0].prio != 3 || all[1].prio != 4 || !all[2].global {
		t.Errorf("%d stops", len(all))
	}
}

func because(p result.Pause, egress int32, stopped bool) result.Pause {
	p.Egress, p.EgressStopped = egress, stopped
	return p
}

// Node 3's egress to the right is full: it stops node 2, which stops node 1,
// which stops node 0.
func TestTreeLevels(t *testing.T) {
	r := chain(5)
	r.Pauses = []result.Pause{
		because(on(1*us, 3, 0), 1, false),
		because(on(2*us, 2, 0), 1, true),
		because(on(3*us, 1, 0), 1, true),
	}
	tr := treeOf(r)
	for i, want := range []int{3, 2, 1, 0, 0} {
		if got := tr.level(int32(i), 1); got != want {
			t.Errorf("egress of node %d is at level %d, want %d", i, got, want)
		}
	}
	if len(tr.roots) != 1 || tr.roots[0].node != 3 || tr.roots[0].port != 1 {
		t.Errorf("roots %+v", tr.roots)
	}
}

// A host that does not take in is a root itself.
func TestTreeRootIsHost(t *testing.T) {
	r := chain(3)
	r.Nodes[2].Switch = false
	slow := on(1*us, 2, 0)
	slow.Cause = result.CauseSlowReceiver
	r.Pauses = []result.Pause{slow, because(on(2*us, 1, 0), 1, true)}
	tr := treeOf(r)
	if len(tr.roots) != 1 || tr.roots[0].node != 2 || tr.roots[0].port != -1 || tr.roots[0].cause != result.CauseSlowReceiver {
		t.Errorf("roots %+v", tr.roots)
	}
	if tr.level(1, 1) != 1 || tr.level(0, 1) != 2 {
		t.Errorf("levels %d, %d", tr.level(1, 1), tr.level(0, 1))
	}
}

// A cycle of stopped egresses without a root has no levels, and ends.
func TestTreeOfDeadlock(t *testing.T) {
	r := chain(3)
	r.Nodes[2].Ports[1].Peer, r.Nodes[2].Ports[1].PeerPort = 0, 0
	r.Nodes[0].Ports[0].Peer, r.Nodes[0].Ports[0].PeerPort = 2, 1
	for i := range 3 {
		r.Pauses = append(r.Pauses, because(on(us, int32(i), 0), 1, true))
	}
	tr := treeOf(r)
	if len(tr.roots) != 0 || tr.level(0, 1)+tr.level(1, 1)+tr.level(2, 1) != 0 {
		t.Errorf("%+v", tr)
	}
	if d := topology(r); d == nil {
		t.Error("no picture")
	}
}

// Rare roots are left out of pictures.
func TestMinorRoots(t *testing.T) {
	r := chain(4)
	for range 99 {
		r.Pauses = append(r.Pauses, because(on(us, 3, 0), 1, false))
	}
	r.Pauses = append(r.Pauses, because(on(us, 1, 0), 1, false))
	if tr := treeOf(r); len(tr.roots) != 1 || tr.roots[0].node != 3 || tr.roots[0].count != 99 {
		t.Errorf("roots %+v", tr.roots)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range [][2]string{
		{bytesText(int64(0)), "0 B"},
		{bytesText(int64(999)), "999 B"},
		{bytesText(int64(1000)), "1.00 KB"},
		{bytesText(int64(256000)), "256 KB"},
		{bytesText(uint64(25e6)), "25.0 MB"},
		{bytesText(0.25), "0.250 B"},
		{bytesText(int64(-2500)), "-2.50 KB"},
		{rateText(0), "0 b/s"},
		{rateText(9800 * sim.Mbps), "9.80 Gb/s"},
		{rateText(400 * sim.Gbps), "400 Gb/s"},
		{timeText(sim.Never), "-"},
		{timeText(0), "0"},
		{timeText(1280), "1.28 ns"},
		{timeText(208300 * sim.Nanosecond), "208 us"},
		{timeText(9999 * us), "9999 us"},
		{timeText(10 * sim.Millisecond), "10.0 ms"},
		{timeText(999 * sim.Millisecond), "999 ms"},
		{timeText(2 * sim.Second), "2.00 s"},
		{timeText(7200 * sim.Second), "7200 s"},
		{countText(9999999), "9,999,999"},
		{countText(10e6), "10.0 M"},
		{commas(0), "0"},
		{commas(1234), "1,234"},
		{shareText(0, 5), "0"},
		{shareText(1, 0), "-"},
		{shareText(1, 1e6), "<0.1%"},
		{shareText(1, 3), "33.3%"},
		{shareText(1, 1), "100%"},
		{factorText(0), "-"},
		{factorText(11.04), "11.0x"},
		{string(nanos(nil, 1234567)), "1234.567"},
		{string(nanos(nil, -5)), "-0.005"},
		{snake("CNPsHandled"), "cnps_handled"},
		{snake("QPs"), "qps"},
		{snake("QPRate"), "qp_rate"},
		{snake("NIC"), "nic"},
		{snake("KMin"), "kmin"},
		{snake("TxBytes"), "tx_bytes"},
		{snake("ID"), "id"},
		{snake("EgressStopped"), "egress_stopped"},
		{snake("NAKs"), "naks"},
		{snake("RxQueueRate"), "rx_queue_rate"},
		{snake("HAI"), "hai"},
		{snake("CNPEvery"), "cnp_every"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}
