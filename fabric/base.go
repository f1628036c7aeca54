package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// base returns the completion time of a flow that is alone: its frames cross
// the links one behind the other, and an acknowledgement comes back, by other
// links where routes say so; of a READ its request has crossed those before.
// Limits of NICs, and the acknowledgements of earlier packets, are not in it.
func (r *Run) base(f *work.Flow, hops, home []result.Hop) sim.Time {
	if len(hops) == 0 || len(home) == 0 || f.Bytes == 0 {
		return 0
	}
	m := r.messageFrames(f)
	var there, back crossing
	r.cross(&there, hops)
	r.cross(&back, home)
	return there.all(&m) + back.pass(m.answer)
}

// frames says how long the frames of a message are.
type frames struct {
	bytes       int64
	full        int64 // user bytes of a full packet
	head        int   // what surrounds them
	first, last int   // what the first and the last packet have besides
	pad         bool  // to 4 bytes
	answer      int   // the frame the other way: acknowledgement or request
}

// messageFrames returns the frames of a flow.
func (r *Run) messageFrames(f *work.Flow) frames {
	full, head, ack := r.frameSizes(f)
	m := frames{bytes: f.Bytes, full: int64(full), head: head, answer: ack}
	if f.Op == work.TCP {
		return m
	}
	short := r.messageOf(f) < m.full // no packet is longer than a message
	m.full = min(m.full, r.messageOf(f))
	c := r.NICs[f.Src].Config()
	if c.Header > 0 {
		return m
	}
	const reth, aeth = 16, 4
	m.pad = true
	switch f.Op {
	case work.Write:
		m.first = reth
	case work.Read:
		m.first, m.last = aeth, aeth
		if c.Control == 0 {
			m.answer = ack - aeth + reth
		}
	case work.Send, work.TCP:
	}
	if short { // every packet is a first one
		m.head, m.first, m.last = m.head+m.first, 0, 0
	}
	return m
}

// packets returns how many there are.
func (m *frames) packets() int64 { return (m.bytes + m.full - 1) / m.full }

// frame returns the length of frame i of n.
func (m *frames) frame(i, n int64) int {
	b := m.full
	if i == n-1 {
		b = m.bytes - i*m.full
	}
	if m.pad {
		b = (b + 3) &^ 3
	}
	k := int(b) + m.head
	if i == 0 {
		k += m.first
	}
	if i == n-1 && (i > 0 || m.first == 0) {
		k += m.last
	}
	return k
}

// crossing follows frames over links that nothing else uses.
type crossing struct {
	n    int
	gap  int
	link [maxPath]struct {
		rate    sim.Rate
		delay   sim.Time
		latency sim.Time // of the switch in front of the link
		cut     bool     // it may begin before the end of a frame is there
		free    sim.Time
	}
}

// cross sets the links of a path up.
func (r *Run) cross(c *crossing, hops []result.Hop) {
	c.gap = r.gap()
	for _, h := range hops {
		c.add(r, h.Node, r.Ports[h.Node][h.Port])
	}
}

func (c *crossing) add(r *Run, from int32, p *port.Port) {
	l := &c.link[c.n]
	l.rate, l.delay = p.Rate(), p.Delay()
	if r.Switches[from] != nil {
		s := &r.settings[from].cfg
		l.latency = s.Latency
		l.cut = s.CutThrough && c.n > 0 && l.rate <= c.link[c.n-1].rate
	}
	c.n++
}

// pass sends one frame and returns when its last bit arrives.
func (c *crossing) pass(bytes int) sim.Time {
	var head, tail sim.Time
	for i := range c.n {
		l := &c.link[i]
		start := max(tail+l.latency, l.free)
		if l.cut && l.free <= head+l.latency {
			start = head + l.latency
		}
		l.free = max(start+l.rate.For(bytes+c.gap), tail)
		head = start + l.rate.For(min(bytes, port.HeadBytes)+c.gap) + l.delay
		tail = l.free + l.delay
	}
	return tail
}

// all sends the frames of a message and returns when the last bit arrives. Once
// full frames have followed each other twice at the same distances, and on no
// link closer than on the one before, those behind them do so too.
func (c *crossing) all(m *frames) sim.Time {
	n := m.packets()
	var end sim.Time
	var was, step [maxPath]sim.Time
	for i := int64(0); i < n; i++ {
		end = c.pass(m.frame(i, n))
		steady := i > 1
		for h := range c.n {
			d := c.link[h].free - was[h]
			steady = steady && d == step[h] && (h == 0 || d >= step[h-1])
			was[h], step[h] = c.link[h].free, d
		}
		if k := n - 2 - i; steady && k > 0 {
			for h := range c.n {
				c.link[h].free += sim.Time(k) * step[h]
				was[h] = c.link[h].free
			}
			i += k
		}
	}
	return end
}
