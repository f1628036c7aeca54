package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// lossFail is the part of small packets, in percent, from which on loss is a
// failure.
const lossFail = 1

// side is one direction with the names of its ends, for texts.
type side struct {
	name     string // "forward" or "reverse"
	d        *Direction
	from, to string
	fromHost *Host
	toHost   *Host
}

// find makes the findings of a result.
func (p *prober) find() {
	r := &p.r
	here, there := fmt.Sprintf("%v (here)", r.Local), r.Address.String()
	fwd := side{"forward", &r.Forward, here, there, &r.Here, &r.There}
	rev := side{"reverse", &r.Reverse, there, here, &r.There, &r.Here}
	p.findPort(fwd, rev)
	for _, s := range []side{fwd, rev} {
		p.note(s)
		if s.d.Verdict != Open && s.d.Verdict != Partly {
			continue
		}
		p.findPaths(s)
		p.findLoss(s)
		p.findMangled(s)
		p.findMTU(s)
		p.findClasses(s)
		p.findBurst(s)
	}
	p.findInterfaces()
	p.merge()
	p.noteCapture()
}

func (p *prober) add(f Finding) { p.r.Findings = append(p.r.Findings, f) }

// findPort speaks of directions that are closed, or about which nothing is
// known.
func (p *prober) findPort(sides ...side) {
	for _, s := range sides {
		f := Finding{
			Rule: "N02", Direction: s.name, Effect: blockedEffect(s), Confidence: "high",
			Evidence: []string{fmt.Sprintf("%d probes to UDP %d sent from %s, %d heard at %s", s.d.Sent, p.cfg.RoCEPort, s.from, s.d.Seen, s.to), s.d.Why},
		}
		for _, e := range s.d.Errors {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%d sends failed with %s", e.Count, e.What))
		}
		if s.d.Sent < minForDead {
			f.Confidence = "low"
		}
		switch s.d.Verdict {
		case Blocked:
			f.ID, f.Status = "port-blocked", Fail
			f.What = fmt.Sprintf("UDP %d is blocked from %s to %s", p.cfg.RoCEPort, s.from, s.to)
			f.Fix = p.openFix(s)
			if known := p.r.SeenAs.IsValid() || p.r.ThereOwn.IsValid(); s.d.Where == "network" && (s.d.Strangers > 0 || known) {
				f.nameNAT(s)
				if known {
					f.Evidence = append(f.Evidence, p.translation())
				}
			}
		case CannotTell:
			f.ID, f.Status, f.Confidence = "port-unknown", Unknown, "low"
			f.What = fmt.Sprintf("cannot tell whether UDP %d passes from %s to %s", p.cfg.RoCEPort, s.from, s.to)
			f.Effect.What = "if it does not pass: " + f.Effect.What
			f.Fix = []string{fmt.Sprintf("on %s, run the probe as root while no RDMA program uses the address, or try the RNIC itself: verbena perf write-bw, or ib_write_bw", s.to)}
		default:
			continue
		}
		p.add(f)
	}
}

// nameNAT makes f the finding that addresses are translated.
func (f *Finding) nameNAT(s side) {
	f.ID, f.Rule = "address-translated", "C19"
	f.What = fmt.Sprintf("addresses are translated between %s and %s", s.from, s.to)
	f.Effect = icrcEffect(s)
	f.Fix = []string{"route between the two hosts without NAT"}
}

// openFix says which command opens the port, by where it is closed.
func (p *prober) openFix(s side) []string {
	port := p.cfg.RoCEPort
	var fix []string
	if s.d.Where == "sender" {
		fix = append(fix, fmt.Sprintf("on %s: nft insert rule inet filter output udp dport %d accept (see \"nft list ruleset\")", s.from, port))
	}
	if strings.Contains(s.d.Where, "receiver") {
		fix = append(fix, fmt.Sprintf("on %s: firewall-cmd --add-port=%d/udp, or nft insert rule inet filter input udp dport %d accept (see \"nft list ruleset\")", s.to, port, port))
	}
	if strings.Contains(s.d.Where, "network") {
		fix = append(fix, fmt.Sprintf("in switch ACLs, routers and security groups: let UDP destination port %d through from %s to %s", port, s.from, s.to))
	}
	return fix
}

