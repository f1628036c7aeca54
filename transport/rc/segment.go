package rc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// segment is one request packet of a WQE.
type segment struct {
	w    *transport.SendWQE
	cost int    // what it counts in the window
	off  uint32 // bytes of the message before it
	len  uint32 // payload bytes; of a READ, the bytes that it asks for
	psns int32  // PSNs that it takes: 1, of a READ one for each response
	// chunk is how many PSNs a request of this READ has at most.
	chunk uint32
	pos   wire.Position
	part  bool // of a request that the peer has: the rest is asked for later
}

// ends reports whether the segment is the last of its message.
func (s *segment) ends() bool { return s.off+s.len >= s.w.Len || s.w.Op.IsAtomic() }

// overhead is what a packet counts in the window besides its payload, in place
// of the exact header length, so that the cost of a range of PSNs is a formula
// and what was added is what is taken away.
const overhead = 32

// expectsResponse reports whether an acknowledgement alone does not complete
// the operation.
func expectsResponse(o ib.WROp) bool { return fetches(o) || answeredEmpty(o) }

// fetches reports whether the response brings data for the request's list.
func fetches(o ib.WROp) bool { return o == ib.Read || o.IsAtomic() }

// answeredEmpty reports whether the response is an empty READ response.
func answeredEmpty(o ib.WROp) bool { return o == ib.Flush || o == ib.AtomicWrite }

// consumesReceive reports whether the operation takes a receive of the peer.
func consumesReceive(o ib.WROp) bool { return o.IsSend() || o == ib.WriteImm }

// fullCost is what a full packet counts in the window.
func (e *Engine) fullCost() int { return int(e.mtu) + overhead }

// rereads returns how many PSNs a READ may ask for again at psn. A part of what
// it had asked for is right only where the peer is known to have that request:
// where it has answered some of it (within), or something behind it. Otherwise
// the part would be a request of its own for the peer, and a longer one for
// the same place a mistake (IBA vol.1 9.7.5.1.4).
func (e *Engine) rereads(psn ib.PSN, within bool) int {
	q := &e.req
	if !within && (!q.implied || psn != q.una) {
		return maxUnacked
	}
	if q.probing > 0 {
		return int(q.probing)
	}
	return max(1, e.cfg.Window.Limit()/e.fullCost())
}

// packets returns how many packets carry n bytes: at least one.
func (e *Engine) packets(n uint32) int {
	if uint64(n) <= uint64(e.mtu) {
		return 1
	}
	return int((uint64(n) + uint64(e.mtu) - 1) / uint64(e.mtu))
}

// psns returns how many PSNs the message of w takes (IBA vol.1 9.7.3.1: a READ
// takes one for each packet of its response).
func (e *Engine) psns(w *transport.SendWQE) int {
	if w.Op.IsAtomic() {
		return 1
	}
	return e.packets(w.Len)
}

// segment returns the request packet of w that begins at psn. w need not have
// been started; psn is then its first.
func (e *Engine) segment(w *transport.SendWQE, psn ib.PSN) segment {
	s := segment{w: w, psns: 1, pos: wire.PosOnly}
	mtu := uint32(e.mtu)
	idx, total := 0, 0
	if w.Started {
		idx = psn.Sub(w.FirstPSN)
	}
	switch {
	case w.Op.IsAtomic():
		s.cost = 2 * overhead
		return s
	case w.Op == ib.Read:
		total = e.packets(w.Len)
		s.off = uint32(idx) * mtu
		chunk := int(w.Done)
		if !w.Started {
			chunk = e.readChunk()
		}
		s.chunk = uint32(chunk)
		end := min(total, (idx/chunk+1)*chunk)
		if psn.Before(e.req.next) {
			if most := e.rereads(psn, idx%chunk != 0); idx+most < end {
				end, s.part = idx+most, true
			}
		}
		s.psns = int32(end - idx)
		s.len = uint32(min(uint64(s.psns)*uint64(mtu), uint64(w.Len-s.off)))
	default:
		s.off = uint32(idx) * mtu
		s.len = min(mtu, w.Len-s.off)
		switch first, last := idx == 0, s.ends(); {
		case first && last:
		case first:
			s.pos = wire.PosFirst
		case last:
			s.pos = wire.PosLast
		default:
			s.pos = wire.PosMiddle
		}
	}
	s.cost = int(s.len) + int(s.psns)*overhead
	return s
}

