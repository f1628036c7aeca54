package tcp

import (
	"fmt"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

const delay = 50 * sim.Microsecond

// numbers returns from, from+1, … to-1.
func numbers(from, to int) (l []int) {
	for i := from; i < to; i++ {
		l = append(l, i)
	}
	return l
}

func join(parts ...[]int) []int { return slices.Concat(parts...) }

func wantData(t *testing.T, all []frame, want []int) {
	t.Helper()
	if got := data(all); !slices.Equal(got, want) {
		t.Fatalf("segments sent\n%v, want\n%v", got, want)
	}
}

// Slow start: the initial window, then two segments for each acknowledgement
// (RFC 5681 §3.1, RFC 6928): 4, 8, 16, 32 segments in successive round trips.
func TestSlowStartDoublesTheWindow(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 4})
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 60_000)
	r.s.Run(sim.Second)
	r.done(t, 60_000)
	var rounds [4]int
	for _, f := range *all {
		if f.data {
			rounds[f.at/r.rtt()]++
		}
	}
	if want := [4]int{4, 8, 16, 32}; rounds != want {
		t.Errorf("segments by round trip %v, want %v", rounds, want)
	}
	// The last window was stopped by nothing: the data was over.
	if c.Cwnd() != 32_000 {
		t.Errorf("window %d at the end", c.Cwnd())
	}
}

// Congestion avoidance: a segment more for each window that is acknowledged
// (RFC 5681 §3.1, byte counting).
func TestCongestionAvoidanceAddsASegmentARound(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 10})
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.ssthresh = 10_000
	c.Send(0, 0, 46_000)
	r.s.Run(sim.Second)
	var rounds [4]int
	for _, f := range *all {
		if f.data {
			rounds[f.at/r.rtt()]++
		}
	}
	if want := [4]int{10, 11, 12, 13}; rounds != want {
		t.Errorf("segments by round trip %v, want %v", rounds, want)
	}
}

// A window that nothing fills does not grow (RFC 7661 §4.1): the sender here has
// one segment a round trip.
func TestUnusedWindowDoesNotGrow(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	c := r.dial(t, Spec{RTT: 2 * delay})
	for i := range 100 {
		c.Send(r.s.Now(), int32(i), 1000)
		r.s.Run(sim.Time(i+1) * sim.Millisecond)
	}
	if c.Cwnd() != 10_000 {
		t.Errorf("window %d, want the initial 10000", c.Cwnd())
	}
}

// Limited transmit and fast retransmit: the first two duplicates let out a new
// segment each (RFC 3042), the third sends the lost one again (RFC 5681 §3.2).
// Half of the flight, without what limited transmit let out, is the new
// threshold; the window is that and three segments.
func TestThirdDuplicateRetransmits(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 10})
	r.lose(0)
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 16_000)
	// Duplicates 1, 2 and 3 arrive a segment apart, beginning with that for
	// segment 1.
	third := r.rtt() + 3*segment1000
	r.s.Run(third - 1)
	wantData(t, *all, numbers(0, 12))
	r.s.Run(third)
	wantData(t, *all, join(numbers(0, 12), []int{0}))
	if c.ssthresh != 5000 || c.cwnd != 8000 {
		t.Errorf("threshold %d window %d, want 5000 and 8000", c.ssthresh, c.cwnd)
	}
	// Of 10 and 2 segments one is lost: duplicates 4 to 11 let the window grow to
	// 16 segments of which 12 are in flight: four new ones, and that is all there
	// is. The acknowledgement of everything ends it.
	r.s.Run(sim.Second)
	wantData(t, *all, join(numbers(0, 12), []int{0}, numbers(12, 16)))
	r.done(t, 16_000)
	if r.b.again != 1 || r.b.timeouts != 0 || c.recovery {
		t.Errorf("%d retransmissions, %d timeouts, recovery %v", r.b.again, r.b.timeouts, c.recovery)
	}
}

