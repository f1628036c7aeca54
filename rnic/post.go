package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// InlineSource returns the bytes that an element of a scatter/gather list
// refers to, or false if its key does not open them for this queue pair. It is
// how Post reads inline data, since the table of regions belongs to the owner.
// The bytes are borrowed for the call.
type InlineSource = func(sge ib.SGE) ([]byte, bool)

const sendFlagsDefined = ib.Fence | ib.Signaled | ib.Solicited | ib.Inline

// Post adds send work requests to the send queue and returns how many, from
// the first, it has added: all of them, unless there is an error, which is a
// [*PostError]. It copies what it adds. reg serves requests with the Inline
// flag and an SGL; it may be nil otherwise. It does not allocate when all is
// well. Poster.
//
// Requests are taken in RTS, SQD, SQE and Error; in Error they complete with
// a flush (IBA vol.1 10.8.2).
func (q *QP) Post(wrs []ib.SendWR, reg InlineSource) (n int, err error) {
	switch s := q.State(); s {
	case ib.RTS, ib.SQD, ib.SQE, ib.Error:
	case ib.Reset, ib.Init, ib.RTR:
		return 0, q.refuse(false, 0, "state", s, "RTS, SQD, SQE or ERR", ErrState)
	}
	free := q.send.Free()
	for n < len(wrs) {
		if n == free {
			err = q.refuse(false, n, "queue depth", fmt.Sprintf("%d, all in use", q.send.Depth()), "", ErrQueueFull)
			break
		}
		if err = q.fillSend(n, &wrs[n], reg); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		q.send.Publish(n)
		q.a.bell.ring(q)
	}
	return n, err
}

// fillSend validates w and copies it into slot i.
func (q *QP) fillSend(i int, w *ib.SendWR, reg InlineSource) error {
	if err := q.checkSend(i, w); err != nil {
		return err
	}
	var total uint64 // of at most MaxSGE lengths below 2^32: no overflow
	for k := range w.SGL {
		total += uint64(w.SGL[k].Length)
	}
	inline := w.Flags&ib.Inline != 0
	if inline {
		total += uint64(len(w.InlineData))
		if total > uint64(q.send.MaxInline()) {
			return q.refuse(false, i, "inline data", fmt.Sprintf("%d bytes", total), fmt.Sprintf("up to %d", q.send.MaxInline()), ErrInvalid)
		}
	}
	if most := q.maxMessage(); total > most {
		return q.refuse(false, i, "message length", fmt.Sprintf("%d bytes", total), fmt.Sprintf("up to %d", most), ErrInvalid)
	}
	if (w.Op.IsAtomic() || w.Op == ib.AtomicWrite) && total != 8 {
		return q.refuse(false, i, "length of an atomic", fmt.Sprintf("%d bytes", total), "8", ErrInvalid)
	}

	s := q.send.Slot(i)
	if w.Op == ib.BindMW {
		s.ID, s.Op, s.Flags = w.ID, w.Op, w.Flags
		s.SetBind(w.Bind)
		return nil
	}
	s.ID, s.Op, s.Flags, s.Imm, s.Len = w.ID, w.Op, w.Flags, w.Imm, uint32(total)
	s.Remote, s.Compare, s.SwapAdd, s.UD = w.Remote, w.Compare, w.SwapAdd, w.UD
	if w.Op == ib.Flush {
		s.SetFlush(&w.Flush)
		return nil
	}
	if inline {
		return q.fillInline(i, s, w, reg)
	}
	s.SGL = append(s.SGL, w.SGL...)
	return nil
}

// fillInline copies the payload itself into the slot. Elements of length 0 are
// not looked up.
func (q *QP) fillInline(i int, s *transport.SendWQE, w *ib.SendWR, reg InlineSource) error {
	b := q.send.InlineRoom(i)
	for k, sge := range w.SGL {
		if sge.Length == 0 {
			continue
		}
		var src []byte
		ok := reg != nil
		if ok {
			src, ok = reg(sge)
		}
		if !ok || len(src) != int(sge.Length) {
			return q.refuse(false, i, fmt.Sprintf("inline element %d", k),
				fmt.Sprintf("%d bytes at 0x%x under lkey 0x%x, which does not open them", sge.Length, sge.Addr, uint32(sge.LKey)), "", ErrInvalid)
		}
		b = append(b, src...)
	}
	s.Inline = append(b, w.InlineData...)
	return nil
}

