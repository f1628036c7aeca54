package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// Trust says which field of a packet names its priority.
type Trust uint8

// The fields. A packet without the trusted field (an untagged one for TrustPCP,
// RoCEv1 without tag for TrustDSCP) has Config.Untagged as its priority; tagged
// RoCEv1 is classified by its tag under either.
const (
	TrustDSCP Trust = iota
	TrustPCP
)

// Fields says what ECMP looks at.
type Fields uint8

// The choices.
const (
	FiveTuple Fields = iota // addresses, protocol and ports: the UDP source port matters
	Addresses               // source and destination alone
)

// Mode says how a threshold is meant.
type Mode uint8

// The modes.
const (
	Unlimited Mode = iota // what the shared part has
	Dynamic               // Alpha times what is free of the shared part
	Static                // Bytes
)

// AlphaOne is an Alpha of 1.
const AlphaOne = 1 << 16

// maxAlpha and maxBytes keep alpha times bytes within 63 bits.
const (
	maxAlpha = 64 * AlphaOne
	maxBytes = 1 << 38
	maxMTU   = 1 << 16
	// maxQuantum times the greatest weight fits a deficit.
	maxQuantum = 1_000_000
)

// Limit is a threshold on bytes of the shared part.
type Limit struct {
	Mode  Mode
	Alpha uint32 // of Dynamic, in units of 1/AlphaOne; at most 64
	Bytes int64  // of Static
}

// ECN is the marking of one queue: WRED on the instantaneous bytes that wait in
// it, not counting the packet that is looked at. At most KMin bytes: none is
// marked; above KMax: all; between, the probability grows linearly to PMax.
// KMax 0 switches it off.
type ECN struct {
	KMin, KMax int64
	PMax       uint32 // in units of 2^-32; its greatest value counts as 1
	// AtEnqueue looks at the bytes that a packet finds; otherwise, as published
	// simulators do, at those that it leaves behind.
	AtEnqueue bool
}

// Queue is what every egress does with one priority.
type Queue struct {
	Lossless bool // PFC; never dropped while the headroom lasts
	// Strict queues go before all others, higher priorities first. The others
	// share what is left by Weight (802.1Qaz ETS), 0 meaning 1, at most 1000.
	Strict bool
	Weight int
	ECN    ECN
	// Limit and Reserved hold for lossy queues: a packet for which the bytes of
	// the queue beyond Reserved would exceed Limit is dropped.
	Limit    Limit
	Reserved int64
	// NoDrop keeps packets that are not ECN-capable in a lossy queue where they
	// would have been marked; otherwise they are dropped (WRED).
	NoDrop bool
}

// Group is what every ingress has for one priority group, in bytes.
type Group struct {
	Reserved int64
	Headroom int64 // of its own, or its greatest part of SharedHeadroom
	Limit    Limit // XOFF for lossless groups, drop for lossy ones
	// A stopped neighbour may go on when nothing is in headroom and the group's
	// part of the shared buffer is at most max(XON, threshold − XONOffset).
	XON, XONOffset int64
}

// Buffer is the memory of a switch.
type Buffer struct {
	Total int64 // bytes
	// Cell is the bytes in which memory is given out; 0 or 1: to the byte.
	Cell int
	// SharedHeadroom, if not 0, is one pool of headroom for all groups; each
	// group's Headroom is then the most that it may take of it.
	SharedHeadroom int64
	Group          [8]Group
}

// Action says what the watchdog does with a class that it has found stuck.
type Action uint8

// The actions.
const (
	Alert   Action = iota // says so
	DropAll               // drops what waits and what arrives for the class
	Forward               // no longer obeys the pause
)

// Watchdog is the PFC watchdog. It steps in when a class of an egress has had
// packets and been stopped for Detect without a break, and steps back when the
// class has not been stopped for Restore.
type Watchdog struct {
	Detect, Restore sim.Time // Detect 0: no watchdog; Restore 0: Detect
	Action          Action
}

// ECMP says how one of several ways is chosen. Switches with equal seeds choose
// alike (polarisation).
type ECMP struct {
	Seed   uint64
	Fields Fields
}

// PortConfig is the part of a configuration that may differ by port.
type PortConfig struct {
	MTU   int // greatest frame that may leave, destination MAC to FCS; 0: any
	Queue [8]Queue
	Group [8]Group
}

// Config describes a switch. New copies it, but for Subnets and Memory, which are
// lent.
type Config struct {
	Name  string
	ID    int32 // node of the graph
	Ports int

	CutThrough bool     // ports must be made with Early
	Latency    sim.Time // from Arrive to the queue

	Buffer Buffer
	Queue  [8]Queue
	MTU    int
	// Port, if not nil, has an element for each port, which holds instead of
	// Buffer.Group, Queue and MTU. See PerPort.
	Port []PortConfig

	// Quantum is the bytes that a class of weight 1 may send in a round of the
	// scheduler; 0: so many that the least weight sends a full frame. A class that
	// has less than a frame misses turns.
	Quantum int

	Trust       Trust
	DSCPToPrio  [64]uint8
	PCPToPrio   [8]uint8
	Untagged    uint8
	PrioToGroup [8]uint8

	Watchdog Watchdog
	ECMP     ECMP

	// Router makes it route between subnets: TTL counts, RoCEv1 stays within
	// its own. Subnets is the subnet of each endpoint; nil: each its own for
	// the TTL, all one for RoCEv1.
	Router  bool
	Subnets []int32

	// Memory, if not nil, is that of all switches of a run.
	Memory *Memory

	// GlobalPause says that the ports stop their neighbours with 802.3x PAUSE:
	// for the log.
	GlobalPause bool
}

// PerPort returns c.Port, made from the values for all ports if it was nil, for
// the caller to change.
func (c *Config) PerPort() []PortConfig {
	if c.Port == nil {
		c.Port = make([]PortConfig, max(0, c.Ports))
		for i := range c.Port {
			c.Port[i] = c.port(-1)
		}
	}
	return c.Port
}

func (c *Config) port(i int) PortConfig {
	if i >= 0 && c.Port != nil {
		return c.Port[i]
	}
	return PortConfig{MTU: c.MTU, Queue: c.Queue, Group: c.Buffer.Group}
}

// Identity maps each of eight values to itself.
func Identity() [8]uint8 { return [8]uint8{0, 1, 2, 3, 4, 5, 6, 7} }

// ClassSelector maps a DSCP to the priority in its upper three bits (RFC 2474
// §4.2.2).
func ClassSelector() (m [64]uint8) {
	for i := range m {
		m[i] = uint8(i) >> 3
	}
	return m
}
