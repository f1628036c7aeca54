package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// line holds packets that are in the buffer but not yet in their queue: those in
// the pipeline of a switch with latency and those of which a cut-through switch
// has not got the end. One event is scheduled for all of it. Dues never go back
// in one line: a store-and-forward switch has one line, since every packet is
// due one latency after it came; a cut-through switch one for each ingress,
// where the head of a packet comes after the end of the one before.
type line struct {
	ring []due
	head int
	n    int
}

type due struct {
	p   *sim.Packet
	at  sim.Time
	out int32
	cut bool // due when its head is through; it may have to wait for its end
}

func (w *Switch) initLines() {
	switch {
	case w.cutThrough:
		w.lines = make([]line, w.cfg.Ports)
	case w.latency > 0:
		w.lines = make([]line, 1)
	}
}

func (l *line) push(d due) {
	if l.n == len(l.ring) {
		ring := make([]due, max(4, 2*len(l.ring)))
		for i := range l.n {
			ring[i] = l.ring[(l.head+i)&(len(l.ring)-1)]
		}
		l.ring, l.head = ring, 0
	}
	l.ring[(l.head+l.n)&(len(l.ring)-1)] = d
	l.n++
}

func (l *line) pop() {
	l.ring[l.head].p = nil
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.n--
}

// delay gives an admitted packet to its line.
func (w *Switch) delay(now sim.Time, out int, p *sim.Packet) {
	i := 0
	d := due{p: p, at: now + w.latency, out: int32(out)}
	if w.cutThrough {
		i = int(p.In)
		d.cut = p.Tail > now
	}
	l := &w.lines[i]
	l.push(d)
	if l.n == 1 {
		if d.at > now {
			w.s.At(d.at, w, uint64(i)<<evShift|evLine)
		} else {
			w.runLine(now, i)
		}
	}
}

// runLine queues what is due.
func (w *Switch) runLine(now sim.Time, i int) {
	l := &w.lines[i]
	for l.n > 0 {
		d := &l.ring[l.head]
		if d.at <= now && d.cut && !w.cuts(now, d) {
			// Stored: due when its end is through.
			d.cut = false
			d.at = max(now, d.p.Tail+w.latency)
		}
		if d.at > now {
			w.s.At(d.at, w, uint64(i)<<evShift|evLine)
			return
		}
		p, out, cut := d.p, int(d.out), d.cut
		l.pop()
		q := w.out[out].open(p.Prio)
		switch {
		case p.Bad && !cut: // its end, and so its FCS, came before it had to leave
			w.release(now, p, out, q)
			w.drop(now, -1, p, result.DropError)
		case w.out[out].shut&(1<<p.Prio) != 0:
			q.watch.dropped++
			w.release(now, p, out, q)
			w.drop(now, out, p, result.DropWatchdog)
		case w.out[out].down:
			w.release(now, p, out, q)
			w.drop(now, out, p, result.DropDown)
		default:
			w.enqueue(now, out, q, p)
		}
	}
}

// cuts says whether a packet may begin to leave before its end has come: the
// egress is idle, has nothing else to send, may send the class, and is not
// faster than the ingress, which could not keep up.
func (w *Switch) cuts(now sim.Time, d *due) bool {
	e := &w.out[d.out]
	return e.ready == 0 && e.port.Busy() <= now && !e.port.Down() &&
		e.stopped&^e.ignore&(1<<d.p.Prio) == 0 &&
		e.port.Rate() <= w.out[d.p.In].port.Rate()
}
