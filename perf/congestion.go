package perf

import (
	"fmt"

	"github.com/verbena-rdma/verbena/verbs"
)

// withDCQCN makes the devices that open opens, or the real ones for nil, have
// congestion control.
func withDCQCN(open func(verbs.Config) (*verbs.Device, error), d verbs.DCQCN) func(verbs.Config) (*verbs.Device, error) {
	if open == nil {
		open = verbs.Open
	}
	return func(c verbs.Config) (*verbs.Device, error) {
		c.DCQCN = d
		return open(c)
	}
}

// congestion notes how DCQCN has left the queue pairs, and prints a line for each.
func (t *test) congestion() {
	if !t.cfg.DCQCN.On() {
		return
	}
	for _, q := range t.rig.qps {
		c := q.Congestion()
		t.out.Congestion = append(t.out.Congestion, c)
		t.cfg.print(fmt.Appendf(nil,
			" dcqcn: QP %v %v: rate %.1f Mb/s, target %.1f Mb/s, alpha %.4f, %d CNPs handled, %d cuts; %d packets marked, %d CNPs sent\n",
			q.Num(), c.Phase, float64(c.Rc)/1e6, float64(c.Rt)/1e6, c.Alpha, c.CNPsHandled, c.Cuts, c.Marked, c.CNPsSent))
	}
}