// NewReno: each partial acknowledgement sends the next hole again, one a round
// trip, without a timeout (RFC 6582 §3.2).
func TestPartialAcknowledgementsRetransmit(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 20})
	r.lose(2, 5, 9)
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 20_000)
	r.s.Run(9 * sim.Millisecond)
	r.done(t, 20_000)
	var at []sim.Time
	for i, n := range data(*all) {
		if i >= 20 {
			at = append(at, (*all)[i].at)
			if want := []int{2, 5, 9}[i-20]; n != want {
				t.Errorf("retransmission %d is of segment %d, want %d", i-20, n, want)
			}
		}
	}
	if r.b.again != 3 || r.b.timeouts != 0 || len(at) != 3 {
		t.Fatalf("%d retransmissions, %d timeouts", r.b.again, r.b.timeouts)
	}
	if c.cwnd > c.ssthresh {
		t.Errorf("window %d after recovery, threshold %d", c.cwnd, c.ssthresh)
	}
}

// Duplicates for what was in flight at the last loss do not retransmit again
// (RFC 6582 §3.2 step 2): a segment whose retransmission is lost too waits for
// the timer.
func TestLostRetransmissionWaitsForTheTimer(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 20})
	r.lose(2, 2)
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 20_000)
	r.s.Run(sim.Second)
	r.done(t, 20_000)
	if r.b.timeouts != 1 {
		t.Errorf("%d timeouts, want 1", r.b.timeouts)
	}
	if at := r.b.acked[0]; at < 10*sim.Millisecond || at > 11*sim.Millisecond {
		t.Errorf("finished at %v, want just after a timeout of 10ms", at)
	}
	if c.timer.on() {
		t.Error("the timer still runs")
	}
}

// A lost tail comes again after the timeout; each timeout doubles the next, and
// the window starts again from one segment (RFC 6298 5.5, RFC 5681 §3.1). With
// the handshake's round trip R the first timeout is the larger of MinRTO and 3R
// (RFC 6298 2.2).
func TestTailLossTimesOut(t *testing.T) {
	for _, rto := range []sim.Time{sim.Millisecond, 100 * sim.Microsecond} {
		r := newRig(t, delay, Config{Kind: Reno, MinRTO: rto})
		r.lose(0, 0, 0)
		all := r.record()
		c := r.dial(t, Spec{RTT: 2 * delay})
		c.Send(0, 0, 500)
		r.s.Run(sim.Second)
		r.done(t, 500)
		first := max(rto, 3*2*delay)
		var got []sim.Time
		for _, f := range *all {
			if f.data {
				got = append(got, f.at)
			}
		}
		if want := []sim.Time{0, first, 3 * first, 7 * first}; !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
		if r.b.timeouts != 3 || c.cwnd != 1000 {
			t.Errorf("%d timeouts, window %d", r.b.timeouts, c.cwnd)
		}
		// The threshold is cut once for a segment (RFC 5681 §3.1), and two segments
		// at the least.
		if c.ssthresh != 2000 || c.reduction != 1 {
			t.Errorf("threshold %d after %d cuts", c.ssthresh, c.reduction)
		}
	}
}

