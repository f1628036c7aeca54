package mad

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/ib"
)

// REQPrivateLen is the room for private data in a REQ.
const REQPrivateLen = 92

// Transport is a transport service type (IBA vol.1 table 99).
type Transport uint8

// The transport services.
const (
	TransportRC Transport = 0
	TransportUC Transport = 1
	TransportRD Transport = 2
	// TransportExtended means that the extended transport type says more.
	TransportExtended Transport = 3
)

// REQ asks for a connection (IBA vol.1 12.6.5, table 99).
type REQ struct {
	LocalID            CommID
	Service            ServiceID
	CAGUID             uint64 // node GUID of the sender
	QKey               ib.QKey
	QPN                ib.QPN
	ResponderResources uint8 // READs and ATOMICs that the sender takes at a time
	InitiatorDepth     uint8 // … and that it will have outstanding
	LocalEECN          uint32
	RemoteEECN         uint32
	// RemoteTimeoutExp is the time in which the receiver should answer,
	// LocalTimeoutExp that in which the sender will: 4.096 µs · 2^n, 5 bits.
	RemoteTimeoutExp uint8
	LocalTimeoutExp  uint8
	Transport        Transport // 2 bits
	FlowControl      bool      // end to end
	StartingPSN      ib.PSN    // with which the receiver shall begin to send
	RetryCount       uint8     // 3 bits
	RNRRetryCount    uint8     // 3 bits
	PKey             ib.PKey
	MTU              ib.MTU // path MTU, 4 bits
	RDCExists        bool
	MaxCMRetries     uint8 // 4 bits
	SRQ              bool
	ExtTransport     uint8 // 3 bits
	Primary          Path
	Alternate        Path
	Private          []byte // REQPrivateLen
}

// Path is one of the two paths of a REQ.
type Path struct {
	LocalLID, RemoteLID uint16 // 0xFFFF on RoCE
	LocalGID, RemoteGID ib.GID
	FlowLabel           uint32 // 20 bits
	Rate                uint8  // 6 bits, coded
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	AckTimeoutExp       uint8 // local ACK timeout, 5 bits
}

// Attr implements Message.
func (*REQ) Attr() Attr { return AttrREQ }

const (
	reqPrimary   = 52
	reqAlternate = 96
	reqPrivate   = 140
)

// Decode implements Message.
func (m *REQ) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID = CommID(binary.BigEndian.Uint32(b))
	m.Service = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.CAGUID = binary.BigEndian.Uint64(b[16:])
	m.QKey = ib.QKey(binary.BigEndian.Uint32(b[28:]))
	m.QPN, m.ResponderResources = ib.QPN(u24(b[32:])), b[35]
	m.LocalEECN, m.InitiatorDepth = u24(b[36:]), b[39]
	m.RemoteEECN = u24(b[40:])
	m.RemoteTimeoutExp, m.Transport, m.FlowControl = b[43]>>3, Transport(b[43]>>1&3), b[43]&1 != 0
	m.StartingPSN = ib.PSN(u24(b[44:]))
	m.LocalTimeoutExp, m.RetryCount = b[47]>>3, b[47]&7
	m.PKey = ib.PKey(binary.BigEndian.Uint16(b[48:]))
	m.MTU, m.RDCExists, m.RNRRetryCount = ib.MTU(b[50]>>4), b[50]>>3&1 != 0, b[50]&7
	m.MaxCMRetries, m.SRQ, m.ExtTransport = b[51]>>4, b[51]>>3&1 != 0, b[51]&7
	m.Primary.decode(b[reqPrimary:])
	m.Alternate.decode(b[reqAlternate:])
	m.Private = b[reqPrivate:]
}

// Encode implements Message.
func (m *REQ) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	binary.BigEndian.PutUint64(b, uint64(m.LocalID)<<32)
	binary.BigEndian.PutUint64(b[8:], uint64(m.Service))
	binary.BigEndian.PutUint64(b[16:], m.CAGUID)
	binary.BigEndian.PutUint64(b[24:], uint64(m.QKey))
	put24(b[32:], uint32(m.QPN))
	b[35] = m.ResponderResources
	put24(b[36:], m.LocalEECN)
	b[39] = m.InitiatorDepth
	put24(b[40:], m.RemoteEECN)
	b[43] = m.RemoteTimeoutExp<<3 | byte(m.Transport)&3<<1 | bit(m.FlowControl)
	put24(b[44:], uint32(m.StartingPSN))
	b[47] = m.LocalTimeoutExp<<3 | m.RetryCount&7
	binary.BigEndian.PutUint16(b[48:], uint16(m.PKey))
	b[50] = byte(m.MTU)<<4 | bit(m.RDCExists)<<3 | m.RNRRetryCount&7
	b[51] = m.MaxCMRetries<<4 | bit(m.SRQ)<<3 | m.ExtTransport&7
	m.Primary.encode(b[reqPrimary:])
	m.Alternate.encode(b[reqAlternate:])
	private(b[reqPrivate:], m.Private)
}

// QPType returns the type of queue pair that the transport service is for; ok
// is false for those that there are none of here.
func (m *REQ) QPType() (t ib.QPType, ok bool) {
	switch m.Transport {
	case TransportRC:
		return ib.RC, true
	case TransportUC:
		return ib.UC, true
	case TransportRD, TransportExtended:
	}
	return 0, false
}

func (p *Path) decode(b []byte) {
	_ = b[43]
	p.LocalLID, p.RemoteLID = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	p.LocalGID, p.RemoteGID = ib.GID(b[4:20]), ib.GID(b[20:36])
	w := binary.BigEndian.Uint32(b[36:])
	p.FlowLabel, p.Rate = w>>12, uint8(w&0x3F)
	p.TrafficClass, p.HopLimit = b[40], b[41]
	p.SL, p.SubnetLocal = b[42]>>4, b[42]>>3&1 != 0
	p.AckTimeoutExp = b[43] >> 3
}

func (p *Path) encode(b []byte) {
	_ = b[43]
	binary.BigEndian.PutUint16(b, p.LocalLID)
	binary.BigEndian.PutUint16(b[2:], p.RemoteLID)
	copy(b[4:], p.LocalGID[:])
	copy(b[20:], p.RemoteGID[:])
	binary.BigEndian.PutUint32(b[36:], p.FlowLabel<<12|uint32(p.Rate&0x3F))
	b[40], b[41] = p.TrafficClass, p.HopLimit
	b[42] = p.SL<<4 | bit(p.SubnetLocal)<<3
	b[43] = p.AckTimeoutExp << 3
}
