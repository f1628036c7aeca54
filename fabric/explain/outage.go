package explain

import "github.com/verbena-rdma/verbena/fabric/sim"

// Outage is a link that was down for a while.
type Outage struct {
	Port, Peer Place // its ends; Port is the one that the run names
	From       sim.Time
	To         sim.Time // Never: to the end
}

// outages pairs the ups and downs of each link.
func (n *net) outages() []Outage {
	var out []Outage
	open := map[int32]int{} // lower egress of a link to its outage; looked up only
	for i := range n.r.Links {
		l := &n.r.Links[i]
		e := n.egress(l.Node, l.Port)
		if e == none {
			continue
		}
		id := e
		if p := n.peer(e); p != none {
			id = min(id, p)
		}
		j, down := open[id]
		switch {
		case !l.Up && !down:
			open[id] = len(out)
			out = append(out, Outage{n.place(e), n.place(n.peer(e)), l.At, sim.Never})
		case l.Up && down:
			out[j].To = l.At
			delete(open, id)
		}
	}
	return out
}