// findPaths speaks of source ports that do not pass while others do.
func (p *prober) findPaths(s side) {
	if s.d.Verdict != Partly {
		return
	}
	f := Finding{
		ID: "path-blocked", Rule: "N02", Status: Fail, Direction: s.name, Confidence: "high", Effect: blockedEffect(s),
		What: fmt.Sprintf("some paths from %s to %s are dead: packets of some source ports arrive, of others never", s.from, s.to),
		Fix:  []string{"look at the ECMP or LAG members between the two hosts: one of them drops; an ACL that names source ports does the same"},
	}
	f.Effect.What = "QPs whose source port hashes to the dead path fail and others work: " + f.Effect.What
	for _, x := range s.d.Paths {
		f.Evidence = append(f.Evidence, fmt.Sprintf("source port %d: %d of %d arrived", x.Port, x.Seen, x.Sent))
	}
	p.add(f)
}

// findLoss speaks of lost, overtaken and doubled packets of open paths.
func (p *prober) findLoss(s side) {
	sent, seen := 0, 0
	for _, x := range s.d.Paths {
		if x.Seen > 0 || x.Sent < minForDead {
			sent += x.Sent
			seen += x.Seen
		}
	}
	if lost := sent - seen; lost > 0 {
		f := Finding{
			ID: "loss", Rule: "C13", Status: Warn, Direction: s.name, Confidence: "high",
			What:     fmt.Sprintf("%.2g %% of the packets from %s to %s are lost", 100*float64(lost)/float64(sent), s.from, s.to),
			Evidence: []string{fmt.Sprintf("%d of %d small packets, one every %v, did not arrive; limit for a failure: %d %%", lost, sent, p.cfg.Interval, lossFail)},
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
		if s.d.Sent < 100 {
			f.Confidence = "medium"
		}
		f.overrun(s)
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

// findMangled speaks of packets that an RNIC would drop for their ICRC.
func (p *prober) findMangled(s side) {
	if s.d.BadICRC == 0 && s.d.ClearedDF == 0 && s.d.Cut == 0 {
		return
	}
	f := Finding{
		ID: "icrc", Rule: "C19", Status: Fail, Direction: s.name, Confidence: "high", Effect: icrcEffect(s),
		What:     fmt.Sprintf("packets from %s reach %s changed in what the ICRC covers", s.from, s.to),
		Evidence: []string{fmt.Sprintf("%d packets with a wrong ICRC, %d whose don't-fragment flag was cleared", s.d.BadICRC, s.d.ClearedDF)},
		Fix:      []string{"look for NAT, a port translation, a tunnel or a middlebox that rewrites packets on the way"},
	}
	if s.d.Cut > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%d packets arrived in fragments although they forbid that: a router clears don't-fragment and cuts them", s.d.Cut))
	}
	if port, as := s.d.ports(); as != 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("source port %d arrives as %d: it is translated", port, as))
	}
	if s.d.BadICRC > 0 && (p.r.SeenAs.IsValid() || p.r.ThereOwn.IsValid()) {
		f.nameNAT(s)
		f.Evidence = append(f.Evidence, p.translation())
	}
	p.add(f)
}

