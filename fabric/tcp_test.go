package fabric

import (
	"fmt"
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/host/tcp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// tcpStar is n hosts at one switch, 10 Gb/s, with the lossy class in priority 0.
func tcpStar(t testing.TB, hosts int, delay sim.Time, sets ...string) (*scenario.Scenario, *topo.Graph) {
	t.Helper()
	g, err := topo.Star{Hosts: hosts, Rate: 10 * sim.Gbps, Delay: delay}.Build()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.ParseSet("star.yaml", []byte("name: star\npacket: {gap: false}\nrecord: {series: none}\n"), sets)
	if err != nil {
		t.Fatal(err)
	}
	return sc, g
}

func tcpFlow(src, dst int32, bytes int64) work.Flow {
	return work.Flow{Src: src, Dst: dst, Bytes: bytes, Op: work.TCP, Prio: -1, DSCP: -1, Endless: bytes == 0}
}

// startRun makes a run that is advanced by the test.
func startRun(t testing.TB, sc *scenario.Scenario, g *topo.Graph, flows []work.Flow) *Run {
	t.Helper()
	r, err := New(sc, g, &work.List{Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noBreach fails for every rule of a run that did not hold.
func noBreach(t testing.TB, res *result.Run) {
	t.Helper()
	for _, b := range res.Breaches {
		t.Errorf("%v: %s: %s", b.At, b.Rule, b.Detail)
	}
}

// frame1460 is what a full segment is on the wire.
const frame1460 = 1460 + tcp.HeaderBytes

// A lone flow that fits into the first window ends when its first segment has
// crossed the first link, all have crossed the second one behind the other
// (store and forward), and the last acknowledgement has come back. All counters
// are exact.
func TestTCPFlowTakesWhatTheLinksTake(t *testing.T) {
	sc, g := tcpStar(t, 2, 5*sim.Microsecond)
	r, res := finish(t, sc, g, []work.Flow{tcpFlow(0, 1, 10_000)})
	f := &res.Flows[0]
	const perByte = 800 * sim.Picosecond
	last := 10_000 - 6*1460 + tcp.HeaderBytes
	want := sim.Time(frame1460+6*frame1460+last)*perByte + 2*tcp.AckBytes*perByte + 4*5*sim.Microsecond
	if f.State != result.Finished || f.FCT() != want || f.Base != f.FCT() {
		t.Errorf("%v: FCT %v, base %v, want %v", f.State, f.FCT(), f.Base, want)
	}
	if f.Delivered != 10_000 || f.Packets != 7 || f.Retransmitted != 0 || f.Timeouts != 0 || f.Received >= f.Finish {
		t.Errorf("%+v", f)
	}
	if f.Service != "TCP" || f.DstPort != tcp.Port || f.SrcPort < 49152 || len(f.Path) != 2 || f.Paths != 1 {
		t.Errorf("%+v", f)
	}
	if p := r.Ports[g.Endpoints[1].Node][0].Prio(0); p.TxPackets != 7 || p.TxBytes != 7*tcp.AckBytes {
		t.Errorf("%d acknowledgements of %d bytes", p.TxPackets, p.TxBytes)
	}
}

// DCTCP's queue oscillates below K + N by the amplitude of SIGCOMM'10 §3.3: N
// flows of one round trip share capacity C (packets a second), the switch marks
// above K packets.
//
//	W* = (C·RTT + K)/N            the window at which marking begins
//	alpha²·(1 − alpha/4) = (2W* + 1)/(W* + 1)²
//	D  = (W* + 1)·alpha/2         by which each window falls
//	Qmax = K + N,  A = N·D,  Qmin = Qmax − A
//
// It holds for flows in step, exactly for a lone one but for whole segments.
func TestDCTCPQueueOscillates(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		const k = 40
		const delay = 16 * sim.Microsecond
		g, err := topo.Dumbbell{Left: n, Right: n, Rate: 40 * sim.Gbps, BottleneckRate: 10 * sim.Gbps, Delay: delay, BottleneckDelay: delay}.Build()
		if err != nil {
			t.Fatal(err)
		}
		sc, _ := tcpStar(t, 2, delay, "switch.ecn.priorities=[0]", fmt.Sprintf("switch.ecn.kmin=%dB", k*frame1460), fmt.Sprintf("switch.ecn.kmax=%dB", k*frame1460),
			"switch.ecn.at=enqueue", "switch.ecn.pmax=1", "until=duration", "duration=1s")
		var flows []work.Flow
		for i := range n {
			f := tcpFlow(int32(i), int32(n+i), 0)
			f.Start = sim.Time(i) * 7 * sim.Microsecond
			flows = append(flows, f)
		}
		r := startRun(t, sc, g, flows)
		bottleneck := result.Hop{}
		for _, h := range r.walk(0, int32(n), 0) {
			if r.Ports[h.Node][h.Port].Rate() == 10*sim.Gbps {
				bottleneck = h
			}
		}
		lo, hi := int64(math.MaxInt64), int64(0)
		const warm, span = 15 * sim.Millisecond, 20 * sim.Millisecond
		r.S.Run(warm)
		from := deliveredBytes(r)
		for r.S.Next() <= warm+span {
			r.S.RunSome(warm+span, 1)
			q := r.Switches[bottleneck.Node].QueueBytes(int(bottleneck.Port), 0)
			lo, hi = min(lo, q), max(hi, q)
		}
		// A segment's round trip without queue, in segments of the bottleneck.
		perFrame := (10 * sim.Gbps).For(frame1460)
		rtt := 6*delay + perFrame + 2*(40*sim.Gbps).For(frame1460) + (10 * sim.Gbps).For(tcp.AckBytes) + 2*(40*sim.Gbps).For(tcp.AckBytes)
		w := (float64(rtt)/float64(perFrame) + k) / float64(n)
		alpha := solveAlpha(w)
		amplitude := float64(n) * (w + 1) * alpha / 2
		top, bottom := float64(k+n), float64(k+n)-amplitude
		gotTop, gotBottom := float64(hi)/frame1460, float64(lo)/frame1460
		t.Logf("%d flows: queue %.0f to %.0f segments, formula %.1f to %.1f (alpha %.3f)", n, gotBottom, gotTop, bottom, top, alpha)
		if math.Abs(gotTop-top) > float64(1+n) || math.Abs(gotBottom-bottom) > float64(1+n) {
			t.Errorf("%d flows: the queue moves between %.0f and %.0f segments, the formula says %.1f and %.1f", n, gotBottom, gotTop, bottom, top)
		}
		if used := float64(deliveredBytes(r)-from) / (float64(span) / float64(perFrame) * 1460); used < 0.999 {
			t.Errorf("%d flows: %.4f of the link is used", n, used)
		}
		res := r.Result()
		noBreach(t, res)
		if res.Flows[0].Retransmitted != 0 || res.Flows[0].Marks == 0 {
			t.Errorf("%d flows: %d retransmissions, %d marks", n, res.Flows[0].Retransmitted, res.Flows[0].Marks)
		}
	}
}

// deliveredBytes is the bytes of all flows so far.
func deliveredBytes(r *Run) (n int64) {
	for i := range r.out {
		n += r.out[i].Delivered
	}
	return n
}

// Flows of one kind that share a port have the same part of it in the long run,
// also those that come later. Marks have a slope here: behind a step, flows
// without any noise of hosts keep their phases for long.
func TestTCPFlowsAreFair(t *testing.T) {
	for _, kind := range []string{"dctcp", "reno"} {
		const n = 5
		sc, g := tcpStar(t, n+1, 10*sim.Microsecond, "host.tcp.kind="+kind, "switch.ecn.priorities=[0]", "switch.ecn.kmin=50KB", "switch.ecn.kmax=150KB",
			"switch.ecn.pmax=1", "until=duration", "duration=1s", "host.tcp.min_rto=1ms")
		var flows []work.Flow
		for i := range n {
			f := tcpFlow(int32(i), n, 0)
			f.Start = sim.Time(i) * 2 * sim.Millisecond
			flows = append(flows, f)
		}
		r := startRun(t, sc, g, flows)
		const warm, span = 20 * sim.Millisecond, 60 * sim.Millisecond
		r.S.Run(warm)
		var from [n]int64
		for i := range from {
			from[i] = r.out[i].Delivered
		}
		all := deliveredBytes(r)
		r.S.Run(warm + span)
		all = deliveredBytes(r) - all
		for i := range from {
			if got := float64(r.out[i].Delivered-from[i]) * n / float64(all); math.Abs(got-1) > 0.1 {
				t.Errorf("%s: flow %d has %.3f of its fair share", kind, i, got)
			}
		}
		if used := float64(all) * frame1460 / 1460 * 8 / (float64(span) / 1e12) / 10e9; used < 0.98 {
			t.Errorf("%s: %.3f of the link is used", kind, used)
		}
		noBreach(t, r.Result())
	}
}

// solveAlpha solves alpha²·(1 − alpha/4) = (2w + 1)/(w + 1)².
func solveAlpha(w float64) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		a := (lo + hi) / 2
		if a*a*(1-a/4) < (2*w+1)/((w+1)*(w+1)) {
			lo = a
		} else {
			hi = a
		}
	}
	return lo
}

// A lost tail never hangs a run: every place where the last packets of a flow
// can get lost, data and acknowledgements, of both kinds of congestion control.
func TestTCPTailLossEnds(t *testing.T) {
	for _, kind := range []string{"dctcp", "reno"} {
		for _, what := range []string{"data", "ack", "any"} {
			for _, count := range []int{1, 3, 7} {
				sc, g := tcpStar(t, 2, sim.Microsecond, "host.tcp.kind="+kind, "duration=100s")
				sc.Faults = []scenario.Fault{{Kind: scenario.DropNext, Where: "host1", What: what, Count: count, Priorities: 0xff}}
				_, res := finish(t, sc, g, []work.Flow{tcpFlow(0, 1, 10_000)})
				f := &res.Flows[0]
				if f.State != result.Finished || f.Delivered != 10_000 {
					t.Errorf("%s, %d of %s lost: %v, %d bytes delivered, ended by %s", kind, count, what, f.State, f.Delivered, res.Why)
				}
				if f.Retransmitted > 0 && f.Timeouts == 0 && count > 3 {
					t.Errorf("%s, %d of %s lost: %d retransmissions and no timeout", kind, count, what, f.Retransmitted)
				}
			}
		}
	}
}

// A lossy and a lossless class share a port by their ETS weights, as long as
// both have something to send; neither costs the other a packet that it should
// not lose.
func TestLossyAndLosslessShareByWeights(t *testing.T) {
	for _, w := range [][2]int{{1, 1}, {3, 1}, {1, 4}} {
		sc, g := tcpStar(t, 3, sim.Microsecond, "until=duration", "duration=30ms", "host.dcqcn.preset=off",
			"switch.ecn.priorities=[0]", "switch.ecn.kmin=60KB", "switch.ecn.kmax=60KB", "switch.ecn.pmax=1",
			fmt.Sprintf("switch.scheduler.weights={0: %d, 3: %d}", w[0], w[1]))
		rdma := work.Flow{Src: 1, Dst: 2, Prio: -1, DSCP: -1, Endless: true}
		r := startRun(t, sc, g, []work.Flow{tcpFlow(0, 2, 0), rdma})
		sw := g.Nodes[g.Endpoints[2].Node].Ports[0].Peer
		r.S.Run(10 * sim.Millisecond)
		out := r.Ports[sw][2]
		from := [2]uint64{out.Prio(0).TxBytes, out.Prio(3).TxBytes}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		got := [2]uint64{out.Prio(0).TxBytes - from[0], out.Prio(3).TxBytes - from[1]}
		have := float64(got[0]) / float64(got[0]+got[1])
		want := float64(w[0]) / float64(w[0]+w[1])
		if math.Abs(have-want) > 0.01 {
			t.Errorf("weights %v: the lossy class has %.3f of the port, want %.3f", w, have, want)
		}
		res := r.Result()
		noBreach(t, res)
		if n := r.dropCount[result.DropHeadroom]; n != 0 {
			t.Errorf("weights %v: %d lossless packets lost", w, n)
		}
	}
}

// Connections of one flow take different ways, as queue pairs do; a flow's bytes
// are divided among them.
func TestTCPFlowOfSeveralConnections(t *testing.T) {
	sc, g := t32(t, "host.tcp.min_rto=1ms")
	f := tcpFlow(0, 8, 1_000_003)
	f.QPs = 8
	_, res := finish(t, sc, g, []work.Flow{f, tcpFlow(3, 12, 0)}[:1])
	out := &res.Flows[0]
	if out.State != result.Finished || out.Delivered != 1_000_003 || out.Paths < 3 {
		t.Errorf("%v: %d bytes over %d ways", out.State, out.Delivered, out.Paths)
	}
}

// Flows that name one connection go over it one behind the other, and the later
// ones find its window as it is.
func TestTCPFlowsOfOneConnection(t *testing.T) {
	sc, g := tcpStar(t, 2, 20*sim.Microsecond)
	var flows []work.Flow
	for i := range 4 {
		f := tcpFlow(0, 1, 100_000)
		f.QP = 1
		f.Start = sim.Time(i) * sim.Millisecond
		flows = append(flows, f)
	}
	r, res := finish(t, sc, g, flows)
	for i := range res.Flows {
		f := &res.Flows[i]
		if f.State != result.Finished || f.Delivered != 100_000 || f.SrcPort != res.Flows[0].SrcPort {
			t.Errorf("flow %d: %v %d bytes, port %d", i, f.State, f.Delivered, f.SrcPort)
		}
	}
	// 100,000 bytes are 69 segments: 10, 20 and 39 round trips of slow start for
	// the first; the last has a window of at least 69.
	if a, b := res.Flows[0].FCT(), res.Flows[3].FCT(); b >= a || b != res.Flows[3].Base {
		t.Errorf("FCT %v of the first, %v of the last, %v alone", a, b, res.Flows[3].Base)
	}
	if n := r.lossy.stacks[0].Conns(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// What is impossible fails its flow with a reason, and the run goes on.
func TestTCPFlowThatCannotBe(t *testing.T) {
	sc, g := tcpStar(t, 2, sim.Microsecond)
	same := tcpFlow(0, 1, 1000)
	same.SrcPort = 60_000
	_, res := finish(t, sc, g, []work.Flow{same, same, tcpFlow(0, 1, 1000)})
	if f := &res.Flows[1]; f.State != result.Failed || f.Status == "" {
		t.Errorf("%v %q", f.State, f.Status)
	}
	for _, i := range []int{0, 2} {
		if f := &res.Flows[i]; f.State != result.Finished {
			t.Errorf("flow %d: %v %q", i, f.State, f.Status)
		}
	}
}
