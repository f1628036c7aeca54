package swtch

// Packets returns the number of packets in the switch.
func (w *Switch) Packets() int {
	n := 0
	for i := range w.out {
		for _, q := range w.out[i].q {
			if q != nil {
				n += q.fifo.Len()
			}
		}
	}
	for i := range w.lines {
		n += w.lines[i].n
	}
	return n
}

// Thresholds returns between which bytes of a queue a port marks more and more;
// zeros where it marks nothing.
func (w *Switch) Thresholds(port int, prio uint8) (kmin, kmax int64) {
	e := &w.out[port].conf.queue[prio&7].ECN
	if e.KMax == 0 {
		return 0, 0
	}
	return e.KMin, e.KMax
}

// XOFF returns how many bytes of what came in by a port in a priority an empty
// switch holds before it stops the neighbour, and what each byte in use of the
// shared part takes from that; zeros where it never stops it.
func (w *Switch) XOFF(port int, prio uint8) (empty int64, alpha float64) {
	g := w.ingress(port<<3 | int(w.toGroup[prio&7])).conf
	if !g.lossless || !w.out[port].conf.queue[prio&7].Lossless {
		return 0, 0
	}
	switch g.Limit.Mode {
	case Static:
		return g.Reserved + g.Limit.Bytes, 0
	case Dynamic:
		return g.Reserved + g.Limit.of(w.mmu.shared), float64(g.Limit.Alpha) / AlphaOne
	case Unlimited:
	}
	return 0, 0
}

// Marked returns how many packets of a priority a port has marked.
func (w *Switch) Marked(port int, prio uint8) uint64 {
	if q := w.out[port].open(prio & 7); q != nil {
		return q.marked
	}
	return 0
}
