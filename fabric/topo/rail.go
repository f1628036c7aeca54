package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Rail is a rail-optimised network: hosts have several NICs, and NIC r of every
// host of a unit hangs on the unit's leaf r. Spines join all leaves; without
// spines a rail of a unit reaches nothing but itself.
type Rail struct {
	Units           int
	HostsPerUnit    int
	NICs            int // of a host, and leaves of a unit: the rails
	Spines          int // 0: none
	UplinksPerSpine int // links between a leaf and a spine; 0: 1
	Rate            sim.Rate
	UplinkRate      sim.Rate // between leaf and spine; 0: Rate
	Delay           sim.Time // of the hosts' links, one way
	UplinkDelay     sim.Time // 0: Delay
}

// Validate implements Shape.
func (r Rail) Validate() error {
	c := checks{shape: "rail"}
	c.count("Units", r.Units, 1, MaxPorts)
	c.count("HostsPerUnit", r.HostsPerUnit, 1, MaxPorts)
	c.count("NICs", r.NICs, 1, MaxHostPorts)
	c.count("Spines", r.Spines, 0, MaxPorts)
	c.count("UplinksPerSpine", or(r.UplinksPerSpine, 1), 1, MaxPorts)
	c.rate("Rate", r.Rate)
	c.rate("UplinkRate", or(r.UplinkRate, r.Rate))
	c.delay("Delay", r.Delay)
	c.delay("UplinkDelay", r.UplinkDelay)
	if c.err == nil {
		c.atMost("ports of a leaf", r.leafPorts(), MaxPorts)
		c.atMost("ports of a spine", r.leaves()*or(r.UplinksPerSpine, 1), MaxPorts)
		c.total(r.nodes(), r.leaves()*r.leafPorts())
	}
	return c.err
}

func (r Rail) leaves() int    { return r.Units * r.NICs }
func (r Rail) leafPorts() int { return r.HostsPerUnit + r.Spines*or(r.UplinksPerSpine, 1) }
func (r Rail) nodes() int     { return r.Units*r.HostsPerUnit + r.leaves() + r.Spines }

// Build implements Shape. Host i is in unit i/HostsPerUnit; rail r of unit u is
// leaf u·NICs+r.
func (r Rail) Build() (*Graph, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	hosts, leaves, pair := r.Units*r.HostsPerUnit, r.leaves(), or(r.UplinksPerSpine, 1)
	b := newBuilder(fmt.Sprintf("rail, %d hosts of %d NICs", hosts, r.NICs), r.nodes(), leaves*r.leafPorts())
	for i := range hosts {
		b.host(i, i/r.HostsPerUnit, r.NICs)
	}
	leaf, spine := int32(hosts), int32(hosts+leaves)
	for i := range leaves {
		b.sw("leaf", i, 1, i/r.NICs, r.leafPorts())
	}
	for i := range r.Spines {
		b.sw("spine", i, 2, -1, leaves*pair)
	}
	for i := range hosts {
		for n := range r.NICs {
			b.link(int32(i), leaf+int32(i/r.HostsPerUnit*r.NICs+n), r.Rate, r.Delay)
		}
	}
	b.mesh(leaf, leaves, spine, r.Spines, pair, or(r.UplinkRate, r.Rate), or(r.UplinkDelay, r.Delay))
	return b.finish()
}
