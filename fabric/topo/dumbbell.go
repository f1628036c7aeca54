package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Dumbbell is two switches with hosts and one link between them.
type Dumbbell struct {
	Left, Right     int      // hosts of sw0 and of sw1, 1 or more
	Rate            sim.Rate // of the hosts' links
	BottleneckRate  sim.Rate // of the link between; 0: Rate
	Delay           sim.Time // of the hosts' links, one way
	BottleneckDelay sim.Time // 0: Delay
}

// Validate implements Shape.
func (d Dumbbell) Validate() error {
	c := checks{shape: "dumbbell"}
	c.count("Left", d.Left, 1, MaxPorts-1)
	c.count("Right", d.Right, 1, MaxPorts-1)
	c.rate("Rate", d.Rate)
	c.rate("BottleneckRate", or(d.BottleneckRate, d.Rate))
	c.delay("Delay", d.Delay)
	c.delay("BottleneckDelay", d.BottleneckDelay)
	return c.err
}

// Build implements Shape. Hosts of the left come first; the last port of both
// switches is the link between them.
func (d Dumbbell) Build() (*Graph, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	hosts := d.Left + d.Right
	b := newBuilder(fmt.Sprintf("dumbbell %d+%d", d.Left, d.Right), hosts+2, hosts+1)
	for i := range hosts {
		b.host(i, 0, 1)
	}
	left := b.sw("sw", 0, 1, 0, d.Left+1)
	right := b.sw("sw", 1, 1, 0, d.Right+1)
	for i := range hosts {
		sw := left
		if i >= d.Left {
			sw = right
		}
		b.link(int32(i), sw, d.Rate, d.Delay)
	}
	b.link(left, right, or(d.BottleneckRate, d.Rate), or(d.BottleneckDelay, d.Delay))
	return b.finish()
}
