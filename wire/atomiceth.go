package wire

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// The lengths of the two headers of atomic operations.
const (
	AtomicETHLen    = 28
	AtomicAckETHLen = 8
)

// AtomicETH is the header of a CmpSwap or FetchAdd request (IBA vol.1 9.3.4).
// Its answer is a bare 64-bit number, the value before the operation
// (AtomicAckETH).
type AtomicETH struct {
	VA      uint64 // a multiple of 8 in a valid request
	RKey    ib.RKey
	SwapAdd uint64 // CmpSwap: the new value; FetchAdd: the addend
	Compare uint64 // CmpSwap only
}

// Decode fills h from b, which has at least AtomicETHLen bytes.
func (h *AtomicETH) Decode(b []byte) {
	_ = b[AtomicETHLen-1]
	h.VA = binary.BigEndian.Uint64(b)
	h.RKey = ib.RKey(binary.BigEndian.Uint32(b[8:]))
	h.SwapAdd = binary.BigEndian.Uint64(b[12:])
	h.Compare = binary.BigEndian.Uint64(b[20:])
}

// Encode writes h to b, which has room for AtomicETHLen bytes.
func (h *AtomicETH) Encode(b []byte) {
	_ = b[AtomicETHLen-1]
	binary.BigEndian.PutUint64(b, h.VA)
	binary.BigEndian.PutUint32(b[8:], uint32(h.RKey))
	binary.BigEndian.PutUint64(b[12:], h.SwapAdd)
	binary.BigEndian.PutUint64(b[20:], h.Compare)
}
