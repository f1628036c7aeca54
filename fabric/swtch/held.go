package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// maxMatrix is the most ports for which held bytes are kept by egress; beyond,
// queues are looked through when somebody asks.
const maxMatrix = 64

// held is how many bytes each lossless ingress group has at each egress. It is
// kept from the first question on: a switch that stops nobody is not asked.
type held struct {
	bytes []int32 // by ((ingress × groups) + group) × ports + egress; nil: not kept
	may   bool    // they can be kept
	ports int
	n     int
	group [8]uint8
	// scratch is for looking through the queues.
	scratch []int64
}

func (w *Switch) initHeld() {
	h := &w.held
	h.ports = w.cfg.Ports
	h.scratch = make([]int64, h.ports)
	for g, m := range w.groups {
		if m != 0 {
			h.group[g] = uint8(h.n)
			h.n++
		}
	}
	h.may = h.ports <= maxMatrix && w.cfg.Buffer.Total < 1<<31
}

// keep begins to keep them, and reports whether they are kept.
func (w *Switch) keep() bool {
	h := &w.held
	if h.bytes != nil || !h.may {
		return h.may
	}
	h.bytes = make([]int32, h.ports*h.ports*h.n)
	w.each(func(p *sim.Packet, out int) {
		if w.ingress(int(p.In)<<3 | int(p.Pool)).conf.lossless {
			h.add(p, out, int32(w.mmu.cost(p)))
		}
	})
	return true
}

func (h *held) row(in int, group uint8) int { return (in*h.n + int(h.group[group])) * h.ports }

func (h *held) add(p *sim.Packet, out int, n int32) {
	if h.bytes != nil {
		h.bytes[h.row(int(p.In), p.Pool)+out] += n
	}
}

// HeldFor calls f, in order of egresses, for each egress for which packets wait
// that came in by an ingress in the group of a priority, with their bytes.
func (w *Switch) HeldFor(in int, prio uint8, f func(egress int, bytes int64)) {
	w.heldFor(in<<3|int(w.cfg.PrioToGroup[prio&7]), f)
}

func (w *Switch) heldFor(at int, f func(egress int, bytes int64)) {
	if w.ingress(at).conf.lossless && w.keep() {
		row := w.held.row(at>>3, uint8(at&7))
		for out, n := range w.held.bytes[row : row+w.held.ports] {
			if n > 0 {
				f(out, int64(n))
			}
		}
		return
	}
	sum := w.held.scratch
	clear(sum)
	w.each(func(p *sim.Packet, out int) {
		if int(p.In)<<3|int(p.Pool) == at {
			sum[out] += w.mmu.cost(p)
		}
	})
	for out, n := range sum {
		if n > 0 {
			f(out, n)
		}
	}
}

// mostHeld returns the egress with the most bytes of an ingress group, the
// lowest of equals, or -1.
func (w *Switch) mostHeld(at int) (egress int, bytes int64) {
	egress = -1
	if !w.keep() {
		w.heldFor(at, func(out int, n int64) {
			if n > bytes {
				egress, bytes = out, n
			}
		})
		return egress, bytes
	}
	row := w.held.row(at>>3, uint8(at&7))
	for out, n := range w.held.bytes[row : row+w.held.ports] {
		if int64(n) > bytes {
			egress, bytes = out, int64(n)
		}
	}
	return egress, bytes
}

// each calls f for every packet in the switch, with its egress.
func (w *Switch) each(f func(p *sim.Packet, out int)) {
	for out := range w.out {
		for _, q := range w.out[out].q {
			if q == nil {
				continue
			}
			for p := q.fifo.Front(); p != nil; p = p.Next {
				f(p, out)
			}
		}
	}
	for i := range w.lines {
		l := &w.lines[i]
		for k := range l.n {
			d := &l.ring[(l.head+k)&(len(l.ring)-1)]
			f(d.p, int(d.out))
		}
	}
}
