// Package roce builds RoCEv2 packets with right ICRCs, for tests of links that
// look into packets.
package roce

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// Port is RoCEv2's UDP port.
const Port = 4791

// Flow returns the flow of a run's or a received piece's addresses.
func Flow(src, dst netip.Addr, sport uint16) icrc.Flow {
	if src.Is4() {
		return icrc.V4(src.As4(), dst.As4(), sport, Port)
	}
	return icrc.V6(src.As16(), dst.As16(), sport, Port)
}

// digits fill payloads.
var digits = func() (d [1024]byte) {
	for i := range d {
		d[i] = byte(i>>8 + i)
	}
	return d
}()

// Append adds to a run one more packet: opcode op for QP qpn, n bytes of
// payload, with the ICRC that its place in the run asks for. Run addresses are
// set; all packets but the last are equally long.
func Append(r *frame.Run, op wire.Opcode, qpn ib.QPN, psn ib.PSN, n int) {
	var p wire.Packet
	p.SetOp(op)
	p.PKey, p.DestQPN, p.PSN, p.Pad = ib.DefaultPKey, qpn, psn, wire.PadFor(n)
	total := p.WireLen(n)
	b := r.Buf[r.N : r.N+total]
	clear(b)
	h := p.EncodeHeaders(b)
	for i := 0; i < n; i += len(digits) {
		copy(b[h+i:h+n], digits[:])
	}
	f := Flow(r.Src, r.Dst, r.SrcPort)
	icrc.Put(b[total-icrc.Len:], f.Sum(uint16(r.Segs), true, b))
	if r.Segs == 0 {
		r.Seg = total
	}
	r.N += total
	r.Segs++
}
