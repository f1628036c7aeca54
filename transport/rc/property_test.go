package rc_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// The properties: over a link that loses, duplicates and reorders up to 30 % of
// what it carries, every work request completes exactly once and in order, bytes
// arrive as an obvious model says, ATOMICs happen exactly once, and when all is
// quiet nothing is in flight.
//
// Both ends post at once. Memory of each end:
//
//	[0, 64)        words that the peer's ATOMICs change
//	[64, zoneRead) what the peer READs; never written
//	the rest       handed out piece by piece: each message has its own source
//	               and its own destination

const (
	zoneRead = 16 << 10
	words    = 8
)

// impair says how a link treats packets; probabilities in percent.
type impair struct {
	loss, dup, reorder int
}

// flying is a packet on the link.
type flying struct {
	at   clock.Time
	seq  int // ties are broken by order
	to   *side
	data packet
}

// action is something that an application does at an instant.
type action struct {
	at clock.Time
	do func(now clock.Time)
}

// world is a connection over an impaired link in virtual time.
type world struct {
	t     *rapid.T
	rng   *rand.Rand
	now   clock.Time
	air   []flying // sorted by at, seq
	seq   int
	to    impair
	acts  []action // sorted by at
	sides [2]*side
	delay time.Duration
}

// side is a node, its link to the peer, and the model of what must happen.
type side struct {
	*node
	peer     *side
	lineFree clock.Time
	brk      int // next free byte of memory

	want     []byte // memory as it must be at the end
	wantSent []ib.WC
	wantRecv []ib.WC
	posted   int
	recvAt   clock.Time // of the last receive
}

func (s *side) alloc(n int) int {
	off := s.brk
	s.brk += (n + 7) &^ 7
	return off
}

// cut returns n bytes from off on as a list of random elements.
func (w *world) cut(s *side, off, n int) []ib.SGE {
	var l []ib.SGE
	for n > 0 && len(l) < 7 {
		k := n
		if w.rng.IntN(3) == 0 {
			k = 1 + w.rng.IntN(n)
		}
		if w.rng.IntN(8) == 0 && len(l) < 6 {
			l = append(l, ib.SGE{LKey: 0xBAD}) // an empty element means nothing
		}
		l = append(l, s.sge(off, k))
		off, n = off+k, n-k
	}
	if n > 0 {
		l[len(l)-1].Length += uint32(n)
	}
	return l
}

// plan is one work request to be posted.
type plan struct {
	side, size int
	op         ib.WROp
	at         clock.Time
}

// size draws the length of a message.
func (w *world) size(op ib.WROp, mtu int) int {
	if op.IsAtomic() {
		return 8
	}
	switch w.rng.IntN(6) {
	case 0:
		return w.rng.IntN(5)
	case 1:
		return w.rng.IntN(64)
	case 2:
		return (1+w.rng.IntN(3))*mtu + w.rng.IntN(3) - 1
	case 3:
		return w.rng.IntN(min(40*mtu, zoneRead-64))
	}
	return w.rng.IntN(2 * mtu)
}

