package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// DETHLen is the length of a datagram extended transport header.
const DETHLen = 8

// DETH is the datagram extended transport header of UD packets (IBA vol.1
// 9.3.2). The byte before the source QPN is reserved: sent as 0, ignored when
// received.
type DETH struct {
	QKey   ib.QKey
	SrcQPN ib.QPN // 24 bits
}

// Decode fills h from b, which has at least DETHLen bytes.
func (h *DETH) Decode(b []byte) {
	_ = b[DETHLen-1]
	h.QKey = ib.QKey(binary.BigEndian.Uint32(b))
	h.SrcQPN = ib.QPN(get24(b[5:]))
}

// Encode writes h to b, which has room for DETHLen bytes.
func (h *DETH) Encode(b []byte) {
	_ = b[DETHLen-1]
	binary.BigEndian.PutUint32(b, uint32(h.QKey))
	binary.BigEndian.PutUint32(b[4:], uint32(h.SrcQPN&ib.MaxQPN))
}