// The timeout is RFC 6298's: R and R/2 from the first sample, then gains of 1/8
// and 1/4; without a handshake one second; never below the least.
func TestTimeoutFollowsTheRoundTrip(t *testing.T) {
	var e estimate
	e.init(0, sim.Millisecond)
	if e.rto != sim.Second {
		t.Errorf("first timeout %v", e.rto)
	}
	ms := sim.Millisecond
	for _, c := range []struct{ sample, srtt, rttvar, rto sim.Time }{
		{8 * ms, 8 * ms, 4 * ms, 24 * ms},
		{8 * ms, 8 * ms, 3 * ms, 20 * ms},      // 4 - 4/4
		{16 * ms, 9 * ms, 4250 * 1e6, 26 * ms}, // 3 + (8-3)/4; 8 + 8/8
		{9 * ms, 9 * ms, 4250*1e6 - 4250*1e6/4, 9*ms + 4*(4250*1e6-4250*1e6/4)},
	} {
		e.sample(c.sample, ms)
		if e.srtt != c.srtt || e.rttvar != c.rttvar || e.rto != c.rto {
			t.Fatalf("after %v: srtt %v var %v rto %v, want %v %v %v", c.sample, e.srtt, e.rttvar, e.rto, c.srtt, c.rttvar, c.rto)
		}
	}
	for range 100 {
		e.sample(10*sim.Microsecond, ms)
	}
	if e.rto != ms {
		t.Errorf("timeout %v, want the least", e.rto)
	}
	for range 40 {
		e.backOff()
	}
	if e.rto != maxRTO {
		t.Errorf("timeout %v after 40 doublings", e.rto)
	}
}

// Nothing that was sent again is timed (Karn), and what is timed takes the round
// trip exactly.
func TestRoundTripIsMeasured(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	c := r.dial(t, Spec{})
	c.Send(0, 0, 1000)
	r.s.Run(sim.Second)
	if c.RTT() != r.rtt() {
		t.Errorf("round trip %v, want %v", c.RTT(), r.rtt())
	}
	r = newRig(t, delay, Config{Kind: Reno, MinRTO: sim.Millisecond})
	r.lose(0)
	c = r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 1000)
	r.s.Run(sim.Second)
	if c.RTT() != 2*delay {
		t.Errorf("round trip %v after a retransmission, want that of the handshake", c.RTT())
	}
}

// The receiver's state machine (RFC 8257 §3.2): with an acknowledgement for
// every second segment, a change of the mark first acknowledges what waits under
// the old state, then itself at once; ECE is exactly the state.
func TestEchoIsExactWithDelayedAcks(t *testing.T) {
	marks := "..CC.C..CCC"
	r := newRig(t, delay, Config{Kind: DCTCP, AckEvery: 2, InitWindow: 20})
	r.p[1].Lose = func(p *sim.Packet) bool {
		if !p.Ack && marks[p.Seq/1000] == 'C' {
			p.ECN = 3
		}
		return false
	}
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, int64(len(marks))*1000)
	r.s.Run(r.rtt() + 12*segment1000)
	var got []string
	for _, f := range *all {
		if !f.data {
			got = append(got, fmt.Sprintf("%d:%v", f.seq/1000, f.flags&FlagECE != 0))
		}
	}
	// Segment 2 is the first with a mark: 0 and 1 were acknowledged as a pair. It
	// is acknowledged at once, 3 waits, and so on.
	want := []string{"2:false", "3:true", "4:true", "5:false", "6:true", "7:false", "8:false", "9:true", "11:true"}
	if !slices.Equal(got, want) {
		t.Errorf("acknowledgements %v, want %v", got, want)
	}
	if r.b.marks != 6 {
		t.Errorf("%d marks", r.b.marks)
	}
}

// A single segment waits for a second one, and no longer than the delay (RFC
// 5681 §4.2).
func TestDelayedAckComes(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, AckEvery: 2, AckDelay: 40 * sim.Microsecond})
	r.dial(t, Spec{RTT: 2 * delay}).Send(0, 0, 3000)
	r.s.Run(sim.Second)
	if want := r.rtt() + 2*segment1000 + 40*sim.Microsecond; r.b.acked[0] != want {
		t.Errorf("finished at %v, want %v", r.b.acked[0], want)
	}
}