// findMTU speaks of packets that are too large for the path.
func (p *prober) findMTU(s side) {
	m := s.d.MTU
	if !m.Limited || m.Path == 0 {
		return
	}
	active := activeMTU(m.Interface)
	if other := activeMTU(s.toHost.MTU); other > 0 {
		active = min(active, other)
	}
	f := Finding{
		ID: "mtu-path", Rule: "L12", Status: Warn, Direction: s.name, Confidence: "high",
		What: fmt.Sprintf("packets of more than %d bytes do not pass from %s to %s", m.Path, s.from, s.to),
		Evidence: []string{
			fmt.Sprintf("interface MTU of %s: %d; largest IP packet that arrived: %d (found in steps of 4)", s.from, m.Interface, m.Path),
			fmt.Sprintf("a QP of path MTU %d sends packets of up to %d bytes; path MTU %d fits", active, packetFor(active, p.r.Address), m.RoCE),
		},
		Effect: Effect{What: fmt.Sprintf("none for QPs of path MTU %d or less, the most that both interfaces allow", active), State: "RTS", Completion: "IBV_WC_SUCCESS"},
		Fix: []string{
			fmt.Sprintf("raise the MTU of the switch ports and routers on the way to %d", m.Interface),
			fmt.Sprintf("or on %s: ip link set %s mtu %d", s.from, nameOr(s.fromHost.Interface, "IF"), m.Path),
		},
	}
	if s.d.Cut > 0 {
		f.Evidence = append(f.Evidence, "larger ones arrive in fragments, which no RNIC puts together")
	}
	if m.Told > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("an ICMP error says MTU %d; an RNIC does not listen to it", m.Told))
	} else if s.d.Cut == 0 {
		f.Evidence = append(f.Evidence, "no ICMP error came: a black hole, which path MTU discovery does not find either")
	}
	if s.d.Sent > 0 && 2*s.d.Seen < s.d.Sent {
		f.Confidence = "low" // most are lost, whatever their size
	}
	if s.d.mtuByPath() {
		for _, x := range s.d.Paths {
			f.Evidence = append(f.Evidence, fmt.Sprintf("source port %d: %d bytes", x.Port, x.MTU))
		}
	}
	if active > m.RoCE {
		f.Status = Fail
		f.Effect = Effect{
			What:  fmt.Sprintf("connections come up and messages up to about %d bytes work; the first larger one is lost again and again, at every retry", m.RoCE),
			State: "RTS, then ERR", Completion: "IBV_WC_RETRY_EXC_ERR (12)",
			Counters: []string{
				fmt.Sprintf("requester: local_ack_timeout_err, req_transport_retries_exceeded (mlx5), retry_exceeded_err (rxe), for SEND and WRITE at %s and READ at %s", s.from, s.to),
				"responder: nothing, or out_of_sequence when smaller packets follow",
			},
		}
		f.Fix = append(f.Fix, fmt.Sprintf("or give the QPs path MTU %d (perftest: -m %d)", max(m.RoCE, 256), max(m.RoCE, 256)))
	}
	p.add(f)
}

func nameOr(s, or string) string {
	if s == "" {
		return or
	}
	return s
}

// findSmallInterfaces speaks of interfaces that carry no RoCE at all.
func (p *prober) findSmallInterfaces() {
	f := Finding{
		ID: "mtu-interface", Rule: "L12", Status: Fail, Direction: "both", Confidence: "high",
		What: "an interface's MTU is too small for RoCE",
		Effect: Effect{
			What: "the port of an RNIC on this interface does not become active", State: "no QP leaves INIT", Completion: "none", Counters: []string{"none"},
		},
	}
	for _, e := range []struct {
		host *Host
		name string
	}{{&p.r.Here, fmt.Sprintf("%v (here)", p.r.Local)}, {&p.r.There, p.r.Address.String()}} {
		if e.host.MTU == 0 || activeMTU(e.host.MTU) > 0 {
			continue
		}
		dev := nameOr(e.host.Interface, "IF")
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: interface %s has MTU %d; the smallest path MTU, %d, needs %d", e.name, dev, e.host.MTU, roceMTUs[0], roceMTUs[0]+linuxHeaders))
		f.Fix = append(f.Fix, fmt.Sprintf("on %s: ip link set %s mtu 1500, or 4200 and more for path MTU 4096", e.name, dev))
	}
	if len(f.Evidence) > 0 {
		p.add(f)
	}
}

// findInterfaces speaks of two ends whose interfaces differ.
func (p *prober) findInterfaces() {
	a, b := p.r.Here.MTU, p.r.There.MTU
	p.findSmallInterfaces()
	if a == 0 || b == 0 || activeMTU(a) == activeMTU(b) || activeMTU(a) == 0 || activeMTU(b) == 0 {
		return
	}
	p.add(Finding{
		ID: "mtu-differs", Rule: "L10", Status: Warn, Direction: "both", Confidence: "high",
		What:     fmt.Sprintf("the two ends have different MTUs: %d here, %d there", a, b),
		Evidence: []string{fmt.Sprintf("active RoCE MTU %d here, %d there", activeMTU(a), activeMTU(b))},
		Effect: Effect{
			What: "programs that agree on the smaller path MTU work; those that each take their own port's fail at the first message of more than one packet", State: "RTS, then ERR",
			Completion: "IBV_WC_RETRY_EXC_ERR (12) at the sender, or IBV_WC_LOC_LEN_ERR (1) at the receiver", Counters: []string{"responder: nothing, or resp_local_length_error (mlx5)"},
		},
		Fix: []string{fmt.Sprintf("on both hosts the same: ip link set %s mtu %d", nameOr(p.r.Here.Interface, "IF"), max(a, b))},
	})
}

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
		case c.Arrived == 0 && c.Tries >= codeTries:
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

