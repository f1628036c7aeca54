package faultplan

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/wire"
)

// Plan is what is to go wrong. It is read only while a device uses it, and any
// number of devices may use one: each counts for itself.
type Plan struct {
	Name string // the file, for messages
	// Seed makes the plan repeatable; 0 takes one by chance, which the report
	// tells.
	Seed  uint64
	Rules []Rule
}

// MaxRules is how many rules a plan may have.
const MaxRules = 1000

// Action is what a rule does.
type Action uint8

// The actions. Those from Lose to Partition are about packets, Delay also about
// calls.
const (
	Lose      Action = 1 + iota
	Delay            // packets or calls come Rule.Delay late
	Duplicate        // deliver twice
	Reorder          // let Rule.Distance others overtake
	Corrupt          // flip one bit
	Mark             // set Congestion Experienced on ECN-capable packets
	Partition        // lose everything in both directions
	Kill             // move a queue pair to Error, at a call or at an instant
	Fail             // a call returns Rule.Errno, a completion says Rule.Status
	numActions
)

// Call is what a program asks of a device.
type Call uint8

// The calls. Poll counts completions as the program is handed them, PostSend and
// PostRecv work requests; PostRecv is also that of shared receive queues.
const (
	Open Call = 1 + iota
	AllocPD
	RegMR
	CreateCQ
	CreateQP
	CreateSRQ
	CreateAH
	ModifyQP
	PostSend
	PostRecv
	Poll
	NumCalls
)

// Direction is that of packets, seen from the device.
type Direction uint8

// The directions.
const (
	In Direction = iota
	Out
	Both
)

// Rule is one fault. Of the selectors, those that are set must all hold.
type Rule struct {
	Name   string
	Action Action
	Call   Call   // of Fail; of Delay and Kill where they are about calls
	Device string // name or address; "": any

	// Selectors of packets.
	Direction Direction
	Pos       fault.Pos // place in the message
	Opcodes   []wire.Opcode
	PSNs      *fault.PSNRange
	Peers     []netip.Prefix

	// Kinds are kinds of packets, or the operations of PostSend and Poll that
	// make them; 0 is any. Recv stands for receives that Poll finds.
	Kinds fault.Kind
	Recv  bool
	// QP is the number of a queue pair in the order in which the program made
	// them on the device, from 1; 0 is any. QPNs are destinations of packets, or
	// the queue pairs of calls.
	QP   int
	QPNs []ib.QPN

	// After so many that the selectors choose, or so much time since the device
	// was opened, and For so many, or so long. 0: at once; without end.
	AfterCount, ForCount uint64
	AfterTime, ForTime   time.Duration
	Nth, Every           uint64  // count from there: only the n-th; every n-th
	Probability          float64 // in (0, 1]; 0: all
	Count                uint64  // at most so often; 0: no limit

	Delay    time.Duration
	Distance int // of Reorder; 0: 3
	Errno    syscall.Errno
	Status   ib.WCStatus // of Fail with Poll
	// KeepQP leaves the queue pair of a completion with Status as it is. An RNIC
	// moves it to Error, and so does the plan otherwise.
	KeepQP bool
}

// MaxDelay is how long packets and calls can be delayed.
const MaxDelay = time.Minute

// aboutCalls reports whether the rule is for calls and not for packets.
func (r *Rule) aboutCalls() bool { return r.Call != 0 || r.Action == Kill || r.Action == Fail }

// onPost reports whether the calls of the rule are about one queue pair.
func (c Call) onQP() bool { return c == ModifyQP || c == PostSend || c == PostRecv || c == Poll }

// fieldError is what is wrong with a rule, at a key.
type fieldError struct{ key, text string }

func (e *fieldError) Error() string { return e.key + ": " + e.text }

func bad(key, format string, args ...any) error {
	return &fieldError{key, fmt.Sprintf(format, args...)}
}

// validate says what is wrong with a rule.
func (r *Rule) validate() error {
	switch {
	case r.Action == 0 || r.Action >= numActions:
		return bad("inject", "missing; can be %s", actionNames.list())
	case r.Call >= NumCalls:
		return bad("call", "call %d: there is none", r.Call)
	case r.Direction > Both:
		return bad("direction", "direction %d: there is none", r.Direction)
	case r.QP < 0:
		return bad("qp", "%d: queue pairs count from 1", r.QP)
	case math.IsNaN(r.Probability) || r.Probability < 0 || r.Probability > 1:
		return bad("probability", "%v: must be more than 0 and at most 1", r.Probability)
	case r.Nth != 0 && r.Every != 0:
		return bad("nth", "does not go with every")
	case r.Nth != 0 && r.Probability != 0:
		return bad("nth", "does not go with probability")
	case r.AfterTime < 0 || r.ForTime < 0:
		return bad("after", "time cannot be negative")
	case r.Action == Delay && (r.Delay <= 0 || r.Delay > MaxDelay):
		return bad("delay", "%v: must be more than 0 and at most %v", r.Delay, MaxDelay)
	case r.Action != Delay && r.Delay != 0:
		return bad("delay", "goes with inject: delay only")
	case r.Action != Reorder && r.Distance != 0:
		return bad("distance", "goes with inject: reorder only")
	case r.Action == Fail && r.Call == 0:
		return bad("call", "missing; inject: fail needs the call that fails, one of %s", callNames.list())
	case r.Call != 0 && r.Action != Fail && r.Action != Kill && r.Action != Delay:
		return bad("call", "does not go with inject: %v, which is about packets", r.Action)
	case r.Action == Kill && r.Call != 0 && !r.Call.onQP():
		return bad("call", "%v is about no queue pair; inject: kill goes with modify_qp, post_send, post_recv, poll, or without a call", r.Call)
	case r.Action != Fail && (r.Errno != 0 || r.Status != 0 || r.KeepQP):
		return bad("error", "error, status and keep_qp go with inject: fail only")
	}
	if r.aboutCalls() {
		return r.validateCall()
	}
	if r.Recv {
		return bad("opcode", "recv is a completion, not a packet")
	}
	return r.validatePacket()
}

