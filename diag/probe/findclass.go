package probe

import (
	"fmt"
	"slices"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// findClasses speaks of DSCP and ECN.
func (p *prober) findClasses(s side) {
	var changed, dropped []string
	class := false
	for i := range s.d.DSCP {
		c := &s.d.DSCP[i]
		switch as, yes := c.became(); {
		case yes:
			changed = append(changed, fmt.Sprintf("DSCP %d arrives as %d", c.Sent, as))
			class = class || c.Sent == p.cfg.DSCP
		case c.Arrived == 0 && c.Tries >= max(codeTries, triesAt(s.d.lost())):
			dropped = append(dropped, fmt.Sprintf("DSCP %d: 0 of %d arrived", c.Sent, c.Tries))
		}
	}
	if len(changed) > 0 {
		f := Finding{
			ID: "dscp-rewritten", Rule: "N12", Status: Warn, Direction: s.name, Confidence: "high", Evidence: changed,
			What: fmt.Sprintf("DSCP is rewritten from %s to %s", s.from, s.to),
			Effect: Effect{
				What: "QPs work, but from the hop that rewrites on RoCE is in another priority: no PFC, no ECN marking, loss under load", State: "RTS", Completion: "IBV_WC_SUCCESS; under load as for loss",
				Counters: []string{"receiver: rx_prio0_bytes instead of the RoCE priority's (ethtool -S), rx_discards_phy, out_of_sequence"},
			},
			Fix: []string{"on the switches: trust DSCP on the ports to hosts and between switches, and remove remarking policies; tunnels must copy the outer DSCP"},
		}
		if !class {
			f.Effect.What = fmt.Sprintf("none for the class that was asked about (DSCP %d); CNPs (DSCP 48) and other classes may be affected", p.cfg.DSCP)
		}
		p.add(f)
	}
	if len(dropped) > 0 {
		p.add(Finding{
			ID: "dscp-dropped", Rule: "N12", Status: Fail, Direction: s.name, Confidence: "medium", Evidence: dropped,
			What:   fmt.Sprintf("some classes do not pass from %s to %s", s.from, s.to),
			Effect: blockedEffect(s), Fix: []string{"look for a policer or a queue without bandwidth for these code points"},
		})
	}
	var lost []string
	for i := range s.d.ECN {
		if c := &s.d.ECN[i]; c.Arrived == 0 && ip.ECN(c.Sent) != ip.ECT0 && c.Tries >= max(codeTries, triesAt(s.d.lost())) {
			lost = append(lost, fmt.Sprintf("%v: 0 of %d arrived, ECT(0) does", ip.ECN(c.Sent), c.Tries))
		}
	}
	if len(lost) > 0 {
		p.add(Finding{
			ID: "ecn-dropped", Rule: "N12", Status: Fail, Direction: s.name, Confidence: "medium", Evidence: lost,
			What: fmt.Sprintf("packets with some values of ECN do not pass from %s to %s", s.from, s.to),
			Effect: Effect{
				What: "a packet that a switch marks (CE) is lost instead of answered by a CNP, an ACK or CNP that is sent as Not-ECT is lost always", State: "RTS, then ERR",
				Completion: "IBV_WC_RETRY_EXC_ERR (12), under load or at once", Counters: []string{"requester: local_ack_timeout_err, packet_seq_err (mlx5)", "responder: np_ecn_marked_roce_packets stays 0"},
			},
			Fix: []string{"look for a firewall or a policer that matches the last two bits of TOS"},
		})
	}
	p.findECN(s)
}

// findECN speaks of the congestion field.
func (p *prober) findECN(s side) {
	as := map[ip.ECN][]int{}
	for _, c := range s.d.ECN {
		as[ip.ECN(c.Sent)] = c.As
	}
	var bleached, cleared, odd []string
	for _, e := range []ip.ECN{ip.ECT0, ip.ECT1} {
		if slices.Contains(as[e], int(ip.NotECT)) {
			bleached = append(bleached, fmt.Sprintf("%v arrives as Not-ECT", e))
		}
	}
	for _, v := range as[ip.CE] {
		if v != int(ip.CE) {
			cleared = append(cleared, fmt.Sprintf("CE arrives as %v", ip.ECN(v)))
		}
	}
	for _, v := range as[ip.NotECT] {
		if v != int(ip.NotECT) {
			odd = append(odd, fmt.Sprintf("Not-ECT arrives as %v", ip.ECN(v)))
		}
	}
	if slices.Contains(as[ip.ECT0], int(ip.ECT1)) {
		odd = append(odd, "ECT(0) arrives as ECT(1)")
	}
	all := s.d.Marked.Whole >= 10 && s.d.Marked.Part*2 >= s.d.Marked.Whole
	if len(bleached) > 0 || len(cleared) > 0 {
		p.add(Finding{
			ID: "ecn-bleached", Rule: "N12", Status: Warn, Direction: s.name, Confidence: "high", Evidence: append(bleached, cleared...),
			What: fmt.Sprintf("ECN does not survive from %s to %s", s.from, s.to),
			Effect: Effect{
				What: "DCQCN is blind: behind the hop that clears the field switches drop or pause instead of marking, and marks set before it are lost; the sender never slows down", State: "RTS",
				Completion: "IBV_WC_SUCCESS; under load PFC pauses and loss", Counters: []string{"receiver: np_ecn_marked_roce_packets and np_cnp_sent stay 0", "sender: rp_cnp_handled stays 0 while pause counters rise"},
			},
			Fix: []string{"on the switches and tunnels: do not rewrite the last two bits of TOS (a DSCP policy must set 6 bits, not 8); use ECN mode of the tunnel (RFC 6040)"},
		})
	}
	if all {
		p.add(Finding{
			ID: "ecn-always-marked", Rule: "C10", Status: Warn, Direction: s.name, Confidence: "high",
			What:     fmt.Sprintf("nearly every packet arrives marked CE from %s to %s, without load of ours", s.from, s.to),
			Evidence: append([]string{fmt.Sprintf("%d of %d packets sent as ECT(0) arrived as CE", s.d.Marked.Part, s.d.Marked.Whole)}, odd...),
			Effect: Effect{
				What: "each marked packet asks for a CNP: DCQCN holds the QP at its lowest rate", State: "RTS", Completion: "IBV_WC_SUCCESS, slow",
				Counters: []string{"receiver: np_ecn_marked_roce_packets, np_cnp_sent", "sender: rp_cnp_handled"},
			},
			Fix: []string{"raise the ECN threshold (Kmin) of the queue, or remove the policy that sets CE; or a hop is congested all the time"},
		})
	} else if len(odd) > 0 {
		p.add(Finding{
			ID: "ecn-changed", Rule: "N12", Status: Warn, Direction: s.name, Confidence: "high", Evidence: odd,
			What:   fmt.Sprintf("the ECN field is rewritten from %s to %s", s.from, s.to),
			Effect: Effect{What: "congestion is signalled where there is none, or to senders that do not react", State: "RTS", Completion: "IBV_WC_SUCCESS", Counters: []string{"receiver: np_ecn_marked_roce_packets"}},
			Fix:    []string{"look for a policy that writes all 8 bits of TOS"},
		})
	}
}
