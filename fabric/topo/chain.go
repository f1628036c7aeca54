package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ParkingLot is switches in a row, each with hosts: flows from far share every
// trunk with flows that join nearer to the end.
type ParkingLot struct {
	Switches       int      // 2 or more
	HostsPerSwitch int      // 1 or more
	Rate           sim.Rate // of the hosts' links
	TrunkRate      sim.Rate // between switches; 0: Rate
	Delay          sim.Time // of the hosts' links, one way
	TrunkDelay     sim.Time // 0: Delay
}

// Validate implements Shape.
func (p ParkingLot) Validate() error {
	c := checks{shape: "parking lot"}
	checkChain(&c, p.Switches, 2, p.HostsPerSwitch, p.Rate, p.TrunkRate, p.Delay, p.TrunkDelay)
	return c.err
}

// Build implements Shape. Host i hangs on sw(i/HostsPerSwitch); behind its
// hosts a switch has the port to the one before it, then to the one behind it.
func (p ParkingLot) Build() (*Graph, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	b, first := chain("parking lot", p.Switches, p.HostsPerSwitch, p.Rate, p.Delay)
	for i := range int32(p.Switches) - 1 {
		b.link(first+i, first+i+1, or(p.TrunkRate, p.Rate), or(p.TrunkDelay, p.Delay))
	}
	return b.finish()
}

// Ring is switches in a circle, each with hosts.
type Ring struct {
	Switches       int      // 3 or more
	HostsPerSwitch int      // 1 or more
	Rate           sim.Rate // of the hosts' links
	TrunkRate      sim.Rate // between switches; 0: Rate
	Delay          sim.Time // of the hosts' links, one way
	TrunkDelay     sim.Time // 0: Delay
	// OneWay routes everything from a switch to the next higher one, so that the
	// trunks wait for each other in a circle: with PFC, flows over two trunks
	// and more can deadlock.
	OneWay bool
}

// Validate implements Shape.
func (p Ring) Validate() error {
	c := checks{shape: "ring"}
	checkChain(&c, p.Switches, 3, p.HostsPerSwitch, p.Rate, p.TrunkRate, p.Delay, p.TrunkDelay)
	return c.err
}

// Build implements Shape. Hosts and ports are those of a ParkingLot; the first
// and the last switch are joined last, by port HostsPerSwitch+1 of both.
func (p Ring) Build() (*Graph, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	b, first := chain("ring", p.Switches, p.HostsPerSwitch, p.Rate, p.Delay)
	n := int32(p.Switches)
	for i := range n {
		b.link(first+i, first+(i+1)%n, or(p.TrunkRate, p.Rate), or(p.TrunkDelay, p.Delay))
	}
	g, err := b.finish()
	if err != nil || !p.OneWay {
		return g, err
	}
	for i := range n {
		next := uint16(p.HostsPerSwitch + 1)
		if i == 0 { // its first trunk is the one to sw1
			next--
		}
		for j := range n {
			if i != j {
				g.Static = append(g.Static, Static{Switch: first + i, Leaf: first + j, Endpoint: -1, Ports: []uint16{next}})
			}
		}
	}
	return g, nil
}

func checkChain(c *checks, switches, least, hosts int, rate, trunk sim.Rate, delay, trunkDelay sim.Time) {
	c.count("Switches", switches, least, MaxPorts)
	c.count("HostsPerSwitch", hosts, 1, MaxPorts-2)
	c.rate("Rate", rate)
	c.rate("TrunkRate", or(trunk, rate))
	c.delay("Delay", delay)
	c.delay("TrunkDelay", trunkDelay)
	if c.err == nil {
		c.total(switches*(hosts+1), switches*(hosts+1))
	}
}

// chain makes switches with hosts and returns the first switch.
func chain(name string, switches, per int, rate sim.Rate, delay sim.Time) (*builder, int32) {
	hosts := switches * per
	b := newBuilder(fmt.Sprintf("%s of %d switches, %d hosts", name, switches, hosts), hosts+switches, hosts+switches)
	for i := range hosts {
		b.host(i, i/per, 1)
	}
	first := int32(hosts)
	for i := range switches {
		b.sw("sw", i, 1, i, per+2)
	}
	for i := range hosts {
		b.link(int32(i), first+int32(i/per), rate, delay)
	}
	return b, first
}
