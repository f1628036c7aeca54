package mad

// RTUPrivateLen is the room for private data in an RTU.
const RTUPrivateLen = 224

// RTU says that the connection may be used (IBA vol.1 12.6.9).
type RTU struct {
	LocalID, RemoteID CommID
	Private           []byte
}

// Attr implements Message.
func (*RTU) Attr() Attr { return AttrRTU }

// Decode implements Message.
func (m *RTU) Decode(b []byte) {
	b = b[:DataLen:DataLen]
	m.LocalID, m.RemoteID = ids(b)
	m.Private = b[8:]
}

// Encode implements Message.
func (m *RTU) Encode(b []byte) {
	b = b[:DataLen:DataLen]
	putIDs(b, m.LocalID, m.RemoteID)
	private(b[8:], m.Private)
}