// add schedules one work request of s and what the peer must do for it.
func (w *world) add(pn plan, sigAll bool) {
	s, op, n, at := w.sides[pn.side], pn.op, pn.size, pn.at
	id := uint64(len(s.wantSent)+1)<<32 | uint64(s.posted)
	s.posted++
	p := s.peer
	wr := ib.SendWR{ID: id, Op: op, Imm: w.rng.Uint32()}
	if w.rng.IntN(3) > 0 {
		wr.Flags |= ib.Signaled
	}
	if w.rng.IntN(6) == 0 {
		wr.Flags |= ib.Fence
	}
	if w.rng.IntN(2) == 0 {
		wr.Flags |= ib.Solicited
	}
	wc := ib.WC{ID: id, QPN: qpnA}
	if s == w.sides[1] {
		wc.QPN = qpnB
	}
	switch op {
	case ib.Read:
		src := 64 + w.rng.IntN(zoneRead-64-n+1)
		dst := s.alloc(n)
		wr.SGL, wr.Remote = w.cut(s, dst, n), p.remote(src)
		copy(s.want[dst:], p.buf[src:src+n])
		wc.Op, wc.Bytes = ib.WCRead, uint32(n)
	case ib.CompareSwap, ib.FetchAdd:
		at := 8 * w.rng.IntN(words)
		dst := s.alloc(8)
		wr.SGL, wr.Remote = []ib.SGE{s.sge(dst, 8)}, p.remote(at)
		old := binary.NativeEndian.Uint64(p.want[at:])
		binary.NativeEndian.PutUint64(s.want[dst:], old)
		wr.SwapAdd = w.rng.Uint64()
		wc.Op, wc.Bytes = ib.WCFetchAdd, 8
		if op == ib.FetchAdd {
			binary.NativeEndian.PutUint64(p.want[at:], old+wr.SwapAdd)
		} else {
			wc.Op = ib.WCCompareSwap
			wr.Compare = old
			if w.rng.IntN(3) == 0 {
				wr.Compare = ^old
			} else {
				binary.NativeEndian.PutUint64(p.want[at:], wr.SwapAdd)
			}
		}
	default:
		src := s.alloc(n)
		for i := range n {
			s.buf[src+i] = byte(w.rng.Uint32())
		}
		copy(s.want[src:], s.buf[src:src+n])
		dst := p.alloc(n)
		copy(p.want[dst:], s.buf[src:src+n])
		if n <= 400 && w.rng.IntN(4) == 0 {
			wr.Flags |= ib.Inline
			wr.InlineData = s.buf[src : src+n]
		} else {
			wr.SGL = w.cut(s, src, n)
		}
		wc.Op = ib.WCSend
		if op.IsWrite() {
			wc.Op = ib.WCWrite
			wr.Remote = p.remote(dst)
			if n == 0 {
				wr.Remote = ib.Remote{Addr: 1, RKey: 0xBAD} // nobody looks
			}
		}
		if op != ib.Write {
			rid := uint64(1000 + len(p.wantRecv))
			rwc := ib.WC{ID: rid, Op: ib.WCRecv, QPN: qpnA + qpnB - wc.QPN, SrcQPN: wc.QPN, Bytes: uint32(n)}
			if op == ib.WriteImm {
				rwc.Op = ib.WCRecvImm
			}
			if op.HasImm() {
				rwc.Flags, rwc.Imm = ib.WCWithImm, wr.Imm
			}
			p.wantRecv = append(p.wantRecv, rwc)
			rr := ib.RecvWR{ID: rid, SGL: w.cut(p, dst, n)}
			if op.IsWrite() {
				rr.SGL = nil
			}
			// Receives are consumed in the order in which they are posted.
			p.recvAt = max(p.recvAt, at.Add(time.Duration(w.rng.IntN(300)-150)*time.Microsecond))
			w.at(p.recvAt, func(now clock.Time) { p.recv(now, rr) })
		}
	}
	if sigAll || wr.Flags&ib.Signaled != 0 {
		s.wantSent = append(s.wantSent, wc)
	}
	w.at(at, func(now clock.Time) { s.wr(now, wr) })
}

// at schedules do, after what is scheduled for the same instant.
func (w *world) at(at clock.Time, do func(clock.Time)) {
	w.acts = append(w.acts, action{max(at, 0), do})
}

// send puts a packet of s on the link.
func (w *world) send(s *side, p packet) {
	s.lineFree = max(s.lineFree, w.now).Add(200)
	calm := min(w.sides[0].eng.RetryLeft(), w.sides[1].eng.RetryLeft()) <= 3
	hit := func(percent int) bool { return w.rng.IntN(100) < percent && !calm }
	copies := 1
	if hit(w.to.loss) {
		copies = 0
	}
	if hit(w.to.dup) {
		copies++
	}
	for range copies {
		at := s.lineFree.Add(w.delay)
		if hit(w.to.reorder) {
			at = at.Add(time.Duration(w.rng.IntN(8000)))
		}
		w.seq++
		f := flying{at, w.seq, s.peer, p}
		i, _ := slices.BinarySearchFunc(w.air, f, func(a, b flying) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.seq - b.seq
		})
		w.air = slices.Insert(w.air, i, f)
	}
}

// run lets the world run until it is quiet.
func (w *world) run() {
	for range 400_000 {
		next := clock.Never
		if len(w.air) > 0 {
			next = w.air[0].at
		}
		if len(w.acts) > 0 {
			next = clock.Min(next, w.acts[0].at)
		}
		for _, s := range w.sides {
			next = clock.Min(next, s.eng.Deadline())
			if at := s.eng.SendAt(); at != clock.Never {
				if at = max(at, s.lineFree); at > w.now {
					next = clock.Min(next, at)
				}
			}
		}
		if next == clock.Never {
			return
		}
		w.now = max(w.now, next)
		for len(w.acts) > 0 && w.acts[0].at <= w.now {
			w.acts[0].do(w.now)
			w.acts = w.acts[1:]
		}
		for len(w.air) > 0 && w.air[0].at <= w.now {
			f := w.air[0]
			w.air = w.air[1:]
			f.to.give(w.now, f.data)
		}
		for _, s := range w.sides {
			s.eng.Advance(w.now)
		}
		for _, s := range w.sides {
			for s.eng.SendAt() <= w.now && s.lineFree <= w.now {
				p, ok := s.pull(w.now)
				if !ok {
					if w.to == (impair{}) && s.win.InFlight() == 0 && s.eng.SendAt() <= w.now {
						w.t.Fatalf("%s wants to send and does not", s.name)
					}
					break
				}
				w.send(s, p)
			}
		}
	}
	w.t.Fatalf("wedged: never quiet at %v", time.Duration(w.now))
}

