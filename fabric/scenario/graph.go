package scenario

import (
	"io"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo"
)

// shape returns the generator of a kind that has one.
func (t *Topology) shape() topo.Shape {
	rate, delay := t.Rate, t.LinkDelay()
	up, upDelay := t.TrunkRate(), t.TrunkDelay()
	switch t.Kind {
	case Dumbbell:
		return topo.Dumbbell{Left: t.Left, Right: t.Right, Rate: rate, BottleneckRate: up, Delay: delay, BottleneckDelay: upDelay}
	case ParkingLot:
		return topo.ParkingLot{
			Switches: t.Switches, HostsPerSwitch: t.HostsPerSwitch, Rate: rate, TrunkRate: up, Delay: delay, TrunkDelay: upDelay,
		}
	case SpineLeaf:
		return topo.SpineLeaf{
			Leaves: t.Leaves, Spines: t.Spines, HostsPerLeaf: t.HostsPerLeaf, NICs: t.NICs, UplinksPerSpine: t.UplinksPerSpine,
			Rate: rate, UplinkRate: up, Delay: delay, UplinkDelay: upDelay,
		}
	case FatTree:
		return topo.FatTree{
			K: t.K, Oversubscription: t.Oversubscription, NICs: t.NICs, Rate: rate, UplinkRate: up, Delay: delay, UplinkDelay: upDelay,
		}
	case ThreeTier:
		return topo.ThreeTier{
			Pods: t.Pods, LeavesPerPod: t.LeavesPerPod, AggsPerPod: t.AggsPerPod, Cores: t.Cores, HostsPerLeaf: t.HostsPerLeaf,
			NICs: t.NICs, UplinksPerAgg: t.UplinksPerAgg, LinksPerCore: t.LinksPerCore,
			Rate: rate, UplinkRate: up, CoreRate: t.CoreRate, Delay: delay, UplinkDelay: upDelay, CoreDelay: orCable(t.CoreDelay, t.CoreCable),
		}
	case Rail:
		return topo.Rail{
			Units: t.Units, HostsPerUnit: t.HostsPerUnit, NICs: t.NICs, Spines: t.Spines, UplinksPerSpine: t.UplinksPerSpine,
			Rate: rate, UplinkRate: up, Delay: delay, UplinkDelay: upDelay,
		}
	case Ring:
		return topo.Ring{
			Switches: t.Switches, HostsPerSwitch: t.HostsPerSwitch, Rate: rate, TrunkRate: up, Delay: delay, TrunkDelay: upDelay, OneWay: t.OneWay,
		}
	case Bounce:
		return topo.Bounce{HostsPerLeaf: t.HostsPerLeaf, Rate: rate, Delay: delay}
	case Explicit:
		return t.explicit()
	case Star, FromFile:
	}
	return topo.Star{Hosts: t.Hosts, NICs: t.NICs, Rate: rate, Delay: delay}
}

func (t *Topology) explicit() topo.Explicit {
	e := topo.Explicit{Name: "explicit"}
	for _, n := range t.Nodes {
		k := topo.Host
		if n.Kind == "switch" {
			k = topo.Switch
		}
		e.Nodes = append(e.Nodes, topo.NodeSpec{Name: n.Name, Kind: k, Tier: n.Tier, Pod: n.Pod})
	}
	for _, l := range t.Links {
		spec := topo.LinkSpec{A: l.A, B: l.B, Rate: l.Rate, Delay: orCable(l.Delay, l.Cable), ErrorRate: uint64(l.ErrorRate), Count: l.Count}
		if spec.Rate == 0 {
			spec.Rate = t.Rate
		}
		if spec.Delay == 0 {
			spec.Delay = t.LinkDelay()
		}
		e.Links = append(e.Links, spec)
	}
	return e
}

// Graph builds the graph. open gives the topology's file, if it has one; it may
// be nil otherwise. The caller closes what it has opened.
func (s *Scenario) Graph(open func(name string) (io.Reader, error)) (*topo.Graph, error) {
	g, err := s.plainGraph(open)
	if err != nil {
		return nil, err
	}
	t := &s.Topology
	for i := range g.Links {
		g.Links[i].ErrorRate = min(g.Links[i].ErrorRate+uint64(t.ErrorRate), uint64(One))
	}
	if t.Subnets == OneSubnet {
		if err := g.SetSubnets(func(int32) int { return 0 }); err != nil {
			return nil, s.Fail("topology.subnets", "%s", err)
		}
	}
	for i := range t.Routes {
		if err := s.layRoute(g, i); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (s *Scenario) plainGraph(open func(name string) (io.Reader, error)) (*topo.Graph, error) {
	t := &s.Topology
	if t.Kind != FromFile {
		g, err := t.shape().Build()
		if err != nil {
			return nil, s.Fail("topology", "%s", err)
		}
		return g, nil
	}
	if open == nil {
		return nil, s.Fail("topology.file", "%s: files cannot be read here", clip(t.File))
	}
	r, err := open(t.File)
	if err != nil {
		return nil, s.Fail("topology.file", "%s", err)
	}
	htsim := t.Format == "htsim" || t.Format == "auto" && strings.HasSuffix(t.File, ".topo")
	if htsim {
		return topo.ReadHTSim(r, t.File)
	}
	return topo.ReadHPCC(r, t.File)
}

// layRoute adds one of the routes that the file gives.
func (s *Scenario) layRoute(g *topo.Graph, i int) error {
	r, path := &s.Topology.Routes[i], index("topology.routes", i)
	names := newNames(g)
	sw, ok := names.node[r.Switch]
	if !ok || g.Nodes[sw].Kind != topo.Switch {
		return s.unknownNode(join(path, "switch"), "switch", r.Switch, names)
	}
	var ports []uint16
	for _, via := range r.Via {
		n := len(ports)
		for p := range g.Nodes[sw].Ports {
			if via == g.PortName(sw, int32(p)) || via == g.Nodes[g.Nodes[sw].Ports[p].Peer].Name {
				ports = append(ports, uint16(p))
			}
		}
		if len(ports) == n {
			return s.Fail(join(path, "via"), "%s has no port or neighbour %q", r.Switch, clip(via))
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	for _, to := range r.To {
		if leaf, ok := names.node[to]; ok && g.Nodes[leaf].Kind == topo.Switch {
			if !slices.ContainsFunc(g.Endpoints, func(e topo.Endpoint) bool { return e.Leaf == leaf }) {
				return s.Fail(join(path, "to"), "no host hangs on %s", clip(to))
			}
			g.Static = append(g.Static, topo.Static{Switch: sw, Leaf: leaf, Endpoint: -1, Ports: ports})
			continue
		}
		list, err := names.endpoints(Select{to}, true)
		if err != nil {
			return s.Fail(join(path, "to"), "%s", err)
		}
		for _, e := range list {
			g.Static = append(g.Static, topo.Static{Switch: sw, Leaf: -1, Endpoint: e, Ports: ports})
		}
	}
	return nil
}

// unknownNode says that there is no such node, and which one may be meant.
func (s *Scenario) unknownNode(path, what, name string, n *names) error {
	if near := nearest(name, n.list()); near != "" {
		return s.Fail(path, "there is no %s %q; did you mean %s?", what, clip(name), near)
	}
	return s.Fail(path, "there is no %s %q", what, clip(name))
}
