package linktest

import (
	"math"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
)

// lost is everything that a link says it did not send or not keep.
func lost(c link.Counters) uint64 {
	return c.RxDropped + c.RxForeign + c.TxDropped + c.TxTooLong + c.TxRefused + c.TxNoPort + c.TxUnresolved
}

// givenBack reserves and gives back far more runs than a link holds.
func (s Suite) givenBack(t *testing.T) {
	r := s.rig(t)
	for range 1000 {
		r.commit(r.a, r.reserve(r.a, 8))
	}
	s.exchange(r, r.a, r.b, r.source(r.a, r.b, 0xC001), 1)
	if n := lost(r.a.Link.Counters()); n != 0 {
		t.Errorf("%d packets counted as lost", n)
	}
}

// reserveBounded takes runs without giving any back.
func (s Suite) reserveBounded(t *testing.T) {
	r := s.rig(t)
	var held []frame.Run
	tx := make([]frame.Run, 16)
	for len(held) < 1<<14 {
		n := r.a.Link.Reserve(tx)
		if n == 0 {
			break
		}
		held = append(held, tx[:n]...)
	}
	if len(held) == 1<<14 {
		t.Errorf("Reserve lent %d runs and more", len(held))
	}
	r.commit(r.a, held)
	s.exchange(r, r.a, r.b, r.source(r.a, r.b, 0xC001), 1)
}

// nonsense commits runs whose fields contradict each other or name nobody:
// each is dropped and counted, and the link works on.
func (s Suite) nonsense(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	c := r.a.Link.Caps()
	for name, spoil := range map[string]func(*frame.Run){
		"no segment length":   func(x *frame.Run) { x.Seg = 0 },
		"negative segment":    func(x *frame.Run) { x.Seg = -1 },
		"no segments":         func(x *frame.Run) { x.Segs = 0 },
		"negative segments":   func(x *frame.Run) { x.Segs = -3 },
		"too few segments":    func(x *frame.Run) { x.Seg = 8 },
		"too many segments":   func(x *frame.Run) { x.Segs = 2 },
		"beyond the limit":    func(x *frame.Run) { x.Seg, x.Segs, x.N = 16, c.Segments+1, 16*(c.Segments+1) },
		"longer than buffer":  func(x *frame.Run) { x.N, x.Seg = len(x.Buf)+1, len(x.Buf)+1 },
		"negative length":     func(x *frame.Run) { x.N = -1 },
		"huge segment count":  func(x *frame.Run) { x.Seg, x.Segs = math.MaxInt, math.MaxInt },
		"source not ours":     func(x *frame.Run) { x.Src = netip.MustParseAddr("203.0.113.9") },
		"no source":           func(x *frame.Run) { x.Src = netip.Addr{} },
		"destination invalid": func(x *frame.Run) { x.Dst = netip.Addr{} },
		"families do not match": func(x *frame.Run) {
			x.Dst = netip.MustParseAddr("2001:db8::9")
			if x.Src.Is6() {
				x.Dst = netip.MustParseAddr("203.0.113.9")
			}
		},
	} {
		if s.AnyAddress && name == "source not ours" {
			continue
		}
		before := lost(r.a.Link.Counters())
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, shape{64, 1, 64}, 5)
		spoil(&tx[0])
		r.commit(r.a, tx)
		if got := lost(r.a.Link.Counters()); got == before {
			t.Errorf("%s: not counted", name)
		}
	}
	s.exchange(r, r.a, r.b, port, 1)
}

// tooLong sends a packet that no path of the link carries.
func (s Suite) tooLong(t *testing.T) {
	r := s.rig(t)
	c := r.a.Link.Caps()
	n := c.MTU + 1
	port := r.source(r.a, r.b, 0xC001)
	tx := r.reserve(r.a, 1)
	fill(&tx[0], r.a, r.b, port, shape{n, 1, n}, 5)
	r.commit(r.a, tx)
	if got := r.a.Link.Counters().TxTooLong; got != 1 {
		t.Errorf("TxTooLong = %d, want 1", got)
	}
	s.exchange(r, r.a, r.b, port, 1)
}

// overflow sends far more than the other end can hold while it does not look.
// What arrives is a subsequence, in order; the rest is counted somewhere; and
// the link works on.
func (s Suite) overflow(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	sh := shape{1084, 16, 1084}
	if r.a.Link.Caps().Segments < sh.segs {
		sh.segs = 1
	}
	sent := 0
	for i := range 100 {
		tx := make([]frame.Run, 8)
		n := r.a.Link.Reserve(tx)
		for j := range tx[:n] {
			fill(&tx[j], r.a, r.b, port, sh, byte(i))
			sent += sh.segs
		}
		r.commit(r.a, tx[:n])
	}
	const quiet = 50
	got := len(r.receiveUpTo(r.b, sent, quiet))
	// What still waited in the sender goes out now, or is given up.
	got += len(r.receiveUpTo(r.b, sent-got, quiet))
	gone := lost(r.b.Link.Counters())
	if r.a.Link != r.b.Link {
		gone += lost(r.a.Link.Counters())
	}
	if got > sent || got == 0 {
		t.Errorf("received %d of %d", got, sent)
	}
	// A system may count the packets of a merged piece as one.
	if missing := sent - got; s.Lossless && (int(gone) > missing || int(gone) < missing/sh.segs) {
		t.Errorf("received %d and counted %d as lost, of %d", got, gone, sent)
	}
	s.exchange(r, r.a, r.b, port, 1)
}
