package swtch

import "github.com/verbena-rdma/verbena/fabric/sim"

// route returns the egress of a packet, -1 for none.
func (w *Switch) route(p *sim.Packet) int {
	ways := w.routes.Ports(w.cfg.ID, p.Dst)
	if len(ways) == 0 {
		return -1
	}
	if len(ways) == 1 {
		return int(ways[0])
	}
	return int(ways[w.cfg.ECMP.Pick(p, len(ways))])
}

// Pick returns which of n ways a packet takes: the hash of its fields, mixed
// with the seed, scaled to n.
func (e ECMP) Pick(p *sim.Packet, n int) int {
	key := uint64(p.Hash)
	if e.Fields == Addresses {
		key = uint64(uint32(p.Src))<<32 | uint64(uint32(p.Dst))
	}
	h := sim.Mix(key + e.Seed*0x9E3779B97F4A7C15)
	return int(h >> 32 * uint64(n) >> 32)
}
