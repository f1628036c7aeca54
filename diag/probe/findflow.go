package probe

import (
	"fmt"
	"math"
)

// lossFail is the part of small packets, in percent, from which on loss is a
// failure.
const lossFail = 1

const (
	// burstFail is the same of packets of trains.
	burstFail = 5
	// burstChance is how unlikely a difference between trains and single packets must be
	// by chance, to be one.
	burstChance = 0.01
)

// findLoss speaks of lost, overtaken and doubled packets of open paths.
func (p *prober) findLoss(s side) {
	sent, seen := 0, 0
	for _, x := range s.d.Paths {
		if !s.d.dead(x) {
			sent += x.Sent
			seen += x.Seen
		}
	}
	what := "small packets, one every " + p.cfg.Interval.String() + ","
	if b := &s.d.Burst; b.Seen < b.Sent && !s.d.bursty() {
		sent += b.Sent
		seen += b.Seen
		what = "packets, single ones and in bursts,"
	}
	if lost := sent - seen; lost > 0 {
		f := Finding{
			ID: "loss", Rule: "C13", Status: Warn, Direction: s.name, Confidence: "high",
			What:     fmt.Sprintf("%.2g %% of the packets from %s to %s are lost", 100*float64(lost)/float64(sent), s.from, s.to),
			Evidence: []string{fmt.Sprintf("%d of %d %s did not arrive; limit for a failure: %d %%", lost, sent, what, lossFail)},
			Effect: Effect{
				What:  "go-back-N: each loss resends everything since; a lost last packet or ACK waits for the timeout; after retry_cnt losses in a row the QP is gone",
				State: "RTS; ERR once retry_cnt is used up", Completion: "IBV_WC_SUCCESS, late; at worst IBV_WC_RETRY_EXC_ERR (12)",
				Counters: []string{"requester: packet_seq_err, local_ack_timeout_err (mlx5), rcvd_seq_err (rxe)", "responder: out_of_sequence (mlx5), out_of_seq_request (rxe)"},
			},
			Fix: []string{"find the hop that drops (switch port discards), and give RoCE a lossless class: mlnx_qos -i IF --trust dscp --pfc 0,0,0,1,0,0,0,0"},
		}
		if lost*100 >= sent*lossFail {
			f.Status = Fail
		}
		for _, e := range s.d.Errors {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%d of them did not leave %s: %s (its own firewall, queue or routes)", e.Count, s.from, e.What))
		}
		if s.d.Sent < 100 {
			f.Confidence = "medium"
		}
		f.overrun(s, lost, sent, lossFail)
		p.add(f)
	}
	if s.d.Reordered > 0 {
		p.add(Finding{
			ID: "reordering", Rule: "C13", Status: Warn, Direction: s.name, Confidence: "high",
			What:     fmt.Sprintf("packets of one source port overtake each other from %s to %s", s.from, s.to),
			Evidence: []string{fmt.Sprintf("%d of %d arrived after a later one of the same path", s.d.Reordered, s.d.Seen)},
			Effect: Effect{
				What: "the responder takes a gap for a loss and answers with a sequence NAK: go-back-N although nothing was lost", State: "RTS", Completion: "IBV_WC_SUCCESS, slow",
				Counters: []string{"responder: out_of_sequence (mlx5), out_of_seq_request (rxe)", "requester: packet_seq_err (mlx5), rcvd_seq_err (rxe)"},
			},
			Fix: []string{"balance by flow, not by packet (packet spraying, round-robin bonding), or use adapters that accept reordering"},
		})
	}
	if s.d.Duplicated > 0 {
		p.add(Finding{
			ID: "duplication", Status: Warn, Direction: s.name, Confidence: "medium",
			What:     fmt.Sprintf("packets from %s arrive more than once at %s", s.from, s.to),
			Evidence: []string{fmt.Sprintf("%d extra copies of %d packets", s.d.Duplicated, s.d.Seen)},
			Effect: Effect{
				What: "duplicates are dropped or acknowledged again; they cost bandwidth", State: "RTS", Completion: "IBV_WC_SUCCESS",
				Counters: []string{"responder: duplicate_request"},
			},
			Fix: []string{"look for a loop, a mirror port or a bond that sends on all members"},
		})
	}
}

