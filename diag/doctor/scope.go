package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Input is what the doctor looks at.
type Input struct {
	Host snapshot.Window
	// Peer is the other end, nil if it is not known.
	Peer *snapshot.Window
	// Prio is the lossless priority, -1 to infer it.
	Prio int
}

// moment is a host at one of the two instants with the thing that a rule looks at
// there; parts that a rule does not look at are nil.
type moment struct {
	host   *snapshot.Snapshot
	dev    *snapshot.Device
	port   *snapshot.Port
	net    *snapshot.Netdev
	qp     *snapshot.QP
	swPort *snapshot.SwitchPort
	prof   *snapshot.ECNProfile
}

// scope is one thing that a rule looks at, now and before.
type scope struct {
	in     *Input
	each   Each
	window snapshot.Window
	now    moment
	before *moment // nil for one snapshot, or a thing that was not there
	peer   *scope  // the same at the other end, nil if it is not known
}

// name says what a scope is, for people: mlx5_0/1, eth0, QP 0x11 of mlx5_0.
func (s *scope) name() string {
	m := &s.now
	switch {
	case s.each == EachNetdev:
		return m.net.Name
	case m.qp != nil:
		return fmt.Sprintf("%s QP %d", m.dev.Name, m.qp.LQPN)
	case m.port != nil:
		return m.dev.Name + "/" + strconv.Itoa(m.port.Number)
	case m.dev != nil:
		return m.dev.Name
	case m.net != nil:
		return m.net.Name
	case m.swPort != nil:
		return "switch port " + m.swPort.Name
	case m.prof != nil:
		return "ECN profile " + m.prof.Name
	}
	return m.host.Host.Or("host")
}

// scopes returns what a rule looks at in a host.
func scopes(in *Input, w snapshot.Window, each Each) []*scope {
	var out []*scope
	add := func(now moment) {
		now.host = w.After
		s := &scope{in: in, each: each, window: w, now: now}
		if w.Before != nil {
			s.before = same(w.Before, &now)
		}
		out = append(out, s)
	}
	h := w.After
	switch each {
	case EachHost:
		add(moment{})
	case EachDevice, EachPort, EachQP:
		for i := range h.Devices {
			eachOfDevice(h, &h.Devices[i], each, add)
		}
	case EachNetdev:
		for i := range h.Netdevs {
			n := &h.Netdevs[i]
			dev, port := deviceOn(h, n.Name)
			add(moment{net: n, dev: dev, port: port})
		}
	case EachSwitchPort:
		if h.Switch != nil {
			for i := range h.Switch.Ports {
				add(moment{swPort: &h.Switch.Ports[i]})
			}
		}
	case EachProfile:
		if h.Switch != nil {
			for i := range h.Switch.Profiles {
				add(moment{prof: &h.Switch.Profiles[i]})
			}
		}
	}
	return out
}

func eachOfDevice(h *snapshot.Snapshot, d *snapshot.Device, each Each, add func(moment)) {
	switch each {
	case EachDevice:
		m := moment{dev: d}
		if len(d.Ports) > 0 {
			m.port = &d.Ports[0]
			m.net = netdevOf(h, m.port)
			m.port = nil
		}
		add(m)
	case EachPort:
		for i := range d.Ports {
			add(moment{dev: d, port: &d.Ports[i], net: netdevOf(h, &d.Ports[i])})
		}
	case EachQP:
		qps, _ := d.QPs.Get()
		for i := range qps {
			m := moment{dev: d, qp: &qps[i]}
			for j := range d.Ports {
				if d.Ports[j].Number == qps[i].Port || len(d.Ports) == 1 {
					m.port, m.net = &d.Ports[j], netdevOf(h, &d.Ports[j])
				}
			}
			add(m)
		}
	default:
	}
}

// netdevOf returns the interface of a port: the one that the kernel names, else that
// of its GIDs.
func netdevOf(h *snapshot.Snapshot, p *snapshot.Port) *snapshot.Netdev {
	if name, ok := p.Netdev.Get(); ok {
		return h.Netdev(name)
	}
	for i := range p.GIDs {
		if name, ok := p.GIDs[i].Netdev.Get(); ok && name != "" {
			return h.Netdev(name)
		}
	}
	return nil
}

// deviceOn returns the port that uses an interface.
func deviceOn(h *snapshot.Snapshot, netdev string) (*snapshot.Device, *snapshot.Port) {
	for i := range h.Devices {
		d := &h.Devices[i]
		for j := range d.Ports {
			if n := netdevOf(h, &d.Ports[j]); n != nil && n.Name == netdev {
				return d, &d.Ports[j]
			}
		}
	}
	return nil, nil
}

// same returns the thing that now is in another snapshot of the host; nil if it is not
// there.
func same(h *snapshot.Snapshot, now *moment) *moment {
	m := &moment{host: h}
	if now.dev != nil {
		if m.dev = h.Device(now.dev.Name); m.dev == nil {
			return nil
		}
	}
	if now.port != nil {
		for i := range m.dev.Ports {
			if m.dev.Ports[i].Number == now.port.Number {
				m.port = &m.dev.Ports[i]
			}
		}
		if m.port == nil {
			return nil
		}
	}
	if now.net != nil {
		m.net = h.Netdev(now.net.Name)
	}
	if now.qp != nil {
		qps, _ := m.dev.QPs.Get()
		for i := range qps {
			if qps[i].LQPN == now.qp.LQPN {
				m.qp = &qps[i]
			}
		}
	}
	if now.swPort != nil && h.Switch != nil {
		for i := range h.Switch.Ports {
			if h.Switch.Ports[i].Name == now.swPort.Name {
				m.swPort = &h.Switch.Ports[i]
			}
		}
	}
	return m
}

// kind returns the kind of device that a scope is about; hardware where none is.
func (s *scope) kind() snapshot.Kind {
	if s.now.dev == nil || s.now.dev.Kind == "" {
		return snapshot.Hardware
	}
	return s.now.dev.Kind
}

// concerns reports whether a rule is for this kind of device.
func (s *scope) concerns(r *Rule) bool {
	if s.now.dev == nil {
		return true
	}
	switch r.Scope {
	case Hardware:
		return !s.kind().Software() // a simulated one stands for hardware
	case Software:
		return s.kind().Software()
	case Ours:
		return s.kind() == snapshot.Verbena || s.kind() == snapshot.Sim
	default:
		return true
	}
}

// pairPeer finds the other end of a scope in the snapshot of a peer: the device that
// the program names, the one of the same name, or the only one.
func pairPeer(s *scope, peers []*scope) *scope {
	if len(peers) == 1 {
		return peers[0]
	}
	for _, p := range peers {
		if sameSubnet(s.now.net, p.now.net) {
			return p
		}
	}
	for _, p := range peers {
		if strings.EqualFold(p.name(), s.name()) {
			return p
		}
	}
	return nil
}
