package mad

import "encoding/binary"

// The room in a REJ for additional reject information and for private data.
const (
	ARILen        = 72
	REJPrivateLen = 148
)

// REJ refuses a message (IBA vol.1 12.6.7, table 103).
type REJ struct {
	LocalID, RemoteID CommID
	About             Which // 2 bits
	Reason            Reason
	ARI               []byte // additional reject information: up to ARILen bytes
	Private           []byte
}

// Attr implements Message.
func (*REJ) Attr() Attr { return AttrREJ }

// Decode implements Message. A length of the additional information that is
// more than its field counts as the field's.
func (m *REJ) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.About = Which(b[8] >> 6)
	n := min(int(b[9]>>1), ARILen)
	m.Reason = Reason(binary.BigEndian.Uint16(b[10:]))
	m.ARI = b[12 : 12+n : 12+n]
	m.Private = b[12+ARILen:]
}

// Encode implements Message.
func (m *REJ) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	b[8] = byte(m.About) << 6
	b[9] = byte(min(len(m.ARI), ARILen)) << 1
	binary.BigEndian.PutUint16(b[10:], uint16(m.Reason))
	private(b[12:12+ARILen], m.ARI)
	private(b[12+ARILen:], m.Private)
}
