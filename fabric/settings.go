package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/swtch"
)

// nodeSettings is what the run has to know of a node's configuration.
type nodeSettings struct {
	sw         *scenario.Switch // of a switch
	host       *scenario.Host   // of a host
	cfg        swtch.Config     // of a switch; Port is gone
	lossless   uint8            // priorities with PFC
	marks      uint8            // priorities with ECN
	used       uint8            // priorities that the traffic may use here
	stormAfter sim.Time
	headroom   []int64 // by port: what a lossless group has
	need       []int64 // by port: what lossless operation takes
}

// common is the settings of the nodes that no overlay names: one copy for all,
// since a large fabric has thousands of them.
type common struct {
	sw   *scenario.Switch
	host *scenario.Host
}

// switchAt returns the settings of a switch.
func (r *Run) switchAt(node int32) *scenario.Switch {
	st, sc := &r.settings[node], r.Scenario
	if st.sw != nil {
		return st.sw
	}
	name := r.Graph.Nodes[node].Name
	named := matches(sc.Switches, name)
	if !named && r.common.sw != nil {
		st.sw = r.common.sw
		return st.sw
	}
	s := sc.SwitchFor(name)
	if st.sw = &s; !named {
		r.common.sw = st.sw
	}
	return st.sw
}

// hostAt returns the settings of a host.
func (r *Run) hostAt(node int32) *scenario.Host {
	st, sc := &r.settings[node], r.Scenario
	if st.host != nil {
		return st.host
	}
	name := r.Graph.Nodes[node].Name
	named := matches(sc.Hosts, name)
	if !named && r.common.host != nil {
		st.host = r.common.host
		return st.host
	}
	h := sc.HostFor(name)
	if st.host = &h; !named {
		r.common.host = st.host
	}
	return st.host
}

func matches(overlays []scenario.Overlay, name string) bool {
	for i := range overlays {
		if overlays[i].Matches(name) {
			return true
		}
	}
	return false
}
