package explain

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Limit is a host, not the network, that set the speed.
type Limit struct {
	Kind LimitKind
	Host Place
	// Rate is what the host moved while it had to: into it for receive limits,
	// out of it for the others. Line is its port's rate.
	Rate, Line sim.Rate
	Max        sim.Rate // the limit; 0: not known
	Flows      int      // that it touched

	Queues, Used int // receive queues, and those that did the work
	Busiest      int // index of the busiest
	Busy         float64

	Packets, MaxPackets uint64 // a second

	QPs int // of each flow at the limit

	Paused   sim.Time // it stopped the network
	Drops    uint64   // it dropped
	PeakRx   int64    // bytes waiting in the NIC
	RxBuffer int64
}

// LimitKind says which part of a host is the limit.
type LimitKind uint8

// The limits.
const (
	// OneRxQueue: everything went to one of several receive queues, and so to
	// one core: RSS is off, or the flows differ in nothing that it hashes.
	OneRxQueue LimitKind = iota
	// RxQueues: all receive queues that there are were busy.
	RxQueues
	// Drain: PCIe or memory takes less than the line brings.
	Drain
	// QPEngine: the NIC's engine gives one queue pair no more.
	QPEngine
	// PacketRate: packets a second of the NIC; messages are too small.
	PacketRate
)

// hostLimits looks at every host.
func (s *stops) hostLimits(f *fluid) []Limit {
	n := s.n
	in, out := n.spans()
	at := make([][]int32, len(n.r.Nodes)) // flows at the engine's limit, by sender
	for i := range n.flows {
		if n.atEngine(f, int32(i)) {
			h := n.flows[i].from
			at[h] = append(at[h], int32(i))
		}
	}
	from, to := make([]int, len(n.r.Nodes)), make([]int, len(n.r.Nodes))
	for i := range n.flows {
		if d := &n.flows[i]; d.f.State != result.Waiting {
			if n.hasNode(d.from) {
				from[d.from]++
			}
			if n.hasNode(d.to) {
				to[d.to]++
			}
		}
	}
	pressed := s.pressed()
	var all []Limit
	for h := range n.r.Nodes {
		if n.r.Nodes[h].Switch {
			continue
		}
		if l, ok := n.receiver(int32(h), &in[h], pressed[h]); ok {
			l.Flows = to[h]
			all = append(all, l)
		}
		if l, ok := n.sender(int32(h), &out[h], at[h]); ok {
			if l.Kind == PacketRate {
				l.Flows = from[h]
			}
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(b.Paused, a.Paused), cmp.Compare(b.Drops, a.Drops))
	})
	return all
}

// spans returns when each host received and sent.
func (n *net) spans() (in, out []spans) {
	wi, wo := make([][]Window, len(n.r.Nodes)), make([][]Window, len(n.r.Nodes))
	for i := range n.flows {
		d := &n.flows[i]
		if d.f.State == result.Waiting || d.life() <= 0 {
			continue
		}
		if n.hasNode(d.to) {
			wi[d.to] = append(wi[d.to], Window{d.start, d.end})
		}
		if n.hasNode(d.from) {
			wo[d.from] = append(wo[d.from], Window{d.start, d.end})
		}
	}
	in, out = make([]spans, len(wi)), make([]spans, len(wo))
	for h := range wi {
		in[h], out[h] = union(wi[h]), union(wo[h])
	}
	return in, out
}

// pressure is what a host did because it could not take more in.
type pressure struct {
	paused sim.Time
	drops  uint64
}

func (s *stops) pressed() []pressure {
	out := make([]pressure, len(s.n.r.Nodes))
	for i := range s.all {
		t := &s.all[i]
		if !s.n.r.Nodes[t.node].Switch && (t.cause == result.CauseSlowReceiver || t.cause == result.CauseBuffer) {
			out[t.node].paused += t.to - t.from
		}
	}
	for i := range s.n.r.Drops {
		d := &s.n.r.Drops[i]
		if d.Reason == result.DropHostBuffer && s.n.hasNode(d.Node) {
			out[d.Node].drops++
		}
	}
	return out
}

