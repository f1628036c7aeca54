package theory_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

const (
	us = int64(1e6) // ps
	ns = int64(1e3)
)

// 32 hosts, 4 leaves, 8 spines, from leaf to leaf: four links of 100 Gb/s and 1 us.
func t32(tick int64) theory.Path {
	p := theory.Path{Tick: tick}
	for range 4 {
		p.Hops = append(p.Hops, theory.Hop{Rate: 100e9, Delay: us})
	}
	return p
}

var (
	hpcc  = theory.Packets{Payload: 1000, Header: 48}
	htsim = theory.Packets{Payload: 1000, Header: 64}
)

func TestSerialise(t *testing.T) {
	for _, c := range []struct{ bytes, rate, want int64 }{
		{64, 400e9, 1280},       // 1.28 ns
		{1048, 100e9, 83840},    // 83.84 ns, and 83 in HPCC's simulator
		{1048, 400e9, 20960},    // 20.96 ns
		{60, 100e9, 4800},       // an ACK
		{1500, 10e9, 1200 * ns}, // 12,000 bits at 10 bits a ns
		{1, 3e9, 2667},          // 2666.67, up
		{0, 1, 0},
		{1, 0, theory.Never},
		{-1, 1, theory.Never},
		{1 << 60, 1, theory.Never},
	} {
		equal(t, "Serialise", theory.Serialise(c.bytes, c.rate), c.want)
	}
}

func TestPackets(t *testing.T) {
	for _, c := range []struct{ size, count, last, wire int64 }{
		{0, 1, 48, 48},
		{1, 1, 49, 49},
		{1000, 1, 1048, 1048},
		{1001, 2, 49, 1097},
		{25e6, 25000, 1048, 26.2e6},
	} {
		equal(t, "Count", hpcc.Count(c.size), c.count)
		equal(t, "Last", hpcc.Last(c.size), c.last)
		equal(t, "Wire", hpcc.Wire(c.size), c.wire)
	}
	near(t, "Goodput", hpcc.Goodput(100e9), 100e9*1000/1048, 1e-15)
}

// The lone 25 MB flow as HPCC's simulator ran it, which cuts every
// transmission to whole ns: 25,003 x 83 ns + 8 us, and 4 x 4 ns of the ACK.
func TestHPCCLoneFlow(t *testing.T) {
	equal(t, "completion", t32(ns).Completion(hpcc, 25e6, 60)/ns, 2083265)
	equal(t, "by hand", 25003*83+8000+4*4, 2083265)
	equal(t, "standalone", t32(0).Standalone(hpcc, 25e6), 2104320)
	if s := theory.Slowdown(2083265, 2104320); s != 1 {
		t.Errorf("slowdown %g; fct_analysis shows at least 1", s)
	}
	// Its goodput is 96.0 Gb/s, where exact links would give 95.4.
	printed(t, "goodput", 25e6*8/2083.265e3, "96.0")
	printed(t, "exact goodput", hpcc.Goodput(100), "95.4")
}

// Standalone = base_rtt + (size + ceil(size/payload)*header)*8/bottleneck,
// base_rtt = 2*sum(delay) + sum over hops of a payload's transmission.
func TestStandalone(t *testing.T) {
	p := theory.Path{Hops: []theory.Hop{{Rate: 25e9, Delay: us}, {Rate: 100e9, Delay: 2 * us}, {Rate: 40e9, Delay: us}}}
	// 2*4000 ns + 320 + 80 + 200 ns + (2500 + 3*48) B * 8 / 25 Gb/s = 846.08 ns
	equal(t, "standalone", p.Standalone(hpcc, 2500), 8000+600+846)
	equal(t, "an error", theory.Path{}.Standalone(hpcc, 1), theory.Never)
}

