package perf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/verbs"
)

// DefaultPort is the TCP port of the handshake.
const DefaultPort = 18515

// QKey is the Q_Key that perftest and the pingpong examples use.
const QKey ib.QKey = 0x11111111

// defaultTimeout is perftest's local ACK timeout: 4.096 µs · 2^14, 67 ms.
const defaultTimeout = 14

// ErrUsage matches refusals of a configuration.
var ErrUsage = errors.New("usage")

// ErrLimit matches results below -w, -y or --min-bw, or above --max-lat.
var ErrLimit = errors.New("limit missed")

// ErrVerify matches data that differed from its pattern.
var ErrVerify = errors.New("data differs")

// Config says what to measure. Start from [Defaults]; the zero values of sizes
// and depths mean the defaults of the program.
type Config struct {
	Verb    handshake.Verb
	Latency bool

	Peer   string // host to connect to; empty: be the server
	Port   int    // TCP
	Source string // source address of the TCP connection; empty: the system's choice

	Device   string // name of a device or address; empty: the one that routes to the peer
	Shards   int    // of the device; 0: 1. Its queue pairs are spread over them
	Vector   int    // with Events, completion vector of the completion queue, below Shards; its queue pairs are there. -1: spread
	IBPort   int    // 1
	GIDIndex int    // -1: chosen
	IPv6     bool   // without a GID index, choose an IPv6 GID
	MTU      int    // bytes; 0: the port's active MTU
	// CM lets the RDMA connection manager connect the queue pairs, and carry the
	// handshake: perftest's -R. Port is then of its port space. UD asks for the
	// peer's queue pairs by SIDR; UC works between two ends of this project only,
	// perftest has none with -R.
	CM         bool
	TOS        uint8 // with CM: type of service of all connections
	RetryCount int   // with CM; 0: 7

	Conn        ib.QPType
	QPs         int
	Size        uint64 // bytes of a message
	SizeSet     bool   // the user chose Size: do not cut it to the MTU on UD
	All         bool   // sizes 2 to 2^23, or to the MTU on UD
	Iters       uint64
	Duration    time.Duration // a test over a time; 0: over Iters
	Margin      time.Duration // -1: a quarter of Duration
	TxDepth     int
	RxDepth     int
	PostList    int
	SRQ         bool // SEND: one receive queue of RxDepth for all queue pairs
	CQMod       int  // 0: 100 for messages up to 8 KiB, else 1
	Inline      int  // bytes; -1: perftest's default
	OutReads    int  // 0: the device's most
	Timeout     uint8
	SL          uint8
	TClass      uint8
	Both        bool
	DCQCN       verbs.DCQCN // congestion control of this end's device
	Events      bool
	NoPeak      bool
	CompareSwap bool // ATOMIC: compare and swap instead of fetch and add
	Gap         time.Duration

	Gbits     bool // report gigabits a second
	Histogram bool // print sorted samples
	Unsorted  bool // print samples as they came
	Plot      bool // plot the distribution
	NoVerify  bool
	BothParts bool // report both directions of a bidirectional test too

	LimitBW   float64 // in the unit of the report; 0: none
	LimitRate float64 // million messages a second; 0: none
	MinGbps   float64 // 0: none
	MaxLat    time.Duration

	// Out gets perftest's tables; nil discards them. Notes gets warnings, one
	// line each.
	Out, Notes io.Writer

	// Open opens the device; nil opens the real one. Tests set it.
	Open  func(verbs.Config) (*verbs.Device, error)
	Clock clock.Clock // nil: the real one

	spoil func(memory []byte) // tests change what has been received
}

// Defaults returns perftest's defaults for a program.
func Defaults(v handshake.Verb, latency bool) Config {
	c := Config{
		Verb: v, Latency: latency, Port: DefaultPort, IBPort: 1, GIDIndex: -1, Conn: ib.RC, QPs: 1, Vector: -1,
		Iters: 1000, Margin: -1, TxDepth: 128, RxDepth: 512, PostList: 1, Inline: -1, Timeout: defaultTimeout, Size: 65536,
	}
	switch {
	case latency:
		c.Size, c.TxDepth = 2, 1
	case v == handshake.Write:
		c.Iters = 5000
	}
	if v == handshake.Atomic {
		c.Size = 8
	}
	return c
}

// Name returns the name of the test, "write_bw".
func (c *Config) Name() string {
	if c.Latency {
		return c.Verb.String() + "_lat"
	}
	return c.Verb.String() + "_bw"
}

// Bounds of perftest.
const (
	minIters, maxIters = 5, 100_000_000
	maxDepth           = 15000
	maxRxDepth         = 16384
	maxQPs             = 16384
	maxCQMod           = 1024
	maxInline          = 912
	maxGIDIndex        = 64
	maxSize            = 1<<31 - 1
	sweepSizes         = 23 // 2^1 … 2^23
	cqModSizeLimit     = 8192
	peakMostIters      = 20000
	ucMaxRx            = 16000
)

func usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }
func (e *usageError) Unwrap() error { return ErrUsage }

// Complete checks the configuration and fills what depends on other settings,
// as perftest does. The error names the option, the value and what would do.
func (c *Config) Complete() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Duration > 0 {
		if c.Margin < 0 {
			c.Margin = (c.Duration / 4).Truncate(time.Second)
		}
		if 2*c.Margin >= c.Duration {
			return usage("-f %v: the margin is taken at both ends of -D %v: it must be less than half", c.Margin, c.Duration)
		}
	}
	if c.All {
		c.Size = 1 << sweepSizes
	}
	if c.Duration == 0 {
		c.TxDepth = int(min(uint64(c.TxDepth), c.Iters))
		messages := c.Iters // that a receive queue gets
		if c.SRQ {
			messages *= uint64(max(c.QPs, 1))
		}
		switch {
		case c.Conn != ib.RC && c.RxDepth == 512:
			c.RxDepth = int(min(messages, ucMaxRx))
		default:
			c.RxDepth = int(min(uint64(c.RxDepth), messages))
		}
	}
	if c.RxDepth%2 == 1 && !c.All {
		c.RxDepth++ // perftest does; both ends then say the same
	}
	switch {
	case c.CQMod == 0 && c.PostList > 1:
		c.CQMod = c.PostList
	case c.CQMod == 0 && c.Size > cqModSizeLimit && c.Conn != ib.UD && !c.All && !c.Events:
		c.CQMod = 1
	case c.CQMod == 0:
		c.CQMod = 100
	}
	c.CQMod = min(c.CQMod, c.TxDepth)
	if c.PostList > 1 && c.PostList%c.CQMod != 0 {
		return usage("-l %d: must be a multiple of the completion moderation -Q %d", c.PostList, c.CQMod)
	}
	if c.Verb == handshake.Read || c.Verb == handshake.Atomic {
		c.Inline = 0
	}
	if c.Inline < 0 {
		c.Inline = 0
		if c.Latency {
			c.Inline = 236
			if c.Verb == handshake.Write {
				c.Inline = 220
			} else if c.Conn == ib.UD {
				c.Inline = 188
			}
		}
	}
	return nil
}

