package topo

import "github.com/verbena-rdma/verbena/fabric/sim"

// Bounce is four leaves and two spines whose routes go down and up again at two
// leaves, as they do while a fabric repairs itself around two broken links
// (CoNEXT'17 Tagger §2): spine0 has lost leaf2 and goes by leaf1 and spine1;
// spine1 has lost leaf1 and goes by leaf2 and spine0. The four links in
//
//	spine0 → leaf1 → spine1 → leaf2 → spine0
//
// then wait for each other: with PFC, traffic from leaf0 to leaf2 beside
// traffic from leaf3 to leaf1 can deadlock. A ring of switches (Ring.OneWay) is
// the same thing in its plainest form.
type Bounce struct {
	HostsPerLeaf int
	Rate         sim.Rate // of every link
	Delay        sim.Time // of every link, one way
}

// Validate implements Shape.
func (s Bounce) Validate() error {
	c := checks{shape: "bounce"}
	c.count("HostsPerLeaf", s.HostsPerLeaf, 1, MaxPorts-2)
	c.rate("Rate", s.Rate)
	c.delay("Delay", s.Delay)
	return c.err
}

// Build implements Shape. Hosts, names and ports are those of a SpineLeaf.
func (s Bounce) Build() (*Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	g, err := SpineLeaf{Leaves: 4, Spines: 2, HostsPerLeaf: s.HostsPerLeaf, Rate: s.Rate, Delay: s.Delay}.Build()
	if err != nil {
		return nil, err
	}
	g.Name = "bounce, " + g.Name
	leaf := int32(4 * s.HostsPerLeaf)
	spine := leaf + 4
	up := func(s int) uint16 { return uint16(len(g.Nodes[leaf].Ports) - 2 + s) }
	for _, r := range []struct {
		sw, to int32
		port   uint16
	}{
		{leaf + 0, leaf + 2, up(0)},
		{spine + 0, leaf + 2, 1},
		{leaf + 1, leaf + 2, up(1)},
		{leaf + 3, leaf + 1, up(1)},
		{spine + 1, leaf + 1, 2},
		{leaf + 2, leaf + 1, up(0)},
	} {
		g.Static = append(g.Static, Static{Switch: r.sw, Leaf: r.to, Endpoint: -1, Ports: []uint16{r.port}})
	}
	return g, nil
}
