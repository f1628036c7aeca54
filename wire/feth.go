package wire

import "encoding/binary"

// FETHLen is the length of a FLUSH extended transport header.
const FETHLen = 4

// FETH is the FLUSH extended transport header (IBA vol.1 1.5, annex A19.4.1): how far
// the data shall be brought, and which. Its upper 26 bits are reserved.
//
//	bits 3:0  placement type: bit 0 global visibility, bit 1 persistence
//	bits 5:4  selectivity level: 0 the range of the RETH, 1 the whole region
type FETH struct {
	Placement uint8 // 4 bits
	Level     uint8 // 2 bits
}

// Decode fills h from b, which has at least FETHLen bytes. Reserved bits are
// ignored.
func (h *FETH) Decode(b []byte) {
	v := binary.BigEndian.Uint32(b)
	h.Placement, h.Level = uint8(v&0x0F), uint8(v>>4&3)
}

// Encode writes h to b, which has room for FETHLen bytes.
func (h *FETH) Encode(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Level&3)<<4|uint32(h.Placement&0x0F))
}