func (r *Rule) validateCall() error {
	switch {
	case r.Direction != In:
		return bad("direction", "is of packets, not of calls")
	case r.Pos != 0:
		return bad("position", "is of packets, not of calls")
	case len(r.Opcodes) != 0:
		return bad("opcode", "numbers are of packets; calls have send, write, read, atomic, recv")
	case r.PSNs != nil:
		return bad("psn", "is of packets, not of calls")
	case len(r.Peers) != 0:
		return bad("peer", "is of packets, not of calls")
	case r.Kinds&^(fault.Send|fault.Write|fault.ReadRequest|fault.Atomic) != 0:
		return bad("opcode", "calls have send, write, read, atomic, recv")
	case (r.Kinds != 0 || r.Recv) && r.Call != PostSend && r.Call != Poll:
		return bad("opcode", "goes with packets and with the calls post_send and poll")
	case r.Recv && r.Call != Poll:
		return bad("opcode", "recv goes with call: poll")
	case (r.QP != 0 || len(r.QPNs) != 0) && r.Call != 0 && !r.Call.onQP():
		return bad("qp", "%v is about no queue pair that exists", r.Call)
	case r.Action == Kill && r.Call == 0 && (r.AfterTime == 0 || r.counts()):
		return bad("after", "inject: kill without a call needs a time, as in after: 2s, and takes qp, qpn and device besides")
	case r.Action == Fail && r.Call == Poll && (r.Status == ib.Success || r.Errno != 0):
		return bad("status", "call: poll needs a status other than SUCCESS, and takes no error")
	case r.Action == Fail && r.Call != Poll && r.Errno == 0:
		return bad("error", "call: %v needs an error, as in error: ENOMEM", r.Call)
	case r.Action == Fail && r.Call != Poll && (r.Status != 0 || r.KeepQP):
		return bad("status", "goes with call: poll only")
	case r.Status > ib.GeneralErr:
		return bad("status", "%d: there is none", r.Status)
	}
	return nil
}

// counts reports whether the rule counts calls.
func (r *Rule) counts() bool {
	return r.Nth != 0 || r.Every != 0 || r.Probability != 0 || r.AfterCount != 0 || r.ForCount != 0 || r.ForTime != 0 || r.Count != 0
}

func (r *Rule) validatePacket() error {
	if r.Action == Partition && (r.Direction != In || r.Nth != 0 || r.Every != 0 || r.Probability != 0) {
		return bad("inject", "a partition loses all packets of both directions: choose peers and a time; else use lose")
	}
	p := r.packet()
	if err := p.Check(); err != nil {
		return bad("inject", "%v", err)
	}
	return nil
}

// packet returns the rule of link/fault.
func (r *Rule) packet() fault.Rule {
	return fault.Rule{
		Action: map[Action]fault.Action{
			Lose: fault.Drop, Partition: fault.Drop, Delay: fault.Delay, Duplicate: fault.Duplicate, Reorder: fault.Reorder,
			Corrupt: fault.Corrupt, Mark: fault.MarkCE,
		}[r.Action],
		Delay: r.Delay, Distance: r.Distance, Out: r.Direction == Out, Both: r.Direction == Both || r.Action == Partition,
		Kinds: r.Kinds, Pos: r.Pos, Opcodes: r.Opcodes, QPNs: r.QPNs, PSNs: r.PSNs, Peers: r.Peers,
		From: r.AfterTime, Lasts: r.ForTime, Skip: r.AfterCount, Span: r.ForCount,
		Nth: r.Nth, Every: r.Every, Rate: r.Probability, Times: r.Count,
	}
}

// Validate says what is wrong with a plan; the error matches ErrPlan.
func (p *Plan) Validate() error {
	if len(p.Rules) > MaxRules {
		return fmt.Errorf("%w: %d rules, can have %d", ErrPlan, len(p.Rules), MaxRules)
	}
	for i := range p.Rules {
		if err := p.Rules[i].validate(); err != nil {
			return fmt.Errorf("%w: rule %d: %w", ErrPlan, i+1, err)
		}
	}
	return nil
}

// ErrPlan matches what is wrong with a plan.
var ErrPlan = errors.New("fault plan")

// ErrInjected matches the errors that a plan makes calls return. They match the
// errno of the rule, too.
var ErrInjected = errors.New("injected by a fault plan")
