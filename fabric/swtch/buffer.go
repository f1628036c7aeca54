package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// mmu is the state of the shared part and of headroom, in bytes.
type mmu struct {
	shared     int64 // size of the shared part
	used       int64 // of it
	headroom   int64 // size of all headroom: the pool, if it is shared
	head       int64 // used of it
	cell       uint32
	peakShared int64
	peakHead   int64
	reserved   int64 // size of all reserved parts
}

// ingress is what one ingress port holds of one priority group. It is one cache
// line.
type ingress struct {
	in       int64 // held outside headroom
	head     int64 // held in headroom
	peak     int64 // of both
	peakHead int64
	conf     *groupConf
	paused   bool // the neighbour is told to stop
	waitXON  bool // evXON is scheduled
	_        [22]byte
}

// ingress returns a group of a port, named by port × 8 + group. The ports of a
// group lie together: most groups are never used.
func (w *Switch) ingress(at int) *ingress { return &w.in[(at&7)*len(w.out)+at>>3] }

// groupConf is the configuration of an ingress group.
type groupConf struct {
	Group
	lossless bool
}

// cells returns n in whole cells, in bytes.
func cells(n int64, cell int) int64 {
	if cell <= 1 {
		return n
	}
	return (n + int64(cell) - 1) / int64(cell) * int64(cell)
}

// cost returns the bytes of memory that a packet takes.
func (m *mmu) cost(p *sim.Packet) int64 {
	if m.cell <= 1 {
		return int64(p.Bytes)
	}
	return int64((uint32(p.Bytes) + m.cell - 1) / m.cell * m.cell)
}

// initBuffer divides the memory, which Validate has found large enough.
func (w *Switch) initBuffer() {
	b := &w.cfg.Buffer
	m := &w.mmu
	m.cell = uint32(b.Cell)
	for i := range w.in {
		g := &w.out[i>>3].conf.group[i&7]
		w.ingress(i).conf = g
		m.reserved += g.Reserved
		m.headroom += g.Headroom
	}
	if b.SharedHeadroom > 0 {
		m.headroom = b.SharedHeadroom
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
	case Unlimited:
	}
	return maxBytes
}

// use returns what a group holds of the shared part.
func (g *ingress) use() int64 { return max(0, g.in-g.conf.Reserved) }

// free returns what is free of the shared part.
func (m *mmu) free() int64 { return m.shared - m.used }

// admit takes a packet into the buffer, if there is room, and stops the
// neighbour if that has gone too far.
func (w *Switch) admit(now sim.Time, p *sim.Packet, out int, q *queue) bool {
	m := &w.mmu
	at := int(p.In)<<3 | int(p.Pool)
	g := w.ingress(at)
	conf := g.conf
	c := m.cost(p)
	use := g.use()
	more := max(0, g.in+c-conf.Reserved) - use // of the shared part
	free := m.free()
	limit := conf.Limit.of(free)
	// Others may have pushed a dynamic threshold below what this group holds,
	// without an XOFF: the frame that finds this out is still in the shared part.
	room := more == 0 || more <= free && (use+more <= limit || conf.lossless && (use <= limit || !g.paused))
	switch {
	case room:
		g.in += c
		m.used += more
		m.peakShared = max(m.peakShared, m.used)
	case !conf.lossless:
		return false
	case g.head+c > conf.Headroom || m.head+c > m.headroom:
		if g.in+g.head > 0 {
			w.xoff(now, at)
		} // else nothing of its own would ever give rise to XON
		return false
	default:
		g.head += c
		m.head += c
		g.peakHead = max(g.peakHead, g.head)
		m.peakHead = max(m.peakHead, m.head)
	}
	g.peak = max(g.peak, g.in+g.head)
	if w.counts {
		q.held += c
	}
	if conf.lossless {
		over := g.head > 0 || g.use() > conf.Limit.of(m.free())
		if over {
			w.keep() // before this packet, which is in no queue yet, counts
		}
		w.held.add(p, out, int32(c))
		if over {
			w.xoff(now, at)
		}
	}
	return true
}

// release gives back the room of a packet, headroom first, and lets the
// neighbour go on when there is enough again.
func (w *Switch) release(now sim.Time, p *sim.Packet, out int, q *queue) {
	m := &w.mmu
	at := int(p.In)<<3 | int(p.Pool)
	g := w.ingress(at)
	c := m.cost(p)
	if w.counts {
		q.held -= c
	}
	if g.conf.lossless {
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
	if !g.paused || g.head > 0 {
		return
	}
	if int(p.In) != out {
		w.maybeXON(now, at)
	} else if !g.waitXON {
		// The port is about to send this very packet: it cannot take another
		// frame before this call is over.
		g.waitXON = true
		w.s.At(now, w, uint64(at)<<evShift|evXON)
	}
}
