package scenario

import (
	"reflect"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// finish fills in what follows from other keys and checks what single keys do
// not show. Names of nodes are checked by Check, which knows the graph.
func (s *Scenario) finish() error {
	s.settle(&s.Switch, &s.Host)
	for i := range s.Workload {
		if w := &s.Workload[i]; w.Name == "" {
			w.Name = string(w.Kind)
		}
	}
	for _, f := range []func() error{
		s.checkPacket, s.checkTopology, s.checkBase, s.checkOverlays, s.checkWorkload, s.checkFaults, s.checkRecord, s.checkExpect,
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// settle computes what depends on keys elsewhere.
func (s *Scenario) settle(sw *Switch, h *Host) {
	if sw != nil && sw.Buffer.Total == perRate {
		sw.Buffer.Total = hpccBuffer(s.Topology.Rate)
	}
	if h != nil {
		for _, k := range h.DCQCN.Knobs {
			// The notification point's own knobs are the same thing as the CNP's
			// keys; what is written as a knob holds.
			switch k.Name {
			case "cnp_dscp":
				_ = scalar(k.Value, reflect.ValueOf(&h.CNP.DSCP).Elem(), `min:"0" max:"63"`)
			case "cnp_802p_prio":
				_ = scalar(k.Value, reflect.ValueOf(&h.CNP.Priority).Elem(), `min:"0" max:"7"`)
			}
		}
	}
}

// PathMTU reports whether n is a path MTU of RDMA.
func pathMTU(n int) bool {
	switch n {
	case 256, 512, 1024, 2048, 4096:
		return true
	}
	return false
}

// leastHeader is what every RDMA packet has around its payload: BTH and ICRC.
const leastHeader = 12 + 4

func (s *Scenario) checkPacket() error {
	c := checks{s: s, within: []string{"packet"}}
	p := &s.Packet
	if !pathMTU(p.MTU) {
		c.fail("mtu", "%d is not a path MTU: give 256, 512, 1024, 2048 or 4096", p.MTU)
	}
	if p.Payload > p.MTU {
		c.fail("payload", "%d is above the MTU, %d", p.Payload, p.MTU)
	}
	if p.Header >= 0 && p.Header < leastHeader {
		c.fail("header", "%d is less than BTH and ICRC, %d bytes; -1 is the real headers", p.Header, leastHeader)
	}
	if s.Until == UntilDuration {
		if _, ok := s.read.pos["duration"]; !ok && len(s.Workload) > 0 {
			t := checks{s: s}
			t.fail("until", "duration is to end the run, but there is no duration")
			return t.err
		}
	}
	return c.err
}

func (s *Scenario) checkBase() error {
	c := checks{s: s, within: []string{"switch"}}
	c.checkSwitch(&s.Switch)
	if c.err != nil {
		return c.err
	}
	h := checks{s: s, within: []string{"host"}}
	h.checkHost(&s.Host)
	return h.err
}

// checkOverlays reads each overlay once, so that its faults have their places,
// and checks the settings of nodes that are called by name. Those of patterns
// are checked when the nodes are known.
func (s *Scenario) checkOverlays() error {
	for i := range s.Switches {
		o, path := &s.Switches[i], index("switches", i)
		sw := s.Switch.clone()
		if err := s.read.structure(o.set, reflect.ValueOf(&sw).Elem(), path); err != nil {
			return err
		}
		if err := s.checkLiteral(o, path, "switch", func(c *checks, name string) {
			sw := s.SwitchFor(name)
			c.checkSwitch(&sw)
		}); err != nil {
			return err
		}
	}
	for i := range s.Hosts {
		o, path := &s.Hosts[i], index("hosts", i)
		h := s.Host.clone()
		if err := s.read.structure(o.set, reflect.ValueOf(&h).Elem(), path); err != nil {
			return err
		}
		if err := s.checkLiteral(o, path, "host", func(c *checks, name string) {
			h := s.HostFor(name)
			c.checkHost(&h)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) checkLiteral(o *Overlay, path, base string, check func(*checks, string)) error {
	for _, name := range o.Match {
		if err := badPattern(name); err != nil {
			return errorAt(s.at(join(path, "match")), join(path, "match"), "%s", err)
		}
		if literal(name) {
			c := checks{s: s, within: []string{path, base}}
			check(&c, name)
			if c.err != nil {
				return c.err
			}
		}
	}
	return nil
}

func (c *checks) checkSwitch(sw *Switch) {
	c.checkBuffer(&sw.Buffer)
	e := &sw.ECN
	if e.KMin > e.KMax {
		c.fail("ecn.kmin", "%s is above kmax, %s", e.KMin, e.KMax)
	}
	for i, m := range e.ByRate {
		path := index("ecn.by_rate", i)
		if m.Rate == 0 {
			c.fail(path, "missing rate: the port speed that it is for")
		}
		if m.KMin > m.KMax {
			c.fail(join(path, "kmin"), "%s is above kmax, %s", m.KMin, m.KMax)
		}
		for _, n := range e.ByRate[:i] {
			if n.Rate == m.Rate {
				c.fail(join(path, "rate"), "%s has thresholds already", RateText(m.Rate))
			}
		}
	}
	for i, m := range e.ByPriority {
		path := index("ecn.by_priority", i)
		if m.KMin > m.KMax {
			c.fail(join(path, "kmin"), "%s is above kmax, %s", m.KMin, m.KMax)
		}
		for _, n := range e.ByPriority[:i] {
			if n.Priority == m.Priority {
				c.fail(join(path, "priority"), "%d has thresholds already", m.Priority)
			}
		}
	}
	for p := range uint8(8) {
		// A group is one threshold and one pause: its members share their fate.
		for q := range p {
			if sw.GroupMap[p] == sw.GroupMap[q] && sw.PFC.Priorities.Has(p) != sw.PFC.Priorities.Has(q) {
				c.fail("prio_group_map", "priorities %d and %d share group %d, but only one of them is lossless", q, p, sw.GroupMap[p])
			}
		}
	}
}

func (c *checks) checkBuffer(b *Buffer) {
	if b.XOFF > 0 && b.XON > b.XOFF {
		c.fail("buffer.xon", "%s is above xoff, %s", b.XON, b.XOFF)
	}
	if b.XOFF > 0 && b.XONOffset > b.XOFF {
		c.fail("buffer.xon_offset", "%s is more than xoff, %s", b.XONOffset, b.XOFF)
	}
	if b.Total > 0 && b.XOFF > b.Total {
		c.fail("buffer.xoff", "%s is more than the whole buffer, %s", b.XOFF, b.Total)
	}
	if b.Total > 0 && b.Headroom.Rule == HeadroomBytes && b.Headroom.Bytes > b.Total {
		c.fail("buffer.headroom", "%s is more than the whole buffer, %s", b.Headroom, b.Total)
	}
	if b.Total > 0 && b.HeadroomPool > b.Total {
		c.fail("buffer.headroom_pool", "%s is more than the whole buffer, %s", b.HeadroomPool, b.Total)
	}
	for i, h := range b.HeadroomByRate {
		path := index("buffer.headroom_by_rate", i)
		if h.Rate == 0 {
			c.fail(path, "missing rate: the port speed that it is for")
		}
		if h.Headroom.Rule == "" {
			c.fail(path, "missing headroom")
		}
		for _, n := range b.HeadroomByRate[:i] {
			if n.Rate == h.Rate {
				c.fail(join(path, "rate"), "%s has headroom already", RateText(h.Rate))
			}
		}
	}
	if b.Cell > b.Total && b.Total > 0 {
		c.fail("buffer.cell", "%s is more than the whole buffer, %s", b.Cell, b.Total)
	}
}

func (c *checks) checkHost(h *Host) {
	if h.MTU != 0 && !pathMTU(h.MTU) {
		c.fail("mtu", "%d is not a path MTU: give 256, 512, 1024, 2048 or 4096", h.MTU)
	}
	n := &h.NIC
	if n.XOFF > n.RxBuffer {
		c.fail("nic.xoff", "%s is more than rx_buffer, %s", n.XOFF, n.RxBuffer)
	}
	if n.XOFF > 0 && n.XON > n.XOFF {
		c.fail("nic.xon", "%s is above xoff, %s", n.XON, n.XOFF)
	}
	if n.RxBuffer == 0 {
		c.fail("nic.rx_buffer", "0 holds no packet")
	}
	if h.RDMA.Service != "rc" && h.RDMA.Op == "read" {
		c.fail("rdma.op", "read needs the service rc, not %s", h.RDMA.Service)
	}
	if h.RDMA.Service == "ud" && h.RDMA.Op == "write" && (c.given("rdma.op") || c.given("rdma.service")) {
		c.fail("rdma.op", "write needs the service rc or uc, not ud")
	}
	c.checkDCQCN(&h.DCQCN)
}

func (s *Scenario) checkRecord() error {
	c := checks{s: s, within: []string{"record"}}
	for _, name := range s.Record.Series {
		if name == "all" || name == "none" || isSeries(name) {
			continue
		}
		c.fail("series", "unknown series %q; give %s, all or none", clip(name), seriesNames())
	}
	for _, list := range []struct {
		key string
		sel Select
	}{{"ports", s.Record.Ports}, {"pcap", s.Record.PCAP}} {
		for _, p := range list.sel {
			if err := badPattern(p); err != nil {
				c.fail(list.key, "%s", err)
			}
		}
	}
	return c.err
}

func (s *Scenario) checkExpect() error {
	for i := range s.Expect {
		e := &s.Expect[i]
		c := checks{s: s, within: []string{index("expect", i)}}
		if e.What == "" {
			c.fail("what", "missing: the metric, as in flow.long.goodput")
		}
		if !e.Min.Given() && !e.Max.Given() && !e.Near.Given() {
			c.fail("", "none of min, max and near is given")
		}
		if e.Within != 0 && !e.Near.Given() {
			c.fail("within", "near is not given")
		}
		first := NoQuantity
		for _, q := range []struct {
			key string
			val Quantity
		}{{"min", e.Min}, {"max", e.Max}, {"near", e.Near}} {
			switch {
			case !q.val.Given():
			case first == NoQuantity:
				first = q.val.Unit
			case first != q.val.Unit:
				c.fail(q.key, "%s has another unit than the other bounds", q.val)
			}
		}
		if e.Min.Given() && e.Max.Given() && e.Min.Value > e.Max.Value {
			c.fail("min", "%s is above max, %s", e.Min, e.Max)
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// longest is the latest instant that a key may name.
const longest = 100_000 * sim.Second
