package fault

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ident"
	"github.com/verbena-rdma/verbena/link/internal/ring"
)

// Reserve implements link.Link.
func (l *Link) Reserve(tx []frame.Run) int { return l.inner.Reserve(tx) }

// Commit implements link.Link.
func (l *Link) Commit(now clock.Time, tx []frame.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since(now)
	if len(l.out.stages) == 0 || l.closed {
		return l.inner.Commit(now, tx)
	}
	for i := range tx {
		l.leave(now, &tx[i])
		tx[i] = frame.Run{}
	}
	l.expireOut(now)
	l.updateDue()
	return l.send(now)
}

// send commits what is staged.
func (l *Link) send(now clock.Time) error {
	if len(l.staged) == 0 {
		return nil
	}
	err := l.inner.Commit(now, l.staged)
	clear(l.staged)
	l.staged = l.staged[:0]
	return err
}

// leave stages a run, cut where something happens to a packet. What is left of
// a run that was cut is copied into others.
func (l *Link) leave(now clock.Time, r *frame.Run) {
	if r.N == 0 || !ring.Sane(r, l.inner.Caps().Segments) {
		l.staged = append(l.staged, *r)
		return
	}
	l.verdicts = l.verdicts[:0]
	touched := false
	p := passer{peer: r.Dst, local: ib.QPN(r.QPN), tos: r.TOS, at: l.since(now)}
	for i := range r.Segs {
		var v verdict
		if l.packet(&p, segment(r, i)) {
			v = l.judge(&l.out, &p)
		}
		touched = touched || v.touched()
		l.verdicts = append(l.verdicts, v)
	}
	if !touched && len(l.out.reordered) == 0 {
		l.staged = append(l.staged, *r)
		return
	}
	for i := 0; i < r.Segs; {
		if v := &l.verdicts[i]; v.touched() {
			l.treat(now, r, i, v)
			i++
			continue
		}
		end := i + 1
		// While packets wait to be overtaken, they may have to go in between.
		for len(l.out.reordered) == 0 && end < r.Segs && !l.verdicts[end].touched() {
			end++
		}
		l.stage(now, r, i, end, r.TOS)
		l.overtaken(now, end-i)
		i = end
	}
	l.staged = append(l.staged, frame.Run{Buf: r.Buf}) // given back
}

// room reserves a run of the inner link for a copy, nil if the way out is full.
func (l *Link) room(now clock.Time) *frame.Run {
	if l.inner.Reserve(l.one[:]) == 0 {
		_ = l.send(now)
		if l.inner.Reserve(l.one[:]) == 0 {
			return nil
		}
	}
	l.staged = append(l.staged, l.one[0])
	l.one[0] = frame.Run{}
	return &l.staged[len(l.staged)-1]
}

// segment returns packet i of a run.
func segment(r *frame.Run, i int) []byte { return r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)] }

// stage copies packets [from, to) of a run into a new run, their ICRCs moved to
// the Identifications that they have there. It returns the new run, or nil if
// the way out is full.
func (l *Link) stage(now clock.Time, r *frame.Run, from, to int, tos uint8) *frame.Run {
	c := l.room(now)
	if c == nil {
		l.counts.Overflow += uint64(to - from)
		return nil
	}
	c.N = copy(c.Buf, r.Buf[from*r.Seg:min(to*r.Seg, r.N)])
	c.Seg, c.Segs = min(r.Seg, c.N), to-from
	c.Src, c.Dst, c.SrcPort, c.TOS, c.TTL = r.Src, r.Dst, r.SrcPort, tos, r.TTL
	for i := range c.Segs {
		l.moveICRC(r, segment(c, i), from+i, i)
	}
	return c
}

// moveICRC moves the ICRC of a packet to the Identification of another place in
// a run. A whole frame has its own with it.
func (l *Link) moveICRC(r *frame.Run, seg []byte, from, to int) {
	if r.Dst.Is4() && !l.ether {
		ident.Move(seg, uint16(from), uint16(to))
	}
}

// treat does to packet i of a run what was decided.
func (l *Link) treat(now clock.Time, r *frame.Run, i int, v *verdict) {
	if v.drop {
		return
	}
	tos := r.TOS
	if v.ce {
		tos |= ecnCE
	}
	copies := 1
	if v.dup {
		copies++
	}
	if v.held() {
		copies--
		seg := segment(r, i)
		// Held as it will leave: alone, with Identification 0.
		l.moveICRC(r, seg, i, 0)
		l.spoil(seg, v)
		l.hold(&l.out, now, frame.Rx{Data: seg, Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, TOS: tos, TTL: r.TTL}, v)
		l.moveICRC(r, seg, 0, i)
		v.corrupt = false // is done
	}
	for range copies {
		if c := l.stage(now, r, i, i+1, tos); c != nil {
			l.spoil(c.Buf[:c.N], v)
		}
	}
	if !v.held() {
		l.overtaken(now, 1)
	}
}

// overtaken stages what has now been overtaken enough, by n more packets.
func (l *Link) overtaken(now clock.Time, n int) {
	l.out.passed(n, func(p heldPacket) { l.emitOut(now, p) })
}

// emitOut stages a packet that was held.
func (l *Link) emitOut(now clock.Time, p heldPacket) {
	if c := l.room(now); c == nil {
		l.counts.Overflow++
	} else {
		n := copy(c.Buf, p.rx.Data)
		c.N, c.Seg, c.Segs = n, n, 1
		c.Src, c.Dst, c.SrcPort, c.TOS, c.TTL = p.rx.Src, p.rx.Dst, p.rx.SrcPort, p.rx.TOS, p.rx.TTL
	}
	l.pool.Put(p.own)
}

// expireOut sends what has waited long enough.
func (l *Link) expireOut(now clock.Time) {
	if len(l.out.stages) == 0 || l.closed {
		return
	}
	l.out.expire(now, func(p heldPacket) { l.emitOut(now, p) })
	_ = l.send(now)
	l.updateDue()
}

var _ link.Link = (*Link)(nil)
