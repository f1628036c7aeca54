package mad

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// REPPrivateLen is the room for private data in a REP.
const REPPrivateLen = 196

// REP accepts a connection (IBA vol.1 12.6.8, table 105).
type REP struct {
	LocalID, RemoteID  CommID
	QKey               ib.QKey
	QPN                ib.QPN
	EECN               uint32
	StartingPSN        ib.PSN // with which the receiver shall begin to send
	ResponderResources uint8
	InitiatorDepth     uint8
	TargetAckDelayExp  uint8 // 4.096 µs · 2^n, 5 bits
	Failover           uint8 // 2 bits; 1: not supported
	FlowControl        bool  // end to end
	RNRRetryCount      uint8 // 3 bits
	SRQ                bool
	CAGUID             uint64
	Private            []byte
}

// Attr implements Message.
func (*REP) Attr() Attr { return AttrREP }

// Decode implements Message.
func (m *REP) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.QKey = ib.QKey(binary.BigEndian.Uint32(b[8:]))
	m.QPN = ib.QPN(u24(b[12:]))
	m.EECN = u24(b[16:])
	m.StartingPSN = ib.PSN(u24(b[20:]))
	m.ResponderResources, m.InitiatorDepth = b[24], b[25]
	m.TargetAckDelayExp, m.Failover, m.FlowControl = b[26]>>3, b[26]>>1&3, b[26]&1 != 0
	m.RNRRetryCount, m.SRQ = b[27]>>5, b[27]>>4&1 != 0
	m.CAGUID = binary.BigEndian.Uint64(b[28:])
	m.Private = b[36:]
}

// Encode implements Message.
func (m *REP) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	binary.BigEndian.PutUint32(b[8:], uint32(m.QKey))
	binary.BigEndian.PutUint32(b[12:], uint32(m.QPN)<<8)
	binary.BigEndian.PutUint32(b[16:], m.EECN<<8)
	binary.BigEndian.PutUint32(b[20:], uint32(m.StartingPSN)<<8)
	b[24], b[25] = m.ResponderResources, m.InitiatorDepth
	b[26] = m.TargetAckDelayExp<<3 | m.Failover&3<<1 | bit(m.FlowControl)
	b[27] = m.RNRRetryCount<<5 | bit(m.SRQ)<<4
	binary.BigEndian.PutUint64(b[28:], m.CAGUID)
	private(b[36:], m.Private)
}
