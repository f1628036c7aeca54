package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/host/tcp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// maxPath is more switches than any way has; a cycle of routes ends there.
const maxPath = 64

// walk follows packets of a hash from one endpoint to another as routes are now.
// It gives the egresses, the sending NIC's first; nil if there is no way.
func (r *Run) walk(src, dst int32, hash uint32) []result.Hop {
	g := r.Graph
	at, port := g.Endpoints[src].Node, g.Endpoints[src].Port
	hops := []result.Hop{{Node: at, Port: port}}
	for range maxPath {
		peer := g.Nodes[at].Ports[port].Peer
		if peer == g.Endpoints[dst].Node {
			return hops
		}
		if r.Switches[peer] == nil {
			return nil
		}
		ways := r.Routes.Ports(peer, dst)
		if len(ways) == 0 {
			return nil
		}
		pick := 0
		if len(ways) > 1 {
			pick = r.settings[peer].cfg.ECMP.Pick(&sim.Packet{Hash: hash, Src: src, Dst: dst}, len(ways))
		}
		at, port = peer, int32(ways[pick])
		hops = append(hops, result.Hop{Node: at, Port: port})
	}
	return nil
}

// trace returns the way of a flow's data.
func (r *Run) trace(f *work.Flow, c *host.Conn) []result.Hop {
	if f.Op == work.Read {
		return r.walk(f.Dst, f.Src, c.ReverseHash())
	}
	return r.walk(f.Src, f.Dst, c.Hash())
}

// traceBack returns the way of what answers a flow's data: of acknowledgements,
// and of a READ's request.
func (r *Run) traceBack(f *work.Flow, c *host.Conn) []result.Hop {
	if f.Op == work.Read {
		return r.walk(f.Src, f.Dst, c.Hash())
	}
	return r.walk(f.Dst, f.Src, c.ReverseHash())
}

// distinctPaths counts the different ways of a flow's queue pairs.
func (r *Run) distinctPaths(f *work.Flow, lanes []*lane) int {
	if len(lanes) == 1 {
		return 1
	}
	seen := make(map[uint64]bool)
	for _, l := range lanes {
		k := uint64(0)
		for _, h := range r.trace(f, l.c) {
			k = sim.Mix(k ^ uint64(uint32(h.Node))<<32 ^ uint64(uint32(h.Port)))
		}
		seen[k] = true
	}
	return len(seen)
}

// frameSizes returns the payload of a full packet, what surrounds it, and the
// length of an acknowledgement.
func (r *Run) frameSizes(f *work.Flow) (full, head, ack int) {
	c := r.NICs[f.Src].Config()
	if f.Op == work.TCP {
		head, ack = tcp.HeaderBytes, tcp.AckBytes
		if c.Tagged {
			head += tcp.TagBytes
		}
		return r.hostOf(f.Src).TCP.MSS, head, ack
	}
	full, head, ack = c.Payload, c.Header, c.Control
	if full == 0 {
		full = c.MTU.Bytes()
	}
	if head == 0 {
		head = host.HeaderBytes(&c)
	}
	if ack == 0 {
		ack = host.AckBytes(&c)
	}
	return full, head, ack
}

func (r *Run) gap() int {
	if r.Scenario.Packet.Gap {
		return 20
	}
	return 0
}
