package explain

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// Proof is the verdict on losslessness.
type Proof uint8

// The verdicts.
const (
	// NoClass: no priority has PFC.
	NoClass Proof = iota
	// Proven: nothing was lost, and every ingress has the headroom that the
	// formula asks for (802.1Qbb), so nothing can be.
	Proven
	// Held: nothing was lost here, but some ingress has less headroom than the
	// formula asks for: other traffic may lose.
	HeldOnly
	// Violated: a lossless class lost packets, or held more than its headroom.
	Violated
	// Unchecked: nothing was recorded of headroom.
	Unchecked
)

var proofNames = [...]string{"no lossless class", "proven", "held, not proven", "violated", "not checked"}

func (p Proof) String() string {
	if int(p) < len(proofNames) {
		return proofNames[p]
	}
	return "?"
}

// Losslessness sums up the headroom of every ingress.
type Losslessness struct {
	Verdict Proof
	Ports   int // ingresses and priorities with headroom
	// Tightest is the one that used the greatest part of what it has, or was
	// violated most.
	Tightest *HeadroomUse
	Violated []HeadroomUse // at most maxLossPlaces of ViolatedCount
	// ViolatedCount ports lost Dropped packets; Short ones have less than they
	// need.
	ViolatedCount int
	Short         int
	Shortest      *HeadroomUse
	Dropped       uint64
	// Elsewhere counts packets of lossless classes that were lost for other
	// reasons (link errors, watchdog, no route): headroom does not help there.
	Elsewhere       uint64
	ElsewhereReason result.DropReason
}

// HeadroomUse is one ingress and priority; bytes.
type HeadroomUse struct {
	At               Place
	Prio             uint8
	Need, Have, Peak int64
	Dropped          uint64
}

// Over is by how many bytes headroom was exceeded: held beyond it, or what it
// lacks by the formula if packets were dropped. 0 if it is enough, even if
// packets were dropped: then the neighbour did not stop.
func (h *HeadroomUse) Over() int64 {
	if h.Peak > h.Have {
		return h.Peak - h.Have
	}
	if h.Dropped > 0 {
		return max(0, h.Need-h.Have)
	}
	return 0
}

// tighter compares what was lost, then what was lacking, then the part of
// headroom that was used.
func (h *HeadroomUse) tighter(t *HeadroomUse) bool {
	if h.Dropped != t.Dropped {
		return h.Dropped > t.Dropped
	}
	if h.Over() != t.Over() {
		return h.Over() > t.Over()
	}
	return float64(h.Peak)*float64(max(t.Have, 1)) > float64(t.Peak)*float64(max(h.Have, 1))
}

func (n *net) lossless() Losslessness {
	var out Losslessness
	var bad []HeadroomUse
	for i := range n.r.Lossless {
		l := &n.r.Lossless[i]
		e := n.egress(l.Node, l.Port)
		if e == none {
			continue
		}
		out.Ports++
		h := HeadroomUse{n.place(e), l.Prio, l.Need, l.Have, l.Peak, l.Dropped}
		out.Dropped += l.Dropped
		if h.Over() > 0 || h.Dropped > 0 {
			bad = append(bad, h)
		}
		if h.Need > h.Have {
			out.Short++
			if out.Shortest == nil || h.Need-h.Have > out.Shortest.Need-out.Shortest.Have {
				out.Shortest = &h
			}
		}
		if t := out.Tightest; t == nil || h.tighter(t) {
			out.Tightest = &h
		}
	}
	n.elsewhere(&out)
	slices.SortStableFunc(bad, func(a, b HeadroomUse) int {
		return cmp.Or(cmp.Compare(b.Dropped, a.Dropped), cmp.Compare(b.Over(), a.Over()))
	})
	out.ViolatedCount = len(bad)
	out.Violated = bad[:min(maxLossPlaces, len(bad))]
	switch {
	case n.r.Shape.Lossless == 0 && out.Ports == 0:
		out.Verdict = NoClass
	case out.ViolatedCount > 0 || out.Dropped > 0:
		out.Verdict = Violated
	case out.Ports == 0:
		out.Verdict = Unchecked
	case out.Short > 0:
		out.Verdict = HeldOnly
	default:
		out.Verdict = Proven
	}
	return out
}

// elsewhere looks through the drops of lossless classes.
func (n *net) elsewhere(out *Losslessness) {
	var by [result.NumDropReasons]uint64
	buffer := uint64(0)
	for i := range n.r.Drops {
		d := &n.r.Drops[i]
		if d.Prio > 7 || n.r.Shape.Lossless&(1<<d.Prio) == 0 || d.Reason >= result.NumDropReasons {
			continue
		}
		switch d.Reason {
		case result.DropNoBuffer, result.DropHeadroom:
			buffer++
		case result.DropHostBuffer, result.DropWRED, result.DropWatchdog, result.DropNoRoute, result.DropTTL, result.DropMTU,
			result.DropError, result.DropDown, result.DropV1, result.DropFault:
			by[d.Reason]++
			out.Elsewhere++
		case result.NumDropReasons:
		}
	}
	for r := range by {
		if by[r] > by[out.ElsewhereReason] {
			out.ElsewhereReason = result.DropReason(r)
		}
	}
	// Drops that no verdict of a port has counted are a violation all the same.
	out.Dropped = max(out.Dropped, buffer)
}
