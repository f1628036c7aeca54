package verbs

import (
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/rnic"
)

// The errors of control calls and of posting. Every error returned names the
// object, the attribute, the offending value and the limit, and matches one of
// these with errors.Is.
var (
	// ErrClosed: the object, or the device it belongs to, was closed.
	ErrClosed = errors.New("closed")
	// ErrNoDevice: no network interface or address answers to the name.
	ErrNoDevice = errors.New("no such device")
	// ErrNoGID: no usable row of the GID table reaches the peer.
	ErrNoGID = errors.New("no usable GID")
	// ErrOverrun: the completion queue was full and completions are lost.
	ErrOverrun = errors.New("completion queue overrun")
	// ErrHandshake: the other end of Connect does not speak as this one does.
	ErrHandshake = errors.New("handshake failed")

	// ErrBusy: the object is in use by another one.
	ErrBusy = rnic.ErrBusy
	// ErrInvalid: an argument is out of range or contradicts another.
	ErrInvalid = rnic.ErrInvalid
	// ErrState: the object's state does not allow the call.
	ErrState = rnic.ErrState
	// ErrLimit: the device has no more of what was asked for.
	ErrLimit = rnic.ErrLimit
	// ErrQueueFull: the work queue has no free slot; poll completions first.
	ErrQueueFull = rnic.ErrQueueFull
	// ErrUnsupported: nothing of the kind exists here.
	ErrUnsupported = rnic.ErrUnsupported
	// ErrPath: the destination cannot be reached.
	ErrPath = rnic.ErrPath
)

// PostError says which work request was not accepted, and why. The errors of
// posting are of this type, except those that match [ErrClosed].
type PostError = rnic.PostError

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