func (c *Config) check() error {
	oneSided := c.Verb != handshake.Send
	inRange := func(name string, v, least, most int) error {
		if v < least || v > most {
			return usage("%s %d: must be between %d and %d", name, v, least, most)
		}
		return nil
	}
	for _, r := range []struct {
		name           string
		v, least, most int
	}{
		{"-p", c.Port, 1, 65535},
		{"-i", c.IBPort, 1, 1},
		{"-q", c.QPs, 1, maxQPs},
		{"-t", c.TxDepth, 1, maxDepth},
		{"-r", c.RxDepth, 1, maxRxDepth},
		{"-l", c.PostList, 1, 64},
		{"-Q", c.CQMod, 0, maxCQMod},
		{"-I", c.Inline, -1, maxInline},
		{"-x", c.GIDIndex, -1, maxGIDIndex},
		{"--shards", c.Shards, 0, verbs.MaxShards},
		{"-X", c.Vector, -1, max(c.Shards, 1) - 1},
		{"-o", c.OutReads, 0, 255},
		{"-u", int(c.Timeout), 0, 31},
		{"-S", int(c.SL), 0, 7},
		{"--retry_count", c.RetryCount, 0, 7},
	} {
		if err := inRange(r.name, r.v, r.least, r.most); err != nil {
			return err
		}
	}
	if c.Duration == 0 && (c.Iters < minIters || c.Iters > maxIters) {
		return usage("-n %d: must be between %d and %d", c.Iters, minIters, maxIters)
	}
	if c.Size < 1 || c.Size > maxSize {
		return usage("-s %d: must be between 1 and %d", c.Size, maxSize)
	}
	switch c.MTU {
	case 0, 256, 512, 1024, 2048, 4096:
	default:
		return usage("-m %d: must be 256, 512, 1024, 2048 or 4096", c.MTU)
	}
	if most := cmp.Or(c.MTU, ib.MTU4096.Bytes()); c.Conn == ib.UD && c.SizeSet && !c.All && c.Size > uint64(most) {
		return usage("-s %d: on UD a message is one packet, at most the path MTU of %d bytes", c.Size, most)
	}
	type rule struct {
		broken bool
		text   string
	}
	for _, r := range []rule{
		{!c.CM && (c.TOS != 0 || c.RetryCount != 0), "-T, --retry_count: belong to -R; --tclass sets the traffic class"},
		{c.Conn == ib.UD && oneSided, "-c UD: only SEND exists on UD: use send-bw or send-lat"},
		{c.Conn == ib.UC && (c.Verb == handshake.Read || c.Verb == handshake.Atomic), "-c UC: READ and ATOMIC exist on RC only"},
		{c.Verb == handshake.Atomic && c.Size != 8, "-s: ATOMICs have 8 bytes"},
		{c.Verb == handshake.Atomic && c.All, "-a: ATOMICs have 8 bytes, there is nothing to sweep"},
		{c.CompareSwap && c.Verb != handshake.Atomic, "-A: belongs to atomic-bw and atomic-lat"},
		{c.Both && c.Latency, "-b: bidirectional tests exist for bandwidth only"},
		{c.QPs > 1 && c.Latency, "-q: several queue pairs exist in bandwidth tests only"},
		{c.PostList > 1 && c.Latency, "-l: post lists exist in bandwidth tests only"},
		{c.NoPeak && c.Latency, "-N: belongs to bandwidth tests"},
		{c.Histogram && !c.Latency, "-H: belongs to latency tests"},
		{c.Unsorted && !c.Latency, "-U: belongs to latency tests"},
		{c.Plot && !c.Latency, "--histogram: belongs to latency tests"},
		{c.Inline > 0 && (c.Verb == handshake.Read || c.Verb == handshake.Atomic), "-I: READ and ATOMIC carry nothing to send inline"},
		{c.OutReads > 0 && c.Verb != handshake.Read && c.Verb != handshake.Atomic, "-o: belongs to READ and ATOMIC"},
		{c.SRQ && oneSided, "--use-srq: only SENDs have receives"},
		{c.SRQ && c.RxDepth < c.QPs, "--use-srq: the shared receive queue is smaller than the number of queue pairs: raise -r"},
		{c.Events && c.Verb == handshake.Write, "-e: WRITE tests poll: the receiver of a WRITE gets no event"},
		{c.Vector >= 0 && !c.Events, "-X: chooses the completion vector of events: needs -e"},
		{c.Events && c.Duration > 0, "-e: does not go with -D"},
		{c.All && c.Duration > 0, "-a: does not go with -D"},
		{(c.Histogram || c.Unsorted || c.Plot) && c.Duration > 0, "-H, -U, --histogram: do not go with -D, which keeps no samples"},
		{c.Duration > 0 && c.Duration < time.Second, "-D: at least 1 second"},
		{c.Duration == 0 && c.PostList > 1 && c.Iters%uint64(max(c.PostList, 1)) != 0, "-l: the iterations -n must be a multiple of the list"},
		{c.PostList > c.TxDepth, "-l: the list is longer than the queue: raise -t"},
		{c.MinGbps > 0 && c.Latency, "--min-bw: belongs to bandwidth tests"},
		{(c.LimitBW > 0 || c.LimitRate > 0) && c.Latency, "-w, -y: belong to bandwidth tests"},
		{c.MaxLat > 0 && !c.Latency, "--max-lat: belongs to latency tests"},
		{c.Gap > 0 && !c.Latency, "--latency_gap: belongs to latency tests"},
		{c.BothParts && !c.Both, "--report-both: belongs to bidirectional tests (-b)"},
	} {
		if r.broken {
			return usage("%s", r.text)
		}
	}
	return nil
}

// sizes returns the message sizes of the test in order.
func (c *Config) sizes() []uint64 {
	if !c.All {
		return []uint64{c.Size}
	}
	var s []uint64
	for n := uint64(2); n <= c.Size; n *= 2 {
		s = append(s, n)
	}
	return s
}

// extension returns what a peer of ours is told.
func (c *Config) extension() *handshake.Extension {
	e := &handshake.Extension{
		Test: c.Name(), Connection: c.Conn.String(), Size: c.Size, All: c.All, Iters: c.Iters, QPs: c.QPs, Both: c.Both,
		Duration: int(c.Duration.Seconds()), Verify: !c.NoVerify,
	}
	if c.Duration > 0 {
		e.Iters = 0
	}
	if c.Verb == handshake.Atomic {
		e.Atomic = c.atomic()
	}
	return e
}

func (c *Config) atomic() string {
	if c.CompareSwap {
		return "CMP_AND_SWAP"
	}
	return "FETCH_AND_ADD"
}

// operation returns the operation that work requests carry.
func (c *Config) operation() ib.WROp {
	switch c.Verb {
	case handshake.Write:
		return ib.Write
	case handshake.Read:
		return ib.Read
	case handshake.Send:
		return ib.Send
	case handshake.Atomic:
	}
	if c.CompareSwap {
		return ib.CompareSwap
	}
	return ib.FetchAdd
}

func (c *Config) note(format string, args ...any) {
	if c.Notes != nil {
		fmt.Fprintf(c.Notes, format+"\n", args...)
	}
}

func (c *Config) print(b []byte) {
	if c.Out != nil {
		_, _ = c.Out.Write(b)
	}
}

// parseDevice tells an address from a name.
func parseDevice(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil
}
