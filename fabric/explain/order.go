package explain

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// The order of thresholds: ECN must mark before PFC stops anybody, or senders
// never hear of the congestion that stops them (SIGCOMM'15 DCQCN §4). ECN looks
// at the queue of an egress, PFC at what an ingress holds of all queues.

// MostKMin returns the largest Kmin, in bytes, of an egress and priority (0 to 7)
// with which ECN acts before PFC, whatever the flows of the run do; 0 if there is
// none of a frame or more. ok is false where PFC stops nobody, and where the run
// does not say when it would.
func MostKMin(r *result.Run, node, port int32, prio uint8) (bytes int64, ok bool) {
	n := index(r)
	e := n.egress(node, port)
	if e == none {
		return 0, false
	}
	bytes, _, ok = n.mostKMin(e, prio)
	return bytes, ok
}

// mostKMin returns the largest Kmin of an egress with which every queue that the
// run's flows can make there marks before an ingress that feeds it stops its
// neighbour, and the ingress that sets it; ok is false if nobody stops anybody,
// or nothing is known of it.
//
// The worst that can be is that all egresses of the switch that have flows of the
// priority stand at Kmin at once, and that each ingress holds the whole of all
// those that it feeds: with E egresses, of which ingress i feeds m, it holds
// m Kmin, and its XOFF has come down to X - alpha E Kmin. So
//
//	Kmin < X / (m + alpha E)
//
// which is the paper's bound, of n ports and 8 priorities, for those that are
// used. PFC counts whole cells, and ECN bytes. What comes in while the egress sends
// one frame is left, since a packet is marked when its turn has come.
func (n *net) mostKMin(e int32, prio uint8) (most int64, by Place, ok bool) {
	prio &= 7
	node := n.node[e]
	if !n.r.Nodes[node].Switch {
		return 0, Place{}, false
	}
	feeds := map[int32]map[int32]bool{} // by ingress: egresses of the node; looked up only, and counted
	used := 0
	for out := n.base[node]; out < n.base[node+1]; out++ {
		any := false
		for _, i := range n.through(out) {
			in := n.flows[i].before(out)
			if in == none || n.flows[i].f.Prio != prio {
				continue
			}
			any = true
			if feeds[in] == nil {
				feeds[in] = make(map[int32]bool)
			}
			feeds[in][out] = true
		}
		if any {
			used++
		}
	}
	frame := max(1, min(mostBytes, int64(n.r.Shape.Payload))+min(mostBytes, int64(n.r.Shape.Header)))
	cost := frame
	if c := n.r.Nodes[node].Buffer.Cell; c > 1 && c < mostBytes {
		cost = (frame + c - 1) / c * c
	}
	for in := n.base[node]; in < n.base[node+1]; in++ {
		to := feeds[n.peer(in)]
		q := &n.port(in).Prio[prio]
		if !to[e] || q.XOFF <= 0 || !(q.XOFFAlpha >= 0) {
			continue
		}
		bound := float64(q.XOFF) / (float64(len(to)) + float64(q.XOFFAlpha*float64(used)))
		bound *= float64(frame) / float64(cost)
		k := int64(min(bound, mostBytes)) - frame*(1+frames(n.port(in).Rate, n.port(e).Rate))
		if k < frame {
			k = 0
		}
		if !ok || k < most {
			most, by, ok = k, n.place(in), true
		}
	}
	return most, by, ok
}

// frames is how many frames come in, at most, while one goes out.
func frames(in, out sim.Rate) int64 {
	const many = 1 << 10
	if out <= 0 || in <= 0 {
		return 1
	}
	return min(many, int64((in-1)/out)+1)
}

// atMost says how large Kmin may be there.
func (n *net) atMost(at Place, prio uint8) string {
	e := n.egress(at.Node, at.Port)
	if e == none {
		return ""
	}
	switch most, _, ok := n.mostKMin(e, prio); {
	case !ok:
		return ""
	case most == 0:
		return ": there no Kmin is small enough, raise XOFF (switch.buffer.alpha, switch.buffer.xoff)"
	default:
		return fmt.Sprintf(": at most %s", size(most))
	}
}
