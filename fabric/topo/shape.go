package topo

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Shape is a generator: a description that can be checked and built.
type Shape interface {
	// Validate returns nil or an *Invalid.
	Validate() error
	// Build validates and returns the graph, with hosts first, then switches
	// from the lowest tier upwards.
	Build() (*Graph, error)
}

// Invalid is a complaint about a field of a shape: one line.
type Invalid struct {
	Shape string // "spine-leaf"
	// Field of the struct, "UplinkRate"; "" if it is about the whole.
	Field string
	// Index of the element, if the field is a list; else -1.
	Index int
	What  string // "0bps is not positive"
}

// Error returns, for example, "spine-leaf: uplink rate 0bps is not positive".
func (e *Invalid) Error() string {
	switch {
	case e.Field == "":
		return e.Shape + ": " + e.What
	case e.Index >= 0:
		return fmt.Sprintf("%s: %s[%d]: %s", e.Shape, words(e.Field), e.Index, e.What)
	}
	return e.Shape + ": " + words(e.Field) + " " + e.What
}

// words returns the name of a field as text: "HostsPerLeaf" as "hosts per leaf".
func words(field string) string {
	if field == "NICs" || field == "K" {
		return field
	}
	var b strings.Builder
	for i := range len(field) {
		c := field[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte(' ')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// checks keeps the first complaint about a shape.
type checks struct {
	shape string
	err   error
}

func (c *checks) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = &Invalid{Shape: c.shape, Field: field, Index: -1, What: fmt.Sprintf(format, args...)}
	}
}

func (c *checks) count(field string, v, low, high int) {
	if v < low {
		c.fail(field, "%d is less than %d", v, low)
	} else if v > high {
		c.fail(field, "%d is over the limit of %d", v, high)
	}
}

// atMost checks a sum or product. What it is made of has been checked before,
// so it cannot have overflowed unnoticed.
func (c *checks) atMost(what string, v, high int) {
	if v > high {
		c.fail("", "%d %s are over the limit of %d", v, what, high)
	}
}

func (c *checks) rate(field string, v sim.Rate) {
	if v <= 0 {
		c.fail(field, "%s is not positive", v)
	} else if v > MaxRate {
		c.fail(field, "%s is over the limit of %s", v, MaxRate)
	}
}

func (c *checks) delay(field string, v sim.Time) {
	if v < 0 {
		c.fail(field, "%s is negative", v)
	} else if v > MaxDelay {
		c.fail(field, "%s is over the limit of %s", v, MaxDelay)
	}
}

// total checks the size of the whole.
func (c *checks) total(nodes, links int) {
	c.atMost("nodes", nodes, MaxNodes)
	c.atMost("links", links, MaxLinks)
}

// or returns v, or its default where v is not given.
func or[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
