package doctor

import (
	"fmt"
	"net/netip"
	"slices"
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
	work   *work
	window snapshot.Window
	now    moment
	before *moment // nil for one snapshot, or a thing that was not there
	peer   *scope  // the same at the other end, nil if it is not known
	alike  int     // queue pairs that this one stands for, itself included

	proc  *snapshot.App // the process of the program that is looked at; nil for the first
	asked bool          // whether something has asked about the program
}

// name says what a scope is, for people: mlx5_0/1, eth0, QP 0x11 of mlx5_0.
func (s *scope) name() string {
	m := &s.now
	switch {
	case s.each == EachNetdev:
		return m.net.Name
	case m.qp != nil && s.alike > 1:
		return fmt.Sprintf("%s QP %d and %d more like it", m.dev.Name, m.qp.LQPN, s.alike-1)
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

// scopes returns what rules look at in a host, made once for all of them.
func (w *work) scopes(in *Input, win snapshot.Window, each Each) []*scope {
	key := scopesKey{win.After, each}
	if out, ok := w.things[key]; ok {
		return out
	}
	var out []*scope
	ix := w.index(win.After)
	add := func(now moment, alike int) {
		now.host = win.After
		s := &scope{in: in, each: each, work: w, window: win, now: now, alike: alike}
		if win.Before != nil {
			s.before = w.same(win.Before, &now)
		}
		out = append(out, s)
	}
	h := win.After
	switch each {
	case EachHost:
		add(moment{}, 1)
	case EachDevice, EachPort, EachQP:
		for i := range h.Devices {
			eachOfDevice(ix, &h.Devices[i], each, add)
		}
	case EachNetdev:
		for i := range h.Netdevs {
			n := &h.Netdevs[i]
			u := ix.users[n.Name]
			add(moment{net: n, dev: u.dev, port: u.port}, 1)
		}
	case EachSwitchPort:
		if h.Switch != nil {
			for i := range h.Switch.Ports {
				add(moment{swPort: &h.Switch.Ports[i]}, 1)
			}
		}
	case EachProfile:
		if h.Switch != nil {
			for i := range h.Switch.Profiles {
				add(moment{prof: &h.Switch.Profiles[i]}, 1)
			}
		}
	}
	w.things[key] = out
	return out
}

func eachOfDevice(ix *index, d *snapshot.Device, each Each, add func(moment, int)) {
	switch each {
	case EachDevice:
		m := moment{dev: d}
		if len(d.Ports) > 0 {
			m.net = ix.netdevOf(&d.Ports[0])
		}
		add(m, 1)
	case EachPort:
		for i := range d.Ports {
			add(moment{dev: d, port: &d.Ports[i], net: ix.netdevOf(&d.Ports[i])}, 1)
		}
	case EachQP:
		for _, k := range kindsOfQPs(d) {
			m := moment{dev: d, qp: k.first}
			for j := range d.Ports {
				if d.Ports[j].Number == k.first.Port || len(d.Ports) == 1 {
					m.port, m.net = &d.Ports[j], ix.netdevOf(&d.Ports[j])
				}
			}
			add(m, k.n)
		}
	default:
	}
}

// qpKind is all that facts say of a queue pair: those of one kind are judged once.
type qpKind struct {
	port                            int
	kind, state, comm               string
	pathMTU, gidIndex, trafficClass snapshot.Value[int]
}

type qpsAlike struct {
	first *snapshot.QP
	n     int
}

// kindsOfQPs are the queue pairs of a device, those that are alike as one, in order.
func kindsOfQPs(d *snapshot.Device) []qpsAlike {
	qps, _ := d.QPs.Get()
	at := map[qpKind]int{}
	var out []qpsAlike
	for i := range qps {
		q := &qps[i]
		k := qpKind{q.Port, q.Type, q.State, q.Comm, q.PathMTU, q.GIDIndex, q.TrafficClass}
		j, ok := at[k]
		if !ok {
			j = len(out)
			at[k] = j
			out = append(out, qpsAlike{first: q})
		}
		out[j].n++
	}
	return out
}

// same returns the thing that now is in another snapshot of the host; nil if it is not
// there.
func (w *work) same(h *snapshot.Snapshot, now *moment) *moment {
	m := &moment{host: h}
	ix := w.index(h)
	if now.dev != nil {
		if m.dev = h.Same(now.dev); m.dev == nil {
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
		m.net = ix.netdevs[now.net.Name]
	}
	if now.swPort != nil {
		m.swPort = ix.switchPorts[now.swPort.Name]
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

// pairPeers gives the scopes of a host their other ends in the snapshot of a peer: what
// has an address in the same subnet, else what has the same name, else the only one. A
// queue pair's other end is a port: which queue pair it is, the snapshots do not say.
func (w *work) pairPeers(in *Input, each Each, all []*scope) {
	if each == EachQP {
		each = EachPort
	}
	peers := w.scopes(in, *in.Peer, each)
	host := w.scopes(in, *in.Peer, EachHost)[0]
	bySubnet, byName := map[netip.Prefix]*scope{}, map[string]*scope{}
	for _, p := range slices.Backward(peers) {
		byName[strings.ToLower(p.pairName())] = p
		for _, x := range subnets(p.now.net) {
			bySubnet[x] = p
		}
	}
	for _, s := range all {
		if len(peers) == 1 {
			s.peer = peers[0]
			continue
		}
		for _, x := range subnets(s.now.net) {
			if s.peer == nil {
				s.peer = bySubnet[x]
			}
		}
		if s.peer == nil {
			s.peer = byName[strings.ToLower(s.pairName())]
		}
		if s.peer == nil {
			// What is known of the other end's host is better than nothing.
			s.peer = host
		}
	}
}

// pairName is the name by which the same thing is known at the other end.
func (s *scope) pairName() string {
	if s.now.qp != nil && s.now.port != nil {
		return s.now.dev.Name + "/" + strconv.Itoa(s.now.port.Number)
	}
	return s.name()
}
