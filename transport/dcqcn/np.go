package dcqcn

import "github.com/verbena-rdma/verbena/clock"

// NP is the notification point of one QP. The zero value is ready; it is 16
// bytes and owned by whoever owns the QP. Not for concurrent use.
type NP struct {
	last    clock.Time // of the last CNP, if sent
	sent    bool
	pending bool // a mark came in the window of the last CNP
	echo    bool
}

// Marked takes note that a CE-marked packet of the QP has arrived, and reports
// whether a CNP is to be sent now. The first mark is answered at once; for
// Params.MinTimeBetweenCNPs from then there is no other CNP, and marks in that
// window are forgotten, or with Params.NPWindow wait for its end: look at
// [NP.Deadline] after each call. With [NotifyAck] no CNP is ever sent: see
// [NP.TakeEcho].
func (n *NP) Marked(now clock.Time, p *Params) bool {
	if p.Notify == NotifyAck {
		n.echo = true
		return false
	}
	if n.sent && now.Sub(n.last) < p.MinTimeBetweenCNPs {
		n.pending = p.NPWindow
		return false
	}
	n.sent, n.pending, n.last = true, false, now
	return true
}

// Deadline returns the instant from which [NP.Due] reports a CNP for marks that
// wait, or Never.
func (n *NP) Deadline(p *Params) clock.Time {
	if !n.pending {
		return clock.Never
	}
	return n.last.Add(p.MinTimeBetweenCNPs)
}

// Ends returns the instant at which the window of the last CNP is over; 0 if
// there was none.
func (n *NP) Ends(p *Params) clock.Time {
	if !n.sent {
		return 0
	}
	return n.last.Add(p.MinTimeBetweenCNPs)
}

// Due reports whether a CNP for marks that waited is to be sent now. A new
// window begins with it. The CNP is sent at the deadline whether or not a
// packet arrives then (SIGCOMM'15 DCQCN §3.1).
func (n *NP) Due(now clock.Time, p *Params) bool {
	if !n.pending || now < n.Deadline(p) {
		return false
	}
	n.pending, n.last = false, now
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
