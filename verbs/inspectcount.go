package verbs

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
)

// census is how many objects were made of a device.
type census struct {
	qps, cqs, mrs, pds, srqs uint64
	byShard                  []int // queue pairs
	byState                  map[qpGroup]uint64
}

// qpGroup is what queue pairs are counted by.
type qpGroup struct {
	typ   ib.QPType
	gsi   bool
	state ib.QPState
}

// kind is a kind of what can be made of a device, as far as it is counted.
type kind uint8

const (
	kindOther kind = iota
	kindCQ
	kindMR
	kindPD
	kindSRQ
	kinds
)

func childKind(k child) kind {
	switch k.(type) {
	case *CQ:
		return kindCQ
	case *MR:
		return kindMR
	case *PD:
		return kindPD
	case *SRQ:
		return kindSRQ
	}
	return kindOther
}

// count counts without a walk: an exporter asks often, and a device may have thousands.
// Queue pairs are counted where their states change, in the adapters.
func (d *Device) count(tallies []tally) census {
	n := census{byShard: make([]int, len(d.shards)), byState: map[qpGroup]uint64{}}
	for i := range tallies {
		for t := range tallies[i].qps {
			for state, count := range tallies[i].qps[t] {
				if count == 0 {
					continue
				}
				g := qpGroup{ib.QPType(t), ib.QPType(t) == rnic.CensusGSI, ib.QPState(state)}
				n.byState[g] += uint64(count)
				n.byShard[i] += int(count)
				n.qps += uint64(count)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n.cqs, n.mrs, n.pds, n.srqs = d.made[kindCQ], d.made[kindMR], d.made[kindPD], d.made[kindSRQ]
	return n
}

// census counts what is listed.
func (f *children) census(shards int) census {
	n := census{
		qps: uint64(len(f.qps)), cqs: uint64(len(f.cqs)), mrs: uint64(len(f.mrs)), pds: uint64(len(f.pds)), srqs: uint64(len(f.srqs)),
		byShard: make([]int, shards),
	}
	for _, q := range f.qps {
		n.byShard[q.shard.index]++
	}
	return n
}

// states are the queue pairs by type and state, in that order.
func (n *census) states() []snapshot.QPCount {
	var all []snapshot.QPCount
	for g, count := range n.byState {
		if count == 0 {
			continue
		}
		port, typ := 1, typeName(g.gsi, g.typ)
		if g.state == ib.Reset {
			port = 0 // it comes with Init
		}
		all = append(all, snapshot.QPCount{Port: port, Type: typ, State: g.state.String(), N: count})
	}
	slices.SortFunc(all, func(a, b snapshot.QPCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.State, b.State))
	})
	return all
}

// typeName is the type of a queue pair as the rdma tool has it.
func typeName(gsi bool, t ib.QPType) string {
	if gsi {
		return "GSI"
	}
	return t.String()
}
