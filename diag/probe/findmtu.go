package probe

import (
	"fmt"
)

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
