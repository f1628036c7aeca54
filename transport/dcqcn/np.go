package dcqcn

import "github.com/verbena-rdma/verbena/clock"

// NP is the notification point of one QP. The zero value is ready; it is 16
// bytes and owned by whoever owns the QP.
type NP struct {
	last clock.Time // of the last CNP, if sent
	sent bool
	echo bool
}

// Marked takes note that a CE-marked packet of the QP has arrived, and reports
// whether a CNP is to be sent now. With [NotifyAck] it never is: see
// [NP.TakeEcho]. The first mark is answered at once, then at most one in each
// Params.MinTimeBetweenCNPs; marks in between are forgotten (SIGCOMM'15 DCQCN §3).
func (n *NP) Marked(now clock.Time, p *Params) bool {
	if p.Notify == NotifyAck {
		n.echo = true
		return false
	}
	if n.sent && now.Sub(n.last) < p.MinTimeBetweenCNPs {
		return false
	}
	n.sent, n.last = true, now
	return true
}

// TakeEcho reports whether a marked packet came since the last call, and
// forgets it: the answer is the BECN bit of the acknowledgement that is being
// built ([NotifyAck]).
func (n *NP) TakeEcho() bool {
	e := n.echo
	n.echo = false
	return e
}