// findBurst speaks of trains.
func (p *prober) findBurst(s side) {
	b := s.d.Burst
	lossy := s.d.Seen < s.d.Sent && s.d.Verdict == Open // then the finding says "loss" already, unless bursts lose much more
	lost := b.Sent - b.Seen
	if b.Sent > 0 && lost > 0 && (!lossy || lost*s.d.Sent > 4*b.Sent*(s.d.Sent-s.d.Seen)) {
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
		if lost*20 >= b.Sent {
			f.Status = Fail
		}
		f.overrun(s)
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

// overrun says that packets were lost in the receiving process, where it is so.
func (f *Finding) overrun(s side) {
	if s.d.Overrun > 0 {
		f.Confidence = "low"
		f.Evidence = append(f.Evidence, fmt.Sprintf("the probe's own socket at %s dropped %d (no room in its buffer, or a wrong UDP checksum): those were not lost on the way", s.to, s.d.Overrun))
	}
}

// ports returns a source port that arrived as another; 0 and 0 if none did.
func (d *Direction) ports() (sent, as uint16) {
	for _, x := range d.Paths {
		if x.Arrived != 0 && x.Arrived != x.Port {
			return x.Port, x.Arrived
		}
	}
	return 0, 0
}

// noteCapture says what cannot be told without a packet socket.
func (p *prober) noteCapture() {
	for _, e := range []struct {
		host  Host
		where string
	}{{p.r.Here, "here"}, {p.r.There, fmt.Sprintf("at %v", p.r.Address)}} {
		if !e.host.Capture {
			p.r.Notes = append(p.r.Notes, fmt.Sprintf("no packet socket %s (%s): a firewall of that host cannot be told from the network, and the don't-fragment flag is not seen", e.where, nameOr(e.host.CaptureWhy, "not tried")))
		}
	}
}

// note says how far what was heard goes.
func (p *prober) note(s side) {
	port := p.cfg.RoCEPort
	if s.d.HeardBy == "capture" && !s.toHost.Socket {
		who := nameOr(softwareOf(*s.toHost), "its owner")
		p.r.Notes = append(p.r.Notes, fmt.Sprintf("%s: UDP %d has another owner there (%s): probes were heard at the interface; a firewall of that host between the interface and %s is not seen",
			s.to, port, s.toHost.SocketWhy, who))
	}
	if m := s.d.Marked; m.Part > 0 && m.Part*2 < m.Whole {
		p.r.Notes = append(p.r.Notes, fmt.Sprintf("from %s to %s: %d of %d packets were marked CE: congestion on the way just now", s.from, s.to, m.Part, m.Whole))
	}
}

// merge makes one finding of two that differ in the direction only.
func (p *prober) merge() {
	var out []Finding
	for _, f := range p.r.Findings {
		i := slices.IndexFunc(out, func(g Finding) bool { return g.ID == f.ID && g.Status == f.Status && g.Direction != f.Direction })
		if i < 0 || f.Direction == "both" || f.ID == "icrc" {
			out = append(out, f)
			continue
		}
		g := &out[i]
		g.Direction = "both"
		g.What += "; and " + f.What
		g.Evidence = append(g.Evidence, f.Evidence...)
		for _, x := range f.Fix {
			if !slices.Contains(g.Fix, x) {
				g.Fix = append(g.Fix, x)
			}
		}
		if g.ID == "port-blocked" || g.ID == "port-unknown" {
			g.Effect = bothBlockedEffect()
			if g.ID == "port-unknown" {
				g.Effect.What = "if it does not pass: " + g.Effect.What
			}
		}
	}
	p.r.Findings = append([]Finding{}, out...)
}
