package rdmacm

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// The errors of this package match one of these or the context's, or one of
// package verbs' where a queue pair refuses.
var (
	// ErrRejected: the peer refused; the error is a [*RejectedError].
	ErrRejected = errors.New("rejected")
	// ErrRefused: nobody listens at the peer's port. Such errors match
	// ErrRejected, too.
	ErrRefused = errors.New("connection refused")
	// ErrUnreachable: the peer does not answer.
	ErrUnreachable = errors.New("peer does not answer")
	// ErrGone: the request or connection has ended.
	ErrGone = errors.New("connection is gone")
	// ErrInUse: somebody listens at that port.
	ErrInUse = cm.ErrInUse
	// ErrClosed: the manager, listener or device was closed.
	ErrClosed = verbs.ErrClosed
	// ErrInvalid: an argument is out of range.
	ErrInvalid = verbs.ErrInvalid
	// ErrBusy: another manager has the device's QP1.
	ErrBusy = verbs.ErrBusy
)

// RejectedError says why a peer has refused.
type RejectedError struct {
	Reason  mad.Reason     // of a connection
	Status  mad.SIDRStatus // of a service of datagrams; 0 for a connection
	Info    []byte         // additional information, by reason
	Private []byte         // what the peer's program said: 148 bytes, or 136
}

func (e *RejectedError) Error() string {
	if e.Status != 0 {
		return "rejected: " + e.Status.String()
	}
	return "rejected: " + e.Reason.String()
}

// Is implements errors.Is.
func (e *RejectedError) Is(target error) bool {
	return target == ErrRejected ||
		target == ErrRefused && (e.Reason == mad.RejInvalidServiceID || e.Status == mad.SIDRUnsupported)
}

// errorf returns an error with the text of format that matches kind.
func errorf(kind error, format string, args ...any) error {
	return &kindError{kind: kind, text: fmt.Sprintf(format, args...)}
}

// kindError is a text that says enough by itself, and a kind to match.
type kindError struct {
	kind error
	text string
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }
