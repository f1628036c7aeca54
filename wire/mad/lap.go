package mad

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// The room for private data in a LAP and an APR.
const (
	LAPPrivateLen = 168
	APRPrivateLen = 148
)

// LAP asks to load an alternate path (IBA vol.1 12.8.1).
type LAP struct {
	LocalID, RemoteID CommID
	RemoteQPN         ib.QPN
	RemoteTimeoutExp  uint8 // 5 bits
	Alternate         Path
	Private           []byte
}

// Attr implements Message.
func (*LAP) Attr() Attr { return AttrLAP }

// Decode implements Message.
func (m *LAP) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.RemoteQPN, m.RemoteTimeoutExp = ib.QPN(u24(b[12:])), b[15]>>3
	p := &m.Alternate
	p.LocalLID, p.RemoteLID = binary.BigEndian.Uint16(b[20:]), binary.BigEndian.Uint16(b[22:])
	p.LocalGID, p.RemoteGID = ib.GID(b[24:40]), ib.GID(b[40:56])
	w := binary.BigEndian.Uint32(b[56:])
	p.FlowLabel, p.TrafficClass = w>>12, uint8(w)
	p.HopLimit, p.Rate = b[60], b[61]&0x3F
	p.SL, p.SubnetLocal = b[62]>>4, b[62]>>3&1 != 0
	p.AckTimeoutExp = b[63] >> 3
	m.Private = b[64:]
}

// Encode implements Message.
func (m *LAP) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	clear(b[8:24])
	put24(b[12:], uint32(m.RemoteQPN))
	b[15] = m.RemoteTimeoutExp << 3
	p := &m.Alternate
	binary.BigEndian.PutUint16(b[20:], p.LocalLID)
	binary.BigEndian.PutUint16(b[22:], p.RemoteLID)
	copy(b[24:], p.LocalGID[:])
	copy(b[40:], p.RemoteGID[:])
	binary.BigEndian.PutUint32(b[56:], p.FlowLabel<<12|uint32(p.TrafficClass))
	b[60], b[61] = p.HopLimit, p.Rate&0x3F
	b[62] = p.SL<<4 | bit(p.SubnetLocal)<<3
	b[63] = p.AckTimeoutExp << 3
	private(b[64:], m.Private)
}

// APStatus is the answer to a LAP (IBA vol.1 12.8.2).
type APStatus uint8

// The answers that are given here.
const (
	APLoaded        APStatus = 0
	APInvalidCommID APStatus = 1
	APUnsupported   APStatus = 2 // no alternate paths
)

// APR answers a LAP (IBA vol.1 12.8.2).
type APR struct {
	LocalID, RemoteID CommID
	Status            APStatus
	Info              []byte // up to ARILen bytes
	Private           []byte
}

// Attr implements Message.
func (*APR) Attr() Attr { return AttrAPR }

// Decode implements Message. A length of the additional information that is
// more than its field counts as the field's.
func (m *APR) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	n := min(int(b[8]), ARILen)
	m.Status = APStatus(b[9])
	m.Info = b[12 : 12+n : 12+n]
	m.Private = b[12+ARILen:]
}

// Encode implements Message.
func (m *APR) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	b[8], b[9], b[10], b[11] = byte(min(len(m.Info), ARILen)), byte(m.Status), 0, 0
	private(b[12:12+ARILen], m.Info)
	private(b[12+ARILen:], m.Private)
}
