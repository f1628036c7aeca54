package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/verbs"
)

// Lane is one queue pair of a test with its memory.
type Lane struct {
	QP *verbs.QP
	// Local is where what this end sends lies, or where what it reads goes.
	Local Buffer
	// Recv is where what this end receives goes.
	Recv Buffer
	// Remote is the peer's memory for WRITE, READ and ATOMIC.
	Remote ib.Remote
	// UD is where datagrams go.
	UD ib.Datagram
}

// Buffer is a ring of slots in registered memory: message n uses slot n modulo
// Slots.
type Buffer struct {
	Key    ib.LKey
	Addr   uint64
	Stride uint64 // bytes from slot to slot
	Slots  uint64 // 1 and more
}

// At returns the address of message n's slot.
func (b Buffer) At(n uint64) uint64 { return b.Addr + n%b.Slots*b.Stride }

// StatusError is a work request that completed in error.
type StatusError struct {
	Status ib.WCStatus
	QPN    ib.QPN
	Op     ib.WROp
	Recv   bool
	N      uint64 // which message of the queue pair, from 0
	Of     uint64 // how many there were to be, 0 if that is not known
}

func (e *StatusError) Error() string {
	what := e.Op.String()
	if e.Recv {
		what = "receive"
	}
	s := fmt.Sprintf("QP %v: %s %d", e.QPN, what, e.N+1)
	if e.Of > 0 {
		s += fmt.Sprintf(" of %d", e.Of)
	}
	return s + ": " + e.Status.String()
}

// batch is how many work requests are posted, and completions taken, at once.
const batch = 64

// idleEvery is how many empty polls pass between two looks at Watch.
const idleEvery = 512

// Common is what all loops need.
type Common struct {
	Op    ib.WROp
	Size  uint64
	Iters uint64 // messages of a lane; unused with Phases
	Lanes []Lane
	// SRQ, where not nil, is where the receives of all lanes come from: a lane's
	// receives may then be taken by messages of others, and what is counted for
	// it are its places.
	SRQ *verbs.SRQ
	// CQ gets the completions of all lanes.
	CQ     *verbs.CQ
	Device *verbs.Device
	// Events makes the loop sleep on this channel instead of polling; may be nil.
	Events *verbs.CompChannel
	// InlineMax is the most bytes that go inline.
	InlineMax int
	// Compare and SwapAdd are the operands of ATOMICs.
	Compare, SwapAdd uint64
	Clock            clock.Clock
	// Phases makes it a test over a time; may be nil.
	Phases *Phases
	// Watch is asked from time to time when nothing moves. An error ends the
	// loop; done means that the peer has come to its end, so that what has not
	// arrived in a while never will.
	Watch func() (done bool, err error)

	nap    context.Context // of Poll, renewed once a second
	cancel context.CancelFunc
}

// lostAfter is how long, in nanoseconds, a receiver waits for more after its
// peer has said that it is through.
const lostAfter = 500e6

// Result is what a loop measured.
type Result struct {
	Bandwidth report.Bandwidth
	Latency   report.Latency
	// Sent and Received count the messages of each lane, Lost those that all of
	// them waited for in vain.
	Sent, Received []uint64
	Lost           uint64
}

// scratch is a reusable array of send work requests with their one-element
// gather lists.
type scratch struct {
	wrs  [batch]ib.SendWR
	sges [batch]ib.SGE
}

// fill prepares the i-th work request of the array as message n of a lane.
func (s *scratch) fill(i int, c *Common, lane int, n uint64, signaled bool) {
	l := &c.Lanes[lane]
	s.sges[i] = ib.SGE{Addr: l.Local.At(n), Length: uint32(c.Size), LKey: l.Local.Key}
	wr := &s.wrs[i]
	*wr = ib.SendWR{ID: wrID(lane, n), Op: c.Op, SGL: s.sges[i : i+1 : i+1], Remote: l.Remote, UD: l.UD, Compare: c.Compare, SwapAdd: c.SwapAdd}
	wr.Remote.Addr += n % l.Local.Slots * l.Local.Stride
	if signaled {
		wr.Flags |= ib.Signaled
	}
	if c.Op != ib.Read && !c.Op.IsAtomic() && c.Size <= uint64(c.InlineMax) {
		wr.Flags |= ib.Inline
	}
}

// recvScratch is the same for receives.
type recvScratch struct {
	wrs  [batch]ib.RecvWR
	sges [batch]ib.SGE
}

func (s *recvScratch) fill(i int, c *Common, lane int, n uint64, length uint32) {
	l := &c.Lanes[lane]
	s.sges[i] = ib.SGE{Addr: l.Recv.At(n), Length: length, LKey: l.Recv.Key}
	s.wrs[i] = ib.RecvWR{ID: recvBit | wrID(lane, n), SGL: s.sges[i : i+1 : i+1]}
}

// postRecvs posts receives of a lane, or of all.
func (c *Common) postRecvs(lane int, wrs []ib.RecvWR) (int, error) {
	if c.SRQ != nil {
		return c.SRQ.PostRecvBatch(wrs)
	}
	return c.Lanes[lane].QP.PostRecvBatch(wrs)
}

// recvDepth is how many of depth receives are a lane's.
func (c *Common) recvDepth(depth int) uint64 {
	if c.SRQ != nil {
		depth = max(depth/len(c.Lanes), 1)
	}
	if c.Phases == nil {
		return min(uint64(depth), c.Iters)
	}
	return uint64(depth)
}

// A work request's ID tells its kind, its lane and its number in the lane.
const (
	recvBit  = 1 << 63
	laneBits = 15
	numBits  = 48
)

func wrID(lane int, n uint64) uint64 { return uint64(lane)<<numBits | n&(1<<numBits-1) }

func laneOf(id uint64) int      { return int(id >> numBits & (1<<laneBits - 1)) }
func numberOf(id uint64) uint64 { return id & (1<<numBits - 1) }

// StatusError returns the error of a completion that is not a success.
func (c *Common) StatusError(wc *ib.WC) error {
	e := &StatusError{Status: wc.Status, Op: c.Op, Recv: wc.ID&recvBit != 0, N: numberOf(wc.ID)}
	if c.SRQ != nil && e.Recv {
		e.QPN = wc.QPN // the lane is that of the place
	} else if lane := laneOf(wc.ID); lane < len(c.Lanes) {
		e.QPN = c.Lanes[lane].QP.Num()
	}
	if c.Phases == nil {
		e.Of = c.Iters
	}
	return e
}

// Poll takes completions. With events, it arms the queue and sleeps when there
// are none, for a second at most; a completion between the two polls is not
// missed, because the queue is looked at once more after arming.
func (c *Common) Poll(ctx context.Context, wcs []ib.WC) (int, error) {
	n := c.CQ.Poll(wcs)
	if n > 0 || c.Events == nil {
		return n, nil
	}
	if err := c.CQ.Arm(false); err != nil {
		return 0, err
	}
	if n = c.CQ.Poll(wcs); n > 0 {
		return n, nil
	}
	if c.nap == nil || c.nap.Err() != nil {
		c.Wake()
		c.nap, c.cancel = context.WithTimeout(ctx, time.Second)
	}
	if _, err := c.Events.Wait(c.nap); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return 0, nil
		}
		return 0, err
	}
	return c.CQ.Poll(wcs), nil
}

// Wake ends the nap of Poll.
func (c *Common) Wake() {
	if c.cancel != nil {
		c.cancel()
	}
}
