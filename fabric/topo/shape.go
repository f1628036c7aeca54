package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Shape is a generator: a description that can be checked and built.
type Shape interface {
	// Validate returns one line that names the field, its value and the limit.
	Validate() error
	// Build validates and returns the graph, with hosts first, then switches
	// from the lowest tier upwards.
	Build() (*Graph, error)
}

// checks collects the first complaint about a shape.
type checks struct {
	shape string
	err   error
}

func (c *checks) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(c.shape+": "+format, args...)
	}
}

func (c *checks) count(name string, v, low, high int) {
	if v < low {
		c.fail("%s %d is less than %d", name, v, low)
	} else if v > high {
		c.fail("%s %d is over the limit of %d", name, v, high)
	}
}

func (c *checks) rate(name string, v sim.Rate) {
	if v <= 0 {
		c.fail("%s %s is not positive", name, v)
	} else if v > MaxRate {
		c.fail("%s %s is over the limit of %s", name, v, MaxRate)
	}
}

func (c *checks) delay(name string, v sim.Time) {
	if v < 0 {
		c.fail("%s %s is negative", name, v)
	} else if v > MaxDelay {
		c.fail("%s %s is over the limit of %s", name, v, MaxDelay)
	}
}

// total checks the size of the whole, whose terms have been checked already,
// so that the products cannot overflow.
func (c *checks) total(nodes, links int) {
	if c.err != nil {
		return
	}
	c.count("nodes in all", nodes, 1, MaxNodes)
	c.count("links in all", links, 1, MaxLinks)
}

// or returns v, or its default where v is not given.
func or[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
