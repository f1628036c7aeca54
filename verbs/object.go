package verbs

import (
	"context"
	"net"

	"github.com/verbena-rdma/verbena/ib"
)

// PD is a protection domain.
type PD struct{}

// Device returns the device of the domain.
func (p *PD) Device() *Device { return nil }

// Close frees the domain; ErrBusy while something uses it.
func (p *PD) Close() error { return nil }

// MRConfig describes a memory region.
type MRConfig struct {
	Buf    []byte
	Access ib.Access
	// IOVA is the address of the first byte as work requests and peers name it;
	// 0 means its real address.
	IOVA uint64
}

// MR is a registered memory region.
type MR struct{}

// RegisterMR registers buf.
func (p *PD) RegisterMR(buf []byte, access ib.Access) (*MR, error) { return nil, nil }

// Register registers memory.
func (p *PD) Register(cfg MRConfig) (*MR, error) { return nil, nil }

// LKey returns the local key.
func (m *MR) LKey() ib.LKey { return 0 }

// RKey returns the remote key.
func (m *MR) RKey() ib.RKey { return 0 }

// Addr returns the address of the first byte.
func (m *MR) Addr() uint64 { return 0 }

// Len returns the length in bytes.
func (m *MR) Len() int { return 0 }

// Bytes returns the registered memory.
func (m *MR) Bytes() []byte { return nil }

// Access returns the access flags.
func (m *MR) Access() ib.Access { return 0 }

// SGE returns a scatter/gather list of one element: n bytes from byte off.
func (m *MR) SGE(off, n int) []ib.SGE { return []ib.SGE{{Addr: uint64(off), Length: uint32(n)}} }

// Remote returns the place of byte off as a peer names it.
func (m *MR) Remote(off int) ib.Remote { return ib.Remote{} }

// Close deregisters the region.
func (m *MR) Close() error { return nil }

// CQConfig describes a completion queue.
type CQConfig struct {
	Depth   int          // entries; 0 means 128
	Channel *CompChannel // gets an event when the armed CQ gets a completion; may be nil
}

// CQ is a completion queue.
type CQ struct{}

// Poll takes completions.
func (c *CQ) Poll(wcs []ib.WC) int { return 0 }

// Wait takes completions and waits until there is one.
func (c *CQ) Wait(ctx context.Context, wcs []ib.WC) (int, error) { return 0, nil }

// Arm asks for one event.
func (c *CQ) Arm(solicitedOnly bool) error { return nil }

// Depth returns the number of entries.
func (c *CQ) Depth() int { return 0 }

// Close frees the queue; ErrBusy while a QP uses it.
func (c *CQ) Close() error { return nil }

// CompChannel is a completion channel.
type CompChannel struct{}

// Wait returns the next CQ that had an event.
func (ch *CompChannel) Wait(ctx context.Context) (*CQ, error) { return nil, nil }

// TryNext returns the next CQ that had an event, if there is one.
func (ch *CompChannel) TryNext() (*CQ, bool) { return nil, false }

// C becomes readable when there is an event.
func (ch *CompChannel) C() <-chan struct{} { return nil }

// Close frees the channel.
func (ch *CompChannel) Close() error { return nil }

// QPConfig describes a queue pair.
type QPConfig struct {
	Type   ib.QPType
	SendCQ *CQ
	RecvCQ *CQ
	Cap    ib.QPCap
	SigAll bool // every send work request is reported, signaled or not
}

// QP is a queue pair.
type QP struct{}

// CreateQP makes a queue pair in state Reset.
func (p *PD) CreateQP(cfg QPConfig) (*QP, error) { return nil, nil }

// Num returns the number.
func (q *QP) Num() ib.QPN { return 0 }

// Type returns the transport service.
func (q *QP) Type() ib.QPType { return 0 }

// Cap returns the sizes of the queues.
func (q *QP) Cap() ib.QPCap { return ib.QPCap{} }

// State returns the present state.
func (q *QP) State() ib.QPState { return 0 }

// Device returns the device.
func (q *QP) Device() *Device { return nil }