func TestPercentileIndex(t *testing.T) {
	for _, c := range []struct {
		n    int
		p    float64
		want int
	}{{0, .5, -1}, {1, .99, 0}, {100, .5, 50}, {100, .99, 99}, {10, 1, 9}, {19, .95, 18}} {
		if got := theory.PercentileIndex(c.n, c.p); got != c.want {
			t.Errorf("PercentileIndex(%d, %g) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

// Base FCT = sum(delay) + sum_hops(pkt tx) + (n-1) * pkt tx(bottleneck).
func TestDeliveryFormula(t *testing.T) {
	p := theory.Path{Hops: []theory.Hop{{Rate: 100e9, Delay: us}, {Rate: 25e9, Delay: 500 * ns}, {Rate: 40e9, Delay: us}}}
	tx := func(rate int64) int64 { return 1048 * 8 * 1000 / (rate / 1e9) }
	want := 2500*ns + tx(100e9) + tx(25e9) + tx(40e9) + 9*tx(25e9)
	equal(t, "delivery", p.Delivery(hpcc, 10000), want)
	// Cut-through: beyond the first link only 64 B of each packet, unless the
	// next link is faster: it then ends with the tail.
	p.CutThrough = 64
	head := 64 * 8 * int64(1000) / 100
	equal(t, "cut-through", p.Delivery(hpcc, 10000), head+10*tx(25e9)+2500*ns)
}

// The recurrences over hops equal the obvious loop over packets and hops.
func TestDeliveryEqualsPacketByPacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rates := []int64{10e9, 25e9, 40e9, 100e9, 400e9, 7e9}
		p := theory.Path{
			CutThrough: rapid.SampledFrom([]int64{0, 64, 500, 5000}).Draw(t, "cut"),
			Tick:       rapid.SampledFrom([]int64{0, 1000}).Draw(t, "tick"),
		}
		for range rapid.IntRange(1, 6).Draw(t, "hops") {
			p.Hops = append(p.Hops, theory.Hop{
				Rate:  rapid.SampledFrom(rates).Draw(t, "rate"),
				Delay: rapid.Int64Range(0, 3*us).Draw(t, "delay"),
			})
		}
		k := theory.Packets{Payload: rapid.Int64Range(1, 4096).Draw(t, "payload"), Header: rapid.Int64Range(0, 100).Draw(t, "header")}
		size := rapid.Int64Range(0, 30*k.Payload).Draw(t, "size")
		if got, want := p.Delivery(k, size), slowDelivery(p, k, size); got != want {
			t.Fatalf("%+v %+v %d: %d, packet by packet %d", p, k, size, got, want)
		}
	})
}

func slowDelivery(p theory.Path, k theory.Packets, size int64) int64 {
	tx := func(h int, bytes int64) int64 {
		if p.Tick > 1 {
			v := bytes * 8 * 1000 / (p.Hops[h].Rate / 1e9)
			return v - v%p.Tick
		}
		return theory.Serialise(bytes, p.Hops[h].Rate)
	}
	free := make([]int64, len(p.Hops)) // when each transmitter is
	var at int64
	for i := range k.Count(size) {
		bytes := k.Full()
		if i == k.Count(size)-1 {
			bytes = k.Last(size)
		}
		var ready, tail int64
		for h, hop := range p.Hops {
			start := max(ready, free[h])
			free[h] = max(start+tx(h, bytes), tail)
			head := bytes
			if p.CutThrough > 0 {
				head = min(head, p.CutThrough)
			}
			ready, tail = start+tx(h, head)+hop.Delay, free[h]+hop.Delay
			if p.CutThrough == 0 {
				ready = tail
			}
		}
		at = tail
	}
	return at
}

func TestPathErrors(t *testing.T) {
	for _, p := range []theory.Path{
		{},
		{Hops: []theory.Hop{{Rate: 0}}},
		{Hops: []theory.Hop{{Rate: 1, Delay: -1}}},
		{Hops: []theory.Hop{{Rate: 1}}, CutThrough: -1},
		{Hops: []theory.Hop{{Rate: 1}}, Tick: -1},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
		equal(t, "delivery", p.Delivery(hpcc, 1), theory.Never)
		equal(t, "incast", theory.Incast{Senders: 2, Size: 1, Packets: hpcc, Path: p}.LastDelivery(), theory.Never)
		equal(t, "queue", theory.Incast{Senders: 2, Size: 1, Packets: hpcc, Path: p}.PeakQueue(), theory.Never)
	}
	equal(t, "no payload", t32(0).Delivery(theory.Packets{}, 1), theory.Never)
	equal(t, "no payload", theory.Packets{}.Count(5), 1)
	equal(t, "too long", theory.Path{Hops: []theory.Hop{{Rate: 1}}}.Delivery(hpcc, 1e15), theory.Never)
}
