package host

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// RSS says by what a NIC spreads packets over its receive queues.
type RSS uint8

// The ways.
const (
	RSSPorts     RSS = iota // addresses and UDP ports
	RSSAddresses            // addresses alone
	RSSOff                  // everything goes to queue 0
)

// Config describes a NIC.
type Config struct {
	Name     string
	Node     int32
	Port     int // of the node
	Endpoint int32
	Addr     netip.Addr

	Rate sim.Rate // of the link, for the reaction point
	MTU  ib.MTU
	// Payload is the user bytes of a full packet; 0 means the MTU.
	Payload int
	// Header is the bytes of a data frame beside its payload, MAC to FCS; 0
	// counts the headers that are there.
	Header int
	// Control is the bytes of frames without user data; 0 counts them.
	Control int
	V1      bool // RoCEv1: not routable
	Tagged  bool // frames carry a tag with their priority
	NoECT   bool // data is sent as not ECN-capable

	DCQCN    *dcqcn.Params // nil: off
	CNPPrio  uint8
	CNPDSCP  uint8
	AckEvery int
	// What queue pairs get.
	TimeoutExp, RetryCnt, RNRRetry, MinRNRTimer uint8

	PacketRate int64    // packets a second in and out of the engine; 0: no limit
	QPRate     sim.Rate // of one queue pair; 0: no limit

	RxQueues  int // 0 means 1
	RSS       RSS
	RxRate    sim.Rate // of one receive queue; 0: as fast as packets come
	RxPackets int64    // packets a second of one receive queue; 0: no limit
	DrainRate sim.Rate // of the receive buffer (PCIe); 0: as fast as packets come
	RxBuffer  int64    // bytes; 0 means 1 MiB
	XOFF, XON int64    // of the receive buffer; 0 means three and one quarter of it less what is in flight
	Lossless  uint8    // priorities that are stopped rather than dropped

	// Memory, if not nil, is that of all NICs of a run. It is lent.
	Memory *Memory
}
