package wire

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// Opcode is the first byte of the BTH: three bits of transport service and
// five bits of operation (IBA vol.1 9.2.1).
type Opcode uint8

// The opcodes of the reliable connection, the unreliable connection and the
// unreliable datagram services, and the one of the congestion notification
// packet (IBA vol.1 annex A17.9.3).
const (
	RCSendFirst      Opcode = 0x00
	RCSendMiddle     Opcode = 0x01
	RCSendLast       Opcode = 0x02
	RCSendLastImm    Opcode = 0x03
	RCSendOnly       Opcode = 0x04
	RCSendOnlyImm    Opcode = 0x05
	RCWriteFirst     Opcode = 0x06
	RCWriteMiddle    Opcode = 0x07
	RCWriteLast      Opcode = 0x08
	RCWriteLastImm   Opcode = 0x09
	RCWriteOnly      Opcode = 0x0A
	RCWriteOnlyImm   Opcode = 0x0B
	RCReadRequest    Opcode = 0x0C
	RCReadRespFirst  Opcode = 0x0D
	RCReadRespMiddle Opcode = 0x0E
	RCReadRespLast   Opcode = 0x0F
	RCReadRespOnly   Opcode = 0x10
	RCAck            Opcode = 0x11
	RCAtomicAck      Opcode = 0x12
	RCCompareSwap    Opcode = 0x13
	RCFetchAdd       Opcode = 0x14
	RCSendLastInv    Opcode = 0x16
	RCSendOnlyInv    Opcode = 0x17
	RCFlush          Opcode = 0x1C // IBA vol.1 1.5, annex A19
	RCAtomicWrite    Opcode = 0x1D // IBA vol.1 1.5, annex A19

	UCSendFirst    Opcode = 0x20
	UCSendMiddle   Opcode = 0x21
	UCSendLast     Opcode = 0x22
	UCSendLastImm  Opcode = 0x23
	UCSendOnly     Opcode = 0x24
	UCSendOnlyImm  Opcode = 0x25
	UCWriteFirst   Opcode = 0x26
	UCWriteMiddle  Opcode = 0x27
	UCWriteLast    Opcode = 0x28
	UCWriteLastImm Opcode = 0x29
	UCWriteOnly    Opcode = 0x2A
	UCWriteOnlyImm Opcode = 0x2B

	UDSendOnly    Opcode = 0x64
	UDSendOnlyImm Opcode = 0x65

	CNP Opcode = 0x81
)

// Kind is what a packet asks or answers, apart from its place in a message.
type Kind uint8

// The kinds.
const (
	KindSend         Kind = 1 + iota
	KindWrite             // RDMA WRITE
	KindReadRequest       // RDMA READ request
	KindAtomic            // CmpSwap or FetchAdd: the opcode tells which
	KindReadResponse      // RDMA READ response
	KindAck               // ACK, RNR NAK or NAK: the syndrome tells which
	KindAtomicAck         // answer to KindAtomic
	KindCNP               // congestion notification
	KindFlush             // FLUSH; answered by an empty READ response
	KindAtomicWrite       // ATOMIC WRITE; answered by an empty READ response
)