// checkSend refuses what the request alone tells to be wrong.
func (q *QP) checkSend(i int, w *ib.SendWR) error {
	if !q.takes(w.Op) {
		return q.refuse(false, i, "opcode", w.Op, "one of "+opsOf(q.typ), ErrInvalid)
	}
	if f := w.Flags &^ sendFlagsDefined; f != 0 {
		return q.refuse(false, i, "flags", fmt.Sprintf("0x%x", uint8(w.Flags)), "Fence, Signaled, Solicited, Inline", ErrInvalid)
	}
	if len(w.SGL) > q.send.MaxSGE() {
		return q.refuse(false, i, "number of elements", len(w.SGL), fmt.Sprintf("up to %d", q.send.MaxSGE()), ErrInvalid)
	}
	if (w.Op.IsLocal() || w.Op == ib.Flush) && len(w.SGL) > 0 {
		return q.refuse(false, i, fmt.Sprintf("number of elements of %v", w.Op), len(w.SGL), "0", ErrInvalid)
	}
	if f := &w.Flush; w.Op == ib.Flush &&
		(f.Placement == 0 || f.Placement&^(ib.FlushGlobal|ib.FlushPersistent) != 0 || f.Level > ib.FlushRegion || f.Len > ib.MaxMessage) {
		return q.refuse(false, i, "flush", fmt.Sprintf("%d bytes, placement 0x%x, level %d", f.Len, uint8(f.Placement), uint8(f.Level)),
			fmt.Sprintf("up to %d bytes, placement 1 to 3, level 0 or 1", uint64(ib.MaxMessage)), ErrInvalid)
	}
	if (w.Op == ib.BindMW) != (w.Bind != nil) {
		return q.refuse(false, i, "bind", "missing, or given with another opcode than BIND_MW", "", ErrInvalid)
	}
	if w.Flags&ib.Inline != 0 {
		if !w.Op.IsSend() && !w.Op.IsWrite() && w.Op != ib.AtomicWrite {
			return q.refuse(false, i, "flag Inline with opcode", w.Op, "with a SEND or WRITE", ErrInvalid)
		}
		if len(w.InlineData) > 0 && len(w.SGL) > 0 {
			return q.refuse(false, i, "payload", "an SGL and inline data", "one of them", ErrInvalid)
		}
	} else if len(w.InlineData) > 0 {
		return q.refuse(false, i, "inline data", "given without the flag Inline", "", ErrInvalid)
	}
	if q.typ == ib.UD {
		if w.UD.AH == 0 {
			return q.refuse(false, i, "address handle", "none", "", ErrInvalid)
		}
		if w.UD.QPN > ib.MaxQPN {
			return q.refuse(false, i, "destination QPN", w.UD.QPN, "up to "+ib.MaxQPN.String(), ErrInvalid)
		}
	}
	return nil
}

// takes reports whether an operation belongs to the queue pair's service
// (IBA vol.1 table 94).
func (q *QP) takes(op ib.WROp) bool {
	switch op {
	case ib.Send, ib.SendImm:
		return true
	case ib.Write, ib.WriteImm:
		return q.typ != ib.UD
	case ib.Read, ib.CompareSwap, ib.FetchAdd, ib.SendInv, ib.Flush, ib.AtomicWrite:
		return q.typ == ib.RC
	case ib.LocalInv, ib.BindMW:
		return q.typ != ib.UD
	}
	return false
}

func opsOf(t ib.QPType) string {
	switch t {
	case ib.RC:
		return "SEND, RDMA WRITE, RDMA READ, ATOMIC, ATOMIC WRITE, FLUSH, BIND_MW, LOCAL_INV"
	case ib.UC:
		return "SEND, RDMA WRITE, BIND_MW, LOCAL_INV"
	case ib.UD:
	}
	return "SEND"
}

// maxPackets is how many packets a message has at most: that of 2^31 bytes at
// the least path MTU.
const maxPackets = ib.MaxMessage / 256

// maxMessage returns the most bytes of one message.
func (q *QP) maxMessage() uint64 {
	if q.typ == ib.UD {
		return uint64(q.a.mtu.Bytes())
	}
	// With less payload in a packet than any path MTU has, the PSNs of a message
	// are the limit.
	if n := uint64(q.a.cfg.Payload); n > 0 {
		return min(ib.MaxMessage, n*maxPackets)
	}
	return ib.MaxMessage
}

// PostRecv adds receive work requests to the receive queue, like Post. They
// are taken in every state but Reset (IBA vol.1 10.8.3); in Error they complete
// with a flush. Poster.
func (q *QP) PostRecv(wrs []ib.RecvWR) (n int, err error) {
	if q.recv.Shared() {
		return 0, q.refuse(true, 0, "receive queue", "that of an SRQ", "posted to there", ErrInvalid)
	}
	if s := q.State(); s == ib.Reset {
		return 0, q.refuse(true, 0, "state", s, "any other", ErrState)
	}
	free := q.recv.Free()
	for n < len(wrs) {
		if n == free {
			err = q.refuse(true, n, "queue depth", fmt.Sprintf("%d, all in use", q.recv.Depth()), "", ErrQueueFull)
			break
		}
		if err = q.fillRecv(n, &wrs[n]); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		q.recv.Publish(n)
		q.a.bell.ring(q)
	}
	return n, err
}

func (q *QP) fillRecv(i int, w *ib.RecvWR) error {
	if len(w.SGL) > q.recv.MaxSGE() {
		return q.refuse(true, i, "number of elements", len(w.SGL), fmt.Sprintf("up to %d", q.recv.MaxSGE()), ErrInvalid)
	}
	s := q.recv.Slot(i)
	s.ID = w.ID
	s.SGL = append(s.SGL, w.SGL...)
	return nil
}

func (q *QP) refuse(recv bool, i int, attr string, value any, limit string, err error) error {
	return &PostError{QPN: q.qpn, Recv: recv, Index: i, Attr: attr, Value: fmt.Sprint(value), Limit: limit, Err: err}
}
