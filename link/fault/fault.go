package fault

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
	"github.com/verbena-rdma/verbena/wire/roce"
)

const (
	// maxReordered bounds the packets of one direction that others overtake at
	// a time, and maxDelayed those that wait for an instant; more are dropped.
	maxReordered = 256
	maxDelayed   = 4096
	// reorderWait is how long a packet waits to be overtaken when no other
	// comes.
	reorderWait = time.Millisecond
	// bufLen holds any packet of RoCE; longer ones get a buffer of their own.
	bufLen = 4608
	// inBatch is how many pieces one look at the inner link takes.
	inBatch = 32
)

// Config says what a link does to packets.
type Config struct {
	Rules []Rule
	// Seed makes the link repeatable; 0 takes one by chance: see [Link.Seed].
	Seed uint64
}

// Counts count what was done, in packets, both directions together.
type Counts struct {
	Seen       uint64 // packets that met at least one rule's stage
	Dropped    uint64
	Duplicated uint64
	Delayed    uint64
	Reordered  uint64
	Corrupted  uint64
	Marked     uint64
	NotECT     uint64 // not marked because the packet was not ECN-capable
	Overflow   uint64 // dropped because too many were held, or the way out was full
}

// Link is the middleware. It implements link.Link and owns the link inside.
type Link struct {
	inner link.Link
	ether bool // frames are whole: see ether.go
	env   roce.Envelope
	seed  uint64

	mu      sync.Mutex
	in      lane
	out     lane
	counts  Counts
	start   clock.Time // when first used
	started bool
	rules   []*stage // in the order of the configuration
	pool    ring.Pool
	closed  bool

	scratch  []frame.Rx // what the inner link lends
	lent     int        // how much of scratch is lent
	ready    []item     // to be received, from head on
	head     int
	handed   [][]byte    // own buffers that the last Recv handed out
	staged   []frame.Run // to be committed
	verdicts []verdict   // of one run
	one      [1]frame.Run

	// For Wait, which takes no lock.
	readyLen atomic.Int32
	due      atomic.Int64 // the earliest instant at which something is to be done
}

// item is a packet or piece on its way to Recv.
type item struct {
	rx  frame.Rx
	own []byte // its buffer, if it is not the inner link's
}

// New puts a link around inner, which it owns from now on.
func New(inner link.Link, cfg Config) (*Link, error) {
	encap := inner.Caps().Encap
	if encap != frame.UDPPayload && encap != frame.Ethernet {
		return nil, fmt.Errorf("fault link: frames of encapsulation %d: only UDP payloads and whole Ethernet frames are understood", encap)
	}
	for cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	l := &Link{inner: inner, ether: encap == frame.Ethernet, seed: cfg.Seed, pool: ring.NewPool(bufLen), scratch: make([]frame.Rx, inBatch)}
	for i, r := range cfg.Rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		s := newStage(r, cfg.Seed, i)
		l.rules = append(l.rules, s)
		if r.Both || !r.Out {
			l.in.stages = append(l.in.stages, s)
		}
		if r.Both || r.Out {
			l.out.stages = append(l.out.stages, s)
		}
	}
	l.due.Store(int64(clock.Never))
	return l, nil
}

// Seed returns the seed in use, to be printed beside what went wrong.
func (l *Link) Seed() uint64 { return l.seed }

// Counts returns what was done so far. Any goroutine.
func (l *Link) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Rules returns what each rule has done so far, in the order of the
// configuration. Any goroutine.
func (l *Link) Rules() []RuleCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]RuleCount, len(l.rules))
	for i, s := range l.rules {
		list[i] = s.count
	}
	return list
}

// Texts returns the rules as they are written, in the order of the configuration. Any
// goroutine.
func (l *Link) Texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]string, len(l.rules))
	for i, s := range l.rules {
		list[i] = s.Rule.String()
	}
	return list
}

// Caps implements link.Link.
func (l *Link) Caps() link.Caps { return l.inner.Caps() }

// Path implements link.Link.
func (l *Link) Path(src, dst netip.Addr, srcPort uint16) (link.Path, error) {
	return l.inner.Path(src, dst, srcPort)
}

// Counters implements link.Link: what the link inside lost. What this one
// drops is in Counts.
func (l *Link) Counters() link.Counters { return l.inner.Counters() }

// Event implements link.Link.
func (l *Link) Event() (link.Event, bool) { return l.inner.Event() }

// Wait implements link.Link.
func (l *Link) Wait(now, until clock.Time) error {
	if l.readyLen.Load() > 0 {
		until = now
	}
	return l.inner.Wait(now, clock.Min(until, clock.Time(l.due.Load())))
}

// Wake implements link.Link.
func (l *Link) Wake() { l.inner.Wake() }

// Close implements link.Link. What is held is lost.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.inner.Close()
}

// lane is one direction: its rules, and the packets it holds.
type lane struct {
	stages    []*stage
	delayed   delayHeap
	reordered []heldPacket
	seq       uint64
}

