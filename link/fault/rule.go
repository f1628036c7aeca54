package fault

import (
	"fmt"
	"math"
	"net/netip"
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

	Out     bool           // what leaves, instead of what comes in
	Both    bool           // what leaves and what comes in, counted together; Out means nothing then
	Kinds   Kind           // 0: any
	Pos     Pos            // 0: any
	Opcodes []wire.Opcode  // none: any
	QPNs    []ib.QPN       // destination QPNs; none: any
	PSNs    *PSNRange      // nil: any
	Peers   []netip.Prefix // addresses of the other host; none: any
	// Local says whether a queue pair of this host is meant: the one that a packet
	// comes to, or leaves from. nil: any. It is called for each packet, by whoever
	// drives the link, and must not block.
	Local func(ib.QPN) bool
	// From is the time since the link was first used before which the rule does
	// not look at packets, and Lasts how long it looks from then on; 0: for ever.
	From, Lasts time.Duration
	// Skip is how many packets that meet the conditions pass first; Nth and Every
	// count from there. Span is how many are looked at from then on; 0: all.
	Skip, Span uint64
	Nth        uint64  // only the n-th packet that meets the conditions, from 1
	Every      uint64  // every n-th of them
	Rate       float64 // this part of them, by chance: in (0, 1]; 0: all
	Times      uint64  // at most so often; 0: no limit
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
	case r.From < 0 || r.Lasts < 0:
		return fmt.Errorf("fault rule: from %v on for %v: neither can be negative", r.From, r.Lasts)
	case !validPeers(r.Peers):
		return fmt.Errorf("fault rule: peers %v: each must be an address or a prefix", r.Peers)
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
	for _, p := range r.Peers {
		add("peer=%v", p)
	}
	if r.Skip != 0 {
		add("after %d", r.Skip)
	}
	if r.From != 0 {
		add("after %v", r.From)
	}
	if r.Span != 0 {
		add("for %d", r.Span)
	}
	if r.Lasts != 0 {
		add("for %v", r.Lasts)
	}
	if r.Times != 0 {
		add("times %d", r.Times)
	}
	switch {
	case r.Both:
		add("both")
	case r.Out:
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

func validPeers(list []netip.Prefix) bool {
	for _, p := range list {
		if !p.IsValid() || p.Addr().Is4In6() {
			return false
		}
	}
	return true
}