// receiver finds what limits a host's way in, if it is the host at all: a
// queue that is busy all the time, or a NIC that stops or drops.
func (n *net) receiver(h int32, active *spans, p pressure) (Limit, bool) {
	node := &n.r.Nodes[h]
	t := active.total()
	if t <= 0 {
		return Limit{}, false
	}
	l := Limit{Host: n.nodePlace(h), Line: n.line(h), Paused: p.paused, Drops: p.drops, PeakRx: node.Host.PeakRx, RxBuffer: node.Host.RxBuffer}
	var bytes, most uint64
	for q := range node.Host.RxQueues {
		b := node.Host.RxQueues[q].Bytes
		bytes += b
		if b > 0 {
			l.Used++
		}
		if b > most {
			most, l.Busiest = b, q
		}
	}
	if bytes == 0 {
		bytes = n.rxBytes(h)
	}
	l.Queues = len(node.Host.RxQueues)
	l.Rate = sim.RateOf(int64(bytes), t)
	busy := int64(0)
	if l.Queues > 0 {
		busy = permille(node.Host.RxQueues[l.Busiest].Busy, t)
	}
	l.Busy = float64(busy) / 1000
	if l.Queues > 0 && busy >= atLimitPermille {
		l.Max = node.Host.RxQueueRate
		l.Kind = RxQueues
		if l.Queues > 1 && most*1000 >= bytes*oneQueuePermille {
			l.Kind, l.Used = OneRxQueue, 1
		}
		return l, true
	}
	slow := permille(p.paused, t) >= interiorPermille || p.drops > 0
	d := node.Host.DrainRate
	if slow || d > 0 && d < l.Line && int64(l.Rate) >= muldiv(int64(d), atLimitPermille, 1000) {
		l.Kind, l.Max = Drain, d
		return l, true
	}
	return Limit{}, false
}

func (n *net) sender(h int32, active *spans, at []int32) (Limit, bool) {
	node := &n.r.Nodes[h]
	t := active.total()
	if t <= 0 {
		return Limit{}, false
	}
	l := Limit{Host: n.nodePlace(h), Line: n.line(h)}
	bytes, packets := n.txBytes(h)
	l.Rate = sim.RateOf(int64(bytes), t)
	l.Packets = perSecond(packets, t)
	if m := node.Host.PacketRate; m > 0 && l.Packets >= uint64(muldiv(int64(m), atLimitPermille, 1000)) && int64(l.Rate) < muldiv(int64(l.Line), atLimitPermille, 1000) {
		l.Kind, l.MaxPackets = PacketRate, m
		return l, true
	}
	if len(at) == 0 {
		return Limit{}, false
	}
	l.Kind, l.Max, l.Flows = QPEngine, node.Host.QPRate, len(at)
	l.Rate, l.QPs = n.flows[at[0]].goodput(), max(1, n.flows[at[0]].f.QPs)
	return l, true
}

// atEngine reports whether a flow ran at what the NIC gives to its queue pairs
// although its path would have given it more.
func (n *net) atEngine(f *fluid, i int32) bool {
	d := &n.flows[i]
	limit := n.engine(d)
	if limit <= 0 || d.life() <= 0 || d.f.State == result.Waiting || d.f.RateLimit > 0 && d.f.RateLimit < limit {
		return false
	}
	real := sim.RateOf(d.sent, d.life()-f.latency(d))
	if int64(real) < muldiv(int64(limit), atLimitPermille, 1000) {
		return false
	}
	least := n.usedAlong(d)
	return float64(least) >= float64(limit)*limitCost
}

// usedAlong returns what the tightest link of a flow's path had left for it.
func (n *net) usedAlong(d *flow) sim.Rate {
	least := n.line(d.from)
	for _, e := range d.path {
		rate := n.port(e).Rate
		used := sim.Rate(muldiv(int64(rate), n.usedBy(e, d.start, d.end), 1000))
		least = min(least, rate-used+sim.RateOf(d.sent, d.life()))
	}
	return least
}

func (n *net) line(h int32) sim.Rate {
	var sum sim.Rate
	if !n.hasNode(h) {
		return 0
	}
	for i := range n.r.Nodes[h].Ports {
		sum += n.r.Nodes[h].Ports[i].Rate
	}
	return sum
}

func (n *net) rxBytes(h int32) uint64 {
	var sum uint64
	for i := range n.r.Nodes[h].Ports {
		for p := range n.r.Nodes[h].Ports[i].Prio {
			sum += n.r.Nodes[h].Ports[i].Prio[p].RxBytes
		}
	}
	return sum
}

func (n *net) txBytes(h int32) (bytes, packets uint64) {
	for i := range n.r.Nodes[h].Ports {
		for p := range n.r.Nodes[h].Ports[i].Prio {
			bytes += n.r.Nodes[h].Ports[i].Prio[p].TxBytes
			packets += n.r.Nodes[h].Ports[i].Prio[p].TxPackets
		}
	}
	return bytes, packets
}

func perSecond(n uint64, t sim.Time) uint64 {
	hi, lo := bits.Mul64(n, uint64(sim.Second))
	if t <= 0 || hi >= uint64(t) {
		return 0
	}
	q, _ := bits.Div64(hi, lo, uint64(t))
	return q
}
