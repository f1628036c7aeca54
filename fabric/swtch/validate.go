package swtch

import (
	"fmt"
	"math"
)

// Validate says what is impossible in a configuration, in one line that names
// the switch, the object, the value and the limit.
func (c *Config) Validate() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("switch %s: %s", c.Name, fmt.Sprintf(format, a...))
	}
	if c.Ports < 1 || c.Ports > math.MaxInt16 {
		return bad("%d ports; from 1 to %d are possible", c.Ports, math.MaxInt16)
	}
	if c.Port != nil && len(c.Port) != c.Ports {
		return bad("configuration of %d ports for %d", len(c.Port), c.Ports)
	}
	if c.Latency < 0 {
		return bad("latency %v is negative", c.Latency)
	}
	if c.Watchdog.Detect < 0 || c.Watchdog.Restore < 0 {
		return bad("watchdog: detection %v, restoration %v: negative", c.Watchdog.Detect, c.Watchdog.Restore)
	}
	b := &c.Buffer
	if b.Total <= 0 || b.Total > maxBytes {
		return bad("buffer of %d bytes; from 1 to %d are possible", b.Total, int64(maxBytes))
	}
	if b.Cell < 0 || b.Cell > 1<<16 {
		return bad("cell of %d bytes; at most %d are possible", b.Cell, 1<<16)
	}
	if b.SharedHeadroom < 0 {
		return bad("shared headroom of %d bytes is negative", b.SharedHeadroom)
	}
	for i, m := range c.DSCPToPrio {
		if m > 7 {
			return bad("DSCP %d: priority %d; at most 7 is possible", i, m)
		}
	}
	for i := range 8 {
		if m := c.PCPToPrio[i]; m > 7 {
			return bad("PCP %d: priority %d; at most 7 is possible", i, m)
		}
		if m := c.PrioToGroup[i]; m > 7 {
			return bad("priority %d: group %d; at most 7 is possible", i, m)
		}
	}
	if c.Quantum < 0 || c.Quantum > maxQuantum {
		return bad("scheduler: quantum of %d bytes; from 0 to %d are possible", c.Quantum, maxQuantum)
	}
	if c.Untagged > 7 {
		return bad("untagged packets: priority %d; at most 7 is possible", c.Untagged)
	}
	var reserved, headroom int64
	for i := range c.Ports {
		p := c.port(i)
		if err := p.validate(); err != nil {
			return fmt.Errorf("switch %s: port %d: %w", c.Name, i, err)
		}
		for g := range p.Group {
			reserved += cells(p.Group[g].Reserved, b.Cell)
			headroom += p.Group[g].Headroom
		}
	}
	what := "headroom"
	if b.SharedHeadroom > 0 {
		headroom, what = b.SharedHeadroom, "shared headroom"
	}
	if free := b.Total - reserved - headroom; free < 0 {
		return bad("buffer of %d bytes: reserved %d and %s %d exceed it by %d", b.Total, reserved, what, headroom, -free)
	}
	return nil
}

func (p *PortConfig) validate() error {
	if p.MTU < 0 || p.MTU > maxMTU {
		return fmt.Errorf("MTU %d; from 1 to %d are possible, or 0 for any", p.MTU, maxMTU)
	}
	for i := range p.Queue {
		q := &p.Queue[i]
		if q.Weight < 0 || q.Weight > maxWeight {
			return fmt.Errorf("priority %d: weight %d; from 1 to %d are possible", i, q.Weight, maxWeight)
		}
		if q.Reserved < 0 || q.Reserved > maxBytes {
			return fmt.Errorf("priority %d: reserved %d bytes; from 0 to %d are possible", i, q.Reserved, int64(maxBytes))
		}
		if err := q.ECN.validate(); err != nil {
			return fmt.Errorf("priority %d: %w", i, err)
		}
		if err := q.Limit.validate(); err != nil {
			return fmt.Errorf("priority %d: %w", i, err)
		}
	}
	for i := range p.Group {
		g := &p.Group[i]
		for _, v := range [...]struct {
			name  string
			bytes int64
		}{{"reserved", g.Reserved}, {"headroom", g.Headroom}, {"XON", g.XON}, {"XON offset", g.XONOffset}} {
			if v.bytes < 0 || v.bytes > maxBytes {
				return fmt.Errorf("group %d: %s %d bytes; from 0 to %d are possible", i, v.name, v.bytes, int64(maxBytes))
			}
		}
		if err := g.Limit.validate(); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return nil
}

func (e *ECN) validate() error {
	switch {
	case e.KMin < 0 || e.KMax < 0 || e.KMax > maxBytes:
		return fmt.Errorf("ECN thresholds %d and %d bytes; from 0 to %d are possible", e.KMin, e.KMax, int64(maxBytes))
	case e.KMin > e.KMax:
		return fmt.Errorf("ECN: KMin %d bytes exceeds KMax %d", e.KMin, e.KMax)
	}
	return nil
}

func (l *Limit) validate() error {
	switch {
	case l.Mode > Static:
		return fmt.Errorf("threshold of unknown mode %d", l.Mode)
	case l.Mode == Dynamic && l.Alpha > maxAlpha:
		return fmt.Errorf("alpha %g; at most %d is possible", float64(l.Alpha)/AlphaOne, maxAlpha/AlphaOne)
	case l.Mode == Static && (l.Bytes < 0 || l.Bytes > maxBytes):
		return fmt.Errorf("threshold %d bytes; from 0 to %d are possible", l.Bytes, int64(maxBytes))
	}
	return nil
}
