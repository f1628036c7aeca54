package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// xoff stops the neighbour of an ingress group.
func (w *Switch) xoff(now sim.Time, at int) {
	g := &w.in[at]
	p := w.out[at>>3].port
	news := false
	for m := w.groups[at&7] & w.out[at>>3].lossless; m != 0; m &= m - 1 {
		c := lowest(m)
		if p.Stop(now, c) {
			news = true
			w.logPause(now, at, c, true)
		}
	}
	if news || !g.paused {
		w.paused++
	}
	g.paused = true
}

// maybeXON lets the neighbour of an ingress group go on, if there is room.
func (w *Switch) maybeXON(now sim.Time, at int) {
	g := &w.in[at]
	g.waitXON = false
	if !g.paused || g.head > 0 {
		return
	}
	limit := g.limit.of(w.mmu.shared - w.mmu.used)
	if g.use() > max(g.xon, limit-g.offset) {
		return
	}
	g.paused = false
	p := w.out[at>>3].port
	for m := w.groups[at&7] & w.out[at>>3].lossless; m != 0; m &= m - 1 {
		if c := lowest(m); p.Resume(now, c) {
			w.logPause(now, at, c, false)
		}
	}
}

func (w *Switch) logPause(now sim.Time, at int, prio uint8, on bool) {
	if w.log == nil {
		return
	}
	g := &w.in[at]
	limit := g.limit.of(w.mmu.shared - w.mmu.used)
	if g.limit.Mode == Unlimited {
		limit = w.mmu.shared
	}
	r := result.Pause{
		At: now, Node: w.cfg.ID, Port: int32(at >> 3), Prio: prio, On: on,
		Held: g.in + g.head, Limit: g.reserved + limit, Cause: result.CauseBuffer,
	}
	if w.cfg.GlobalPause {
		r.Cause = result.CauseGlobal
	}
	egress, _ := w.mostHeld(at)
	r.Egress = int32(egress)
	r.EgressStopped = egress >= 0 && w.out[egress].stopped&w.out[egress].ready&w.groups[at&7] != 0
	w.log.Pause(r)
}
