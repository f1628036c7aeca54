package ib

import "fmt"

// WROp is the operation of a send work request.
type WROp uint8

// The operations, with libibverbs' numbers (ibv_wr_opcode).
const (
	Write WROp = iota
	WriteImm
	Send
	SendImm
	Read
	CompareSwap
	FetchAdd
	LocalInv
	BindMW
	SendInv
)

// Operations of IBA vol.1 1.5, annex A19.
const (
	Flush       WROp = 14
	AtomicWrite WROp = 15
)

var wrOpNames = [...]string{
	"RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM", "RDMA_READ",
	"ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "LOCAL_INV", "BIND_MW", "SEND_WITH_INV",
	"", "", "", "", "FLUSH", "ATOMIC_WRITE",
}

func (o WROp) String() string {
	if int(o) < len(wrOpNames) && wrOpNames[o] != "" {
		return wrOpNames[o]
	}
	return fmt.Sprintf("WR opcode %d", uint8(o))
}

// IsAtomic reports whether o is one of the two 8-byte atomics.
func (o WROp) IsAtomic() bool { return o == CompareSwap || o == FetchAdd }

// IsSend reports whether o consumes a receive at the peer by its payload.
func (o WROp) IsSend() bool { return o == Send || o == SendImm || o == SendInv }

// IsLocal reports whether o is executed by the requester itself and puts nothing
// on the wire.
func (o WROp) IsLocal() bool { return o == LocalInv || o == BindMW }

// IsWrite reports whether o is an RDMA WRITE with or without immediate.
func (o WROp) IsWrite() bool { return o == Write || o == WriteImm }

// HasImm reports whether o carries immediate data.
func (o WROp) HasImm() bool { return o == WriteImm || o == SendImm }

// SendFlags modify a send work request.
type SendFlags uint8

// The flags, with libibverbs' numbers (ibv_send_flags).
const (
	Fence     SendFlags = 1 << 0 // wait for this QP's earlier READs and ATOMICs
	Signaled  SendFlags = 1 << 1 // report a completion on success too
	Solicited SendFlags = 1 << 2 // raise the peer's solicited completion event
	Inline    SendFlags = 1 << 3 // copy the payload while posting
)

// SGE is one scatter/gather element: Length bytes at virtual address Addr in
// the region that LKey names.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   LKey
}

// Remote is a place in a peer's memory.
type Remote struct {
	Addr uint64
	RKey RKey
}

// AH is the handle of an address handle of the same adapter. The zero AH names
// none.
type AH uint32

// Datagram says where a UD send goes.
type Datagram struct {
	AH   AH
	QPN  QPN
	QKey QKey // privileged keys (top bit) stand for the sending QP's own
}

// SendWR is a work request for a send queue. Posting copies it, its SGL and,
// with Inline, the payload: the caller may reuse them at once.
//
// An AtomicWrite writes the 8 bytes of its SGL or inline data to a remote address
// that is a multiple of 8, in one step.
//
// An ATOMIC works on 8 bytes at a remote address that is a multiple of 8; its
// SGL names 8 bytes, which receive the value before it. Both are words of the
// host that they lie on, in its byte order.
type SendWR struct {
	ID    uint64 // returned in the completion
	Op    WROp
	Flags SendFlags
	SGL   []SGE // borrowed; gathered from for SEND and WRITE, scattered into for READ and ATOMIC
	// InlineData is an alternative to an SGL when Flags has Inline: the payload
	// itself, registered or not. Borrowed.
	InlineData []byte
	Imm        uint32 // immediate data in host order; SendInv, LocalInv: the RKey to invalidate
	Remote     Remote // WRITE, READ, ATOMIC
	Compare    uint64 // CompareSwap: swap if equal to this
	SwapAdd    uint64 // CompareSwap: the new value; FetchAdd: the addend
	UD         Datagram
	Bind       *Bind // BindMW. Borrowed.
	Flush      FlushRange
}

// FlushRange is what a Flush work request asks for: that all that was written
// before through this connection to Len bytes at Remote, or with FlushRegion to
// its whole region, be brought as far as Placement says. The request completes
// when it is.
type FlushRange struct {
	Len       uint32 // bytes; means nothing with FlushRegion
	Placement FlushPlacement
	Level     FlushLevel
}

// FlushPlacement is how far data is brought, with libibverbs' numbers.
type FlushPlacement uint8

// The placements; both may be asked for.
const (
	FlushGlobal     FlushPlacement = 1 << 0 // visible to everybody on the host
	FlushPersistent FlushPlacement = 1 << 1 // survives a loss of power
)

// FlushLevel is which data is meant, with libibverbs' numbers.
type FlushLevel uint8

// The levels.
const (
	FlushRangeOnly FlushLevel = 0
	FlushRegion    FlushLevel = 1
)

// Bind is what a BindMW work request asks for: that the window whose key has the
// upper 24 bits of RKey opens Len bytes at Addr of the region LKey, under the
// key RKey. Its lowest 8 bits are the caller's to choose. Length 0 unbinds a
// window of type 1.
type Bind struct {
	RKey   RKey
	LKey   LKey
	Addr   uint64
	Len    uint64
	Access Access // of RemoteAll, and ZeroBased for windows of type 2
}

// RecvWR is a work request for a receive queue. Posting copies it and its SGL.
//
// On UD the first 40 bytes of the list take the GRH (over IPv4 the last 20 of
// them the IP header) and the message follows: a receive of n bytes takes
// messages of n − 40. A longer one is dropped in silence and the receive waits
// on; the device's counters tell (drop_too_long, drop_qkey, drop_no_recv).
type RecvWR struct {
	ID  uint64
	SGL []SGE // borrowed
}
