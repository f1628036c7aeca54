package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Star is hosts around one switch.
type Star struct {
	Hosts int      // 1 or more
	NICs  int      // ports of a host; 0: 1
	Rate  sim.Rate // of every link
	Delay sim.Time // of every link, one way
}

// Validate implements Shape.
func (s Star) Validate() error {
	c := checks{shape: "star"}
	c.count("Hosts", s.Hosts, 1, MaxPorts)
	c.count("NICs", or(s.NICs, 1), 1, MaxHostPorts)
	c.rate("Rate", s.Rate)
	c.delay("Delay", s.Delay)
	c.atMost("ports of the switch", s.Hosts*or(s.NICs, 1), MaxPorts)
	return c.err
}

// Build implements Shape. The switch is sw0.
func (s Star) Build() (*Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	nics := or(s.NICs, 1)
	b := newBuilder(fmt.Sprintf("star, %d hosts", s.Hosts), s.Hosts+1, s.Hosts*nics)
	for i := range s.Hosts {
		b.host(i, 0, nics)
	}
	sw := b.sw("sw", 0, 1, 0, s.Hosts*nics)
	for i := range s.Hosts {
		for range nics {
			b.link(int32(i), sw, s.Rate, s.Delay)
		}
	}
	return b.finish()
}
