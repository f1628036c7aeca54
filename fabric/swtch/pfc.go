package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// xoff stops the neighbour of an ingress group. It is called for every packet
// that comes in beyond the threshold: a port whose link was down in between has
// forgotten what it had stopped.
func (w *Switch) xoff(now sim.Time, at int) {
	w.ingress(at).paused = true
	e := &w.out[at>>3]
	for m := w.classes(at) &^ e.port.Stops(); m != 0; m &= m - 1 {
		if c := lowest(m); e.port.Stop(now, c) {
			w.Stats.XOFFs++
			w.logPause(now, at, c, true)
		}
	}
}

// maybeXON lets the neighbour of an ingress group go on, if there is room. What
// others give back raises a dynamic threshold, too, but a group looks at it only
// when it gives back itself: it has something to give back as long as that
// matters.
func (w *Switch) maybeXON(now sim.Time, at int) {
	g := w.ingress(at)
	g.waitXON = false
	if !g.paused || g.head > 0 {
		return
	}
	conf := g.conf
	if g.use() > max(conf.XON, conf.Limit.of(w.mmu.free())-conf.XONOffset) {
		return
	}
	g.paused = false
	p := w.out[at>>3].port
	for m := w.classes(at); m != 0; m &= m - 1 {
		if c := lowest(m); p.Resume(now, c) {
			w.Stats.XONs++
			w.logPause(now, at, c, false)
		}
	}
}

// classes returns the lossless priorities of an ingress group.
func (w *Switch) classes(at int) uint8 { return w.groups[at&7] & w.out[at>>3].conf.lossless }

func (w *Switch) logPause(now sim.Time, at int, prio uint8, on bool) {
	w.s.Note(3<<62 | uint64(uint32(w.cfg.ID))<<20 | uint64(at)<<4 | uint64(prio))
	if w.log != nil {
		w.log.Pause(w.pause(now, at, prio, on))
	}
}

// Standing tells of a stop that still stands, as the log was told when it began,
// with what is the reason now.
func (w *Switch) Standing(now sim.Time, port int, prio uint8) result.Pause {
	return w.pause(now, port<<3|int(w.cfg.PrioToGroup[prio&7]), prio, true)
}

// pause describes a stop, or its end, of the neighbour of an ingress group.
func (w *Switch) pause(now sim.Time, at int, prio uint8, on bool) result.Pause {
	g := w.ingress(at)
	limit := g.conf.Limit.of(w.mmu.free())
	if g.conf.Limit.Mode == Unlimited {
		limit = w.mmu.shared
	}
	r := result.Pause{
		At: now, Node: w.cfg.ID, Port: int32(at >> 3), Prio: prio, On: on,
		Held: g.in + g.head, Limit: g.conf.Reserved + limit, Cause: result.CauseBuffer,
	}
	if w.cfg.GlobalPause {
		r.Cause = result.CauseGlobal
	}
	egress, _ := w.mostHeld(at)
	r.Egress = int32(egress)
	if egress >= 0 {
		e := &w.out[egress]
		r.EgressStopped = e.stopped&e.ready&^e.ignore&w.groups[at&7] != 0
	}
	return r
}
