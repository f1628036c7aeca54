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

// Marked returns how many packets of a priority a port has marked.
func (w *Switch) Marked(port int, prio uint8) uint64 {
	if q := w.out[port].open(prio & 7); q != nil {
		return q.marked
	}
	return 0
}
