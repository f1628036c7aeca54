package rnic

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
)

// What every refusal matches with errors.Is.
var (
	ErrInvalid     = errors.New("invalid argument")
	ErrState       = errors.New("not possible in this state")
	ErrQueueFull   = errors.New("queue full")
	ErrBusy        = errors.New("still in use")
	ErrLimit       = errors.New("limit reached")
	ErrUnsupported = errors.New("not supported")
	ErrPath        = errors.New("no path")
)

// PostError says why a work request was not accepted. It matches one of the
// errors of this package.
type PostError struct {
	QPN   ib.QPN
	SRQ   uint32 // the number of a shared receive queue, where it is about one; else 0
	Recv  bool   // the receive queue
	Index int    // of the request in the slice; those before it are posted
	Attr  string // what is wrong
	Value string // what it was
	Limit string // what it may be; may be empty
	Err   error
}

func (e *PostError) Error() string {
	q := "send"
	if e.Recv {
		q = "receive"
	}
	to := fmt.Sprintf("QP %v", e.QPN)
	if e.SRQ != 0 {
		to = fmt.Sprintf("SRQ %d", e.SRQ)
	}
	s := fmt.Sprintf("post %s to %s: work request %d: %s is %s", q, to, e.Index, e.Attr, e.Value)
	if e.Limit != "" {
		s += ", can be " + e.Limit
	}
	return s + ": " + e.Err.Error()
}

func (e *PostError) Unwrap() error { return e.Err }
