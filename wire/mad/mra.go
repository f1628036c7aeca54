package mad

// MRAPrivateLen is the room for private data in an MRA.
const MRAPrivateLen = 222

// Which is the kind of message that an MRA or REJ is about.
type Which uint8

// The kinds (IBA vol.1 tables 101 and 103).
const (
	WhichREQ   Which = 0
	WhichREP   Which = 1
	WhichOther Which = 2 // in an MRA: LAP; in a REJ: none of the two
)

// MRA says that a message has come and the answer will take longer (IBA vol.1
// 12.6.6).
type MRA struct {
	LocalID, RemoteID CommID
	About             Which // 2 bits
	ServiceTimeoutExp uint8 // when to expect the answer: 4.096 µs · 2^n, 5 bits
	Private           []byte
}

// Attr implements Message.
func (*MRA) Attr() Attr { return AttrMRA }

// Decode implements Message.
func (m *MRA) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.About, m.ServiceTimeoutExp = Which(b[8]>>6), b[9]>>3
	m.Private = b[10:]
}

// Encode implements Message.
func (m *MRA) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	b[8], b[9] = byte(m.About)<<6, m.ServiceTimeoutExp<<3
	private(b[10:], m.Private)
}
