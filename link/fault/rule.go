package fault

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// Action is what a rule does to a packet.
type Action uint8

// The actions.
const (
	Drop      Action = 1 + iota
	Duplicate        // deliver twice
	Delay            // hold for Rule.Delay
	Reorder          // hold until Rule.Distance later packets have passed
	Corrupt          // flip one bit anywhere from BTH to ICRC
	MarkCE           // set ECN to "congestion experienced", if the packet is ECN-capable
	numActions
)

var actionNames = [numActions]string{"", "drop", "dup", "delay", "reorder", "corrupt", "ce"}

func (a Action) String() string {
	if a < numActions {
		return actionNames[a]
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// Kind is a set of kinds of packets. 0 is any packet, malformed ones included.
type Kind uint16

// The kinds.
const (
	Send Kind = 1 << iota
	Write
	ReadRequest
	ReadResponse
	Atomic
	AtomicAck
	Ack // positive only
	RNRNak
	Nak
	CNP
)

var kindNames = []struct {
	kind Kind
	name string
}{
	{Send, "send"},
	{Write, "write"},
	{ReadRequest, "read-request"},
	{ReadResponse, "read-response"},
	{Atomic, "atomic"},
	{AtomicAck, "atomic-ack"},
	{Ack, "ack"},
	{RNRNak, "rnr-nak"},
	{Nak, "nak"},
	{CNP, "cnp"},
}

// Pos is a set of places in a message. 0 is any.
type Pos uint8

// The places.
const (
	First Pos = 1 << iota
	Middle
	Last
	Only
)

var posNames = []struct {
	pos  Pos
	name string
}{{First, "first"}, {Middle, "middle"}, {Last, "last"}, {Only, "only"}}

// PSNRange is a range of packet sequence numbers, both ends included, on the
// circle.
type PSNRange struct{ From, To ib.PSN }

func (r PSNRange) contains(p ib.PSN) bool { return (p-r.From)&ib.PSNMask <= (r.To-r.From)&ib.PSNMask }

// Rule is one fault. Of the conditions, those that are set must all hold.
type Rule struct {
	Action   Action
	Delay    time.Duration // Delay: how long, > 0
	Distance int           // Reorder: how many packets overtake; 0 is 3

	Out     bool          // what leaves, instead of what comes in
	Kinds   Kind          // 0: any
	Pos     Pos           // 0: any
	Opcodes []wire.Opcode // none: any
	QPNs    []ib.QPN      // destination QPNs; none: any
	PSNs    *PSNRange     // nil: any
	Nth     uint64        // only the n-th packet that meets the conditions, from 1
	Every   uint64        // every n-th of them
	Rate    float64       // this part of them, by chance: in (0, 1]; 0: all
	Times   uint64        // at most so often; 0: no limit
}

// defaultDistance is how many packets overtake one that is reordered.
const defaultDistance = 3

// validate says what is wrong with a rule.
func (r *Rule) validate() error {
	switch {
	case r.Action == 0 || r.Action >= numActions:
		return fmt.Errorf("fault rule: %v: no such action", r.Action)
	case r.Action == Delay && r.Delay <= 0:
		return fmt.Errorf("fault rule: delay of %v: must be more than 0", r.Delay)
	case r.Distance < 0 || r.Distance > maxReordered:
		return fmt.Errorf("fault rule: reorder by %d packets: must be 1 to %d", r.Distance, maxReordered)
	case math.IsNaN(r.Rate) || r.Rate < 0 || r.Rate > 1:
		return fmt.Errorf("fault rule: rate of %v: must be 0 to 1", r.Rate)
	case r.Nth != 0 && (r.Every != 0 || r.Rate != 0):
		return fmt.Errorf("fault rule: the %dth packet, and also others", r.Nth)
	}
	return nil
}

// String returns the rule in the language of [Parse].
func (r Rule) String() string {
	w := []string{r.Action.String()}
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	switch {
	case r.Action == Delay:
		add("%v", r.Delay)
	case r.Action == Reorder && r.Distance != 0:
		add("%d", r.Distance)
	}
	if r.Rate != 0 {
		add("%s%%", trimFloat(r.Rate*100))
	}
	if r.Nth != 0 {
		add("%s", ordinal(r.Nth))
	}
	if r.Every != 0 {
		add("every %s", ordinal(r.Every))
	}
	for _, p := range posNames {
		if r.Pos&p.pos != 0 {
			add("%s", p.name)
		}
	}
	for _, k := range kindNames {
		if r.Kinds&k.kind != 0 {
			add("%s", k.name)
		}
	}
	for _, o := range r.Opcodes {
		add("opcode=0x%02x", uint8(o))
	}
	for _, q := range r.QPNs {
		add("qp=0x%x", uint32(q))
	}
	if r.PSNs != nil {
		add("psn=%d..%d", uint32(r.PSNs.From), uint32(r.PSNs.To))
	}
	if r.Times != 0 {
		add("times %d", r.Times)
	}
	if r.Out {
		add("out")
	}
	return strings.Join(w, " ")
}

func trimFloat(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.6f", f), "0"), ".")
}

func ordinal(n uint64) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// stage is a rule at work.
type stage struct {
	Rule
	anyPacket bool // no condition looks into the packet
	rng       *rand.PCG
	threshold uint64 // of 2^32
	seen      uint64
	hits      uint64
}

func newStage(r Rule, seed uint64, index int) *stage {
	if r.Distance == 0 {
		r.Distance = defaultDistance
	}
	return &stage{
		Rule:      r,
		anyPacket: r.Kinds == 0 && r.Pos == 0 && len(r.Opcodes) == 0 && len(r.QPNs) == 0 && r.PSNs == nil,
		rng:       rand.NewPCG(seed, uint64(index)),
		threshold: uint64(float64(r.Rate * (1 << 32))),
	}
}

// fires counts the packet if it meets the conditions, and says whether the
// rule acts on it.
func (s *stage) fires(b []byte) bool {
	if !s.anyPacket && !s.meets(b) {
		return false
	}
	s.seen++
	switch {
	case s.Times != 0 && s.hits >= s.Times,
		s.Nth != 0 && s.seen != s.Nth,
		s.Every != 0 && s.seen%s.Every != 0,
		s.Rate != 0 && s.rng.Uint64()>>32 >= s.threshold:
		return false
	}
	s.hits++
	return true
}

// meets looks at the BTH (IBA vol.1 9.2) and the syndrome of an AETH.
func (s *stage) meets(b []byte) bool {
	if len(b) < wire.BTHLen {
		return false
	}
	op := wire.Opcode(b[0])
	if len(s.Opcodes) != 0 && !has(s.Opcodes, op) {
		return false
	}
	if len(s.QPNs) != 0 && !has(s.QPNs, ib.QPN(binary.BigEndian.Uint32(b[4:]))&ib.MaxQPN) {
		return false
	}
	if s.PSNs != nil && !s.PSNs.contains(ib.PSN(binary.BigEndian.Uint32(b[8:]))&ib.PSNMask) {
		return false
	}
	if s.Kinds == 0 && s.Pos == 0 {
		return true
	}
	info := op.Info()
	return info != nil && (s.Kinds == 0 || s.Kinds&kindOf(info, b) != 0) && (s.Pos == 0 || s.Pos&posOf(info) != 0)
}

func has[T comparable](list []T, v T) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func kindOf(info *wire.OpInfo, b []byte) Kind {
	switch info.Kind {
	case wire.KindSend:
		return Send
	case wire.KindWrite:
		return Write
	case wire.KindReadRequest:
		return ReadRequest
	case wire.KindReadResponse:
		return ReadResponse
	case wire.KindAtomic:
		return Atomic
	case wire.KindAtomicAck:
		return AtomicAck
	case wire.KindCNP:
		return CNP
	case wire.KindFlush, wire.KindAtomicWrite:
		return 0 // no rule names them
	case wire.KindAck:
		if len(b) <= wire.BTHLen {
			return 0
		}
		// The syndrome's bits 6 and 5 (IBA vol.1 9.7.5.1.2, table 45).
		switch b[wire.BTHLen] >> 5 & 3 {
		case 0:
			return Ack
		case 1:
			return RNRNak
		case 3:
			return Nak
		}
	}
	return 0
}

func posOf(info *wire.OpInfo) Pos {
	switch info.Pos {
	case wire.PosFirst:
		return First
	case wire.PosMiddle:
		return Middle
	case wire.PosLast:
		return Last
	case wire.PosOnly:
		return Only
	}
	return 0
}
