package truth

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// shares runs endless flows and returns what each had of the wire, in Gb/s, from
// an instant to the end of the run.
func (r rig) shares(t *testing.T, flows []work.Flow, from sim.Time) []float64 {
	t.Helper()
	run := r.compose(t, &work.List{Flows: flows})
	look := &glance{run: run}
	run.S.At(from, look, 0)
	res := end(t, run)
	lossless(t, res)
	rates := make([]float64, len(flows))
	for i := range rates {
		rates[i] = float64(res.Flows[i].Delivered-look.seen[i]) * 8 * 1.048 / (res.End - from).Seconds() / 1e9
	}
	return rates
}

func (r rig) share(t *testing.T, row string, flows []work.Flow, from sim.Time, want []float64, within float64) {
	t.Helper()
	for i, got := range r.shares(t, flows, from) {
		near(t, row, flows[i].Group, got, want[i], within)
	}
}

// A6a: the queue pairs of a NIC take turns.
func TestA6QueuePairsOfOneNIC(t *testing.T) {
	var flows []work.Flow
	demands := make([]theory.Demand, 4)
	for i := range demands {
		flows = append(flows, forever(0, int32(i+1), "qp"))
		demands[i].Links = []int{0}
	}
	flows[0].Rate, demands[0].Limit = 10*sim.Gbps, 10
	want, _, err := theory.MaxMin([]float64{100}, demands)
	if err != nil {
		t.Fatal(err)
	}
	r := load(t, "star", "topology.hosts=5", "until=duration", "duration=2ms")
	r.share(t, "A6a", flows, 100*sim.Microsecond, want, 0.001)
}

// A6b: weights of the classes at an egress.
func TestA6Weights(t *testing.T) {
	var flows []work.Flow
	var classes []theory.Class
	for i, weight := range []float64{1, 2, 5} {
		f := forever(int32(i+1), 0, "class")
		f.Prio, f.DSCP = int8(i+1), int8(8*(i+1))
		flows = append(flows, f)
		classes = append(classes, theory.Class{Weight: weight, Demand: math.Inf(1)})
	}
	r := load(t, "star", "topology.hosts=4", "switch.buffer.xoff=100KB", "switch.pfc.priorities=[1,2,3]", "host.nic.pfc=[1,2,3]",
		"switch.scheduler.weights={1: 1, 2: 2, 3: 5}", "until=duration", "duration=5ms",
		// Their code points have to be known before the traffic is.
		"workload=[{name: a, kind: long, src: host1, dst: host0, priority: 1, dscp: 8}, {name: b, kind: long, src: host1, dst: host0, priority: 2, dscp: 16}, {name: c, kind: long, src: host1, dst: host0, priority: 3, dscp: 24}]")
	r.share(t, "A6b", flows, 500*sim.Microsecond, theory.ETS(100, classes), 0.01)
}

// A6c: PFC is fair to ports, not to flows.
func TestA6PortFair(t *testing.T) {
	var flows []work.Flow
	for _, src := range []int32{1, 1, 1, 2, 3} {
		flows = append(flows, forever(src, 0, "flow"))
	}
	per := theory.PortFlows(100, []int{3, 1, 1})
	r := load(t, "star", "topology.hosts=4", "switch.buffer.xoff=100KB", "until=duration", "duration=5ms")
	r.share(t, "A6c", flows, sim.Millisecond, []float64{per[0], per[0], per[0], per[1], per[2]}, 0.05)
}

// A6d: the parking lot of SIGCOMM'15 DCQCN §2.2.
func TestA6ParkingLot(t *testing.T) {
	var flows []work.Flow
	for src := range int32(5) {
		flows = append(flows, forever(src, 5, "flow"))
	}
	per := theory.ParkingLot(40, []int{2, 2, 1})
	r := load(t, "star", "topology={kind: parking-lot, switches: 3, hosts_per_switch: 2, rate: 40Gbps, delay: 1us}", "switch.buffer.xoff=100KB",
		"until=duration", "duration=10ms")
	r.share(t, "A6d", flows, 2*sim.Millisecond, []float64{per[0], per[0], per[1], per[1], per[2]}, 0.05)
}

// A6e, A6f: at one bottleneck DCQCN is max-min fair, limits included.
func TestA6DCQCNIsFair(t *testing.T) {
	for _, c := range []struct {
		row   string
		n     int
		limit sim.Rate
	}{{"A6e", 4, 0}, {"A6f", 5, 4 * sim.Gbps}} {
		flows := senders(c.n)
		flows[0].Rate = c.limit
		demands := make([]theory.Demand, c.n)
		for i := range demands {
			demands[i].Links = []int{0}
		}
		demands[0].Limit = float64(c.limit) / 1e9
		want, _, err := theory.MaxMin([]float64{40}, demands)
		if err != nil {
			t.Fatal(err)
		}
		bStar(t, "paper", 40, c.n, "record.series=none", "duration=400ms").share(t, c.row, flows, 20*sim.Millisecond, want, 0.05)
	}
}

// A6g: with two bottlenecks it is not. A flow that crosses both is marked at
// both, so with p(R) the marking probability at which Theorem 1 gives the rate R
//
//	p(A) = p(B) + p(C),  A + B = A + 3 C = capacity.
func TestA6DCQCNAtTwoBottlenecks(t *testing.T) {
	const capacity = 40.0
	p := func(rate float64) float64 {
		d := theory.PaperDCQCN(2*rate*1e9, 2)
		d.PacketBytes = 1048
		f, err := d.FixedPoint()
		if err != nil {
			t.Fatal(err)
		}
		return f.P
	}
	a, high := 1.0, 10.0
	for high-a > 1e-3 {
		x := (a + high) / 2
		if p(x) > p(capacity-x)+p((capacity-x)/3) {
			a = x
		} else {
			high = x
		}
	}
	b, c := capacity-a, (capacity-a)/3
	// Four hosts at each switch: A and B begin at the first, B ends at the second,
	// where C1..C3 begin; they and A end at the third.
	flows := []work.Flow{
		forever(0, 8, "A"), forever(1, 4, "B"), forever(5, 9, "C"), forever(6, 10, "C"), forever(7, 11, "C"),
	}
	r := bStar(t, "paper", 40, 4, "record.series=none", "topology={kind: parking-lot, switches: 3, hosts_per_switch: 4, rate: 40Gbps, delay: 1us}")
	r.share(t, "A6g", flows, 20*sim.Millisecond, []float64{a, b, c, c, c}, 0.10)
}
