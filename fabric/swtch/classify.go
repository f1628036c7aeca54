package swtch

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func lowest(m uint8) uint8 { return uint8(bits.TrailingZeros8(m)) }

// classify returns the priority of a packet.
func (w *Switch) classify(p *sim.Packet) uint8 {
	if w.trust == TrustDSCP && !p.V1 {
		return w.ofDSCP[p.DSCP&63]
	}
	if p.Tagged {
		return w.ofPCP[p.PCP&7]
	}
	return w.untagged
}

// mayPass does what a router does to a header.
func (w *Switch) mayPass(p *sim.Packet) (result.DropReason, bool) {
	if !w.router {
		return 0, true
	}
	n := w.subnets
	same := int(p.Src) < len(n) && int(p.Dst) < len(n) && p.Src >= 0 && p.Dst >= 0 && n[p.Src] == n[p.Dst]
	switch {
	case p.V1:
		return result.DropV1, same || n == nil
	case same: // bridged
	case p.TTL <= 1:
		return result.DropTTL, false
	default:
		p.TTL--
	}
	return 0, true
}