// Alpha follows the share of marked bytes of each window (RFC 8257 §3.3): from 1
// at the start, (1-g)·alpha + g·M; the window is cut by alpha/2 once for each
// window of data, and the next new segment says so.
func TestAlphaFollowsTheShareOfMarks(t *testing.T) {
	r := newRig(t, delay, Config{Kind: DCTCP, InitWindow: 8, G: one / 4})
	var mark func(n int64) bool
	r.p[1].Lose = func(p *sim.Packet) bool {
		if !p.Ack && mark(p.Seq/1000) {
			p.ECN = 3
		}
		return false
	}
	mark = func(n int64) bool { return n == 3 || n == 5 }
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.ssthresh = 8000
	c.Send(0, 0, 100_000)
	// The observation window of RFC 8257 starts with the first acknowledgement
	// alone (WindowEnd is SND.UNA): no mark, alpha is 3/4. Then segments 1 to 8
	// make one: the window was 8 segments and is now.
	r.s.Run(r.rtt())
	if got := c.Alpha(); got != one/4*3 {
		t.Fatalf("alpha %v after the first acknowledgement, want 0.75", float64(got)/float64(one))
	}
	// Segment 3's mark arrives and cuts: 8000 × (1 − 0.75/2) = 5000. Segment 5's
	// belongs to the same window of data.
	r.s.Run(r.rtt() + 5*segment1000)
	if c.Cwnd() != 5000 || c.ssthresh != 5000 || c.reduction != 1 {
		t.Fatalf("window %d threshold %d after %d cuts, want 5000 and one", c.Cwnd(), c.ssthresh, c.reduction)
	}
	r.s.Run(r.rtt() + 7*segment1000)
	if c.reduction != 1 {
		t.Fatalf("%d cuts for one window of data", c.reduction)
	}
	if n := len(c.msgs); n != 1 {
		t.Fatal("the flow is over too early")
	}
	r.s.Run(2*r.rtt() + 8*segment1000)
	// The next window is [8 segments + …]: marks are over, alpha falls by a
	// quarter for each window, after the share of the one with marks came in:
	// segments 1…8 are 8000 bytes of which 2000 are marked.
	first := one/4*3 - one/4*3/4 + one/4/4
	if got := c.Alpha(); got != first {
		t.Fatalf("alpha %v, want %v", float64(got)/float64(one), float64(first)/float64(one))
	}
	cwr := 0
	for _, f := range *all {
		if f.flags&FlagCWR != 0 {
			cwr++
		}
		if f.ecn != 2 {
			t.Fatalf("a packet of DCTCP leaves with ECN %d", f.ecn)
		}
	}
	if cwr != 1 {
		t.Errorf("%d segments with CWR, want 1", cwr)
	}
}

// Marks of every packet halve the window, as a loss does (RFC 8257 §3.3), down
// to two segments.
func TestAllMarkedHalves(t *testing.T) {
	r := newRig(t, delay, Config{Kind: DCTCP, InitWindow: 64})
	r.p[1].Lose = func(p *sim.Packet) bool {
		if !p.Ack {
			p.ECN = 3
		}
		return false
	}
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 200_000)
	r.s.Run(r.rtt())
	if c.Cwnd() != 32_000 {
		t.Errorf("window %d after the first mark, want 32000", c.Cwnd())
	}
	r.s.Run(sim.Second)
	r.done(t, 200_000)
	if c.Cwnd() != 2000 || c.Alpha() != one {
		t.Errorf("window %d alpha %d, want two segments and 1", c.Cwnd(), c.Alpha())
	}
}

// Reno is not ECN-capable, and a mark that comes all the same means nothing.
func TestRenoIsNotECNCapable(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	all := r.record()
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 20_000)
	r.s.Run(sim.Second)
	r.done(t, 20_000)
	for _, f := range *all {
		if f.ecn != 0 || f.flags&(FlagECE|FlagCWR) != 0 {
			t.Fatalf("a packet of Reno leaves with ECN %d, flags %#x", f.ecn, f.flags)
		}
	}
}

