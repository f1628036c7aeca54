package work

import (
	"fmt"
	"math"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Workload is a generator of flows.
type Workload interface {
	// Validate returns nil or an *Invalid.
	Validate() error
	// Stream validates and returns the flows from the first on. Choices are
	// drawn from r, which the stream keeps.
	Stream(r *sim.Rand) (Stream, error)
}

// Limits of what generators and files may ask for.
const (
	MaxBytes = 1 << 50 // of a flow
	MaxTime  = 100 * 24 * 3600 * sim.Second
	MaxRanks = 1 << 17
)

// Invalid is a complaint about a field of a generator: one line.
type Invalid struct {
	Workload string // "incast"
	Field    string // of the struct, "Senders"; "" if it is about the whole
	What     string // "are missing"
}

// Error returns, for example, "incast: senders are missing".
func (e *Invalid) Error() string {
	switch e.Field {
	case "":
		return e.Workload + ": " + e.What
	case "CDF":
		return e.Workload + ": CDF " + e.What
	case "LoadPPM":
		return e.Workload + ": load in ppm " + e.What
	}
	var b strings.Builder
	for i := range len(e.Field) {
		c := e.Field[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte(' ')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return e.Workload + ": " + b.String() + " " + e.What
}

// checks keeps the first complaint about a generator.
type checks struct {
	workload string
	err      error
}

func (c *checks) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = &Invalid{c.workload, field, fmt.Sprintf(format, args...)}
	}
}

func (c *checks) number(field string, v, low, high int64) {
	if v < low {
		c.fail(field, "%d is less than %d", v, low)
	} else if v > high {
		c.fail(field, "%d is over the limit of %d", v, high)
	}
}

func (c *checks) time(field string, v sim.Time) {
	if v < 0 {
		c.fail(field, "%s is negative", v)
	} else if v > MaxTime {
		c.fail(field, "%s is over the limit of %s", v, MaxTime)
	}
}

func (c *checks) endpoint(field string, e int32) {
	if e < 0 {
		c.fail(field, "%d is no endpoint", e)
	}
}

// endpoints checks a list of at least so many different ones.
func (c *checks) endpoints(field string, list []int32, least int) {
	if len(list) < least {
		c.fail(field, "are %d, fewer than %d", len(list), least)
		return
	}
	if len(list) > MaxRanks {
		c.fail(field, "are %d, over the limit of %d", len(list), MaxRanks)
		return
	}
	seen := make(map[int32]bool, len(list))
	for _, e := range list {
		c.endpoint(field, e)
		if seen[e] {
			c.fail(field, "name endpoint %d twice", e)
		}
		seen[e] = true
	}
}

// flows checks a number of flows; as a product it may be too large for 32 bits.
func (c *checks) flows(n float64) {
	if n > MaxFlows {
		c.fail("", "%.0f flows are over the limit of %d", n, MaxFlows)
	}
}

// jittered returns start plus a draw from [0, jitter).
func jittered(r *sim.Rand, start, jitter sim.Time) sim.Time {
	if jitter <= 0 {
		return start
	}
	return start + sim.Time(r.N(uint64(jitter)))
}

// flow returns a flow with the properties of as.
func flow(as *Flow, src, dst int32, bytes int64, start sim.Time) Flow {
	f := *as
	f.ID, f.Src, f.Dst, f.Bytes, f.Start, f.After = 0, src, dst, bytes, start, nil
	return f
}

// indexed is a stream whose flow number i can be computed.
type indexed struct {
	n, next int32
	endless bool
	chain   bool
	at      func(i int32) Flow
}

func (s *indexed) Next() (Flow, bool) {
	if s.next == s.n {
		return Flow{}, false
	}
	f := s.at(s.next)
	f.ID = s.next
	s.next++
	return f, true
}

func (s *indexed) Finite() bool  { return s.next < s.n && !s.endless }
func (s *indexed) Err() error    { return nil }
func (s *indexed) Chained() bool { return s.chain }

// ordered returns the stream of flows that are not yet in order.
func ordered(flows []Flow) (Stream, error) {
	flows, err := Order(flows)
	if err != nil {
		return nil, err
	}
	return &List{Flows: flows}, nil
}

// clampID returns n as a number of flows; what is more is never reached.
func clampID(n int64) int32 { return int32(min(n, math.MaxInt32)) }
