package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/transport"
)

// Cause is why a queue pair sends nothing at the moment.
type Cause uint8

// The causes. CauseUnknown is the only one that no queue pair ever has.
const (
	CauseUnknown Cause = iota // a fault of the adapter
	CauseIdle                 // nothing is posted or under way
	CauseReady                // it waits for Egress alone
	CausePaused               // its priority is paused
	CausePaced                // its rate lets nothing leave before Until
	CauseAck                  // what was posted has left and is not acknowledged; the timeout is at Until, if there is one
	CauseWindow               // what is in flight towards its destination, or unacknowledged
	CauseRNR                  // the peer had no receive posted: until Until
	CauseCredits              // the peer has not said that it has a receive posted
	CauseReads                // READs and ATOMICs under way
	CauseState                // its state sends nothing
	NumCauses
)

var causeNames = [NumCauses]string{
	"no cause", "nothing to send", "ready", "priority paused", "paced", "waits for an acknowledgement", "window", "RNR delay",
	"credits", "READs under way", "state",
}

func (c Cause) String() string {
	if c < NumCauses {
		return causeNames[c]
	}
	return "unknown"
}

// Silence is why a queue pair sends nothing, and until when at the latest;
// Never where no instant is known.
type Silence struct {
	Cause Cause
	Until clock.Time
}

func (s Silence) String() string {
	if s.Until == clock.Never {
		return s.Cause.String()
	}
	return fmt.Sprintf("%v until %d ns", s.Cause, int64(s.Until))
}

// waitCauses are the causes that the protocol alone knows.
var waitCauses = [transport.NumWaits]Cause{
	transport.WaitIdle: CauseIdle, transport.WaitAck: CauseAck, transport.WaitWindow: CauseWindow, transport.WaitRNR: CauseRNR,
	transport.WaitCredits: CauseCredits, transport.WaitReads: CauseReads, transport.WaitState: CauseState,
}

// Why says why a queue pair sends nothing, as of the last call. It changes
// nothing: an invariant checker asks it about every queue pair that is silent.
// Owner.
func (a *Adapter) Why(q *QP) Silence {
	switch {
	case q.sched.list == &a.sched.class[q.sched.prio].ready:
		if a.sched.paused>>q.sched.prio&1 != 0 {
			if a.pauses.steady>>q.sched.prio&1 == 0 {
				return Silence{CausePaused, a.pauseUntil[q.sched.prio]}
			}
			return Silence{CausePaused, clock.Never}
		}
		return Silence{CauseReady, clock.Never}
	case q.bell.rung.Load():
		return Silence{CauseReady, clock.Never}
	case q.sched.list != nil:
		return Silence{CauseWindow, q.timer.due}
	}
	w := q.eng.Why()
	if w != transport.WaitNothing {
		s := Silence{waitCauses[w], q.eng.Deadline()}
		if w == transport.WaitRNR {
			s.Until = q.eng.SendAt()
		}
		return s
	}
	if at := q.pacer.ready(); q.pacer.rate != 0 && q.timer.due <= at {
		return Silence{CausePaced, at}
	}
	return Silence{CauseUnknown, q.timer.due}
}
