package rdmacm

import (
	"net/netip"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/verbs"
)

// cmIDs lists listeners and connections for snapshots of the device, in the words of
// the rdma tool; those that have ended lately are left out.
func (m *Manager) cmIDs() []snapshot.CMID {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []snapshot.CMID{}
	listening := netip.IPv4Unspecified()
	if a := m.dev.Attr().Addr; a.IsValid() {
		listening = a
	}
	for _, l := range m.listeners {
		space := "TCP"
		if l.space == UDP {
			space = "UDP"
		}
		list = append(list, snapshot.CMID{
			Port: 1, State: snapshot.Known("LISTEN"), PS: snapshot.Known(space),
			Source: snapshot.Known(netip.AddrPortFrom(listening, l.port).String()),
		})
	}
	for id, u := range m.users {
		c, ok := u.(*Conn)
		if !ok || len(list) >= verbs.MaxListed {
			continue
		}
		s := snapshot.CMID{
			CMIDN: uint32(id), Port: 1, PS: snapshot.Known("TCP"), State: snapshot.Known("CONNECT"),
			Source: snapshot.Known(c.local.String()), Dest: snapshot.Known(c.remote.String()),
		}
		if c.phase == over {
			s.State = snapshot.Known("DISCONNECT")
		}
		if c.qp != nil {
			s.LQPN, s.Type = snapshot.Known(uint32(c.qp.Num())), snapshot.Known(c.qp.Type().String())
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b snapshot.CMID) int {
		if a.CMIDN != b.CMIDN {
			return int(int64(a.CMIDN) - int64(b.CMIDN))
		}
		return slices.Compare([]byte(a.Source.Or("")), []byte(b.Source.Or("")))
	})
	return list
}
