package swtch

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// route returns the egress of a packet, -1 for none.
func (w *Switch) route(p *sim.Packet) int {
	ways := w.routes.Ports(w.id, p.Dst)
	if len(ways) == 1 {
		return int(ways[0])
	}
	if len(ways) == 0 {
		return -1
	}
	e := ECMP{Seed: w.seed, Fields: w.fields}
	out := int(ways[e.Pick(p, len(ways))])
	if w.downs > 0 && w.out[out].down {
		out = w.detour(p, ways, out)
	}
	return out
}

// Pick returns which of n ways a packet takes: the hash of its fields, mixed
// with the seed, scaled to n.
func (e *ECMP) Pick(p *sim.Packet, n int) int {
	key := uint64(p.Hash)
	if e.Fields == Addresses {
		key = uint64(uint32(p.Src))<<32 | uint64(uint32(p.Dst))
	}
	h := sim.Mix(key + e.Seed*0x9E3779B97F4A7C15)
	return int(h >> 32 * uint64(n) >> 32)
}

// detour chooses among the ways that are up; out if none is. Flows whose way is
// up stay on it.
func (w *Switch) detour(p *sim.Packet, ways []uint16, out int) int {
	up := 0
	for _, i := range ways {
		if !w.out[i].down {
			up++
		}
	}
	if up == 0 {
		return out
	}
	// Another seed: those whose way is down have chosen alike.
	e := ECMP{Seed: sim.Mix(w.cfg.ECMP.Seed + 1), Fields: w.cfg.ECMP.Fields}
	k := e.Pick(p, up)
	for _, i := range ways {
		if w.out[i].down {
			continue
		}
		if k == 0 {
			return int(i)
		}
		k--
	}
	return out
}

// SetDown tells the switch that the link of a port has gone down or come up. The
// port itself is taken down by port.SetDown, before. What waits for a link that
// goes down is lost; what arrives for it takes another way, or is lost, too.
func (w *Switch) SetDown(now sim.Time, out int, down bool) {
	e := &w.out[out]
	if e.down == down {
		return
	}
	e.down = down
	if !down {
		w.downs--
		// The neighbour has forgotten what it was told.
		for g := range 8 {
			if w.ingress(out<<3 | g).paused {
				w.xoff(now, out<<3|g)
			}
		}
		return
	}
	w.downs++
	for e.ready != 0 {
		w.drain(now, out, lowest(e.ready), result.DropDown)
	}
}
