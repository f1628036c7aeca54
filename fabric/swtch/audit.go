package swtch

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Audit works out every sum anew from the packets in the switch, and says what
// does not agree. It is for tests and invariant checkers.
func (w *Switch) Audit() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("switch %s: %s", w.cfg.Name, fmt.Sprintf(format, a...))
	}
	in := make([]int64, len(w.in))
	queue := make([]int64, len(w.out)*8)
	pairs := make([]int64, len(w.held.bytes))
	var frames int64
	w.each(func(p *sim.Packet, out int) {
		c := w.mmu.cost(p)
		at := int(p.In)<<3 | int(p.Pool)
		in[at] += c
		queue[out<<3|int(p.Prio)] += c
		if len(pairs) > 0 && w.ingress(at).conf.lossless {
			pairs[w.held.row(at>>3, p.Pool)+out] += c
		}
		frames += int64(p.Bytes)
	})
	var used, head int64
	for at := range w.in {
		g := w.ingress(at)
		if g.in < 0 || g.head < 0 || g.in+g.head != in[at] {
			return bad("ingress %d group %d: counts %d + %d bytes, holds %d", at>>3, at&7, g.in, g.head, in[at])
		}
		if g.head > g.conf.Headroom {
			return bad("ingress %d group %d: %d bytes in headroom of %d", at>>3, at&7, g.head, g.conf.Headroom)
		}
		used += g.use()
		head += g.head
		if g.head > 0 && !g.paused {
			return bad("ingress %d group %d: %d bytes in headroom and the neighbour not stopped", at>>3, at&7, g.head)
		}
	}
	m := &w.mmu
	if m.used != used || m.head != head || used > m.shared || head > m.headroom {
		return bad("shared %d of %d and headroom %d of %d in use, by groups %d and %d", m.used, m.shared, m.head, m.headroom, used, head)
	}
	for i := range w.out {
		e := &w.out[i]
		for c, q := range e.q {
			if q == nil {
				continue
			}
			if n := w.holds(q); n != queue[i<<3|c] {
				return bad("queue %d of port %d: counts %d bytes, holds %d", c, i, n, queue[i<<3|c])
			}
			if (e.ready&(1<<c) != 0) != (q.fifo.Len() > 0) {
				return bad("queue %d of port %d: ready mask %08b with %d packets", c, i, e.ready, q.fifo.Len())
			}
		}
	}
	for i, n := range pairs {
		if have := int64(w.held.bytes[i]); have != n {
			row := i / w.held.ports
			return bad("ingress %d, lossless group %d, egress %d: counts %d bytes, holds %d", row/w.held.n, row%w.held.n, i%w.held.ports, have, n)
		}
	}
	if w.Stats.RxBytes != w.Stats.TxBytes+w.Stats.DropBytes+uint64(frames) {
		return bad("%d bytes came, %d left, %d were dropped, %d are here", w.Stats.RxBytes, w.Stats.TxBytes, w.Stats.DropBytes, frames)
	}
	return nil
}
