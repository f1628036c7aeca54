package perf

import (
	"errors"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/run"
)

// shortWait is less than a busy host may let a program wait for a processor.
const shortWait = 50 * time.Millisecond

// Explain returns likely causes of a completion status, for people. timeoutExp
// is the QP's local ACK timeout, retries its retry count.
func Explain(s ib.WCStatus, timeoutExp uint8, retries int) string {
	switch s {
	case ib.Success:
		return ""
	case ib.LocLenErr:
		return "the message is longer than the receive posted for it; likely: -s differs between the two ends"
	case ib.LocProtErr:
		return "a local key or address is not valid for the access; likely: memory deregistered, or too small"
	case ib.LocQPOpErr:
		return "the queue pair cannot do this; likely: the operation does not exist on this transport"
	case ib.WRFlushErr:
		return "the queue pair is in error because an earlier request failed; that one tells why"
	case ib.RemInvReqErr:
		return "the peer refuses the request; likely: the two ends use different path MTUs (-m) or run different programs, or the receive there is too short (-s)"
	case ib.RemAccessErr:
		return "the peer's key or address does not cover the request; likely: -s or -q differs between the two ends"
	case ib.RemOpErr:
		return "the peer could not carry out the request; likely: its receive names memory that is not valid"
	case ib.RetryExcErr:
		wait, likely := time.Duration(retries+1)*ib.AckTimeout(timeoutExp), ""
		unit := time.Millisecond
		if wait > 0 && wait < shortWait { // 0 never ends
			unit = time.Microsecond
			likely = fmt.Sprintf("a timeout (-u %d) too short for software, ", timeoutExp)
		}
		return fmt.Sprintf("the peer did not answer within about %v; likely: %sUDP port 4791 is blocked, the GIDs do not reach each other (-x), a path MTU that the way does not carry (-m), or the peer ended", wait.Round(unit), likely)
	case ib.RNRRetryExcErr:
		return "the peer had no receive posted for too long; likely: it is too slow, or does not run the test any more"
	case ib.BadRespErr:
		return "the answer does not fit the request; likely: two peers use the same address and queue pair number"
	case ib.RespTimeoutErr:
		return "the peer's answer did not come in time"
	default:
		return "see the peer's output"
	}
}

// explained is a failed work request with its likely causes.
type explained struct {
	err  *run.StatusError
	hint string
}

func (e *explained) Error() string { return e.err.Error() + ": " + e.hint }
func (e *explained) Unwrap() error { return e.err }

// explain adds likely causes to the error of a loop.
func explain(err error, timeoutExp uint8) error {
	var s *run.StatusError
	if !errors.As(err, &s) {
		return err
	}
	return &explained{s, Explain(s.Status, timeoutExp, 7)}
}
