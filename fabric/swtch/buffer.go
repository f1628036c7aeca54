package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// mmu is the state of the shared and headroom parts of the buffer.
type mmu struct {
	cell       int
	shared     int64 // size of the shared part
	used       int64 // of it
	headroom   int64 // size of all headroom
	pool       int64 // size of the shared headroom, else the most that is
	head       int64 // used of headroom
	reserved   int64 // size of all reserved parts
	peakShared int64
	peakHead   int64
}

// ingress is what one ingress port holds of one priority group.
type ingress struct {
	in       int64 // held outside headroom
	head     int64 // held in headroom
	reserved int64
	headroom int64
	limit    Limit
	xon      int64
	offset   int64
	peak     int64
	peakHead int64
	lossless bool
	paused   bool // the neighbour is told to stop
	waitXON  bool // evXON is scheduled
}

// cells returns n in whole cells, in bytes.
func cells(n int64, cell int) int64 {
	if cell <= 1 {
		return n
	}
	return (n + int64(cell) - 1) / int64(cell) * int64(cell)
}

func (m *mmu) cost(p *sim.Packet) int64 {
	if m.cell <= 1 {
		return int64(p.Bytes)
	}
	c := uint32(m.cell)
	return int64((uint32(p.Bytes) + c - 1) / c * c)
}

func (w *Switch) initBuffer() {
	b := &w.cfg.Buffer
	w.in = make([]ingress, w.cfg.Ports*8)
	m := &w.mmu
	m.cell = b.Cell
	for i := range w.cfg.Ports {
		c := w.cfg.port(i)
		for prio := range c.Queue {
			g := w.cfg.PrioToGroup[prio]
			if c.Queue[prio].Lossless {
				w.groups[g] |= 1 << prio
				w.in[i<<3|int(g)].lossless = true
			}
		}
		for k := range c.Group {
			g := &w.in[i<<3|k]
			g.reserved = cells(c.Group[k].Reserved, b.Cell)
			g.headroom = c.Group[k].Headroom
			g.limit = c.Group[k].Limit
			g.xon, g.offset = c.Group[k].XON, c.Group[k].XONOffset
			m.reserved += g.reserved
			m.headroom += g.headroom
		}
	}
	m.pool = m.headroom
	if b.SharedHeadroom > 0 {
		m.headroom, m.pool = b.SharedHeadroom, b.SharedHeadroom
	}
	m.shared = b.Total - m.reserved - m.headroom
}

// of returns the threshold when free bytes of the shared part are free.
func (l *Limit) of(free int64) int64 {
	switch l.Mode {
	case Dynamic:
		return int64(l.Alpha) * free >> 16
	case Static:
		return l.Bytes
	}
	return 1 << 62
}

// use returns what a group holds of the shared part.
func (g *ingress) use() int64 { return max(0, g.in-g.reserved) }

// admit takes a packet into the buffer, if there is room, and stops the
// neighbour if that has gone too far.
func (w *Switch) admit(now sim.Time, p *sim.Packet, out int, q *queue) bool {
	m := &w.mmu
	at := int(p.In)<<3 | int(p.Pool)
	g := &w.in[at]
	c := m.cost(p)
	use := g.use()
	more := max(0, g.in+c-g.reserved) - use // of the shared part
	free := m.shared - m.used
	limit := g.limit.of(free)
	switch {
	case more == 0 || more <= free && (g.lossless && use <= limit || use+more <= limit):
		g.in += c
		m.used += more
		m.peakShared = max(m.peakShared, m.used)
	case !g.lossless:
		return false
	case g.head+c > g.headroom || m.head+c > m.pool:
		w.xoff(now, at)
		return false
	default:
		g.head += c
		m.head += c
		g.peakHead = max(g.peakHead, g.head)
		m.peakHead = max(m.peakHead, m.head)
	}
	g.peak = max(g.peak, g.in+g.head)
	q.held += c
	if g.lossless {
		w.held.add(p, out, int32(c))
		if g.head > 0 || g.use() > g.limit.of(m.shared-m.used) {
			w.xoff(now, at)
		}
	}
	return true
}

// release gives back the room of a packet, and lets the neighbour go on when
// there is enough again.
func (w *Switch) release(now sim.Time, p *sim.Packet, out int, q *queue) {
	m := &w.mmu
	at := int(p.In)<<3 | int(p.Pool)
	g := &w.in[at]
	c := m.cost(p)
	q.held -= c
	if g.lossless {
		w.held.add(p, out, -int32(c))
	}
	if g.head > 0 {
		h := min(g.head, c)
		g.head -= h
		m.head -= h
		c -= h
	}
	use := g.use()
	g.in -= c
	m.used -= use - g.use()
	if g.paused && g.head == 0 {
		if int(p.In) == out {
			// The port is about to send this packet and cannot take another.
			if !g.waitXON {
				g.waitXON = true
				w.s.At(now, w, uint64(at)<<evShift|evXON)
			}
			return
		}
		w.maybeXON(now, at)
	}
}
