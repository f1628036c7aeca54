package linktest

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// End is one end: a link and the address that reaches it. Both ends may be one
// link with two addresses.
type End struct {
	Link link.Link
	Addr netip.Addr
}

// Suite says how to open the two ends and what they can do.
type Suite struct {
	// Open opens two ends that reach each other. The suite closes them.
	Open func(t testing.TB) (a, b End)
	// Marks says that TOS and TTL arrive as they were sent.
	Marks bool
	// Lossless says that nothing is dropped as long as no queue is full.
	Lossless bool
	// AnyAddress says that the link has no addresses of its own and sends from
	// whichever a run names.
	AnyAddress bool
	// Allocs says that the link may allocate: it is for tests or for recording,
	// not for the hot path.
	Allocs bool
}

// Run runs the whole suite.
//
// What a link does not have is left out, not skipped.
func Run(t *testing.T, s Suite) {
	var one, roomy bool
	t.Run("Capabilities", func(t *testing.T) {
		r := s.rig(t)
		c := r.a.Link.Caps()
		one, roomy = r.a.Link == r.b.Link, c.RunBytes > c.MTU
		if c.MTU <= 0 || c.RunBytes < c.MTU || c.Segments < 1 || c != r.b.Link.Caps() {
			t.Errorf("one end has %+v, the other %+v", c, r.b.Link.Caps())
		}
	})
	t.Run("Shapes", s.shapes)
	t.Run("Batches", s.batches)
	t.Run("Flows", s.flows)
	t.Run("BothWays", s.bothWays)
	if !one { // one link cannot receive while it lends
		t.Run("LentUntilRelease", s.lent)
	}
	t.Run("GivenBack", s.givenBack)
	t.Run("ReserveIsBounded", s.reserveBounded)
	t.Run("NonsenseIsCounted", s.nonsense)
	if roomy { // else a run has no room for such a packet
		t.Run("TooLong", s.tooLong)
	}
	t.Run("Overflow", s.overflow)
	t.Run("Wake", s.wake)
	t.Run("Deadline", s.deadline)
	t.Run("WaitForFrames", s.waitForFrames)
	t.Run("WaitAfterPolling", s.waitAfterPolling)
	t.Run("WaitWhileMoving", s.waitWhileMoving)
	t.Run("Close", s.close)
	t.Run("CloseWhileMoving", s.closeWhileMoving)
	t.Run("Leaks", s.leaks)
	if !s.Allocs {
		t.Run("Allocations", s.allocations)
	}
}

// rig is a test's two ends with their paths resolved.
type rig struct {
	t        testing.TB
	a, b     End
	port     map[string]uint16 // source ports by name of the flow
	lossless bool
}

func (s Suite) rig(t testing.TB) *rig {
	t.Helper()
	a, b := s.Open(t)
	t.Cleanup(func() {
		_ = a.Link.Close()
		_ = b.Link.Close()
	})
	return &rig{t: t, a: a, b: b, port: map[string]uint16{}, lossless: s.Lossless}
}

// source returns a source port from one end to another.
func (r *rig) source(from, to End, want uint16) uint16 {
	r.t.Helper()
	p, err := from.Link.Path(from.Addr, to.Addr, want)
	if err != nil {
		r.t.Fatalf("Path(%v, %v, %d): %v", from.Addr, to.Addr, want, err)
	}
	if p.SrcPort == 0 || p.MTU <= 0 {
		r.t.Fatalf("Path = %+v", p)
	}
	return p.SrcPort
}

// shape is the form of a run.
type shape struct{ seg, segs, last int }

func (s shape) bytes() int { return s.seg*(s.segs-1) + s.last }

// noise is what packets are cut from: bytes without a short period.
var noise = func() (b [128 << 10]byte) {
	x := uint32(2463534242)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}()

// fill makes run r a packet train from one end to another. Packets of
// different tags or places in the run differ.
func fill(r *frame.Run, from, to End, port uint16, s shape, tag byte) {
	r.Src, r.Dst, r.SrcPort = from.Addr, to.Addr, port
	r.Seg, r.Segs, r.N = s.seg, s.segs, s.bytes()
	for i := range r.Segs {
		copy(r.Buf[i*r.Seg:min((i+1)*r.Seg, r.N)], noise[int(tag)*193+i*13:])
	}
}

