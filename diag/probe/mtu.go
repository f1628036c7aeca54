package probe

import (
	"context"
	"net/netip"
	"slices"
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
	mtuTries   = 3
	mtuPoints  = 7
	mtuRounds  = 6
	lossyTries = 10
)

// findMTU searches the largest packet that passes, on every path at once: the
// interface's MTU, then the sizes that are common, then ever closer.
func (w *way) findMTU(ctx context.Context, p *prober, netdev int) error {
	if netdev == 0 {
		netdev = 1500
	}
	top := min(netdev, MaxSize) &^ 3
	m := make([]pathMTU, p.cfg.Paths)
	tries := mtuTries
	if arrived(w.rec.reach) < len(w.rec.reach) {
		tries = lossyTries
	}
	for i := range w.rec.reach {
		if t := &w.rec.reach[i]; t.passed() {
			m[t.probe.Path] = pathMTU{lo: smallSize, hi: top + 4}
		}
	}
	w.rec.mtus = m
	for round := range mtuRounds {
		var plan []Probe
		for path := range m {
			for _, size := range m[path].candidates(round, top, p.r.Address, w.rec.notices) {
				for range tries {
					plan = append(plan, Probe{Path: uint8(path), TOS: w.rec.reach[0].probe.TOS, Size: size})
				}
			}
		}
		if len(plan) == 0 {
			return nil
		}
		// Small before large on each path: what an ICMP error says comes late.
		slices.SortStableFunc(plan, func(a, b Probe) int { return a.Size - b.Size })
		got, err := w.run(ctx, plan, w.interval)
		if err != nil {
			return err
		}
		narrow(m, got, top)
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
		if t := &got[i]; t.passed() && int(t.probe.Path) < len(m) {
			x := &m[t.probe.Path]
			x.lo = max(x.lo, t.probe.Size)
		}
	}
	for i := range got {
		t := &got[i]
		if int(t.probe.Path) >= len(m) {
			continue
		}
		if x := &m[t.probe.Path]; !t.passed() && t.probe.Size > x.lo {
			x.hi = min(x.hi, t.probe.Size)
		}
	}
	for i := range m {
		if m[i].lo >= top {
			m[i].hi = 0
		}
	}
}
