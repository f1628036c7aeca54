package mad

import "github.com/verbena-rdma/verbena/ib"

// The room for private data in a DREQ and a DREP.
const (
	DREQPrivateLen = 220
	DREPPrivateLen = 224
)

// DREQ ends a connection (IBA vol.1 12.6.10).
type DREQ struct {
	LocalID, RemoteID CommID
	RemoteQPN         ib.QPN // the receiver's
	Private           []byte
}

// Attr implements Message.
func (*DREQ) Attr() Attr { return AttrDREQ }

// Decode implements Message.
func (m *DREQ) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.RemoteQPN = ib.QPN(u24(b[8:]))
	m.Private = b[12:]
}

// Encode implements Message.
func (m *DREQ) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	put24(b[8:], uint32(m.RemoteQPN))
	b[11] = 0
	private(b[12:], m.Private)
}

// DREP answers a DREQ (IBA vol.1 12.6.11).
type DREP struct {
	LocalID, RemoteID CommID
	Private           []byte
}

// Attr implements Message.
func (*DREP) Attr() Attr { return AttrDREP }

// Decode implements Message.
func (m *DREP) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.Private = b[8:]
}

// Encode implements Message.
func (m *DREP) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	private(b[8:], m.Private)
}
