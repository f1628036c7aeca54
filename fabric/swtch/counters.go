package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Stats is what a switch has counted as a whole. RxBytes is always TxBytes +
// DropBytes + what is held.
type Stats struct {
	RxBytes, RxPackets uint64
	TxBytes            uint64
	DropBytes          uint64
	XOFFs, XONs        uint64 // by class
	Drops              [result.NumDropReasons]uint64
}

// drop loses a packet that is not in the buffer; out is the egress that loses
// it, or -1 if it did not come so far.
func (w *Switch) drop(now sim.Time, out int, p *sim.Packet, why result.DropReason) {
	w.Stats.DropBytes += uint64(p.Bytes)
	switch {
	case out >= 0:
		w.queue(out, p.Prio).drops++
	case why == result.DropNoBuffer || why == result.DropHeadroom:
		w.queue(int(p.In), p.Prio).rx++
	default:
		w.queue(int(p.In), p.Prio).drops++
	}
	w.logDrop(now, int(p.In), p, why)
	w.s.Pool.Put(p)
}

func (w *Switch) logDrop(now sim.Time, in int, p *sim.Packet, why result.DropReason) {
	w.Stats.Drops[why]++
	w.s.Note(1<<63 | uint64(why)<<56 | uint64(uint32(w.cfg.ID))<<16 | uint64(in))
	if w.log != nil {
		w.log.Drop(result.Drop{
			At: now, Node: w.cfg.ID, Port: int32(in), Flow: p.Flow, Prio: p.Prio, Reason: why, Bytes: p.Bytes,
		})
	}
}

// QueueBytes returns the bytes that wait in a queue.
func (w *Switch) QueueBytes(port int, prio uint8) int64 {
	if q := w.out[port].open(prio & 7); q != nil {
		return q.fifo.Bytes()
	}
	return 0
}

// SharedUsed returns the bytes of the shared part that are in use.
func (w *Switch) SharedUsed() int64 { return w.mmu.used }

// HeadroomUsed returns the bytes of headroom that are in use.
func (w *Switch) HeadroomUsed() int64 { return w.mmu.head }

// Waiting reports whether an egress has packets of a priority that its neighbour
// stops.
func (w *Switch) Waiting(port int, prio uint8) bool {
	e := &w.out[port]
	return e.ready&e.stopped&^e.ignore&(1<<(prio&7)) != 0
}

// Held returns the bytes that are held of an ingress in the group of a priority.
func (w *Switch) Held(in int, prio uint8) int64 {
	g := w.ingress(in<<3 | int(w.cfg.PrioToGroup[prio&7]))
	return g.in + g.head
}

// Buffer returns the sizes of the buffer and its peaks.
func (w *Switch) Buffer() result.Buffer {
	m := &w.mmu
	return result.Buffer{
		Total: w.cfg.Buffer.Total, Reserved: m.reserved, Shared: m.shared, Headroom: m.headroom,
		PeakShared: m.peakShared, PeakHeadroom: m.peakHead, Cell: int64(max(1, m.cell)),
	}
}

// Count fills in what the switch has counted at a port for a priority up to now:
// drops, marks, queues, buffer, waiting, watchdog. The rest is the port's. RxDrops
// are of packets that came in here and for which the buffer had no room; TxDrops
// of those that had to leave here (threshold of the queue, WRED, MTU, watchdog,
// link down) or came in here and could not leave at all (route, TTL, RoCEv1, a
// wrong FCS in a switch that cuts through).
func (w *Switch) Count(now sim.Time, port int, prio uint8, r *result.PortPrio) {
	g := w.ingress(port<<3 | int(w.cfg.PrioToGroup[prio&7]))
	r.PeakIngress, r.PeakHeadroom = g.peak, g.peakHead
	q := w.out[port].q[prio&7]
	if q == nil {
		return
	}
	x := &q.watch
	r.RxDrops, r.TxDrops, r.Marked = q.rx, q.drops, q.marked
	r.PeakQueue = q.peak
	r.MeanQueue = q.mean(now)
	r.PausedWaiting = x.waiting
	if x.stuck {
		r.PausedWaiting += now - x.since
	}
	r.WatchdogDetected, r.WatchdogRestored, r.WatchdogDropped = x.detected, x.restored, x.dropped
}
