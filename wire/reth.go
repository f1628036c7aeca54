package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// RETHLen is the length of an RDMA extended transport header.
const RETHLen = 16

// RETH is the RDMA extended transport header (IBA vol.1 9.3.3): where in the
// peer's memory a WRITE or READ begins, and how many bytes the whole message
// has.
type RETH struct {
	VA   uint64
	RKey ib.RKey
	Len  uint32 // bytes of the message, not of the packet
}

// Decode fills h from b, which has at least RETHLen bytes.
func (h *RETH) Decode(b []byte) {
	_ = b[RETHLen-1]
	h.VA = binary.BigEndian.Uint64(b)
	h.RKey = ib.RKey(binary.BigEndian.Uint32(b[8:]))
	h.Len = binary.BigEndian.Uint32(b[12:])
}

// Encode writes h to b, which has room for RETHLen bytes.
func (h *RETH) Encode(b []byte) {
	_ = b[RETHLen-1]
	binary.BigEndian.PutUint64(b, h.VA)
	binary.BigEndian.PutUint32(b[8:], uint32(h.RKey))
	binary.BigEndian.PutUint32(b[12:], h.Len)
}