// cost returns what the PSNs from from up to to, all of the started w, count in
// the window.
func (e *Engine) cost(w *transport.SendWQE, from, to ib.PSN) int {
	if w.Op.IsAtomic() {
		return 2 * overhead
	}
	a, b := uint64(from.Sub(w.FirstPSN)), uint64(to.Sub(w.FirstPSN)&int(ib.PSNMask))
	mtu := uint64(e.mtu)
	bytes := min(b*mtu, uint64(w.Len)) - min(a*mtu, uint64(w.Len))
	return int(bytes) + int(b-a)*overhead
}

// sendOps and writeOps are the opcodes by operation and position.
var (
	sendOps = [...]wire.Opcode{
		wire.PosFirst: wire.RCSendFirst, wire.PosMiddle: wire.RCSendMiddle,
		wire.PosLast: wire.RCSendLast, wire.PosOnly: wire.RCSendOnly,
	}
	writeOps = [...]wire.Opcode{
		wire.PosFirst: wire.RCWriteFirst, wire.PosMiddle: wire.RCWriteMiddle,
		wire.PosLast: wire.RCWriteLast, wire.PosOnly: wire.RCWriteOnly,
	}
)

// requestOp returns the opcode of a request packet.
func requestOp(o ib.WROp, p wire.Position) wire.Opcode {
	last := p == wire.PosLast
	switch o {
	case ib.Write:
		return writeOps[p]
	case ib.WriteImm:
		switch {
		case !p.Ends():
			return writeOps[p]
		case last:
			return wire.RCWriteLastImm
		}
		return wire.RCWriteOnlyImm
	case ib.SendImm:
		switch {
		case !p.Ends():
			return sendOps[p]
		case last:
			return wire.RCSendLastImm
		}
		return wire.RCSendOnlyImm
	case ib.SendInv:
		switch {
		case !p.Ends():
			return sendOps[p]
		case last:
			return wire.RCSendLastInv
		}
		return wire.RCSendOnlyInv
	case ib.Read:
		return wire.RCReadRequest
	case ib.CompareSwap:
		return wire.RCCompareSwap
	case ib.FetchAdd:
		return wire.RCFetchAdd
	case ib.Flush:
		return wire.RCFlush
	case ib.AtomicWrite:
		return wire.RCAtomicWrite
	case ib.Send, ib.LocalInv, ib.BindMW: // the last two never come here: see local.go
	}
	return sendOps[p]
}

// emitRequest fills out with the picked request and takes note that it is under
// way.
func (e *Engine) emitRequest(now clock.Time, out *transport.Out) {
	q, s := &e.req, &e.pick.seg
	w := s.w
	if !w.Started {
		w.Started = true
		w.FirstPSN = q.psn
		w.LastPSN = q.psn.Add(e.psns(w) - 1)
		w.Done = s.chunk
	}
	out.SetOp(requestOp(w.Op, s.pos))
	out.PSN = q.psn
	switch {
	case w.Op.IsAtomic():
		out.Atomic = wire.AtomicETH{VA: w.Remote.Addr, RKey: w.Remote.RKey, SwapAdd: w.SwapAdd}
		if w.Op == ib.CompareSwap {
			out.Atomic.Compare = w.Compare
		}
	case w.Op == ib.Read:
		out.RETH = wire.RETH{VA: w.Remote.Addr + uint64(s.off), RKey: w.Remote.RKey, Len: s.len}
	default:
		if out.Info.Headers.Has(wire.HdrRETH) {
			out.RETH = wire.RETH{VA: w.Remote.Addr, RKey: w.Remote.RKey, Len: w.Len}
		}
		if w.Op == ib.Flush {
			f := w.FlushRange()
			out.RETH.Len, out.FETH = f.Len, wire.FETH{Placement: uint8(f.Placement), Level: uint8(f.Level)}
		}
		out.Imm, out.IETH = w.Imm, ib.RKey(w.Imm)
		out.Len = int(s.len)
		if w.Flags&ib.Inline != 0 {
			out.Inline = w.Inline[s.off : s.off+s.len]
		} else {
			out.Frags = append(out.Frags, e.cfg.Scratch.Frags...)
		}
		out.Solicited = s.ends() && w.Flags&ib.Solicited != 0 && consumesReceive(w.Op)
	}
	e.sent(now, s)
	out.AckReq = e.wantsAck(now, s)
}
