package tcp

import "github.com/verbena-rdma/verbena/fabric/sim"

// Kind is a congestion control.
type Kind uint8

// The kinds.
const (
	DCTCP Kind = iota
	Reno
)

// Config is what the connections that a host opens have in common.
type Config struct {
	Kind Kind
	// MSS is the payload of a full segment, at least 1.
	MSS int
	// InitWindow is the first window in segments (RFC 6928); 0 means 10.
	InitWindow int
	// MaxWindow limits the bytes under way, as a receiver's window does; 0: no
	// limit. Less than a segment counts as one.
	MaxWindow int64
	// MinRTO is the least retransmission timeout. RFC 6298 (2.4) says 1 s, data
	// centres use milliseconds.
	MinRTO sim.Time
	// G is DCTCP's gain in units of 2^-32 (RFC 8257 §4.2: 1/16).
	G uint64
	// AckEvery makes the receiver acknowledge every n-th segment that arrives in
	// order (RFC 5681 §4.2: 2); 0 and 1: each. Fewer may wait for AckDelay; 0
	// means 500 us.
	AckEvery int
	AckDelay sim.Time
}

// Lengths of frames, destination MAC to FCS.
const (
	// HeaderBytes surround the payload of a segment: Ethernet 14, IPv4 20, TCP 20
	// without options, FCS 4. An 802.1Q tag adds TagBytes.
	HeaderBytes = 14 + 20 + 20 + 4
	TagBytes    = 4
	// AckBytes is the length of an acknowledgement: the shortest frame.
	AckBytes = 64
)

// Port is where connections go to.
const Port = 5001

// Flags of a segment, as they are in its header (RFC 9293 §3.1, RFC 3168 §6.1).
const (
	FlagPSH = 0x08
	FlagACK = 0x10
	FlagECE = 0x40
	FlagCWR = 0x80
)

// ECN code points (RFC 3168 §5).
const (
	ect0 = 2
	ce   = 3
)

const (
	defaultAckDelay = 500 * sim.Microsecond
	defaultWindow   = 10
	// maxRTO bounds the timeout's doubling (RFC 6298 2.5).
	maxRTO = 60 * sim.Second
	// firstRTO is the timeout before anything was measured (RFC 6298 2.1).
	firstRTO = sim.Second
	// dupThreshold is how many duplicate acknowledgements mean a loss (RFC 5681
	// §3.2).
	dupThreshold = 3
)

func (c *Config) defaults() {
	c.MSS = max(c.MSS, 1)
	if c.InitWindow == 0 {
		c.InitWindow = defaultWindow
	}
	if c.AckDelay == 0 {
		c.AckDelay = defaultAckDelay
	}
	c.AckEvery = max(c.AckEvery, 1)
	c.G = min(c.G, one)
	if c.MaxWindow > 0 {
		c.MaxWindow = max(c.MaxWindow, int64(c.MSS))
	}
}
