package ib

import (
	"fmt"
	"time"
)

// QPType is the transport service of a queue pair.
type QPType uint8

// The services, with libibverbs' numbers.
const (
	RC QPType = 2 // reliable connection
	UC QPType = 3 // unreliable connection
	UD QPType = 4 // unreliable datagram
)

func (t QPType) String() string {
	switch t {
	case RC:
		return "RC"
	case UC:
		return "UC"
	case UD:
		return "UD"
	}
	return fmt.Sprintf("QP type %d", uint8(t))
}

// QPState is a state of the queue pair state machine (IBA vol.1 10.3.1).
type QPState uint8

// The states, with libibverbs' numbers.
const (
	Reset QPState = iota
	Init
	RTR
	RTS
	SQD
	SQE
	Error
)

var qpStateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

func (s QPState) String() string {
	if int(s) < len(qpStateNames) {
		return qpStateNames[s]
	}
	return fmt.Sprintf("QP state %d", uint8(s))
}

// Access says what may be done to a memory region, or what a queue pair lets
// its peer do.
type Access uint32

// The access flags, with libibverbs' numbers. Local read is always allowed.
const (
	LocalWrite    Access = 1 << 0
	RemoteWrite   Access = 1 << 1
	RemoteRead    Access = 1 << 2
	RemoteAtomic  Access = 1 << 3
	MWBind        Access = 1 << 4
	ZeroBased     Access = 1 << 5 // remote addresses count from the start of the region
	OnDemand      Access = 1 << 6 // accepted, no effect: user memory is always paged
	RemoteFlush   Access = 1 << 8 // FLUSH to global visibility
	RemotePersist Access = 1 << 9 // FLUSH to persistence: memory that has none is not registered so
	RelaxedOrder  Access = 1 << 20
	RemoteAll     Access = RemoteWrite | RemoteRead | RemoteAtomic
	AccessAll     Access = LocalWrite | RemoteAll | MWBind
	accessDefined        = AccessAll | ZeroBased | OnDemand | RemoteFlush | RemotePersist | RelaxedOrder
)

// Undefined returns the bits of a that have no meaning.
func (a Access) Undefined() Access { return a &^ accessDefined }

func (a Access) String() string {
	names := []struct {
		bit  Access
		name string
	}{
		{LocalWrite, "LOCAL_WRITE"},
		{RemoteWrite, "REMOTE_WRITE"},
		{RemoteRead, "REMOTE_READ"},
		{RemoteAtomic, "REMOTE_ATOMIC"},
		{MWBind, "MW_BIND"},
		{ZeroBased, "ZERO_BASED"},
		{OnDemand, "ON_DEMAND"},
		{RemoteFlush, "FLUSH_GLOBAL"},
		{RemotePersist, "FLUSH_PERSISTENT"},
		{RelaxedOrder, "RELAXED_ORDERING"},
	}
	s := ""
	for _, n := range names {
		if a&n.bit != 0 {
			if s != "" {
				s += "|"
			}
			s += n.name
			a &^= n.bit
		}
	}
	if a != 0 || s == "" {
		if s != "" {
			s += "|"
		}
		s += fmt.Sprintf("0x%x", uint32(a))
	}
	return s
}

// AV is an address vector: how packets reach a destination.
type AV struct {
	DGID         GID
	SGIDIndex    int    // row of the local GID table that packets leave from
	HopLimit     uint8  // TTL; 0 means the adapter's default, 64
	TrafficClass uint8  // DSCP and ECN, the whole octet
	FlowLabel    uint32 // 20 bits
	SL           uint8  // service level: the priority, 0–7
	// DGIDType is the RoCE version that DGID is for at the peer, 0 if that is not
	// known. Given one, a queue pair whose ends differ is refused.
	DGIDType GIDType
}

// AttrMask names the attributes that a modify call carries.
type AttrMask uint32

