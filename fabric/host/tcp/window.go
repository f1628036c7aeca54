package tcp

import "math/bits"

// one is 1 in units of 2^-32.
const one = uint64(1) << 32

// grow widens the window for n acknowledged bytes: by them, at most one segment,
// in slow start; else by a segment for each window (RFC 5681 §3.1). It is called
// only when the window, and nothing else, has stopped the sender within the last
// round trip (RFC 7661 §4.1): what is not used says nothing about the network.
func (c *Conn) grow(n int64) {
	mss := int64(c.cfg.MSS)
	if c.cwnd < c.ssthresh {
		c.cwnd += min(n, mss)
		return
	}
	if c.counted += n; c.counted >= c.cwnd {
		c.counted -= c.cwnd
		c.cwnd += mss
	}
}

// estimator is DCTCP's estimate of the share of bytes that are marked (RFC 8257
// §3.3), in units of 2^-32.
type estimator struct {
	alpha         uint64
	acked, marked int64 // of the present window
	end           int64 // of it
}

func (e *estimator) init() { e.alpha = one } // RFC 8257 §4.3: careful at first

// count follows an acknowledgement up to ack of n new bytes.
func (e *estimator) count(c *Conn, ack, n int64, ece bool) {
	e.acked += n
	if ece {
		e.marked += n
	}
	if ack <= e.end || e.acked == 0 {
		return
	}
	hi, lo := bits.Mul64(uint64(e.marked), one)
	m, _ := bits.Div64(hi, lo, uint64(e.acked)) // marked ≤ acked
	e.alpha = e.alpha - times(e.alpha, c.cfg.G) + times(m, c.cfg.G)
	e.end = max(c.nxt, ack)
	e.acked, e.marked = 0, 0
}

// times multiplies two shares.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<32 | lo>>32
}

// cut narrows the window for marks, once for each window of data (RFC 8257 §3.3,
// RFC 3168 §6.1.2); ack tells that the marked data left after the last cut.
// While a loss is repaired the window is narrow already.
func (c *Conn) cut(ack int64) {
	if ack <= c.cwrEnd || c.recovery || c.una <= c.recover && c.nxt < c.recover {
		return
	}
	hi, lo := bits.Mul64(uint64(c.cwnd), c.dctcp.alpha)
	c.cwnd = max(c.cwnd-int64(hi<<31|lo>>33), 2*int64(c.cfg.MSS))
	c.ssthresh, c.counted = c.cwnd, 0
	c.cwrEnd, c.cwr = c.max, true
	c.reduction++
}

// Cwnd returns the congestion window in bytes.
func (c *Conn) Cwnd() int64 { return c.cwnd }

// Alpha returns DCTCP's estimate in units of 2^-32.
func (c *Conn) Alpha() uint64 { return c.dctcp.alpha }
