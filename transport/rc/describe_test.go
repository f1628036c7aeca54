package rc_test

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

func putWord(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
func getWord(b []byte) uint64    { return binary.NativeEndian.Uint64(b) }

func (n *node) qpn() ib.QPN {
	if n.name == "A" {
		return qpnA
	}
	return qpnB
}

// describe prints a packet on one line; addresses count from the start of the
// region of the node that it goes to.
func describe(p packet, to *node) string {
	var q wire.Packet
	if r := q.Decode(p.b); r != wire.ReasonNone {
		return r.String()
	}
	s := fmt.Sprintf("%s psn=%06x", strings.TrimPrefix(q.Op.String(), "RC "), uint32(q.PSN))
	h := q.Info.Headers
	if h.Has(wire.HdrFETH) {
		s += fmt.Sprintf(" place=%d level=%d", q.FETH.Placement, q.FETH.Level)
	}
	if h.Has(wire.HdrRETH) {
		s += fmt.Sprintf(" va=%+d len=%d", int64(q.RETH.VA-to.mr.Base), q.RETH.Len)
	}
	if h.Has(wire.HdrAtomicETH) {
		s += fmt.Sprintf(" va=%+d", int64(q.Atomic.VA-to.mr.Base))
	}
	if h.Has(wire.HdrAETH) {
		s += fmt.Sprintf(" %v, msn=%d", q.AETH.Syndrome, q.AETH.MSN)
	}
	if h.Has(wire.HdrAtomicAckETH) {
		s += fmt.Sprintf(" was=%d", q.AtomicAck)
	}
	if h.Has(wire.HdrImmDt) {
		s += fmt.Sprintf(" imm=%d", q.Imm)
	}
	if n := len(q.Payload); n > 0 {
		s += fmt.Sprintf(" bytes=%d", n)
	}
	if q.Solicited {
		s += " solicited"
	}
	if q.AckReq {
		s += " ackreq"
	}
	return s
}

// nakKind names the NAK that a packet is, or "".
func nakKind(p packet) string {
	var q wire.Packet
	if q.Decode(p.b) != wire.ReasonNone || q.Op != wire.RCAck {
		return ""
	}
	switch s := q.AETH.Syndrome; s.Kind() {
	case wire.AckRNR:
		return "nak/RNR"
	case wire.AckNAK:
		return "nak/" + s.NAKCode().String()
	case wire.AckACK, wire.AckReserved:
	}
	return ""
}
