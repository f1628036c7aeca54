package probe

import (
	"fmt"
	"slices"
	"strings"
)

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

func nameOr(s, or string) string {
	if s == "" {
		return or
	}
	return s
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