// check compares one side with its model.
func (w *world) check(s *side) {
	if !slices.Equal(s.sent, s.wantSent) {
		w.t.Fatalf("%s: completions\n got %s\nwant %s", s.name, wcs(s.sent), wcs(s.wantSent))
	}
	if !slices.Equal(s.recvd, s.wantRecv) {
		w.t.Fatalf("%s: receives\n got %s\nwant %s", s.name, wcs(s.recvd), wcs(s.wantRecv))
	}
	if !bytes.Equal(s.buf, s.want) {
		i := 0
		for s.buf[i] == s.want[i] {
			i++
		}
		w.t.Fatalf("%s: memory differs at %d: %#x, want %#x", s.name, i, s.buf[i], s.want[i])
	}
	if n := s.win.InFlight(); n != 0 || s.eng.Flight() != 0 {
		w.t.Fatalf("%s: %d bytes in flight in the window, %d in the engine", s.name, n, s.eng.Flight())
	}
	if s.eng.State() != ib.RTS {
		w.t.Fatalf("%s: state %v", s.name, s.eng.State())
	}
}

func wcs(l []ib.WC) string {
	s := ""
	for i := range l {
		s += fmt.Sprintf("\n  %+v", l[i])
	}
	return s
}

var allOps = []ib.WROp{ib.Write, ib.WriteImm, ib.Send, ib.SendImm, ib.Read, ib.CompareSwap, ib.FetchAdd}

// lossy is the property of connections whose messages are mostly of one
// operation.
func lossy(op ib.WROp) func(*rapid.T) {
	return func(t *rapid.T) {
		w := newWorld(t, op, 7)
		w.run()
		for _, s := range w.sides {
			w.check(s)
		}
	}
}

// newWorld draws a connection, its link, and what both ends post.
func newWorld(t *rapid.T, op ib.WROp, rnrRetry uint8) *world {
	mtu := ib.MTU(rapid.IntRange(1, 5).Draw(t, "mtu"))
	o := options{
		mtu: mtu, depth: 64,
		psnA: ib.PSN(rapid.SampledFrom([]int{0xFFFFF0, 0xFFFFFF, 0, 0x7FFFFE, 0x123456}).Draw(t, "psnA")),
		psnB: ib.PSN(rapid.IntRange(0xFFFFE0, 0xFFFFFF).Draw(t, "psnB")),
		rd:   uint8(rapid.SampledFrom([]int{1, 2, 3, 4, 16}).Draw(t, "rd")), timeout: 5, retry: 7, rnrRetry: rnrRetry,
		rnrTimer: uint8(rapid.IntRange(1, 4).Draw(t, "rnrTimer")),
		access:   ib.RemoteAll, window: rapid.Bool().Draw(t, "window"), noCredits: rapid.Bool().Draw(t, "noCredits"),
		lateAck: rapid.Bool().Draw(t, "lateAck"),
		sigAll:  rapid.Bool().Draw(t, "sigAll"),
	}
	w := &world{t: t, delay: 3 * time.Microsecond}
	w.to.loss = rapid.IntRange(0, 30).Draw(t, "loss")
	w.to.dup = rapid.IntRange(0, 30).Draw(t, "dup")
	w.to.reorder = rapid.IntRange(0, 30).Draw(t, "reorder")
	counts := [2]int{rapid.IntRange(1, 10).Draw(t, "postsA"), rapid.IntRange(0, 6).Draw(t, "postsB")}
	o.seed = rapid.Uint64().Draw(t, "seed")
	w.rng = rand.New(rand.NewPCG(o.seed, 1))
	var plans []plan
	o.mem = zoneRead
	for i, n := range counts {
		at := clock.Time(0)
		for range n {
			if w.rng.IntN(3) == 0 {
				at = at.Add(time.Duration(w.rng.IntN(100_000)))
			}
			use := op
			if w.rng.IntN(3) == 0 {
				use = allOps[w.rng.IntN(len(allOps))]
			}
			p := plan{i, w.size(use, mtu.Bytes()), use, at}
			plans = append(plans, p)
			o.mem += p.size + 8
		}
	}
	a, b := connect(t, o)
	w.sides = [2]*side{{node: a}, {node: b}}
	w.sides[0].peer, w.sides[1].peer = w.sides[1], w.sides[0]
	for _, s := range w.sides {
		for i := 0; i < zoneRead; i += 8 {
			binary.LittleEndian.PutUint64(s.buf[i:], w.rng.Uint64())
		}
		s.brk = zoneRead
		s.want = bytes.Clone(s.buf)
	}
	for _, p := range plans {
		w.add(p, o.sigAll)
	}
	w.order()
	return w
}

