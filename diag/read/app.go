package read

import (
	"github.com/verbena-rdma/verbena/diag/joblog"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// app takes the answer about a program and reads its log, unless the answer has the
// events already. What it says of the program's choices goes before the log.
func (r *reader) app() {
	v, ok := ask[snapshot.App](r, source.QueryApp).Get()
	if !ok {
		return
	}
	if len(v.Events) == 0 {
		v.Events = joblog.Parse(v.Log)
	}
	chosen(&v)
	r.snap.App = &v
}

// chosen takes from the log what nothing else says of the program's choices.
func chosen(a *snapshot.App) {
	c := joblog.Chosen(a.Log)
	if a.GIDIndex.IsZero() {
		a.GIDIndex = c.GIDIndex
	}
	if a.TrafficClass.IsZero() {
		a.TrafficClass = c.TrafficClass
	}
	if a.PathMTU.IsZero() {
		a.PathMTU = c.PathMTU
	}
	if a.Device.IsZero() {
		a.Device = c.Device
	}
}
