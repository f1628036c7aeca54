package rnic

import (
	"math/bits"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// Pacing says how queue pairs with a rate are held to it. The zero value is
// for real time, where an adapter is called late.
type Pacing struct {
	// Burst is how much of its rate a queue pair may send at once, and how much
	// of what it has not used it keeps: 0 for 50 µs, negative for none at all.
	// Without any, a packet leaves when the one before it has been paid for, or
	// as soon after as its turn comes. What it waits for its turn, behind other
	// queue pairs or the link, is kept for the next packet; time in which it had
	// nothing to send or its priority was paused is not.
	Burst time.Duration
	// Overhead is what each packet counts besides its bytes from BTH to ICRC, at
	// the pacer and at DCQCN's byte counter.
	Overhead int
}

// defaultBurst is the burst of a Pacing that sets none.
const defaultBurst = 50 * time.Microsecond

// maxBurst and maxPaceOverhead are far beyond what makes sense, and keep every
// product here below 2^64.
const (
	maxBurst        = time.Second
	maxPaceOverhead = 1 << 12
)

// pacer spreads what a queue pair sends over time. It keeps the fraction of a
// nanosecond, so that the rate is exact in the long run.
type pacer struct {
	rate uint64     // bits a second that hold, the lower of limit and R_C; 0: none
	at   clock.Time // all that was sent is paid for at this instant
	frac uint64     // and this fraction of a nanosecond later, in units of 1/rate
}

// ready returns the first nanosecond at which something may leave.
func (p *pacer) ready() clock.Time {
	if p.rate == 0 {
		return 0
	}
	if p.frac != 0 {
		return p.at.Add(1)
	}
	return p.at
}

// holds reports whether nothing may leave yet.
func (p *pacer) holds(now clock.Time) bool { return p.rate != 0 && p.ready() > now }

// room returns how many bytes a run may have.
func (p *pacer) room(burst time.Duration) int {
	if p.rate == 0 {
		return maxRunBytes
	}
	hi, lo := bits.Mul64(p.rate/8, uint64(burst))
	if hi != 0 {
		return maxRunBytes
	}
	return int(min(lo/uint64(time.Second), maxRunBytes))
}

// sent accounts for n bytes that leave now, of a queue pair whose turn it could
// have been since an instant.
func (p *pacer) sent(now, since clock.Time, n int, burst time.Duration) {
	if p.rate == 0 {
		return
	}
	idle := now.Add(-burst)
	if burst == 0 {
		idle = since
	}
	if p.ready() < idle {
		p.at, p.frac = idle, 0
	}
	t := uint64(n)*8*uint64(time.Second) + p.frac
	p.at = p.at.Add(time.Duration(t / p.rate))
	p.frac = t % p.rate
}

// change sets the rate that holds. What is not paid for yet is paid at the new
// rate from now on, so that a queue pair that was slow does not stay so for a
// packet's time.
func (p *pacer) change(now clock.Time, rate uint64) {
	if rate == p.rate {
		return
	}
	old := p.rate
	p.rate = rate
	switch {
	case old == 0:
		p.at, p.frac = now, 0
	case rate == 0:
		p.at, p.frac = 0, 0
	case p.at < now:
		p.frac = 0
	default:
		hi, debt := bits.Mul64(uint64(p.at-now), old)
		if hi != 0 || debt+p.frac < debt {
			p.frac = 0 // more than a run can owe
			return
		}
		debt += p.frac
		p.at, p.frac = now.Add(time.Duration(debt/rate)), debt%rate
	}
}

// repace takes notice of a changed limit or R_C.
func (q *QP) repace(now clock.Time) {
	rate := uint64(q.attr.rateKbps) * 1000 // as AttrRateLimit says; 0: none
	if top := q.ceiling(now); top != 0 && (rate == 0 || top < rate) {
		rate = top
	}
	q.pacer.change(now, rate)
}

// ceiling is what DCQCN lets the queue pair send in bits a second, 0 if all that
// the link takes.
func (q *QP) ceiling(now clock.Time) uint64 {
	switch {
	case q.rp != nil && q.rp.Limited():
		return q.rp.Rate(now)
	case q.cc != nil && q.cc.paced:
		return q.cc.line
	}
	return 0
}

// paid accounts for what has left now and is subject to pacing: bytes, with
// what each packet counts besides.
func (a *Adapter) paid(now clock.Time, q *QP, n int) {
	q.pacer.sent(now, a.waitsSince(now, q), n, a.burst)
	if q.rp != nil && q.rp.Limited() {
		q.rp.Sent(now, n)
		q.repace(now)
	}
}
