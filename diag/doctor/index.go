package doctor

import (
	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// index finds the interfaces of a snapshot by name, and what uses them: a host may
// have thousands of interfaces and queue pairs.
type index struct {
	netdevs map[string]*snapshot.Netdev
	users   map[string]user
	// switchPorts are the ports of the switch by name.
	switchPorts map[string]*snapshot.SwitchPort
}

// user is the port that uses an interface.
type user struct {
	dev  *snapshot.Device
	port *snapshot.Port
}

func newIndex(h *snapshot.Snapshot) *index {
	ix := &index{netdevs: make(map[string]*snapshot.Netdev, len(h.Netdevs)), users: map[string]user{}, switchPorts: map[string]*snapshot.SwitchPort{}}
	if h.Switch != nil {
		for i := range h.Switch.Ports {
			ix.switchPorts[h.Switch.Ports[i].Name] = &h.Switch.Ports[i]
		}
	}
	for i := range h.Netdevs {
		if n := &h.Netdevs[i]; ix.netdevs[n.Name] == nil {
			ix.netdevs[n.Name] = n
		}
	}
	for i := range h.Devices {
		d := &h.Devices[i]
		for j := range d.Ports {
			n := ix.netdevOf(&d.Ports[j])
			if n == nil {
				continue
			}
			if _, ok := ix.users[n.Name]; !ok {
				ix.users[n.Name] = user{d, &d.Ports[j]}
			}
		}
	}
	return ix
}

// netdevOf returns the interface of a port: the one that the kernel names, else that
// of its GIDs.
func (ix *index) netdevOf(p *snapshot.Port) *snapshot.Netdev {
	if name, ok := p.Netdev.Get(); ok {
		return ix.netdevs[name]
	}
	for i := range p.GIDs {
		if name, ok := p.GIDs[i].Netdev.Get(); ok && name != "" {
			return ix.netdevs[name]
		}
	}
	return nil
}

// work is what is computed once in an examination.
type work struct {
	indexes map[*snapshot.Snapshot]*index
	memo    map[memoKey]reading
	things  map[scopesKey][]*scope

	pfcs     map[*snapshot.Netdev]*counter.PFC
	programs map[*snapshot.Snapshot][]processKind
}

// scopesKey is a host and what rules look at in it.
type scopesKey struct {
	host *snapshot.Snapshot
	each Each
}

// memoKey is a fact of a device, or of the host, at the end of a window.
type memoKey struct {
	fact string
	host *snapshot.Snapshot
	dev  *snapshot.Device
}

func newWork() *work {
	return &work{indexes: map[*snapshot.Snapshot]*index{}, memo: map[memoKey]reading{}, things: map[scopesKey][]*scope{}, pfcs: map[*snapshot.Netdev]*counter.PFC{}, programs: map[*snapshot.Snapshot][]processKind{}}
}

func (w *work) index(h *snapshot.Snapshot) *index {
	ix := w.indexes[h]
	if ix == nil {
		ix = newIndex(h)
		w.indexes[h] = ix
	}
	return ix
}

// pfc are the counters of priority flow control of an interface, sorted out once.
func (w *work) pfc(n *snapshot.Netdev) *counter.PFC {
	p := w.pfcs[n]
	if p == nil {
		c := counter.PFCOf(n)
		p = &c
		w.pfcs[n] = p
	}
	return p
}

// once computes a fact of a device, or of the host where there is none, the first time
// that it is asked for: those that add up long lists are asked for by many rules.
func once(name string, get func(*scope) reading) func(*scope) reading {
	return func(s *scope) reading {
		key := memoKey{name, s.now.host, s.now.dev}
		r, ok := s.work.memo[key]
		if !ok {
			r = get(s)
			s.work.memo[key] = r
		}
		return r
	}
}
