package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// The room for private data in a SIDR REQ and a SIDR REP.
const (
	SIDRREQPrivateLen = 216
	SIDRREPPrivateLen = 136
)

// SIDRREQ asks for the queue pair of a service of datagrams (IBA vol.1 12.11.1).
type SIDRREQ struct {
	RequestID uint32
	PKey      ib.PKey
	Service   ServiceID
	Private   []byte
}

// Attr implements Message.
func (*SIDRREQ) Attr() Attr { return AttrSIDRREQ }

// Decode implements Message.
func (m *SIDRREQ) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.RequestID = binary.BigEndian.Uint32(b)
	m.PKey = ib.PKey(binary.BigEndian.Uint16(b[4:]))
	m.Service = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.Private = b[16:]
}

// Encode implements Message.
func (m *SIDRREQ) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	binary.BigEndian.PutUint32(b, m.RequestID)
	binary.BigEndian.PutUint32(b[4:], uint32(m.PKey)<<16)
	binary.BigEndian.PutUint64(b[8:], uint64(m.Service))
	private(b[16:], m.Private)
}

// SIDRStatus is the answer to a SIDR REQ.
type SIDRStatus uint8

// The answers (IBA vol.1 12.11.2).
const (
	SIDRValid       SIDRStatus = 0
	SIDRUnsupported SIDRStatus = 1 // nobody serves the service ID
	SIDRReject      SIDRStatus = 2
	SIDRNoQP        SIDRStatus = 3
	SIDRRedirect    SIDRStatus = 4
	SIDRVersion     SIDRStatus = 5 // class version not supported
)

var sidrNames = [...]string{
	"valid", "nobody listens there: service ID not supported", "rejected by the service", "no QP available", "redirected",
	"class version not supported",
}

func (s SIDRStatus) String() string {
	if int(s) < len(sidrNames) {
		return sidrNames[s]
	}
	return fmt.Sprintf("SIDR status %d", uint8(s))
}

// SIDRREP answers a SIDRREQ (IBA vol.1 12.11.2).
type SIDRREP struct {
	RequestID uint32
	Status    SIDRStatus
	QPN       ib.QPN
	Service   ServiceID
	QKey      ib.QKey
	Info      []byte // up to ARILen bytes
	Private   []byte
}

// Attr implements Message.
func (*SIDRREP) Attr() Attr { return AttrSIDRREP }

// Decode implements Message. A length of the additional information that is
// more than its field counts as the field's.
func (m *SIDRREP) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.RequestID = binary.BigEndian.Uint32(b)
	m.Status = SIDRStatus(b[4])
	n := min(int(b[5]), ARILen)
	m.QPN = ib.QPN(u24(b[8:]))
	m.Service = ServiceID(binary.BigEndian.Uint64(b[12:]))
	m.QKey = ib.QKey(binary.BigEndian.Uint32(b[20:]))
	m.Info = b[24 : 24+n : 24+n]
	m.Private = b[24+ARILen:]
}

// Encode implements Message.
func (m *SIDRREP) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	binary.BigEndian.PutUint32(b, m.RequestID)
	b[4], b[5], b[6], b[7] = byte(m.Status), byte(min(len(m.Info), ARILen)), 0, 0
	binary.BigEndian.PutUint32(b[8:], uint32(m.QPN)<<8)
	binary.BigEndian.PutUint64(b[12:], uint64(m.Service))
	binary.BigEndian.PutUint32(b[20:], uint32(m.QKey))
	private(b[24:24+ARILen], m.Info)
	private(b[24+ARILen:], m.Private)
}
