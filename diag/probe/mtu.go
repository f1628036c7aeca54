package probe

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"time"
)

// roceMTUs are the path MTUs that a queue pair can have (IBA vol.1 11.2.5).
var roceMTUs = [...]int{256, 512, 1024, 2048, 4096}

// roceHeaders is the most that a packet with payload has besides the IP
// header: UDP, BTH, RETH, immediate data, ICRC.
const roceHeaders = udpLen + 12 + 16 + 4 + 4

// linuxHeaders is what Linux takes off an interface's MTU before it picks the
// active MTU of a RoCE port (a GRH, UDP, BTH, the largest extended headers,
// ICRC), whatever the family.
const linuxHeaders = 96

// packetFor returns the largest IP packet of a queue pair with a path MTU.
func packetFor(roce int, a netip.Addr) int { return ipHeader(a) + roceHeaders + roce }

// roceIn returns the largest path MTU whose packets fit n bytes, 0 if none.
func roceIn(n int, a netip.Addr) int {
	best := 0
	for _, m := range roceMTUs {
		if packetFor(m, a) <= n {
			best = m
		}
	}
	return best
}

// activeMTU returns the active MTU of a RoCE port on an interface of that MTU,
// 0 if it carries none.
func activeMTU(netdev int) int {
	best := 0
	for _, m := range roceMTUs {
		if m+linuxHeaders <= netdev {
			best = m
		}
	}
	return best
}

// pathMTU is the search on one path: lo passed, hi did not; hi is 0 when the
// largest passed.
type pathMTU struct{ lo, hi int }

const (
	mtuTries  = 3
	mtuMost   = 40 // tries where packets of any size are lost
	mtuPoints = 7
	mtuRounds = 6
	// missed is the probability that all tries of what passes are lost.
	missed = 1e-6
	// slowInterval is the pause between packets that are tried again, at most
	// slowTime in all.
	slowInterval = 50 * time.Millisecond
	slowTime     = 6 * time.Second
)

// findMTU searches the largest packet that passes, on every path at once. What
// did not pass is tried once more, slowly: a policer that counts bytes drops
// large packets that come close together.
func (w *way) findMTU(ctx context.Context, p *prober, netdev int) error {
	if netdev == 0 {
		netdev = 1500
	}
	top := min(netdev, MaxSize) &^ 3
	m := make([]pathMTU, p.cfg.Paths)
	for i := range w.rec.reach {
		if t := &w.rec.reach[i]; t.whole() {
			m[t.probe.Path] = pathMTU{lo: smallSize, hi: top + 4}
			if top <= smallSize {
				m[t.probe.Path].hi = 0
			}
		}
	}
	w.rec.mtus = m
	tries := triesFor(w.rec.reach)
	if err := w.searchMTU(ctx, p, m, top, tries, w.interval); err != nil {
		return err
	}
	// Large packets may be lost more often than small ones: those that sometimes pass say
	// how often what does not has to be tried.
	tries = max(tries, triesFor(large(w.rec.sized, m)))
	w.rec.sized = nil
	var plan []Probe
	for range tries {
		for path := range m {
			if m[path].hi > 0 {
				plan = append(plan, Probe{Path: uint8(path), TOS: w.rec.reach[0].probe.TOS, Size: min(m[path].hi, top)})
			}
		}
	}
	if len(plan) == 0 {
		return nil
	}
	slow := max(w.interval, min(slowInterval, slowTime/time.Duration(len(plan))))
	got, err := w.run(ctx, plan, slow)
	if err != nil {
		return err
	}
	w.countCut(got)
	for i := range got {
		if t := &got[i]; t.whole() {
			m[t.probe.Path] = pathMTU{lo: t.probe.Size, hi: top + 4}
			if t.probe.Size >= top {
				m[t.probe.Path].hi = 0
			}
		}
	}
	return w.searchMTU(ctx, p, m, top, tries, slow)
}

