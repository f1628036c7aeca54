package verbs

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
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

// count counts without a list: an exporter asks often, and a device may have thousands.
func (d *Device) count() census {
	n := census{byShard: make([]int, len(d.shards)), byState: map[qpGroup]uint64{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	last, run := qpGroup{}, uint64(0) // most queue pairs are like the one before
	for k := range d.kids {
		switch k := k.(type) {
		case *QP:
			n.qps++
			n.byShard[k.shard.index]++
			if g := (qpGroup{k.Type(), k.Num() == ib.QPGSI, k.qp.State()}); g != last {
				n.byState[last] += run
				last, run = g, 0
			}
			run++
		case *CQ:
			n.cqs++
		case *MR:
			n.mrs++
		case *PD:
			n.pds++
		case *SRQ:
			n.srqs++
		}
	}
	n.byState[last] += run
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
