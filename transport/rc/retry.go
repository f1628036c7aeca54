package rc

import (
	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// Advance fires the local ACK timeout if it is due (IBA vol.1 9.7.6.1.3). Until
// there is progress, as many packets go at a time under a window as there were
// timeouts in a row: a burst of the same length each time could meet the same
// fate each time, where every n-th packet is lost. Without a window all goes
// again, as RNICs do.
func (e *Engine) Advance(now clock.Time) {
	if e.req.timer > now || e.req.timer == clock.Never {
		return
	}
	e.req.timer = clock.Never
	e.cfg.Count(transport.LocalAckTimeoutErr)
	e.cfg.Window.TimedOut(e.fullCost())
	if e.cfg.Window != nil {
		e.req.probing++
	}
	e.again(0)
}

// impliedNAK handles an answer that skips one to a READ or ATOMIC
// (IBA vol.1 9.7.5.1.7). All that follow skip it too: one retry is enough until
// there is progress.
func (e *Engine) impliedNAK() {
	q := &e.req
	if e.state == ib.Error || q.implied || q.psn == q.una {
		return
	}
	e.cfg.Count(transport.ImpliedNakSeqErr)
	e.retry(0)
	q.implied = true
}

// retry goes back because the peer has told of a loss. syndrome is that of the
// NAK.
func (e *Engine) retry(syndrome uint32) {
	e.cfg.Window.Lost(e.fullCost())
	e.again(syndrome)
}

// again goes back to the oldest PSN that is not acknowledged, or gives up when
// it has done so retry_cnt times without progress.
func (e *Engine) again(syndrome uint32) {
	q := &e.req
	if q.retryLeft == 0 {
		e.cfg.Count(transport.RetryExceededErr)
		e.fail(ib.RetryExcErr, syndrome)
		return
	}
	q.retryLeft--
	e.cfg.Count(transport.CompleterRetryErr)
	e.goBack()
}

// receiverNotReady waits as long as the RNR NAK asks (IBA vol.1 9.7.5.2.8) and
// goes back. The window has lost nothing.
func (e *Engine) receiverNotReady(now clock.Time, s wire.AETHSyndrome) {
	q := &e.req
	if q.rnrWait && q.psn == q.una {
		return // already waiting for this one
	}
	if e.attr.RNRRetry != 7 {
		if q.rnrLeft == 0 {
			e.cfg.Count(transport.RetryRNRExceeded)
			e.fail(ib.RNRRetryExcErr, uint32(s))
			return
		}
		q.rnrLeft--
	}
	e.goBack()
	q.rnrWait = true
	q.rnrUntil = now.Add(s.RNRDelay())
}

// goBack makes the oldest unacknowledged PSN the next one to be sent. What was
// in flight is forgotten; the timer starts with the next packet.
func (e *Engine) goBack() {
	q := &e.req
	e.cfg.Window.Forget(q.flight)
	q.flight = 0
	q.psn = q.una
	q.cur = e.cfg.Send.Head()
	q.reads.clear()
	q.timer = clock.Never
	q.quietPackets, q.quietBytes = 0, 0
}
