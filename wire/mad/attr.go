package mad

import (
	"encoding/binary"
	"fmt"
)

// Attr is an attribute ID: the kind of a message.
type Attr uint16

// The attributes of communication management (IBA vol.1 table 98).
const (
	AttrClassPortInfo Attr = 0x0001
	AttrREQ           Attr = 0x0010
	AttrMRA           Attr = 0x0011
	AttrREJ           Attr = 0x0012
	AttrREP           Attr = 0x0013
	AttrRTU           Attr = 0x0014
	AttrDREQ          Attr = 0x0015
	AttrDREP          Attr = 0x0016
	AttrSIDRREQ       Attr = 0x0017
	AttrSIDRREP       Attr = 0x0018
	AttrLAP           Attr = 0x0019
	AttrAPR           Attr = 0x001A
)

var attrNames = [...]string{"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"}

func (a Attr) String() string {
	switch {
	case a == AttrClassPortInfo:
		return "ClassPortInfo"
	case a >= AttrREQ && int(a-AttrREQ) < len(attrNames):
		return attrNames[a-AttrREQ]
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(a))
}

// CommID is a communication ID: each end of a connection chooses its own.
type CommID uint32

func (c CommID) String() string { return fmt.Sprintf("0x%08x", uint32(c)) }

// Message is one message of communication management.
type Message interface {
	// Attr returns the attribute ID.
	Attr() Attr
	// Decode fills the message from at least DataLen bytes; Private is borrowed
	// from them.
	Decode(b []byte)
	// Encode writes all of DataLen bytes. Private data that are shorter than
	// their field are filled up with zeros, longer ones cut.
	Encode(b []byte)
}

// Put writes a whole MAD to b, which has room for Len bytes.
func Put(b []byte, tid uint64, m Message) {
	h := NewHeader(m.Attr(), tid)
	h.Encode(b)
	m.Encode(b[HeaderLen:Len])
}

// private writes private data to all of b.
func private(b, data []byte) { clear(b[copy(b, data):]) }

func u24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// ids are the two communication IDs with which most messages begin.
func ids(b []byte) (local, remote CommID) {
	return CommID(binary.BigEndian.Uint32(b)), CommID(binary.BigEndian.Uint32(b[4:]))
}

func putIDs(b []byte, local, remote CommID) {
	binary.BigEndian.PutUint32(b, uint32(local))
	binary.BigEndian.PutUint32(b[4:], uint32(remote))
}
