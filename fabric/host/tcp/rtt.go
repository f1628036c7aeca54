package tcp

import "github.com/verbena-rdma/verbena/fabric/sim"

// estimate is the round trip and the timeout that follows from it (RFC 6298).
type estimate struct {
	srtt, rttvar sim.Time // srtt 0: nothing measured
	rto          sim.Time
	timed        bool // a segment is being timed:
	seq          int64
	at           sim.Time
}

// init takes what the handshake has measured.
func (e *estimate) init(rtt, least sim.Time) {
	e.rto = max(firstRTO, least)
	if rtt > 0 {
		e.sample(rtt, least)
	}
}

// begin times the segment that ends at seq.
func (e *estimate) begin(now sim.Time, seq int64) { e.timed, e.seq, e.at = true, seq, now }

// end takes an acknowledgement.
func (e *estimate) end(now sim.Time, ack int64, least sim.Time) {
	if e.timed && ack >= e.seq {
		e.timed = false
		e.sample(max(now-e.at, 1), least)
	}
}

// sample follows one measurement (RFC 6298 2.2, 2.3), in integers: gains of 1/8
// and 1/4.
func (e *estimate) sample(r, least sim.Time) {
	if e.srtt == 0 {
		e.srtt, e.rttvar = r, r/2
	} else {
		d := e.srtt - r
		if d < 0 {
			d = -d
		}
		e.rttvar += (d - e.rttvar) / 4
		e.srtt += (r - e.srtt) / 8
	}
	e.rto = min(max(e.srtt+4*e.rttvar, least), maxRTO)
}

// backOff doubles the timeout; the next measurement undoes it (RFC 6298 5.5,
// 5.7).
func (e *estimate) backOff() { e.rto = min(2*e.rto, maxRTO) }

// RTT returns the smoothed round trip; 0 before anything is measured.
func (c *Conn) RTT() sim.Time { return c.rtt.srtt }