// Segments leave at the connection's rate, counted in bytes of frames.
func TestRateSpreadsSegments(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno, InitWindow: 100})
	all := r.record()
	r.dial(t, Spec{RTT: 2 * delay, Rate: 10 * sim.Gbps}).Send(0, 0, 50_000)
	r.s.Run(sim.Second)
	r.done(t, 50_000)
	for i, f := range *all {
		if f.data && i < 50 && f.at != sim.Time(i)*10*segment1000 {
			t.Fatalf("segment %d left at %v, want %v", i, f.at, sim.Time(i)*10*segment1000)
		}
	}
}

// Flows share a connection one behind the other: its window goes on, each is
// told of when it is over, and each gets its own bytes.
func TestFlowsShareAConnection(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	c := r.dial(t, Spec{RTT: 2 * delay})
	sizes := []int64{10_500, 1, 7_777, 100_000}
	for i, n := range sizes {
		c.Send(0, int32(i), n)
	}
	r.s.Run(sim.Second)
	last := sim.Time(0)
	for i, n := range sizes {
		if r.b.delivered[int32(i)] != n || r.b.acked[int32(i)] < last {
			t.Errorf("flow %d: %d of %d bytes, acknowledged at %v", i, r.b.delivered[int32(i)], n, r.b.acked[int32(i)])
		}
		last = r.b.acked[int32(i)]
	}
}

// Ports of connections between two hosts differ; one that is wanted and in use
// is refused; closing gives it back.
func TestPortsAreUnique(t *testing.T) {
	r := newRig(t, delay, Config{})
	seen := map[uint16]bool{}
	var conns []*Conn
	for range 500 {
		c := r.dial(t, Spec{})
		if c.SrcPort() < firstPort || seen[c.SrcPort()] {
			t.Fatalf("port %d again", c.SrcPort())
		}
		seen[c.SrcPort()] = true
		conns = append(conns, c)
	}
	if _, err := Dial(r.k[0], r.k[1], Spec{SrcPort: conns[7].SrcPort()}); err == nil {
		t.Error("a port was given twice")
	}
	for _, c := range conns {
		c.Close()
	}
	if n, m := r.k[0].Conns(), r.k[1].Conns(); n != 0 || m != 0 {
		t.Errorf("%d and %d connections are left", n, m)
	}
	if _, err := Dial(r.k[0], r.k[0], Spec{}); err == nil {
		t.Error("a host is connected with itself")
	}
}

// What comes for a connection that is closed is nobody's, and gone.
func TestClosedConnectionLeavesNothing(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	c := r.dial(t, Spec{RTT: 2 * delay})
	c.Send(0, 0, 1_000_000)
	r.s.Run(r.rtt() + 3*segment1000)
	c.Close()
	c.Send(r.s.Now(), 1, 1000)
	r.s.Run(sim.Second)
	if n := r.s.Pool.Live(); n != 0 || r.s.Pending() != 0 {
		t.Errorf("%d packets and %d events are left", n, r.s.Pending())
	}
}

// A class that the neighbour stops is left alone, acknowledgements too; the
// other classes go on.
func TestStoppedClassWaits(t *testing.T) {
	r := newRig(t, delay, Config{Kind: Reno})
	a, b := r.dial(t, Spec{RTT: 2 * delay, Prio: 1}), r.dial(t, Spec{RTT: 2 * delay, Prio: 2})
	r.p[1].Stop(0, 1) // host 1 stops host 0
	r.s.Run(sim.Microsecond + delay)
	a.Send(r.s.Now(), 0, 50_000)
	b.Send(r.s.Now(), 1, 50_000)
	r.s.Run(5 * sim.Millisecond)
	if r.b.acked[1] == 0 || r.b.delivered[0] != 0 {
		t.Fatalf("the stopped class delivered %d bytes, the other ended at %v", r.b.delivered[0], r.b.acked[1])
	}
	r.p[1].Resume(r.s.Now(), 1)
	r.s.Run(10 * sim.Millisecond)
	r.done(t, 50_000)
}