// reserve lends n runs, waiting for room.
func (r *rig) reserve(e End, n int) []frame.Run {
	r.t.Helper()
	tx := make([]frame.Run, n)
	have := 0
	for try := 0; have < n; try++ {
		if try == idleWaits {
			r.t.Fatalf("Reserve: only %d of %d runs", have, n)
		}
		have += e.Link.Reserve(tx[have:])
		if have < n {
			_ = e.Link.Wait(0, clock.Time(time.Millisecond))
		}
	}
	for i := range tx {
		if len(tx[i].Buf) != e.Link.Caps().RunBytes || tx[i].N != 0 {
			r.t.Fatalf("Reserve lent a run of %d bytes with N = %d, want %d and 0", len(tx[i].Buf), tx[i].N, e.Link.Caps().RunBytes)
		}
	}
	return tx
}

func (r *rig) commit(e End, tx []frame.Run) {
	r.t.Helper()
	if err := e.Link.Commit(0, tx); err != nil {
		r.t.Fatalf("Commit: %v", err)
	}
}

// packet is one received packet, copied.
type packet struct {
	data     []byte
	src, dst netip.Addr
	port     uint16
	tos, ttl uint8
}

// idleWaits is how many waits in a row may bring nothing before a test fails.
const idleWaits = 2000

// receive collects n packets.
func (r *rig) receive(e End, n int) []packet {
	r.t.Helper()
	got := r.receiveUpTo(e, n, idleWaits)
	if len(got) != n {
		r.t.Fatalf("received %d packets of %d; counters %+v", len(got), n, e.Link.Counters())
	}
	return got
}

// receiveUpTo collects packets until there are n or idle waits brought nothing.
func (r *rig) receiveUpTo(e End, n, idle int) []packet {
	r.t.Helper()
	var got []packet
	rx := make([]frame.Rx, 16)
	for tries := 0; len(got) < n && tries < idle; {
		m, err := e.Link.Recv(0, rx)
		if err != nil {
			r.t.Fatalf("Recv: %v", err)
		}
		if m == 0 {
			tries++
			if err := e.Link.Wait(0, clock.Time(time.Millisecond)); err != nil {
				r.t.Fatalf("Wait: %v", err)
			}
			continue
		}
		tries = 0
		for i := range rx[:m] {
			got = append(got, split(r.t, &rx[i])...)
		}
		e.Link.Release(rx[:m])
	}
	return got
}

// split cuts a received piece into packets and copies them.
func split(t testing.TB, rx *frame.Rx) []packet {
	t.Helper()
	var got []packet
	if rx.Seg < 0 || rx.Seg != 0 && rx.Seg >= len(rx.Data) {
		t.Errorf("piece of %d bytes with Seg = %d", len(rx.Data), rx.Seg)
	}
	for data := rx.Data; len(data) > 0; {
		n := len(data)
		if rx.Seg > 0 {
			n = min(rx.Seg, n)
		}
		got = append(got, packet{bytes.Clone(data[:n]), rx.Src, rx.Dst, rx.SrcPort, rx.TOS, rx.TTL})
		data = data[n:]
	}
	return got
}

// wanted is what the packets of a run must look like.
func wanted(r *frame.Run) []packet {
	var want []packet
	for i := range r.Segs {
		want = append(want, packet{
			data: bytes.Clone(r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]),
			src:  r.Src, dst: r.Dst, port: r.SrcPort, tos: r.TOS, ttl: r.TTL,
		})
	}
	return want
}

// compare checks packets one by one.
func (s Suite) compare(t testing.TB, got, want []packet) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d packets, want %d", len(got), len(want))
	}
	for i := range got {
		if err := s.same(got[i], want[i]); err != nil {
			t.Fatalf("packet %d of %d: %v", i, len(got), err)
		}
	}
}

func (s Suite) same(got, want packet) error {
	switch {
	case !bytes.Equal(got.data, want.data):
		return fmt.Errorf("%d bytes that differ from the %d sent", len(got.data), len(want.data))
	case got.src != want.src || got.port != want.port:
		return fmt.Errorf("from %v port %d, want %v port %d", got.src, got.port, want.src, want.port)
	case got.dst.IsValid() && got.dst != want.dst:
		return fmt.Errorf("to %v, want %v", got.dst, want.dst)
	case s.Marks && got.tos != want.tos:
		return fmt.Errorf("TOS %#02x, want %#02x", got.tos, want.tos)
	case s.Marks && want.ttl != 0 && got.ttl != want.ttl:
		return fmt.Errorf("TTL %d, want %d", got.ttl, want.ttl)
	}
	return nil
}
