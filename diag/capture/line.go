package capture

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// AppendLine appends one line of text about the packet to b, without a newline:
// frame, seconds, addresses, opcode, destination QP, PSN, the headers of the
// opcode, payload bytes, flags, and whether the ICRC is right.
func (p *Packet) AppendLine(b []byte) []byte {
	number := fmt.Sprint(p.Frame)
	if p.Segment > 0 {
		number += fmt.Sprintf(".%d", p.Segment)
	}
	b = fmt.Appendf(b, "%8s %12.6f  ", number, p.Since.Seconds())
	if p.Kind != 0 {
		b = fmt.Appendf(b, "%v > %v  %v  ", p.Src.Addr(), p.Dst.Addr(), p.Kind)
	}
	if p.Malformed {
		return fmt.Appendf(b, "%d bytes: %s", len(p.Envelope.IB), p.Bad)
	}
	q := &p.IB
	b = fmt.Appendf(b, "%-26v qp %v psn %-8d", q.Op, q.DestQPN, q.PSN)
	h := q.Info.Headers
	if h.Has(wire.HdrDETH) {
		b = fmt.Appendf(b, " src-qp %v qkey 0x%08x", q.DETH.SrcQPN, uint32(q.DETH.QKey))
	}
	if h.Has(wire.HdrRETH) {
		b = fmt.Appendf(b, " va 0x%x rkey 0x%08x len %d", q.RETH.VA, uint32(q.RETH.RKey), q.RETH.Len)
	}
	if h.Has(wire.HdrAtomicETH) {
		b = fmt.Appendf(b, " va 0x%x rkey 0x%08x swap/add 0x%x compare 0x%x", q.Atomic.VA, uint32(q.Atomic.RKey), q.Atomic.SwapAdd, q.Atomic.Compare)
	}
	if h.Has(wire.HdrAETH) {
		b = fmt.Appendf(b, " %v msn %d", q.AETH.Syndrome, q.AETH.MSN)
	}
	if h.Has(wire.HdrAtomicAckETH) {
		b = fmt.Appendf(b, " original 0x%x", q.AtomicAck)
	}
	if h.Has(wire.HdrImmDt) {
		b = fmt.Appendf(b, " imm 0x%08x", q.Imm)
	}
	if h.Has(wire.HdrIETH) {
		b = fmt.Appendf(b, " invalidate 0x%08x", uint32(q.IETH))
	}
	if q.Info.Payload {
		b = fmt.Appendf(b, " %d B", len(q.Payload))
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{q.AckReq, "AckReq"},
		{q.Solicited, "Solicited"},
		{q.MigReq, "MigReq"},
		{q.FECN, "FECN"},
		{q.BECN && q.Info.Kind != wire.KindCNP, "BECN"},
		{p.TOS.ECN() == ip.CE, "CE"},
		{p.Again, "again"},
	} {
		if f.on {
			b = append(append(b, ' '), f.name...)
		}
	}
	if p.Bad != "" {
		return append(append(b, "  "...), strings.ToUpper(p.Bad)...)
	}
	return append(b, "  ok"...)
}

// Print writes the totals in a few lines.
func (t *Totals) Print(w io.Writer) error {
	var b []byte
	b = fmt.Appendf(b, "%d frames, %d of them no RoCE; %d RoCE packets, %d payload bytes, %.6f s\n",
		t.Frames, t.Other, t.Packets, t.Payload, t.Last.Sub(t.First).Seconds())
	if t.Merged > 0 {
		b = fmt.Appendf(b, "%d merged frames were cut into packets\n", t.Merged)
	}
	ops := make([]wire.Opcode, 0, len(t.ByOpcode))
	for op := range t.ByOpcode {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	for _, op := range ops {
		b = fmt.Appendf(b, "%10d  %v\n", t.ByOpcode[op], op)
	}
	b = fmt.Appendf(b, "sent again %d, NAKs %d, CNPs %d, marked CE %d\n", t.Again, t.NAKs, t.CNPs, t.CE)
	b = fmt.Appendf(b, "ICRC wrong %d, malformed %d, cut by the capture %d\n", t.BadICRC, t.Malformed, t.Cut)
	_, err := w.Write(b)
	return err
}