// heldPacket is a copy of one packet.
type heldPacket struct {
	rx    frame.Rx // for both directions; Data is within own
	own   []byte
	due   clock.Time
	seq   uint64 // order among equals
	after int    // reordered: packets still to pass
}

// verdict is what all stages together do to one packet.
type verdict struct {
	drop, dup, corrupt, ce bool
	flip                   uint64 // corrupt: which bit, by chance
	delay                  time.Duration
	distance               int
}

// touched reports whether anything happens at all.
func (v *verdict) touched() bool { return *v != verdict{} }

// held reports whether the packet waits.
func (v *verdict) held() bool { return v.delay != 0 || v.distance != 0 }

// judge runs a packet through the stages.
func (l *Link) judge(ln *lane, p *passer) (v verdict) {
	l.counts.Seen++
	for _, s := range ln.stages {
		if !s.fires(p) {
			continue
		}
		// ECN is the low two bits; 0 says that the packet is not capable
		// (RFC 3168 §5).
		if s.Action == MarkCE && p.tos&3 == 0 {
			l.counts.NotECT++
			continue
		}
		s.acted(p.at)
		switch s.Action {
		case Drop:
			l.counts.Dropped++
			return verdict{drop: true}
		case Duplicate:
			l.counts.Duplicated++
			v.dup = true
		case Delay:
			l.counts.Delayed++
			v.delay += s.Delay
		case Reorder:
			l.counts.Reordered++
			v.distance = max(v.distance, s.Distance)
		case Corrupt:
			l.counts.Corrupted++
			v.corrupt, v.flip = true, s.rng.Uint64()
		case MarkCE:
			l.counts.Marked++
			v.ce = true
		default: // New lets no other action in
		}
	}
	return v
}

// flipBit spoils one bit of b.
func flipBit(b []byte, by uint64) {
	if len(b) > 0 {
		b[by>>3%uint64(len(b))] ^= 1 << (by & 7)
	}
}

const ecnCE = 3

// hold copies a packet and keeps it as the verdict says, or drops it if too
// many are held.
func (l *Link) hold(ln *lane, now clock.Time, rx frame.Rx, v *verdict) {
	if v.delay != 0 && len(ln.delayed) >= maxDelayed || v.delay == 0 && len(ln.reordered) >= maxReordered {
		l.counts.Overflow++
		return
	}
	p := heldPacket{rx: rx, seq: ln.seq, after: v.distance, due: now.Add(reorderWait)}
	p.own = l.copyOf(rx.Data)
	p.rx.Data, p.rx.Seg = p.own[:len(rx.Data)], 0
	ln.seq++
	if v.delay != 0 {
		p.due = now.Add(v.delay)
		ln.delayed.push(p)
	} else {
		ln.reordered = append(ln.reordered, p)
	}
}

// copyOf returns b's bytes at the start of a buffer of our own.
func (l *Link) copyOf(b []byte) []byte {
	var own []byte
	if len(b) <= bufLen {
		own = l.pool.Get()
	} else {
		own = make([]byte, len(b))
	}
	copy(own, b)
	return own
}

// passed tells the reordered packets of a lane that n others have passed, and
// hands those to emit that have been overtaken enough.
func (ln *lane) passed(n int, emit func(heldPacket)) {
	if len(ln.reordered) == 0 {
		return
	}
	keep := ln.reordered[:0]
	for _, p := range ln.reordered {
		if p.after -= n; p.after > 0 {
			keep = append(keep, p)
		} else {
			emit(p)
		}
	}
	clear(ln.reordered[len(keep):])
	ln.reordered = keep
}

// expire hands to emit what has waited long enough.
func (ln *lane) expire(now clock.Time, emit func(heldPacket)) {
	for len(ln.delayed) > 0 && ln.delayed[0].due <= now {
		emit(ln.delayed.pop())
	}
	if len(ln.reordered) == 0 || ln.reordered[0].due > now {
		return
	}
	keep := ln.reordered[:0]
	for _, p := range ln.reordered {
		if p.due > now {
			keep = append(keep, p)
		} else {
			emit(p)
		}
	}
	clear(ln.reordered[len(keep):])
	ln.reordered = keep
}

// next returns when something expires. Reordered packets wait equally long, so
// the first is the earliest.
func (ln *lane) next() clock.Time {
	t := clock.Never
	if len(ln.delayed) > 0 {
		t = ln.delayed[0].due
	}
	if len(ln.reordered) > 0 {
		t = clock.Min(t, ln.reordered[0].due)
	}
	return t
}

// updateDue tells Wait until when it may wait, and the one under way if that
// is now earlier.
func (l *Link) updateDue() {
	due := clock.Min(l.in.next(), l.out.next())
	if clock.Time(l.due.Swap(int64(due))) > due {
		l.inner.Wake()
	}
}

// delayHeap is a binary heap by due and seq.
type delayHeap []heldPacket

func (h delayHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}

func (h *delayHeap) push(p heldPacket) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *delayHeap) pop() heldPacket {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s[last] = heldPacket{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && s.less(c+1, c) {
			c++
		}
		if !s.less(c, i) {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	return top
}

var _ link.Link = (*Link)(nil)
