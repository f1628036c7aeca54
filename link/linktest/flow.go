package linktest

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
)

// shapesFor lists run forms that a link with the end's limits can send: one
// packet and many, last ones of each length modulo 4, the largest.
func shapesFor(e End) []shape {
	c := e.Link.Caps()
	all := []shape{
		{16, 1, 16},
		{48, 1, 48},
		{4156, 1, 4156},
		{1084, 1, 1084},
		{20, 1, 19},
		{20, 1, 18},
		{20, 1, 17},
		{16, 2, 16},
		{1084, 7, 1084},
		{1084, 7, 16},
		{1084, 7, 17},
		{1084, 7, 18},
		{1084, 7, 1083},
		{96, 64, 96},
		{4156, 15, 4156},
		{4156, 15, 20},
		{276, 64, 20},
		{1084, 60, 1084},
	}
	var fit []shape
	for _, s := range all {
		if s.seg <= c.MTU && s.segs <= c.Segments && s.bytes() <= c.RunBytes {
			fit = append(fit, s)
		}
	}
	return fit
}

// shapes sends a run of each form, alone: bytes, lengths, addresses and marks
// arrive.
func (s Suite) shapes(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC0DE)
	for i, sh := range shapesFor(r.a) {
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, sh, byte(i))
		tx[0].TOS, tx[0].TTL = uint8(i*37), uint8(1+i)
		if i%5 == 0 {
			tx[0].TTL = 0
		}
		want := wanted(&tx[0])
		r.commit(r.a, tx)
		t.Run(fmt.Sprintf("%dx%d+%d", sh.segs, sh.seg, sh.last), func(t *testing.T) {
			s.compare(t, r.receive(r.b, len(want)), want)
		})
	}
}

// batches commits several runs at once, empty ones among them.
func (s Suite) batches(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC001)
	shapes := shapesFor(r.a)
	for round := range 20 {
		tx := r.reserve(r.a, 12)
		var want []packet
		bytes := 0
		for i := range tx {
			sh := shapes[(round*7+i*3)%len(shapes)]
			if bytes += sh.bytes(); i%4 == 3 || bytes > 96<<10 {
				continue // given back empty
			}
			fill(&tx[i], r.a, r.b, port, sh, byte(round+i))
			want = append(want, wanted(&tx[i])...)
		}
		r.commit(r.a, tx)
		s.compare(t, r.receive(r.b, len(want)), want)
	}
}

// flows interleaves source ports: order holds within each.
func (s Suite) flows(t *testing.T) {
	r := s.rig(t)
	ports := []uint16{r.source(r.a, r.b, 0xC111), r.source(r.a, r.b, 0xC222), r.source(r.a, r.b, 0xC333)}
	shapes := shapesFor(r.a)
	want := map[uint16][]packet{}
	total := 0
	tx := r.reserve(r.a, 16)
	bytes := 0
	for i := range tx {
		sh := shapes[i%len(shapes)]
		if bytes += sh.bytes(); bytes > 128<<10 {
			break
		}
		port := ports[i%len(ports)]
		fill(&tx[i], r.a, r.b, port, sh, byte(i))
		want[port] = append(want[port], wanted(&tx[i])...)
		total += tx[i].Segs
	}
	r.commit(r.a, tx)
	got := map[uint16][]packet{}
	for _, p := range r.receive(r.b, total) {
		got[p.port] = append(got[p.port], p)
	}
	for port := range want {
		s.compare(t, got[port], want[port])
	}
}

// bothWays answers every packet.
func (s Suite) bothWays(t *testing.T) {
	r := s.rig(t)
	there, back := r.source(r.a, r.b, 0xC444), r.source(r.b, r.a, 0xC444)
	for i := range 50 {
		s.exchange(r, r.a, r.b, there, byte(i))
		s.exchange(r, r.b, r.a, back, byte(i))
	}
}

// exchange sends one packet and checks that it arrives.
func (s Suite) exchange(r *rig, from, to End, port uint16, tag byte) {
	r.t.Helper()
	tx := r.reserve(from, 1)
	fill(&tx[0], from, to, port, shape{64, 1, 64}, tag)
	want := wanted(&tx[0])
	r.commit(from, tx)
	s.compare(r.t, r.receive(to, 1), want)
}

// lent holds what was received while more traffic passes the link.
func (s Suite) lent(t *testing.T) {
	r := s.rig(t)
	port := r.source(r.a, r.b, 0xC555)
	back := r.source(r.b, r.a, 0xC556)
	tx := r.reserve(r.a, 1)
	fill(&tx[0], r.a, r.b, port, shape{200, 1, 200}, 7)
	want := wanted(&tx[0])
	r.commit(r.a, tx)
	rx := make([]frame.Rx, 1)
	r.await(r.b, rx)
	// The other direction, and more in this one, must not touch what is lent.
	for i := range 40 {
		s.exchange(r, r.b, r.a, back, byte(i))
		tx := r.reserve(r.a, 1)
		fill(&tx[0], r.a, r.b, port, shape{200, 1, 200}, 99)
		r.commit(r.a, tx)
	}
	s.compare(t, split(t, &rx[0]), want)
	r.b.Link.Release(rx)
	r.receive(r.b, 40)
}

// await receives exactly one piece into rx, which stays lent.
func (r *rig) await(e End, rx []frame.Rx) {
	r.t.Helper()
	for range idleWaits {
		n, err := e.Link.Recv(0, rx)
		if err != nil {
			r.t.Fatalf("Recv: %v", err)
		}
		if n == 1 {
			return
		}
		e.Link.Release(rx[:0])
		if err := e.Link.Wait(0, millisecond); err != nil {
			r.t.Fatalf("Wait: %v", err)
		}
	}
	r.t.Fatal("nothing received")
}
