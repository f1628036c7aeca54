package link

import (
	"errors"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
)

// ErrClosed is returned by a link after Close.
var ErrClosed = errors.New("link closed")

// Caps says what a link can do. It is constant for the life of a link.
type Caps struct {
	Encap frame.Encap
	// MTU is the largest frame, in the sense of Encap, that the path may carry
	// in one packet: for UDPPayload the IP MTU less IP and UDP headers.
	MTU int
	// Segments is the most segments a run may have; 1 where nothing segments.
	Segments int
	// RunBytes is the most bytes a run may have.
	RunBytes int
	// RxBytes is about how much payload the receiving end of this link can hold
	// before it drops, 0 if it does not drop.
	RxBytes int
	// Idents reports whether segment i of a run leaves with IPv4 Identification
	// i. Where it does not, the Identification is unknown to the sender and
	// peers must be told to solve for it.
	Idents bool
}

// Link moves frames in and out of the process, in batches. All methods but
// Wake and Close belong to one goroutine at a time.
type Link interface {
	Caps() Caps
	// Recv fills rx with what has arrived and returns how many. It never blocks.
	// The data is lent until Release.
	Recv(now clock.Time, rx []frame.Rx) (int, error)
	// Release gives back what the last Recv lent.
	Release(rx []frame.Rx)
	// Reserve lends empty runs and returns how many; 0 when the way out is full.
	Reserve(tx []frame.Run) int
	// Commit sends runs that Reserve lent; one with N = 0 is only given back.
	// What the host cannot take is dropped and counted, as a wire would.
	Commit(now clock.Time, tx []frame.Run) error
	// Wait blocks until there may be something to receive, until the instant
	// until, or until Wake.
	Wait(until clock.Time) error
	// Wake makes the present or the next Wait return. Any goroutine.
	Wake()
	// Close releases what the link holds; a Wait returns ErrClosed.
	Close() error
}