// findBurst speaks of trains.
func (p *prober) findBurst(s side) {
	b := s.d.Burst
	lost := b.Sent - b.Seen
	if s.d.bursty() {
		f := Finding{
			ID: "burst-loss", Rule: "L01", Status: Warn, Direction: s.name, Confidence: "high",
			What:     fmt.Sprintf("bursts lose packets from %s to %s", s.from, s.to),
			Evidence: []string{fmt.Sprintf("%d trains of %d packets of %d bytes without pause: %d of %d packets lost; limit for a failure: 5 %%", b.Trains, b.Packets, b.Size, lost, b.Sent)},
			Effect: Effect{
				What: "a QP sends its window at line rate: a policer, a shaper or a small buffer on the way drops the tail of it, again at each retry", State: "RTS; ERR if the tail is lost retry_cnt times",
				Completion: "IBV_WC_SUCCESS, slow; at worst IBV_WC_RETRY_EXC_ERR (12)", Counters: []string{"requester: packet_seq_err, local_ack_timeout_err (mlx5), rcvd_seq_err (rxe)", "responder: out_of_sequence"},
			},
			Fix: []string{"look for a policer or a shaper (tc qdisc show, switch QoS policy), and switch discards in the RoCE class; enable PFC for the class"},
		}
		if b.Local != "" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s dropped some in its own queue (%s): see \"tc -s qdisc show\" there", s.from, b.Local))
		}
		if lost*100 >= b.Sent*burstFail {
			f.Status = Fail
		}
		f.overrun(s, lost, b.Sent, burstFail)
		p.add(f)
	}
	if b.Limited {
		p.add(Finding{
			ID: "rate-limited", Status: Warn, Direction: s.name, Confidence: "medium",
			What:     fmt.Sprintf("something between %s and %s lets about %s through", s.from, s.to, bitRate(b.Rate)),
			Evidence: []string{fmt.Sprintf("%d trains of %d packets of %d bytes: the quickest arrived at %s, far slower than it was sent; limit for a warning: %s", b.Trains, b.Packets, b.Size, bitRate(b.Rate), bitRate(slowRate))},
			Effect: Effect{
				What: "packets wait in a queue: a window of 1 MiB takes " + serial(b.Rate) + ", and an ACK timeout shorter than that resends what was not lost", State: "RTS; ERR if the timeout is too short",
				Completion: "IBV_WC_SUCCESS, slow; at worst IBV_WC_RETRY_EXC_ERR (12)", Counters: []string{"requester: local_ack_timeout_err", "responder: duplicate_request"},
			},
			Fix: []string{"look for a shaper (tc qdisc show, switch QoS policy, a slow link), or raise the QP's timeout"},
		})
	}
}

// bursty reports whether trains lose packets that single packets do not. What single
// packets may lose as well is loss, and no matter of bursts.
func (d *Direction) bursty() bool {
	lost, sent, small := d.Burst.Sent-d.Burst.Seen, 0, 0
	for _, x := range d.Paths {
		if !d.dead(x) {
			sent += x.Sent
			small += x.Sent - x.Seen
		}
	}
	return lost > 0 && byChance(lost, d.Burst.Sent, small, sent) < burstChance && lost*sent > 4*d.Burst.Sent*small
}

// byChance is how likely it is that of small+lost losses among all packets as many or
// more fall to trains, if it makes no difference how packets are sent (Fisher's exact
// test).
func byChance(lost, train, small, single int) float64 {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	all := lost + small
	whole, p := choose(train+single, all), 0.0
	for k := lost; k <= min(all, train); k++ {
		if all-k <= single {
			p += math.Exp(choose(train, k) + choose(single, all-k) - whole)
		}
	}
	return p
}

// overrun says that packets were lost in the receiving process, where it is so. If the
// others of those that are lost would not fail, it is not known whether the way does.
func (f *Finding) overrun(s side, lost, sent, percent int) {
	if s.d.Overrun > 0 {
		if f.Status == Fail && s.d.BadICRC == 0 && (lost-s.d.Overrun)*100 < sent*percent {
			f.Status = Unknown
		}
		f.Confidence = "low"
		f.Evidence = append(f.Evidence, fmt.Sprintf("the probe's own socket at %s dropped %d (no room in its buffer, or a wrong UDP checksum): those were not lost on the way", s.to, s.d.Overrun))
	}
}
