package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
)

// ErrClosed is returned by a link after Close.
var ErrClosed = errors.New("link closed")

// Caps says what a link can do. It is constant for the life of a link.
type Caps struct {
	Encap frame.Encap
	// MTU is the largest frame, in the sense of Encap, that the interface may
	// carry in one packet: for UDPPayload the IP MTU less IP and UDP headers. A
	// route may carry less: see [Path].
	MTU int
	// Segments is the most segments a run may have; 1 where nothing segments.
	Segments int
	// RunBytes is the most bytes a run may have.
	RunBytes int
	// RxBytes is about how much payload the receiving end of this link can hold
	// before it drops, 0 if it does not drop. It is the figure for packets that
	// arrive one by one; merged ones fit about twice.
	RxBytes int
	// Idents reports whether segment i of a run leaves with IPv4 Identification
	// i. Where it does not, the Identification is unknown to the sender and
	// peers must be told to solve for it.
	Idents bool
	// Tagged says that frames of an Ethernet link are to carry an 802.1Q tag with
	// their priority and with VLAN, 0 for none. The link has no other VLAN.
	Tagged bool
	VLAN   uint16
	// LineRate is the interface's in bits a second, 0 if it does not tell. Pause
	// quanta last by it.
	LineRate uint64
}

// Path is what a link can do between two addresses.
type Path struct {
	// SrcPort is the UDP source port that runs must name in order to leave: the
	// wanted one where it was free. It enters the ICRC. Links that carry whole
	// frames take a wanted port of 0 for RoCEv1, which has none and crosses no
	// router.
	SrcPort uint16
	// MTU is the largest frame the route carries now, as far as this host
	// knows. It may be under Caps.MTU.
	MTU int
}

// Counters count what a link lost or had to do otherwise, in packets unless
// said, since it was opened. What went well is the adapter's to count, but for
// the system calls that it took.
type Counters struct {
	// RxDropped: the receive buffer was full; lost in this host before Recv saw
	// them. Linux counts the packets of a merged piece as one.
	RxDropped uint64
	// RxSocket came out of this link's own socket, where several share a port; else
	// it is not counted.
	RxSocket uint64
	// RxMisdirected came to a link that shares a port with others, and belonged to
	// one of them, which got them. They are not lost.
	RxMisdirected uint64
	RxForeign     uint64 // not usable at all: truncated by the system
	TxDropped     uint64 // the system's send queue was full for too long
	TxTooLong     uint64 // longer than the route's MTU
	TxRefused     uint64 // no route, firewall, interface down
	TxNoPort      uint64 // a source port that Path did not name
	// TxUnresolved: nobody has told the address of the neighbour that was to get
	// them. A link that resolves neighbours holds a few packets meanwhile; these
	// were too many, or the neighbour does not answer.
	TxUnresolved uint64
	TxSplit      uint64 // runs sent segment by segment because the system would not cut them

	// System calls made to move frames, those that found nothing included. What
	// Go's own poller does to block a goroutine is not among them.
	SendCalls uint64
	RecvCalls uint64
	WaitCalls uint64
}

// Add adds what another link has counted.
func (c *Counters) Add(o Counters) {
	c.RxDropped += o.RxDropped
	c.RxSocket += o.RxSocket
	c.RxMisdirected += o.RxMisdirected
	c.RxForeign += o.RxForeign
	c.TxDropped += o.TxDropped
	c.TxTooLong += o.TxTooLong
	c.TxRefused += o.TxRefused
	c.TxNoPort += o.TxNoPort
	c.TxUnresolved += o.TxUnresolved
	c.TxSplit += o.TxSplit
	c.SendCalls += o.SendCalls
	c.RecvCalls += o.RecvCalls
	c.WaitCalls += o.WaitCalls
}

// EventKind names what a link wants somebody to know.
type EventKind uint8

// The kinds of events.
const (
	EventRouteMTU       EventKind = 1 + iota // frames are longer than the route towards Dst carries
	EventNoSegmentation                      // the system does not cut runs towards Dst; they go one packet a call
	EventRefused                             // the system refuses to send towards Dst
	EventNoNeighbour                         // who is to get what is for Dst does not answer ARP or neighbour discovery
)

var eventNames = [...]string{"", "route MTU too small", "no segmentation", "send refused", "neighbour does not answer"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("link event %d", uint8(k))
}

// Event is one thing that a link found out while it sent. Each kind is reported
// once for a destination.
type Event struct {
	Kind  EventKind
	Src   netip.Addr
	Dst   netip.Addr
	Frame int   // EventRouteMTU: the length that did not fit
	MTU   int   // EventRouteMTU: what would, 0 if unknown
	Err   error // what the system said
}

func (e Event) String() string {
	s := fmt.Sprintf("%v: %v to %v", e.Kind, e.Src, e.Dst)
	if e.Kind == EventRouteMTU {
		s += fmt.Sprintf(": a frame of %d bytes", e.Frame)
		if e.MTU != 0 {
			s += fmt.Sprintf(", the route carries %d", e.MTU)
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Grouper is a link that joins multicast groups. Both calls are the owner's, on
// the control path. What arrives for a group has the group as [frame.Rx].Dst. What
// is sent to a group that this host has joined comes back, to its sender too.
type Grouper interface {
	// Join makes the interface of the local address receive what is sent to a
	// group. Each Join wants its Leave.
	Join(local, group netip.Addr) error
	// Leave takes one Join back.
	Leave(local, group netip.Addr) error
}

// Link moves frames in and out of the process, in batches.
//
// Wake and Close may be called from any goroutine at any time. Wait belongs to
// one goroutine at a time; all others belong to one goroutine at a time, which
// may be another than the one in Wait.
type Link interface {
	Caps() Caps
	// Path resolves what depends on the two addresses, for a queue pair that is
	// about to use them: the control path. The error says why dst cannot be
	// reached from src.
	Path(src, dst netip.Addr, srcPort uint16) (Path, error)
	// Recv fills rx with what has arrived and returns how many; rx[:n] is
	// overwritten whole. It never blocks. Fewer than len(rx) does not mean that
	// nothing is left: only 0 does, and needs no Release. The data is lent until
	// Release, and Recv is not called again before it.
	Recv(now clock.Time, rx []frame.Rx) (int, error)
	// Release gives back all that the last Recv lent.
	Release(rx []frame.Rx)
	// Reserve lends empty runs and returns how many; 0 when the way out is full.
	Reserve(tx []frame.Run) int
	// Commit sends runs that Reserve lent; one with N = 0 is only given back.
	// What the host cannot take within a bounded time is dropped and counted, as
	// a wire would. The error is only ever about the link as a whole.
	Commit(now clock.Time, tx []frame.Run) error
	// Counters returns the present counts.
	Counters() Counters
	// Event returns the oldest event that was not yet returned.
	Event() (Event, bool)
	// Wait blocks until there may be something to receive, until the way out is
	// free after Reserve said 0, until the instant until, or until Wake. now is
	// the present instant on the scale of until. It may return early.
	Wait(now, until clock.Time) error
	// Wake makes the present or the next Wait return.
	Wake()
	// Close releases what the link holds; Wait and Recv return ErrClosed.
	Close() error
}
