package wire

import "encoding/binary"

// ImmDtLen is the length of the immediate extended transport header (IBA
// vol.1 9.3): 32 bits that travel from the send request to the peer's
// completion. Verbena holds them in host order throughout.
const ImmDtLen = 4

func getImmDt(b []byte) uint32    { return binary.BigEndian.Uint32(b) }
func putImmDt(b []byte, v uint32) { binary.BigEndian.PutUint32(b, v) }
