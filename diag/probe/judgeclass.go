package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// classes says what became of DSCP and ECN.
func (p *prober) classes(d *Direction, rec *record, to Host) {
	out := rec.out()
	dscp, ecn := map[uint8]*CodePoint{}, map[uint8]*CodePoint{}
	count := func(m map[uint8]*CodePoint, sent uint8, t *trial, as uint8) {
		c := m[sent]
		if c == nil {
			c = &CodePoint{Sent: sent, As: []int{}}
			m[sent] = c
		}
		c.Tries++
		if p.heard(t, to) {
			c.Arrived++
			c.As = append(c.As, int(as))
		}
	}
	for i := range rec.class {
		t := &rec.class[i]
		if !t.left() && !out {
			continue
		}
		sent, got := ip.TOS(t.probe.TOS), ip.TOS(0)
		if t.seen != nil {
			got = ip.TOS(t.seen.TOS)
		}
		if sent.ECN() == ip.ECT0 {
			count(dscp, sent.DSCP(), t, got.DSCP())
		}
		if sent.DSCP() == p.cfg.DSCP {
			count(ecn, uint8(sent.ECN()), t, uint8(got.ECN()))
		}
	}
	d.DSCP, d.ECN = sorted(dscp), sorted(ecn)
	for i := range rec.reach {
		t := &rec.reach[i]
		if !t.passed() {
			continue
		}
		d.Marked.Whole++
		if ip.TOS(t.seen.TOS).ECN() == ip.CE {
			d.Marked.Part++
		}
	}
}

func sorted(m map[uint8]*CodePoint) []CodePoint {
	var out []CodePoint
	for _, c := range m {
		slices.Sort(c.As)
		c.As = slices.Compact(c.As)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b CodePoint) int { return cmp.Compare(a.Sent, b.Sent) })
	return out
}

// became reports whether any packet of c arrived with another value, and which.
func (c *CodePoint) became() (as int, changed bool) {
	for _, v := range c.As {
		if v != int(c.Sent) {
			return v, true
		}
	}
	return 0, false
}

// Limits of what counts as a rate limit: dispersion in each train that the
// sender did not make itself.
const (
	slowRate    = 100_000_000 // bit/s
	slowFactor  = 4
	minArrivals = 8
)

// speed is how quickly a train arrived.
type speed struct {
	bps  int64
	slow bool // far slower than it was sent, and than most networks
	told bool // the sender was quick enough to tell, and enough arrived
}

// speedOf judges one train.
func speedOf(train []trial) speed {
	var tx, rx []int64
	size := 0
	for i := range train {
		t := &train[i]
		if !t.left() {
			continue
		}
		size = t.probe.Size
		tx = append(tx, t.sent.At)
		if t.passed() {
			rx = append(rx, t.seen.At)
		}
	}
	if len(rx) < 2 {
		return speed{told: true} // it is loss that speaks here
	}
	slices.Sort(rx)
	span := max(rx[len(rx)-1]-rx[0], 1)
	// A host that stood for a moment makes one gap; what limits a rate spaces all packets.
	gap := int64(0)
	for i := range len(rx) - 1 {
		gap = max(gap, rx[i+1]-rx[i])
	}
	steady := max(span-gap, 1)
	own := slices.Max(tx) - slices.Min(tx)
	s := speed{bps: int64(len(rx)-1) * int64(size) * 8 * int64(time.Second) / span}
	quick := s.bps >= slowRate
	limited := int64(len(rx)-2)*int64(size)*8*int64(time.Second)/steady < slowRate
	s.slow = !quick && limited && len(rx) >= minArrivals && steady/slowFactor >= own
	s.told = quick || s.slow || len(rx) < minArrivals
	return s
}

// burst says what happens to trains.
func (d *Direction) burst(rec *record, size int, heard func(*trial) bool) {
	b, out := &d.Burst, rec.out()
	slow, quick := 0, 0
	for _, train := range rec.trains {
		b.Trains++
		b.Packets = size
		for i := range train {
			t := &train[i]
			b.Size = t.probe.Size
			if !t.left() && !out {
				continue
			}
			if t.sent.Err != "" {
				b.Local = t.sent.Err
			}
			b.Sent++
			if heard(t) {
				b.Seen++
			}
		}
		s := speedOf(train)
		b.Rate = max(b.Rate, s.bps)
		switch {
		case s.slow:
			slow++
		case s.told:
			quick++
		}
	}
	b.Limited = slow >= 2 && quick == 0
}
