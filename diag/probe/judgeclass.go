package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// classes says what became of DSCP and ECN.
func (p *prober) classes(d *Direction, rec *record) {
	dscp, ecn := map[uint8]*CodePoint{}, map[uint8]*CodePoint{}
	count := func(m map[uint8]*CodePoint, sent uint8, t *trial, as uint8) {
		c := m[sent]
		if c == nil {
			c = &CodePoint{Sent: sent, As: []int{}}
			m[sent] = c
		}
		c.Tries++
		if t.passed() {
			c.Arrived++
			c.As = append(c.As, int(as))
		}
	}
	for i := range rec.class {
		t := &rec.class[i]
		if t.sent.Err != "" && t.sent.Err != localQueue {
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

// burst says what happens to trains.
func (d *Direction) burst(rec *record, size int) {
	b := &d.Burst
	b.Limited = len(rec.trains) > 0
	for _, train := range rec.trains {
		b.Trains++
		b.Packets = size
		var tx, rx []int64
		for i := range train {
			t := &train[i]
			b.Size = t.probe.Size
			if t.sent.Err != "" && t.sent.Err != localQueue {
				continue
			}
			if t.sent.Err == localQueue {
				b.Local = localQueue
			}
			b.Sent++
			tx = append(tx, t.sent.At)
			if t.passed() {
				b.Seen++
				rx = append(rx, t.seen.At)
			}
		}
		if len(rx) < minArrivals {
			b.Limited = false
			continue
		}
		span := slices.Max(rx) - slices.Min(rx)
		own := slices.Max(tx) - slices.Min(tx)
		rate := int64(len(rx)-1) * int64(b.Size) * 8 * int64(time.Second) / max(span, 1)
		b.Rate = max(b.Rate, rate)
		if rate >= slowRate || span < slowFactor*own {
			b.Limited = false
		}
	}
}
