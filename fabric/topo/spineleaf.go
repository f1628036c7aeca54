package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// SpineLeaf is a Clos network of two tiers: every leaf has links to every
// spine.
type SpineLeaf struct {
	Leaves          int
	Spines          int
	HostsPerLeaf    int
	NICs            int      // ports of a host, all to its leaf; 0: 1
	UplinksPerSpine int      // links between a leaf and a spine; 0: 1
	Rate            sim.Rate // of the hosts' links
	UplinkRate      sim.Rate // between leaf and spine; 0: Rate
	Delay           sim.Time // of the hosts' links, one way
	UplinkDelay     sim.Time // 0: Delay
}

// Validate implements Shape.
func (s SpineLeaf) Validate() error {
	c := checks{shape: "spine-leaf"}
	c.count("Leaves", s.Leaves, 1, MaxPorts)
	c.count("Spines", s.Spines, 1, MaxPorts)
	c.count("HostsPerLeaf", s.HostsPerLeaf, 1, MaxPorts)
	c.count("NICs", or(s.NICs, 1), 1, MaxHostPorts)
	c.count("UplinksPerSpine", or(s.UplinksPerSpine, 1), 1, MaxPorts)
	c.rate("Rate", s.Rate)
	c.rate("UplinkRate", or(s.UplinkRate, s.Rate))
	c.delay("Delay", s.Delay)
	c.delay("UplinkDelay", s.UplinkDelay)
	if c.err == nil {
		c.atMost("ports of a leaf", s.leafPorts(), MaxPorts)
		c.atMost("ports of a spine", s.Leaves*or(s.UplinksPerSpine, 1), MaxPorts)
		c.total(s.nodes(), s.Leaves*s.leafPorts())
	}
	return c.err
}

func (s SpineLeaf) leafPorts() int {
	return s.HostsPerLeaf*or(s.NICs, 1) + s.Spines*or(s.UplinksPerSpine, 1)
}

func (s SpineLeaf) nodes() int { return s.Leaves*s.HostsPerLeaf + s.Leaves + s.Spines }

// Build implements Shape. Host i hangs on leaf i/HostsPerLeaf.
func (s SpineLeaf) Build() (*Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	nics, pair := or(s.NICs, 1), or(s.UplinksPerSpine, 1)
	hosts := s.Leaves * s.HostsPerLeaf
	b := newBuilder(fmt.Sprintf("spine-leaf %dx%d, %d hosts", s.Leaves, s.Spines, hosts),
		s.nodes(), s.Leaves*s.leafPorts())
	for i := range hosts {
		b.host(i, i/s.HostsPerLeaf, nics)
	}
	leaf, spine := int32(hosts), int32(hosts+s.Leaves)
	for i := range s.Leaves {
		b.sw("leaf", i, 1, i, s.leafPorts())
	}
	for i := range s.Spines {
		b.sw("spine", i, 2, -1, s.Leaves*pair)
	}
	for i := range hosts {
		for range nics {
			b.link(int32(i), leaf+int32(i/s.HostsPerLeaf), s.Rate, s.Delay)
		}
	}
	b.mesh(leaf, s.Leaves, spine, s.Spines, pair, or(s.UplinkRate, s.Rate), or(s.UplinkDelay, s.Delay))
	return b.finish()
}

// mesh joins each of the n lower nodes from low with each of the m upper ones
// from up by so many links.
func (b *builder) mesh(low int32, n int, up int32, m, links int, rate sim.Rate, delay sim.Time) {
	for i := range int32(n) {
		for j := range int32(m) {
			for range links {
				b.link(low+i, up+j, rate, delay)
			}
		}
	}
}
