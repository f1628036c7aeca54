package probe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// minForDead is how many packets of a path must be missing, all of them and at
// least, for the path to count as closed and not as lossy.
const minForDead = 5

// lost is the part of the packets that is lost on those paths on which any
// arrive: below 1, and 0 if there is no such path.
func (d *Direction) lost() float64 {
	sent, seen := 0, 0
	for i := range d.Paths {
		if x := &d.Paths[i]; x.Seen > 0 {
			sent += x.Sent
			seen += x.Seen
		}
	}
	if sent == 0 {
		return 0
	}
	return 1 - float64(seen)/float64(sent)
}

// dead reports whether nothing passes on a path, where others are open. One
// that has lost all by chance, as much as others lose, is not dead.
func (d *Direction) dead(x Path) bool {
	return x.Seen == 0 && x.Sent >= max(minForDead, triesAt(d.lost()))
}

// verdict says whether the port is open.
func (p *prober) verdict(d *Direction, rec *record, to Host) {
	var socket, capture, left int
	for i := range rec.reach {
		t := &rec.reach[i]
		if t.left() {
			left++
		}
		if t.passed() {
			socket += min(t.seen.Socket, 1)
			capture += min(t.seen.Capture, 1)
		}
	}
	refused, where := p.refusals(rec)
	d.Where = where
	hardware := hardwareOf(to)
	switch {
	case d.Seen > 0:
		d.HeardBy = "capture"
		if socket > 0 {
			d.HeardBy = "socket"
		}
		d.Verdict = Open
		if slices.ContainsFunc(d.Paths, d.dead) {
			d.Verdict = Partly
		}
		if d.Verdict == Open {
			d.Where = ""
			if len(refused) > 0 {
				p.r.Notes = append(p.r.Notes, fmt.Sprintf("%s packets arrive, and yet they were refused: %s: some other packets were, or the ICMP errors are forged", rec.name(), strings.Join(refused, ", ")))
			}
			return
		}
		d.Why = "no packet of some source ports arrives"
		switch {
		case len(refused) > 0:
			d.Why = strings.Join(refused, ", ")
		case len(d.Errors) > 0:
			d.Where, d.Why = "sender", "packets of some source ports do not leave the sender: "+d.Errors[0].What
		}
	case left == 0 && len(d.Errors) > 0 && d.Errors[0].What == "EPERM":
		d.Verdict, d.Where, d.Why = Blocked, "sender", "the sender's own firewall does not let the packets out (EPERM)"
	case left == 0 && len(d.Errors) > 0:
		d.Verdict, d.Where, d.Why = Blocked, "sender", "the packets do not leave the sender: "+d.Errors[0].What
	case socket == 0 && capture > 0:
		d.Verdict, d.Where = Blocked, "receiver"
		d.Why = "the packets arrive at the receiver's interface and not at its socket: its own firewall, or its reverse-path filter, drops them"
	case d.Strangers > 0:
		d.Verdict, d.Where = Blocked, "network"
		d.Why = "the packets arrive from another address" + rec.stranger() + ": it is translated on the way, and the ICRC covers it"
	case p.r.SeenAs.IsValid() || p.r.ThereOwn.IsValid():
		d.Verdict, d.Where = Blocked, "network"
		d.Why = "nothing arrives: " + p.translation()
	case len(refused) > 0:
		d.Verdict, d.Why = Blocked, "refused: "+strings.Join(refused, ", ")
	case !to.Socket && !to.Capture:
		d.Verdict = CannotTell
		d.Why = fmt.Sprintf("nobody could listen at the receiver: UDP %d: %s; packet socket: %s", p.cfg.RoCEPort, to.SocketWhy, to.CaptureWhy)
	case hardware != "":
		d.Verdict = CannotTell
		d.Why = fmt.Sprintf("nothing arrives, but the receiver's RNIC %s may take UDP %d before its kernel sees it; %s", hardware, p.cfg.RoCEPort, p.otherUDP())
	default:
		d.Verdict, d.Where = Blocked, "network"
		d.Why = "nothing arrives at the receiver's interface"
		if !to.Capture {
			d.Where, d.Why = "network or receiver", "nothing arrives at the receiver's socket (without a packet socket there, the network and the receiver's own firewall cannot be told apart)"
		}
		d.Why += "; " + p.otherUDP()
	}
	if pass := p.otherClasses(rec, to); pass != "" && d.Seen == 0 && d.Verdict != Open {
		d.Why += "; and yet " + pass
	}
}

// otherClasses says which packets arrive of another class or value of ECN than that of
// the small packets.
func (p *prober) otherClasses(rec *record, to Host) string {
	var all []string
	for i := range rec.class {
		t := &rec.class[i]
		if !p.heard(t, to) {
			continue
		}
		tos := ip.TOS(t.probe.TOS)
		if text := fmt.Sprintf("DSCP %d with %v", tos.DSCP(), tos.ECN()); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("packets arrive of %s: it is the class (DSCP %d with ECT(0)) that is dropped", strings.Join(all, ", "), p.cfg.DSCP)
}

// maxRefusals bounds the ICMP errors that a text names.
const maxRefusals = 8

// refusals names the ICMP errors that refuse packets, and where that was: at an
// end if any came from there.
func (p *prober) refusals(rec *record) (all []string, where string) {
	sender, receiver := p.r.Local.WithZone(""), p.r.Address.WithZone("")
	if rec.reverse {
		sender, receiver = receiver, sender
	}
	for _, n := range rec.notices {
		if n.What == tooBig {
			continue
		}
		if len(all) < maxRefusals {
			all = append(all, fmt.Sprintf("%s (ICMP from %v)", n.What, n.From))
		}
		switch {
		case n.From == sender:
			where = "sender"
		case n.From == receiver && where != "sender":
			where = "receiver"
		case where == "":
			where = "network"
		}
	}
	return all, where
}

// translation says what the two ends know of each other's addresses.
func (p *prober) translation() string {
	var all []string
	if a := p.r.SeenAs; a.IsValid() {
		all = append(all, fmt.Sprintf("the other end sees %v as %v", p.r.Local, a))
	}
	if a := p.r.ThereOwn; a.IsValid() {
		all = append(all, fmt.Sprintf("the other end's own address is %v and not %v", a, p.r.Address))
	}
	return strings.Join(all, ", ") + ": addresses are translated on the way, and the ICRC covers them"
}

func (r *record) name() string {
	if r.reverse {
		return "reverse"
	}
	return "forward"
}

// stranger names an address that packets came from which is not the sender's.
func (r *record) stranger() string {
	for _, t := range r.all() {
		if t.seen != nil && t.seen.From != "" {
			return " (" + t.seen.From + ")"
		}
	}
	return ""
}

// otherUDP says what became of UDP on another port.
func (p *prober) otherUDP() string {
	switch {
	case !p.wits.tried:
		return "other UDP ports were not tried"
	case p.wits.back:
		return fmt.Sprintf("UDP %d passes both ways", p.cfg.Port)
	case p.wits.there:
		return fmt.Sprintf("UDP %d passes from here to there", p.cfg.Port)
	}
	return fmt.Sprintf("UDP %d does not pass either", p.cfg.Port)
}

// hardwareOf names the hardware RDMA devices of a host.
func hardwareOf(h Host) string {
	var names []string
	for _, d := range h.Devices {
		if d.Hardware {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

// softwareOf names the kernel's software RDMA devices of a host.
func softwareOf(h Host) string {
	var names []string
	for _, d := range h.Devices {
		if !d.Hardware {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}
