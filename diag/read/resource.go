package read

import (
	"fmt"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// resources asks for the objects of a device, in the order of the answer, which is the
// kernel's and the rdma tool's.
func (r *reader) resources(d *snapshot.Device) {
	d.QPs = rows[snapshot.QP](r, source.QueryQPs, d.Name)
	if r.opt.Counters { // nobody counts by the others
		if !r.opt.OwnCounts { // who counts by queue pair
			d.Bound = rows[snapshot.BoundCounter](r, source.QueryBound, d.Name)
		}
		return
	}
	d.CQs = rows[snapshot.CQ](r, source.QueryCQs, d.Name)
	d.MRs = rows[snapshot.MR](r, source.QueryMRs, d.Name)
	d.PDs = rows[snapshot.PD](r, source.QueryPDs, d.Name)
	d.CMIDs = rows[snapshot.CMID](r, source.QueryCMIDs, d.Name)
	d.SRQs = rows[snapshot.SRQ](r, source.QuerySRQs, d.Name)
	d.Contexts = rows[snapshot.Context](r, source.QueryContexts, d.Name)
	d.Bound = rows[snapshot.BoundCounter](r, source.QueryBound, d.Name)
}

func rows[T any](r *reader, query, device string) snapshot.Value[[]T] {
	v := askRows[T](r, fmt.Sprintf(query, device))
	if all, ok := v.Get(); ok {
		return snapshot.Known(slices.Clip(all))
	}
	return v
}