var kindNames = [...]string{
	KindSend: "SEND", KindWrite: "RDMA WRITE", KindReadRequest: "RDMA READ Request",
	KindAtomic: "ATOMIC", KindReadResponse: "RDMA READ response", KindAck: "Acknowledge",
	KindAtomicAck: "ATOMIC Acknowledge", KindCNP: "CNP", KindFlush: "FLUSH", KindAtomicWrite: "ATOMIC WRITE",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Position is the place of a packet in its message.
type Position uint8

// The positions. Requests and answers that are always one packet are PosOnly.
const (
	PosFirst Position = 1 + iota
	PosMiddle
	PosLast
	PosOnly
)

// Starts reports whether a message begins with this packet.
func (p Position) Starts() bool { return p == PosFirst || p == PosOnly }

// Ends reports whether a message ends with this packet.
func (p Position) Ends() bool { return p == PosLast || p == PosOnly }

func (p Position) String() string {
	switch p {
	case PosFirst:
		return "First"
	case PosMiddle:
		return "Middle"
	case PosLast:
		return "Last"
	case PosOnly:
		return "Only"
	}
	return fmt.Sprintf("position %d", uint8(p))
}

// Headers is the set of headers that follow the BTH. It is a type of its own
// so that it cannot be mistaken for an opcode.
type Headers uint16

// The headers, in the order in which they stand on the wire.
const (
	HdrDETH Headers = 1 << iota
	HdrFETH
	HdrRETH
	HdrAtomicETH
	HdrAETH
	HdrAtomicAckETH
	HdrImmDt
	HdrIETH
	HdrReserved // the 16 zero bytes of a CNP
)

// Has reports whether any header of x is in the set.
func (h Headers) Has(x Headers) bool { return h&x != 0 }

var headerLens = [...]struct {
	h   Headers
	len int
}{
	{HdrDETH, DETHLen},
	{HdrFETH, FETHLen},
	{HdrRETH, RETHLen},
	{HdrAtomicETH, AtomicETHLen},
	{HdrAETH, AETHLen},
	{HdrAtomicAckETH, AtomicAckETHLen},
	{HdrImmDt, ImmDtLen},
	{HdrIETH, IETHLen},
	{HdrReserved, CNPReservedLen},
}

// Len returns the bytes that the headers of the set take, without the BTH.
func (h Headers) Len() int {
	n := 0
	for _, l := range headerLens {
		if h&l.h != 0 {
			n += l.len
		}
	}
	return n
}

// OpInfo is the row of an opcode. Rows are shared and read-only.
type OpInfo struct {
	Op        Opcode
	Kind      Kind
	Pos       Position
	Transport ib.QPType // 0 for CNP, which belongs to no service
	Headers   Headers   // after the BTH
	Len       int       // bytes of the BTH and the headers
	Payload   bool      // a payload may follow, even an empty one
	Response  bool      // goes from responder to requester
	Name      string
}

// HasImm reports whether the packet carries immediate data.
func (i *OpInfo) HasImm() bool { return i.Headers&HdrImmDt != 0 }

// HasInv reports whether the packet names a key to invalidate.
func (i *OpInfo) HasInv() bool { return i.Headers&HdrIETH != 0 }

// ConsumesReceive reports whether the last packet of a message with this
// opcode takes a posted receive: every SEND, and WRITEs with immediate
// (IBA vol.1 9.4.3).
func (i *OpInfo) ConsumesReceive() bool {
	return i.Kind == KindSend || i.Kind == KindWrite && i.HasImm()
}

// opRows is the one table of opcodes (IBA vol.1 9.2.1; the sets of headers 9.3
// and 9.4). Names are those that tshark prints, with the service shortened.
var opRows = [...]OpInfo{
	{Op: RCSendFirst, Name: "RC SEND First", Transport: ib.RC, Kind: KindSend, Pos: PosFirst, Payload: true},
	{Op: RCSendMiddle, Name: "RC SEND Middle", Transport: ib.RC, Kind: KindSend, Pos: PosMiddle, Payload: true},
	{Op: RCSendLast, Name: "RC SEND Last", Transport: ib.RC, Kind: KindSend, Pos: PosLast, Payload: true},
	{Op: RCSendLastImm, Name: "RC SEND Last with Immediate", Transport: ib.RC, Kind: KindSend, Pos: PosLast, Headers: HdrImmDt, Payload: true},
	{Op: RCSendOnly, Name: "RC SEND Only", Transport: ib.RC, Kind: KindSend, Pos: PosOnly, Payload: true},
	{Op: RCSendOnlyImm, Name: "RC SEND Only with Immediate", Transport: ib.RC, Kind: KindSend, Pos: PosOnly, Headers: HdrImmDt, Payload: true},
	{Op: RCWriteFirst, Name: "RC RDMA WRITE First", Transport: ib.RC, Kind: KindWrite, Pos: PosFirst, Headers: HdrRETH, Payload: true},
	{Op: RCWriteMiddle, Name: "RC RDMA WRITE Middle", Transport: ib.RC, Kind: KindWrite, Pos: PosMiddle, Payload: true},
	{Op: RCWriteLast, Name: "RC RDMA WRITE Last", Transport: ib.RC, Kind: KindWrite, Pos: PosLast, Payload: true},
	{Op: RCWriteLastImm, Name: "RC RDMA WRITE Last with Immediate", Transport: ib.RC, Kind: KindWrite, Pos: PosLast, Headers: HdrImmDt, Payload: true},
	{Op: RCWriteOnly, Name: "RC RDMA WRITE Only", Transport: ib.RC, Kind: KindWrite, Pos: PosOnly, Headers: HdrRETH, Payload: true},
	{Op: RCWriteOnlyImm, Name: "RC RDMA WRITE Only with Immediate", Transport: ib.RC, Kind: KindWrite, Pos: PosOnly, Headers: HdrRETH | HdrImmDt, Payload: true},
	{Op: RCReadRequest, Name: "RC RDMA READ Request", Transport: ib.RC, Kind: KindReadRequest, Pos: PosOnly, Headers: HdrRETH},
	{Op: RCReadRespFirst, Name: "RC RDMA READ response First", Transport: ib.RC, Kind: KindReadResponse, Pos: PosFirst, Headers: HdrAETH, Payload: true, Response: true},
	{Op: RCReadRespMiddle, Name: "RC RDMA READ response Middle", Transport: ib.RC, Kind: KindReadResponse, Pos: PosMiddle, Payload: true, Response: true},
	{Op: RCReadRespLast, Name: "RC RDMA READ response Last", Transport: ib.RC, Kind: KindReadResponse, Pos: PosLast, Headers: HdrAETH, Payload: true, Response: true},
	{Op: RCReadRespOnly, Name: "RC RDMA READ response Only", Transport: ib.RC, Kind: KindReadResponse, Pos: PosOnly, Headers: HdrAETH, Payload: true, Response: true},
	{Op: RCAck, Name: "RC Acknowledge", Transport: ib.RC, Kind: KindAck, Pos: PosOnly, Headers: HdrAETH, Response: true},
	{Op: RCAtomicAck, Name: "RC ATOMIC Acknowledge", Transport: ib.RC, Kind: KindAtomicAck, Pos: PosOnly, Headers: HdrAETH | HdrAtomicAckETH, Response: true},
	{Op: RCCompareSwap, Name: "RC CmpSwap", Transport: ib.RC, Kind: KindAtomic, Pos: PosOnly, Headers: HdrAtomicETH},
	{Op: RCFetchAdd, Name: "RC FetchAdd", Transport: ib.RC, Kind: KindAtomic, Pos: PosOnly, Headers: HdrAtomicETH},
	{Op: RCSendLastInv, Name: "RC SEND Last with Invalidate", Transport: ib.RC, Kind: KindSend, Pos: PosLast, Headers: HdrIETH, Payload: true},
	{Op: RCSendOnlyInv, Name: "RC SEND Only with Invalidate", Transport: ib.RC, Kind: KindSend, Pos: PosOnly, Headers: HdrIETH, Payload: true},
	{Op: RCFlush, Name: "RC FLUSH", Transport: ib.RC, Kind: KindFlush, Pos: PosOnly, Headers: HdrFETH | HdrRETH},
	{Op: RCAtomicWrite, Name: "RC ATOMIC WRITE", Transport: ib.RC, Kind: KindAtomicWrite, Pos: PosOnly, Headers: HdrRETH, Payload: true},

	{Op: UCSendFirst, Name: "UC SEND First", Transport: ib.UC, Kind: KindSend, Pos: PosFirst, Payload: true},
	{Op: UCSendMiddle, Name: "UC SEND Middle", Transport: ib.UC, Kind: KindSend, Pos: PosMiddle, Payload: true},
	{Op: UCSendLast, Name: "UC SEND Last", Transport: ib.UC, Kind: KindSend, Pos: PosLast, Payload: true},
	{Op: UCSendLastImm, Name: "UC SEND Last with Immediate", Transport: ib.UC, Kind: KindSend, Pos: PosLast, Headers: HdrImmDt, Payload: true},
	{Op: UCSendOnly, Name: "UC SEND Only", Transport: ib.UC, Kind: KindSend, Pos: PosOnly, Payload: true},
	{Op: UCSendOnlyImm, Name: "UC SEND Only with Immediate", Transport: ib.UC, Kind: KindSend, Pos: PosOnly, Headers: HdrImmDt, Payload: true},
	{Op: UCWriteFirst, Name: "UC RDMA WRITE First", Transport: ib.UC, Kind: KindWrite, Pos: PosFirst, Headers: HdrRETH, Payload: true},
	{Op: UCWriteMiddle, Name: "UC RDMA WRITE Middle", Transport: ib.UC, Kind: KindWrite, Pos: PosMiddle, Payload: true},
	{Op: UCWriteLast, Name: "UC RDMA WRITE Last", Transport: ib.UC, Kind: KindWrite, Pos: PosLast, Payload: true},
	{Op: UCWriteLastImm, Name: "UC RDMA WRITE Last with Immediate", Transport: ib.UC, Kind: KindWrite, Pos: PosLast, Headers: HdrImmDt, Payload: true},
	{Op: UCWriteOnly, Name: "UC RDMA WRITE Only", Transport: ib.UC, Kind: KindWrite, Pos: PosOnly, Headers: HdrRETH, Payload: true},
	{Op: UCWriteOnlyImm, Name: "UC RDMA WRITE Only with Immediate", Transport: ib.UC, Kind: KindWrite, Pos: PosOnly, Headers: HdrRETH | HdrImmDt, Payload: true},

	{Op: UDSendOnly, Name: "UD SEND Only", Transport: ib.UD, Kind: KindSend, Pos: PosOnly, Headers: HdrDETH, Payload: true},
	{Op: UDSendOnlyImm, Name: "UD SEND Only with Immediate", Transport: ib.UD, Kind: KindSend, Pos: PosOnly, Headers: HdrDETH | HdrImmDt, Payload: true},

	{Op: CNP, Name: "CNP", Kind: KindCNP, Pos: PosOnly, Headers: HdrReserved},
}

// opTable is opRows by opcode; a row whose Len is 0 is an unknown opcode.
var opTable = func() (t [256]OpInfo) {
	for _, r := range opRows {
		r.Len = BTHLen + r.Headers.Len()
		t[r.Op] = r
	}
	return t
}()

// MaxHeaderLen is the longest chain of headers that any opcode has: BTH and
// AtomicETH.
const MaxHeaderLen = BTHLen + AtomicETHLen

// Info returns the row of o, or nil if o is reserved, of a service that RoCE
// here does not carry (RD, XRC), or a manufacturer's own.
func (o Opcode) Info() *OpInfo {
	i := &opTable[o]
	if i.Len == 0 {
		return nil
	}
	return i
}

// Opcodes calls f with each known row, in the order of the table.
func Opcodes(f func(*OpInfo)) {
	for i := range opRows {
		f(&opTable[opRows[i].Op])
	}
}

// String returns the name as tshark prints it, with the service shortened.
func (o Opcode) String() string {
	if i := o.Info(); i != nil {
		return i.Name
	}
	return fmt.Sprintf("opcode 0x%02x", uint8(o))
}