// The attributes, with libibverbs' numbers (ibv_qp_attr_mask).
const (
	AttrState            AttrMask = 1 << 0
	AttrCurState         AttrMask = 1 << 1
	AttrEnSQDAsyncNotify AttrMask = 1 << 2
	AttrAccess           AttrMask = 1 << 3
	AttrPKeyIndex        AttrMask = 1 << 4
	AttrPort             AttrMask = 1 << 5
	AttrQKey             AttrMask = 1 << 6
	AttrAV               AttrMask = 1 << 7
	AttrPathMTU          AttrMask = 1 << 8
	AttrTimeout          AttrMask = 1 << 9
	AttrRetryCnt         AttrMask = 1 << 10
	AttrRNRRetry         AttrMask = 1 << 11
	AttrRQPSN            AttrMask = 1 << 12
	AttrMaxRdAtomic      AttrMask = 1 << 13
	AttrAltPath          AttrMask = 1 << 14
	AttrMinRNRTimer      AttrMask = 1 << 15
	AttrSQPSN            AttrMask = 1 << 16
	AttrMaxDestRdAtomic  AttrMask = 1 << 17
	AttrPathMigState     AttrMask = 1 << 18
	AttrCap              AttrMask = 1 << 19
	AttrDestQPN          AttrMask = 1 << 20
	AttrRateLimit        AttrMask = 1 << 25
	AttrLateAck          AttrMask = 1 << 30 // Verbena's own
)

// QPAttr is the argument of a modify call and the answer of a query. Mask says
// which fields are meant; a query fills them all.
type QPAttr struct {
	Mask            AttrMask
	State           QPState
	CurState        QPState
	Access          Access // what the peer may do
	PKeyIndex       uint16 // row of the port's partition table
	PKey            PKey   // answer only: the key in that row
	Port            uint8  // 1
	QKey            QKey
	AV              AV
	PathMTU         MTU
	TimeoutExp      uint8 // local ACK timeout 4.096 µs · 2^n; 0 waits for ever; 0–31
	RetryCnt        uint8 // 0–7
	RNRRetry        uint8 // 0–7; 7 retries for ever
	RQPSN           PSN
	SQPSN           PSN
	MaxRdAtomic     uint8 // READs and ATOMICs outstanding as requester
	MaxDestRdAtomic uint8 // … as responder
	MinRNRTimer     uint8 // code of the RNR NAK delay, 0–31; see [RNRDelay]
	DestQPN         QPN
	RateLimitKbps   uint32 // kilobits a second; 0 is no limit
	SQDAsyncNotify  bool   // to SQD, with AttrEnSQDAsyncNotify: raise EventSQDrained when the send queue has drained
	// LateAck lets one request leave before an ACK that is due: the answer to a
	// message does not wait for its acknowledgement. The peer must cope with
	// the message's completion behind the answer. Programs that size their
	// completion queues by the other order do not, ib_send_lat -e among them;
	// so it is for peers that are known. RC only.
	LateAck bool
}

// QPCap holds the sizes of a queue pair's queues. Zero fields take the
// adapter's defaults.
type QPCap struct {
	MaxSendWR     int
	MaxRecvWR     int
	MaxSendSGE    int
	MaxRecvSGE    int
	MaxInlineData int // bytes
}

// AckTimeout returns the local ACK timeout of a timer exponent
// (IBA vol.1 9.7.6.1.3): 4.096 µs · 2^n; 0 for n = 0, which means no timeout.
func AckTimeout(exp uint8) time.Duration {
	if exp == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << (exp & 31)
}

var rnrDelaysUsec = [32]uint32{
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
}

// RNRDelay returns the delay that an RNR NAK with this timer code asks for
// (IBA vol.1 table 45): 10 µs for code 1 up to 655.36 ms for code 0.
func RNRDelay(code uint8) time.Duration {
	return time.Duration(rnrDelaysUsec[code&31]) * time.Microsecond
}
