package read

import (
	"github.com/verbena-rdma/verbena/diag/joblog"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// app takes the answer about a program and reads its log, unless the answer has the
// events already.
func (r *reader) app() {
	v, ok := ask[snapshot.App](r, source.QueryApp).Get()
	if !ok {
		return
	}
	if len(v.Events) == 0 {
		v.Events = joblog.Parse(v.Log)
	}
	r.snap.App = &v
}
