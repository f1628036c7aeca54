package result

import (
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Run is everything that is known of a run when it ends or is interrupted.
// Slices are in the order of the graph's nodes and ports, and of flow numbers.
type Run struct {
	Name        string
	Title       string
	Teaches     string
	Source      string // the scenario file as it was read, overrides applied
	Seed        uint64
	Digest      uint64
	Events      uint64
	DataHops    uint64 // data packets times links they crossed
	AckHops     uint64
	End         sim.Time // virtual time at the end
	Interrupted bool     // not all that was to happen has happened
	Why         string   // it ended: "all flows finished", "all flows finished that have an end", "duration", "interrupted", "deadlock"

	Nodes     []Node
	Flows     []Flow
	Pauses    []Pause // in order of time
	PausesCut uint64  // not kept in Pauses
	Drops     []Drop
	DropsCut  uint64
	Lost      []Counter // packets lost, by the name of the reason; all of them
	Deadlocks []Deadlock
	Storms    []Storm
	Series    []Series
	Breaches  []Breach // invariants that did not hold
	Lossless  []Lossless
	Links     []LinkChange // in order of time
	Reroutes  []RouteChange
	Warnings  []string
	Shape     Shape
}

// Shape is what readers of results need to know of the configuration.
type Shape struct {
	Preset     string // of DCQCN; "off"
	AckEvery   int
	Payload    int   // bytes of user data in a full packet
	Header     int   // bytes around it on the wire
	Gap        int   // preamble and gap counted on the link
	Lossless   uint8 // mask of priorities with PFC
	KMin, KMax int64 // of the lossless class at hosts' leaf ports, bytes
	PMax       float64

	// Of DCQCN's reaction and notification points; zero: not known.
	AI, HAI       sim.Rate // additive and hyper increase
	MinRate       sim.Rate
	IncreaseEvery sim.Time // timer of the increase, T
	CNPEvery      sim.Time // least time between two CNPs of a flow
	CNPPrio       uint8
}

// Node is a host or a switch.
type Node struct {
	Name   string
	Switch bool
	Tier   int
	Ports  []Port
	Buffer Buffer
	NIC    []Counter // of a host: rnic's and the NIC's of port after port, each set ends with rx_discards_phy; names as real ones
	Host   Host      // of a host: what its NIC can do and has done
}

// lastOfNIC is the name that the counters of one NIC end with.
const lastOfNIC = "rx_discards_phy"

// PortNIC returns the counters of the NIC at one port of a host, a part of n.NIC. It is
// empty for a switch, and for a port that there is not.
func (n *Node) PortNIC(port int) []Counter {
	from := 0
	for i := range n.NIC {
		if n.NIC[i].Name != lastOfNIC {
			continue
		}
		if port == 0 {
			return n.NIC[from : i+1]
		}
		port, from = port-1, i+1
	}
	return nil
}

// Host is what the NIC of a host can do at most, and how its receive queues
// were used. A limit of zero is none, or not known.
type Host struct {
	RxQueues    []RxQueue
	RxQueueRate sim.Rate // what one receive queue (one core) takes in
	QPRate      sim.Rate // what the engine gives to one queue pair
	PacketRate  uint64   // packets a second of the NIC
	DrainRate   sim.Rate // what the host takes from the NIC (PCIe, memory)
	RxBuffer    int64    // bytes between the wire and the host
	PeakRx      int64    // ... at most in use
}

// RxQueue is the use of one receive queue of a NIC.
type RxQueue struct {
	Packets, Bytes uint64
	Busy           sim.Time // time it had something to do
}

// Buffer is a switch's memory in bytes.
type Buffer struct {
	Total, Reserved, Shared, Headroom int64
	PeakShared, PeakHeadroom          int64
	Cell                              int64 // memory is given out in whole cells of so many; 0 and 1: to the byte
}

// Counter is a number under the name that operators know.
type Counter struct {
	Name  string
	Value uint64
}

// Port is one port of a node; Peer and PeerPort are at the other end.
type Port struct {
	Name     string // "Ethernet3" of a switch, "eth0" of a host
	Peer     int32
	PeerPort int32
	Rate     sim.Rate
	Delay    sim.Time
	Prio     [8]PortPrio
	// Whole port.
	TxBusy       sim.Time // time spent sending
	LinkErrors   uint64
	Down         sim.Time // time without link
	GlobalPauses uint64
}

// PortPrio is what a port has counted for one priority.
type PortPrio struct {
	TxBytes, RxBytes     uint64 // frames, destination MAC to FCS
	TxPackets, RxPackets uint64
	RxDrops              uint64 // on the way in: no buffer
	TxDrops              uint64 // WRED, watchdog, no route
	Marked               uint64 // CE set on the way out
	PauseTx, PauseRx     uint64 // PFC frames that stop; XON counted apart
	ResumeTx, ResumeRx   uint64
	PausedFor            sim.Time // this port could not send the priority
	PausedWaiting        sim.Time // ... and had something to send
	PeakQueue            int64    // bytes waiting to go out
	MeanQueue            float64  // over time
	KMin, KMax           int64    // marking thresholds of this egress, bytes; 0: none
	PeakIngress          int64    // bytes that came in here and are still held
	// XOFF is how much of what came in here a switch with an empty buffer may hold
	// before it stops the neighbour, bytes; 0: it never does. Each byte of the
	// shared part that is in use, by these or by others, takes XOFFAlpha from it.
	XOFF             int64
	XOFFAlpha        float64
	PeakHeadroom     int64
	WatchdogDetected uint64
	WatchdogRestored uint64
	WatchdogDropped  uint64
}

// FlowState says how a flow stands at the end.
type FlowState uint8

// The states.
const (
	Waiting FlowState = iota // not started
	Running
	Finished
	Failed // a queue pair has given up
)

// String returns the state in a word.
func (s FlowState) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Running:
		return "running"
	case Finished:
		return "finished"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// Flow is what became of a flow.
type Flow struct {
	ID            int32
	Group         string
	Src, Dst      int32 // endpoints
	SrcNode       int32
	DstNode       int32
	SrcPort       uint16
	DstPort       uint16
	Bytes         int64
	Op, Service   string
	Prio          uint8
	State         FlowState
	Status        string // of a failed one: the completion status
	Start         sim.Time
	Received      sim.Time // last byte at the receiver; Never if not
	Finish        sim.Time // last acknowledgement at the sender; Never if not
	Base          sim.Time // FCT on an idle network
	Delivered     int64    // bytes so far
	Packets       uint64   // data packets sent, retransmissions included
	Retransmitted uint64
	Timeouts      uint64
	NAKs          uint64
	Marks         uint64 // CE-marked packets that arrived
	CNPs          uint64 // sent by the receiver's NP
	CNPsHandled   uint64 // by the sender's RP
	MinRate       sim.Rate
	LastRate      sim.Rate
	QPs           int      // queue pairs it is spread over; 0 means 1
	RateLimit     sim.Rate // what it may send at most by its own will; 0: no limit
	Cuts          uint64   // of its reaction point: rate cuts,
	Clamps        uint64   // ... those in which R_T was set to R_C,
	Recoveries    uint64   // ... and steps of fast recovery,
	Additive      uint64   // of additive
	Hyper         uint64   // and of hyper increase
	Silent        string   // of a running one: why it is silent at the end
	Path          []Hop    // of its first data packet (or first queue pair's): the sending NIC's egress first
	Paths         int      // distinct ones, of flows with several queue pairs
}

// Hop is an egress on a path.
type Hop struct{ Node, Port int32 }

// FCT returns the completion time at the sender; Never if it is not finished.
func (f *Flow) FCT() sim.Time {
	if f.State != Finished {
		return sim.Never
	}
	return f.Finish - f.Start
}

// Slowdown returns FCT over Base, at least 1; 0 if not finished.
func (f *Flow) Slowdown() float64 {
	if f.State != Finished || f.Base <= 0 {
		return 0
	}
	return max(1, float64(f.FCT())/float64(f.Base))
}

// Cause says why somebody stopped a neighbour.
type Cause uint8

// The causes.
const (
	CauseBuffer       Cause = iota // ingress above XOFF: what is held waits for egresses
	CauseSlowReceiver              // a host that cannot take in what arrives
	CauseStorm                     // a fault: told to pause for ever
	CauseGlobal                    // 802.3x: whole port
)

// Pause is one change: node Node stops (On) or resumes the neighbour at its
// port Port in priority Prio. Egress is the egress that held most of what had
// come in there, -1 if none: the way to the root.
type Pause struct {
	At      sim.Time
	Node    int32
	Port    int32
	Egress  int32
	Held    int64 // bytes held of that ingress and priority
	Limit   int64 // XOFF at that instant
	Prio    uint8
	On      bool
	Cause   Cause
	Refresh bool // repeats one that would expire
	// EgressStopped says that Egress itself was stopped by its neighbour then:
	// not the root.
	EgressStopped bool
}

// DropReason says why a packet was lost.
type DropReason uint8

// The reasons.
const (
	DropNoBuffer DropReason = iota // lossy, or lossless beyond its headroom
	DropHeadroom                   // a lossless class beyond its headroom
	DropWRED                       // not ECN-capable
	DropWatchdog
	DropNoRoute
	DropTTL
	DropMTU
	DropError // FCS
	DropDown  // link down
	DropHostBuffer
	DropV1    // RoCEv1 at a router
	DropFault // a fault that was asked for
	NumDropReasons
)

var dropNames = [NumDropReasons]string{
	"no buffer", "headroom exceeded", "WRED", "PFC watchdog", "no route", "TTL", "MTU",
	"FCS error", "link down", "NIC buffer", "RoCEv1 is not routed", "fault",
}

func (r DropReason) String() string {
	if r < NumDropReasons {
		return dropNames[r]
	}
	return "unknown"
}

// Drop is one lost packet.
type Drop struct {
	At     sim.Time
	Node   int32
	Port   int32 // ingress
	Flow   int32
	Prio   uint8
	Reason DropReason
	Bytes  int32
}

// Deadlock is a cycle of egresses, each of which is stopped by the next.
type Deadlock struct {
	At    sim.Time // when the cycle closed
	Until sim.Time // when it opened again; Never
	Cycle []Hop
	Prio  uint8
}

// Storm is a port that was stopped for longer than the watchdog's time.
type Storm struct {
	From, To sim.Time // To Never: never ended
	Node     int32    // whose egress was stopped
	Port     int32
	Prio     uint8
	Watchdog bool // it stepped in
	Dropped  uint64
	Restored sim.Time // when the watchdog let it go on as before; Never, or 0: not yet
}

// RouteChange is an instant from which on all routes are shortest paths: those
// that were laid by hand are gone.
type RouteChange struct{ At sim.Time }

// LinkChange is a link that went down, came up, or changed its speed. Node and
// Port are one end.
type LinkChange struct {
	At   sim.Time
	Node int32
	Port int32
	Up   bool
	Rate sim.Rate // from now on, if Up
}

// Breach is an invariant that did not hold.
type Breach struct {
	At     sim.Time
	Rule   string // "bytes conserved"
	Node   int32  // -1: none
	Detail string
}

// Lossless is the verdict on one ingress.
type Lossless struct {
	Node, Port int32
	Prio       uint8
	Need, Have int64 // headroom, bytes
	Peak       int64 // headroom used
	Dropped    uint64
}

// SeriesKind says what a series holds.
type SeriesKind uint8

// The kinds.
const (
	QueueBytes   SeriesKind = iota // waiting at an egress, priority Prio
	PortRate                       // bit/s that left a port
	FlowRate                       // bit/s of payload that arrived
	FlowRC                         // R_C of the flow's (first) queue pair, bit/s
	FlowAlpha                      // alpha in units of 2^-32
	MarkRate                       // CE marks in the interval
	CNPRate                        // CNPs in the interval
	PausedShare                    // ps of the interval in which an egress was stopped
	BufferShared                   // bytes of shared buffer in use
	HostQueue                      // bytes in a NIC's receive buffer
	SeriesKinds
)

// Series is one quantity over time, sampled at equal intervals.
type Series struct {
	Kind   SeriesKind
	Node   int32 // -1 for flows
	Port   int32
	Prio   uint8
	Flow   int32 // -1 for ports
	Start  sim.Time
	Step   sim.Time
	Values []int64
}
