package rnic

import (
	"encoding/binary"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// DCQCN at the receiving side: the notification point (SIGCOMM'15 DCQCN §3). It
// answers marked packets with CNPs, which leave before all other packets
// unless their own priority is paused. CNPs of one flow that could not leave
// become one.

// notice is a notification point: of a connected queue pair, or of one sender
// of datagrams. That of a UD queue pair itself only counts.
type notice struct {
	np    dcqcn.NP
	next  *notice // of those with a CNP due
	path  *path   // to whom the CNP goes
	qpn   ib.QPN
	from  ib.QPN // here
	cc    *congestion
	due   bool // a CNP is due
	inRow bool // it is in the list, due or not

	// Under Params.NPWindow: its place among those whose window is open.
	later    *notice
	inWindow bool
	gone     bool // its queue pair is, or has other parameters now

	// Counts of a queue pair, over all of its senders: in the one that total says.
	total *notice
	marks uint64 // marked packets
	sent  uint64 // CNPs sent
}

// windows is the list of notification points whose window is open, by the
// instant at which it closes. Windows are equally long unless queue pairs have
// parameters of their own, so that the end is nearly always the place.
type windows struct{ head, tail *notice }

func (l *windows) push(n *notice) {
	if n.inWindow {
		return
	}
	n.inWindow, n.later = true, nil
	at := &l.head
	if end := n.ends(); l.tail != nil && l.tail.ends() <= end {
		at = &l.tail.later
	} else {
		for *at != nil && (*at).ends() <= end {
			at = &(*at).later
		}
	}
	n.later, *at = *at, n
	if n.later == nil {
		l.tail = n
	}
}

// ends returns the instant at which the window of its last CNP is over.
func (n *notice) ends() clock.Time { return n.np.Ends(n.cc.np) }

func (l *windows) pop() {
	n := l.head
	if l.head = n.later; l.head == nil {
		l.tail = nil
	}
	n.later, n.inWindow = nil, false
}

// opened notes that a CNP of n begins a window, in which marks may come that
// are answered at its end.
func (a *Adapter) opened(n *notice) {
	if n.cc.np.NPWindow {
		a.windows.push(n)
	}
}

// windowEnd returns the instant at which the oldest window closes, or Never.
func (a *Adapter) windowEnd() clock.Time {
	for n := a.windows.head; n != nil; n = a.windows.head {
		if !n.gone {
			return n.ends()
		}
		a.windows.pop()
	}
	return clock.Never
}

// closeWindows answers the marks of windows that are over.
func (a *Adapter) closeWindows(now clock.Time) {
	for n := a.windows.head; n != nil && n.ends() <= now; n = a.windows.head {
		a.windows.pop()
		if n.np.Due(now, n.cc.np) && !n.gone {
			a.cnps.push(n)
			a.windows.push(n)
		}
	}
}

// notices is the list of those with a CNP due, oldest first.
type notices struct{ head, tail *notice }

func (l *notices) push(n *notice) {
	n.due = true
	if n.inRow {
		return
	}
	n.inRow, n.next = true, nil
	if l.tail != nil {
		l.tail.next = n
	} else {
		l.head = n
	}
	l.tail = n
}

// front returns the oldest that is still due, or nil.
func (l *notices) front() *notice {
	for n := l.head; n != nil; n = l.head {
		if n.due {
			return n
		}
		l.pop()
	}
	return nil
}

func (l *notices) pop() {
	n := l.head
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	n.next, n.inRow, n.due = nil, false, false
}

// cnpReady reports whether a CNP may leave.
func (a *Adapter) cnpReady() bool {
	if a.cnps.head == nil {
		return false
	}
	n := a.cnps.front()
	return n != nil && a.sched.paused>>n.cc.prio&1 == 0
}

func (q *QP) newNotice() *notice {
	n := &notice{path: &q.path, from: q.qpn, cc: q.cc}
	n.total = n
	return n
}

// marked answers a packet that carries Congestion Experienced. The first answer
// of a queue pair allocates.
func (a *Adapter) marked(now clock.Time, q *QP, p *wire.Packet, src netip.Addr, row uint16) {
	cc := q.cc
	if q.np == nil {
		q.np = q.newNotice()
	}
	q.np.marks++
	if q.typ == ib.UD {
		n := a.flow(q, p, src, row)
		if n != nil && n.np.Marked(now, cc.np) {
			a.cnps.push(n)
			a.opened(n)
		}
		return
	}
	params := cc.np
	if cc.echo && q.typ == ib.RC && (p.Info.Kind == wire.KindSend || p.Info.Kind == wire.KindWrite) {
		params = cc.rp // the next acknowledgement tells
	}
	if q.np.np.Marked(now, params) {
		q.np.qpn = q.attr.destQPN
		a.cnps.push(q.np)
		a.opened(q.np)
	}
}

// datagramFlow is the notification point of one sender of datagrams.
type datagramFlow struct {
	notice
	src netip.Addr
	way path
}

// datagramFlows is how many senders of datagrams are told apart. It is a cache
// and no table, so that invented senders cost nothing: one that loses its place
// may get a CNP too many.
const datagramFlows = 64

// flow returns the notification point of the sender of p, or nil if there is no
// way to it.
func (a *Adapter) flow(q *QP, p *wire.Packet, src netip.Addr, row uint16) *notice {
	if a.flows == nil {
		a.flows = make([]datagramFlow, datagramFlows)
	}
	src = src.WithZone("").Unmap()
	b := src.As16()
	h := binary.LittleEndian.Uint64(b[:8])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(b[8:]) ^
		uint64(p.DETH.SrcQPN)<<24 ^ uint64(q.qpn)
	f := &a.flows[h*0x9E3779B97F4A7C15>>58]
	if f.src == src && f.notice.qpn == p.DETH.SrcQPN && f.from == q.qpn && f.cc == q.cc {
		return &f.notice
	}
	if f.inRow || f.inWindow && f.cc.np.NPWindow && f.np.Deadline(f.cc.np) != clock.Never {
		return nil // its CNP first
	}
	gid := ib.GIDFromAddr(src)
	way, _, err := a.resolve(&ib.AV{DGID: gid, SGIDIndex: int(row)}, a.datagramPort(gid))
	if err != nil {
		return nil
	}
	*f = datagramFlow{src: src, way: way, notice: notice{path: &f.way, qpn: p.DETH.SrcQPN, from: q.qpn, cc: q.cc, total: q.np, later: f.later, inWindow: f.inWindow}}
	return &f.notice
}

// buildCNP fills r with the oldest CNP that is due.
func (a *Adapter) buildCNP(r *frame.Run) bool {
	n := a.cnps.front()
	a.cnps.pop()
	p, out := n.path, &a.scratch.out
	out.Packet = roce.NewCNP(n.qpn)
	out.Len, out.Inline, out.Frags = 0, nil, out.Frags[:0]
	size := out.WireLen(0)
	if len(r.Buf) < size+a.env(p).len() {
		a.count.sendErr++
		return false
	}
	if a.phantom {
		r.N = out.EncodeHeaders(r.Buf)
	} else {
		r.N = size + a.env(p).len()
		a.encode(a.env(p).wrap(r.Buf[:r.N], p, a.ident(0), n.cc.tos, n.cc.prio), p, a.ident(0), out)
	}
	r.Seg, r.Segs, r.WireLen, r.CNP = r.N, 1, size, true
	r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = a.addrs[p.row], p.dst, p.sport, n.cc.tos, p.ttl
	r.Prio, r.QPN = n.cc.prio, uint32(n.from)
	a.count.sentPkts++
	a.count.sentBytes += uint64(size)
	a.count.sentRuns++
	a.count.npSent++
	n.total.sent++
	if q := a.qps.get(n.from); q != nil {
		q.own().npSent++
		q.own().sent(1, size)
	}
	return true
}