// Modify changes attributes.
func (q *QP) Modify(attr ib.QPAttr) error { return nil }

// Query returns the attributes.
func (q *QP) Query() ib.QPAttr { return ib.QPAttr{} }

// PostSend posts one send work request.
func (q *QP) PostSend(wr ib.SendWR) error { return nil }

// PostSendBatch posts send work requests and returns how many were taken.
func (q *QP) PostSendBatch(wrs []ib.SendWR) (int, error) { return 0, nil }

// PostRecv posts one receive.
func (q *QP) PostRecv(wr ib.RecvWR) error { return nil }

// PostRecvBatch posts receives and returns how many were taken.
func (q *QP) PostRecvBatch(wrs []ib.RecvWR) (int, error) { return 0, nil }

// Close destroys the queue pair.
func (q *QP) Close() error { return nil }

// Path is what a connected queue pair must know of its peer. Zero fields take
// the defaults given; where 0 is what you want, use Modify.
type Path struct {
	DestQPN      ib.QPN
	PSN          ib.PSN // the first that the peer sends
	LocalPSN     ib.PSN // the first that this end sends
	GID          ib.GID // the peer's
	GIDIndex     int    // the local row
	MTU          ib.MTU // 0: the port's active MTU
	HopLimit     uint8  // 0: 64
	TrafficClass uint8
	FlowLabel    uint32
	SL           uint8

	TimeoutExp      uint8 // 0: 14, 67 ms
	RetryCnt        uint8 // 0: 7
	RNRRetry        uint8 // 0: 7, for ever
	MinRNRTimer     uint8 // 0: 12, 0.64 ms
	MaxRdAtomic     uint8 // 0: 16
	MaxDestRdAtomic uint8 // 0: 16
}

// ToInit moves a Reset QP to Init, with what the peer may do.
func (q *QP) ToInit(access ib.Access) error { return nil }

// ToInitUD moves a Reset UD QP to Init.
func (q *QP) ToInitUD(key ib.QKey) error { return nil }

// ToRTR moves an Init QP to RTR. A UD QP needs no path.
func (q *QP) ToRTR(p Path) error { return nil }

// ToRTS moves an RTR QP to RTS.
func (q *QP) ToRTS(p Path) error { return nil }

// ToError moves the QP to Error: what is posted flushes.
func (q *QP) ToError() error { return nil }

// ToReset moves the QP to Reset: what is posted is forgotten.
func (q *QP) ToReset() error { return nil }

// AH is an address handle.
type AH struct{}

// CreateAH makes an address handle.
func (p *PD) CreateAH(av ib.AV) (*AH, error) { return nil, nil }

// Handle returns what a work request names it by.
func (a *AH) Handle() ib.AH { return 0 }

// Close frees the handle.
func (a *AH) Close() error { return nil }

// Peer is the other end of Connect.
type Peer struct {
	QPN    ib.QPN
	QKey   ib.QKey // UD
	Path   Path
	Remote ib.Remote // first byte of its region
	Len    uint64    // bytes of its region
}

// At returns the place of byte off of the peer's region.
func (p *Peer) At(off int) ib.Remote { return ib.Remote{} }

// Datagram returns where UD sends to the peer go.
func (p *Peer) Datagram() ib.Datagram { return ib.Datagram{} }

// Connect swaps addresses with the other end of conn; both ends reach RTS.
func Connect(ctx context.Context, conn net.Conn, qp *QP, mr *MR) (*Peer, error) { return nil, nil }

// Memory is page-aligned memory outside the Go heap.
type Memory struct{}

// Alloc returns n zero bytes of page-aligned memory.
func Alloc(n int) (*Memory, error) { return nil, nil }

// Bytes returns the memory.
func (m *Memory) Bytes() []byte { return nil }

// HugePages reports whether the memory has huge pages; String says why not.
func (m *Memory) HugePages() bool { return false }

// String describes the memory in a plain sentence.
func (m *Memory) String() string { return "" }

// Close unmaps the memory; ErrBusy while a region uses it.
func (m *Memory) Close() error { return nil }