// large are the trials of sizes that pass, the upper half of them.
func large(all []trial, m []pathMTU) []trial {
	var out []trial
	for i := range all {
		if lo := m[all[i].probe.Path].lo; all[i].probe.Size <= lo && all[i].probe.Size > lo/2 {
			out = append(out, all[i])
		}
	}
	return out
}

func (w *way) countCut(got []trial) {
	for i := range got {
		if t := &got[i]; t.passed() && t.seen.Cut > 0 {
			w.rec.cut++
		}
	}
}

// triesFor says how often a packet is tried, by how many are lost of those that
// are small.
func triesFor(reach []trial) int {
	sent, lost := map[uint8]int{}, map[uint8]int{}
	for i := range reach {
		t := &reach[i]
		sent[t.probe.Path]++
		if !t.passed() {
			lost[t.probe.Path]++
		}
	}
	tries := mtuTries
	for path, n := range lost {
		if n < sent[path] { // else nothing passes there
			tries = max(tries, min(triesAt(float64(n)/float64(sent[path])), mtuMost))
		}
	}
	return tries
}

// triesAt is how many tries it takes until one arrives, but for missed, where a
// part of all packets, below 1, is lost.
func triesAt(lost float64) int {
	if lost <= missed {
		return 1
	}
	return int(math.Ceil(math.Log(missed) / math.Log(lost)))
}

// searchMTU goes closer and closer: the interface's MTU, then the sizes that
// are common, then those between.
func (w *way) searchMTU(ctx context.Context, p *prober, m []pathMTU, top, tries int, interval time.Duration) error {
	for round := range mtuRounds {
		var plan []Probe
		for path := range m {
			for _, size := range m[path].candidates(round, top, p.r.Address, w.rec.notices) {
				plan = append(plan, Probe{Path: uint8(path), TOS: w.rec.reach[0].probe.TOS, Size: size})
			}
		}
		if len(plan) == 0 {
			return nil
		}
		// Tries of one size far apart: losses come together.
		all := slices.Repeat(plan, tries)
		for i := range tries {
			p.mix(all[i*len(plan) : (i+1)*len(plan)])
		}
		got, err := w.run(ctx, all, interval)
		if err != nil {
			return err
		}
		narrow(m, got, top)
		w.countCut(got)
		w.rec.sized = append(w.rec.sized, got...)
	}
	return nil
}

// candidates returns the sizes that the next round tries on a path.
func (m pathMTU) candidates(round, top int, a netip.Addr, said []Notice) []int {
	if m.hi <= m.lo+4 {
		return nil // found, or nothing passes on this path
	}
	if round == 0 {
		return []int{top}
	}
	var all []int
	if round == 1 {
		for _, r := range roceMTUs {
			all = append(all, packetFor(r, a))
		}
		all = append(all, 576, 1280, 1400, 1440, 1500, 4200, 9000)
	} else {
		for i := range mtuPoints {
			all = append(all, m.lo+(m.hi-m.lo)*(i+1)/(mtuPoints+1))
		}
	}
	for _, n := range said {
		if n.What == tooBig {
			all = append(all, n.MTU, n.MTU+4)
		}
	}
	for i := range all {
		all[i] &^= 3
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(n int) bool { return n <= m.lo || n >= m.hi || n > top })
}

// narrow learns from a round.
func narrow(m []pathMTU, got []trial, top int) {
	for i := range got {
		if t := &got[i]; t.whole() && int(t.probe.Path) < len(m) {
			x := &m[t.probe.Path]
			x.lo = max(x.lo, t.probe.Size)
		}
	}
	for i := range got {
		t := &got[i]
		if int(t.probe.Path) >= len(m) {
			continue
		}
		if x := &m[t.probe.Path]; !t.whole() && t.probe.Size > x.lo {
			x.hi = min(x.hi, t.probe.Size)
		}
	}
	for i := range m {
		if m[i].lo >= top {
			m[i].hi = 0
		}
	}
}