// order sorts the actions by time.
func (w *world) order() {
	slices.SortStableFunc(w.acts, func(a, b action) int { return int(a.at - b.at) })
}

// TestLossy runs that property for each operation.
// rule: loss, duplication and reordering
func TestLossy(t *testing.T) {
	for _, op := range allOps {
		t.Run(op.String(), func(t *testing.T) { rapid.Check(t, lossy(op)) })
	}
}

// TestLossyFailures: the same, and at some moment one end fails: its queue pair
// goes to Error or Reset, a region disappears, a right is withdrawn, or a work
// request is wrong. What completes does so once and in order: successes, then
// at most one error that fits, then flushes; nothing stays in flight, and both
// ends become quiet.
// rule: completions keep coming after failures
// rule: in-flight limit
func TestLossyFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.SampledFrom(allOps).Draw(t, "op"), 6)
		kind := rapid.SampledFrom([]string{"error", "reset", "region", "access", "lkey", "rkey"}).Draw(t, "failure")
		who := w.sides[rapid.IntRange(0, 1).Draw(t, "who")]
		when := clock.Time(rapid.IntRange(0, 400_000).Draw(t, "when"))
		w.at(when, func(now clock.Time) { w.fail(who, kind, now) })
		w.order()
		w.run()
		for _, s := range w.sides {
			w.checkFailed(s)
		}
	})
}

// fail makes something go wrong.
func (w *world) fail(s *side, kind string, now clock.Time) {
	switch kind {
	case "error":
		s.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
	case "reset":
		s.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
	case "region":
		s.mem.Deregister(s.mr)
	case "access":
		s.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrAccess})
	case "lkey", "rkey":
		bad := ib.SendWR{ID: 1 << 60, Op: allOps[w.rng.IntN(len(allOps))], SGL: []ib.SGE{s.sge(0, 8)}, Remote: s.peer.remote(0)}
		bad.SGL[0].LKey++
		if kind == "rkey" {
			bad.SGL[0].LKey--
			bad.Remote.RKey++
		}
		if s.sq.Free() > 0 && s.eng.State() == ib.RTS {
			s.wr(now, bad)
		}
	}
}

// checkFailed checks the completions of one side of a connection that may have
// failed.
func (w *world) checkFailed(s *side) {
	for _, list := range [][]ib.WC{s.sent, s.recvd} {
		last, failed := int64(-1), false
		for i := range list {
			wc := &list[i]
			if id := int64(wc.ID & 0xFFFFFFFF); wc.ID != 1<<60 {
				if id <= last {
					w.t.Fatalf("%s: out of order%s", s.name, wcs(list))
				}
				last = id
			}
			switch {
			case wc.Status == ib.Success && failed:
				w.t.Fatalf("%s: success after a failure%s", s.name, wcs(list))
			case wc.Status != ib.Success && wc.Status != ib.WRFlushErr && failed:
				w.t.Fatalf("%s: a second error%s", s.name, wcs(list))
			}
			failed = failed || wc.Status != ib.Success
		}
		if failed && s.eng.State() != ib.Error && s.eng.State() != ib.Reset {
			w.t.Fatalf("%s: failed, but in %v%s", s.name, s.eng.State(), wcs(list))
		}
	}
	if s.eng.State() == ib.Error && (s.sq.Free() != s.sq.Depth() || s.rq.Posted() != 0) {
		w.t.Fatalf("%s: %d sends and %d receives left in Error", s.name, s.sq.Depth()-s.sq.Free(), s.rq.Posted())
	}
	if n := s.win.InFlight(); n != 0 || s.eng.Flight() != 0 {
		w.t.Fatalf("%s: %d bytes in flight", s.name, n)
	}
	if s.eng.Deadline() != clock.Never || s.eng.SendAt() != clock.Never {
		w.t.Fatalf("%s: not quiet", s.name)
	}
}
