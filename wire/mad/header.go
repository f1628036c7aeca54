package mad

import "encoding/binary"

// Lengths in bytes.
const (
	Len       = 256             // of a MAD
	HeaderLen = 24              // of its header
	DataLen   = Len - HeaderLen // of what follows
)

// Class is a management class.
type Class uint8

// ClassCM is communication management (IBA vol.1 13.4.4).
const ClassCM Class = 0x07

// The versions that this package writes (IBA vol.1 12.6.1, 13.4.3).
const (
	BaseVersion    = 1
	CMClassVersion = 2
)

// Method says what a MAD wants; the top bit marks a response.
type Method uint8

// The methods of communication management (IBA vol.1 12.6.1).
const (
	MethodGet     Method = 0x01
	MethodSend    Method = 0x03
	MethodGetResp Method = 0x81
)

// Status of a response (IBA vol.1 13.4.7).
type Status uint16

// Header is the common header of a MAD (IBA vol.1 13.4.2).
type Header struct {
	BaseVersion  uint8
	Class        Class
	ClassVersion uint8
	Method       Method
	Status       Status
	TID          uint64 // transaction ID: an answer has that of the question
	Attr         Attr
	Modifier     uint32
}

// NewHeader returns the header of a message of communication management.
func NewHeader(a Attr, tid uint64) Header {
	return Header{BaseVersion: BaseVersion, Class: ClassCM, ClassVersion: CMClassVersion, Method: MethodSend, Attr: a, TID: tid}
}

// Decode fills h from b, which has at least HeaderLen bytes.
func (h *Header) Decode(b []byte) {
	_ = b[HeaderLen-1]
	h.BaseVersion, h.Class, h.ClassVersion, h.Method = b[0], Class(b[1]), b[2], Method(b[3])
	h.Status = Status(binary.BigEndian.Uint16(b[4:]))
	h.TID = binary.BigEndian.Uint64(b[8:])
	h.Attr = Attr(binary.BigEndian.Uint16(b[16:]))
	h.Modifier = binary.BigEndian.Uint32(b[20:])
}

// Encode writes h to b, which has room for HeaderLen bytes.
func (h *Header) Encode(b []byte) {
	_ = b[HeaderLen-1]
	b[0], b[1], b[2], b[3] = h.BaseVersion, byte(h.Class), h.ClassVersion, byte(h.Method)
	binary.BigEndian.PutUint16(b[4:], uint16(h.Status))
	binary.BigEndian.PutUint16(b[6:], 0)
	binary.BigEndian.PutUint64(b[8:], h.TID)
	binary.BigEndian.PutUint16(b[16:], uint16(h.Attr))
	binary.BigEndian.PutUint16(b[18:], 0)
	binary.BigEndian.PutUint32(b[20:], h.Modifier)
}
