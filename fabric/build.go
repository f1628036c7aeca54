package fabric

import (
	"fmt"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/swtch"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// New composes a run of a scenario over its graph and traffic. Nothing has
// happened yet.
func New(sc *scenario.Scenario, g *topo.Graph, traffic work.Stream) (*Run, error) {
	r := &Run{
		S: sim.New(sc.Seed), Scenario: sc, Graph: g, source: traffic, more: true,
		lanes: make(map[*host.Conn]*lane), shared: make(map[pairKey]*lane),
		untilFlows: sc.Until != scenario.UntilDuration,
		settings:   make([]nodeSettings, len(g.Nodes)), downLink: make([]bool, len(g.Links)),
		Switches: make([]*swtch.Switch, len(g.Nodes)), Ports: make([][]*port.Port, len(g.Nodes)),
		NICs: make([]*host.NIC, len(g.Endpoints)),
	}
	var err error
	if r.Routes, err = g.Routes(); err != nil {
		return nil, err
	}
	params := make(map[paramsKey]*dcqcn.Params)
	for i := range g.Nodes {
		if err := r.addNode(int32(i), params); err != nil {
			return nil, err
		}
	}
	r.connect()
	r.shape = r.shapeOf()
	if err := r.planFaults(); err != nil {
		return nil, err
	}
	r.feed(0)
	if r.err != nil {
		return nil, r.err
	}
	if len(r.out) == 0 && len(sc.Faults) == 0 && !r.more {
		r.untilFlows = false
	}
	r.S.At(sc.Duration, r, evEnd)
	r.beside = 1
	r.setSampler()
	if r.sampler.on {
		r.beside++
	}
	r.S.At(watchEvery, r, evWatch)
	return r, nil
}

// addNode makes a host's NICs or a switch, without ports.
func (r *Run) addNode(node int32, params map[paramsKey]*dcqcn.Params) error {
	g, sc := r.Graph, r.Scenario
	n := &g.Nodes[node]
	st := &r.settings[node]
	if n.Kind == topo.Switch {
		s := r.switchAt(node)
		st.lossless = uint8(s.PFC.Priorities)
		st.stormAfter = s.PFC.Watchdog.Detect
		if st.stormAfter == 0 {
			st.stormAfter = 200 * sim.Millisecond
		}
		r.switchConfig(node)
		w, err := swtch.New(r.S, st.cfg, r.Routes, r)
		if err != nil {
			return sc.Fail("switch.buffer", "%v", err)
		}
		r.Switches[node] = w
		st.cfg.Port = nil
		return nil
	}
	h := r.hostAt(node)
	st.lossless = uint8(h.NIC.PFC)
	st.stormAfter = 200 * sim.Millisecond
	for i := range n.Ports {
		c, err := r.nicConfig(node, int32(i), h, params)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		c.Memory = &r.nicMemory
		nic, err := host.New(r.S, c, r)
		if err != nil {
			return sc.Fail("host", "%s: %v", n.Name, err)
		}
		r.NICs[n.Endpoint+int32(i)] = nic
	}
	return nil
}

// linkOf is what the headroom behind a port depends on.
func (r *Run) linkOf(node int32, i int) scenario.PortLink {
	l := r.Graph.Link(node, int32(i))
	p := &r.Scenario.Packet
	return scenario.PortLink{
		Rate: l.Rate, Delay: l.Delay, Response: r.responseAt(node, i),
		MaxFrame: r.Scenario.MaxFrame(), Least: p.LeastFrame(), Gap: p.GapBytes(),
	}
}

// switchConfig makes the configuration of a switch.
func (r *Run) switchConfig(node int32) {
	g := r.Graph
	n, st := &g.Nodes[node], &r.settings[node]
	s := st.sw
	c := swtch.Config{
		Name: n.Name, ID: node, Ports: len(n.Ports), CutThrough: s.Mode == scenario.CutThrough, Latency: max(s.Latency, n.Latency),
		MTU: s.MTU, DSCPToPrio: s.DSCPMap, PCPToPrio: s.PCPMap, Untagged: s.PCPMap[0], PrioToGroup: s.GroupMap,
		ECMP: swtch.ECMP{Seed: uint64(s.ECMP.Seed.Value)}, GlobalPause: s.PFC.GlobalPause,
		Quantum: int(s.Scheduler.Quantum), Router: r.Scenario.Topology.Subnets == scenario.SubnetPerLeaf,
		Memory: &r.memory, Subnets: r.subnetsOf(),
	}
	if s.ECMP.Seed.PerSwitch {
		c.ECMP.Seed = sim.NewRand(r.Scenario.Seed, "ecmp "+n.Name).Uint64()
	}
	if s.ECMP.Fields == "ip" {
		c.ECMP.Fields = swtch.Addresses
	}
	if s.Trust == scenario.TrustPCP {
		c.Trust = swtch.TrustPCP
	}
	if d := s.PFC.Watchdog; d.On {
		c.Watchdog = swtch.Watchdog{Detect: d.Detect, Restore: d.Restore, Action: swtch.DropAll}
		switch d.Action {
		case "forward":
			c.Watchdog.Action = swtch.Forward
		case "alert":
			c.Watchdog.Action = swtch.Alert
		}
	}
	b := &s.Buffer
	c.Buffer.Total, c.Buffer.Cell = int64(b.Total), int(b.Cell)
	if b.Total == 0 {
		c.Buffer.Total = 1 << 38
	}
	c.Buffer.SharedHeadroom = int64(b.HeadroomPool)
	st.headroom, st.need = make([]int64, len(n.Ports)), make([]int64, len(n.Ports))
	slowest := g.Link(node, 0).Rate
	for i := range n.Ports {
		slowest = min(slowest, g.Link(node, int32(i)).Rate)
	}
	// One piece of memory for all switches, each of which copies what it needs.
	for len(r.portConfigs) < len(n.Ports) {
		r.portConfigs = append(r.portConfigs, swtch.PortConfig{})
	}
	c.Port = r.portConfigs[:len(n.Ports)]
	for i := range c.Port {
		c.Port[i] = swtch.PortConfig{MTU: s.MTU}
		r.portConfig(node, i, &c.Port[i], slowest)
	}
	st.cfg = c
}

// subnetsOf returns the subnet of each endpoint, which all switches share.
func (r *Run) subnetsOf() []int32 {
	if r.subnets == nil {
		r.subnets = make([]int32, len(r.Graph.Endpoints))
		for i := range r.subnets {
			r.subnets[i] = int32(r.Graph.Endpoints[i].Subnet)
		}
	}
	return r.subnets
}

// portConfig makes the configuration of one port of a switch.
func (r *Run) portConfig(node int32, i int, c *swtch.PortConfig, slowest sim.Rate) {
	st := &r.settings[node]
	s, b := st.sw, &st.sw.Buffer
	link := r.Graph.Link(node, int32(i))
	l := r.linkOf(node, i)
	st.need[i], st.headroom[i] = b.NeedHeadroom(l), b.HaveHeadroom(l)
	scale := uint64(1)
	if b.ScaleAlpha && slowest > 0 {
		for rate := slowest * 2; rate <= link.Rate; rate *= 2 {
			scale *= 2
		}
	}
	var groupLossless uint8
	for q := range uint8(8) {
		if s.PFC.Priorities.Has(q) {
			groupLossless |= 1 << s.GroupMap[q]
		}
	}
	for q := range uint8(8) {
		lossless := s.PFC.Priorities.Has(q)
		e := &c.Queue[q]
		e.Lossless = lossless
		e.Strict = s.Scheduler.Strict.Has(q)
		e.Weight = int(s.Scheduler.Weights[q])
		if m, ok := s.ECN.For(q, link.Rate); ok {
			st.marks |= 1 << q
			e.ECN = swtch.ECN{KMin: int64(m.KMin), KMax: int64(m.KMax), PMax: uint32(min(uint64(m.PMax), 1<<32-1)), AtEnqueue: s.ECN.At == scenario.AtEnqueue}
		}
		e.NoDrop = !s.ECN.DropNotECT
		if !lossless {
			e.Reserved = int64(b.EgressReserved)
		}
		if !lossless && b.EgressAlpha != 0 {
			e.Limit = swtch.Limit{Mode: swtch.Dynamic, Alpha: alpha16(b.EgressAlpha, 1)}
		}
		group := &c.Group[q]
		on := groupLossless&(1<<q) != 0
		group.Reserved = int64(b.Reserved)
		a := b.LossyAlpha
		if on {
			a = b.Alpha
			group.Headroom = st.headroom[i]
			group.XON, group.XONOffset = int64(b.XON), int64(b.XONOffset)
		}
		if own := b.AlphaBy[q]; own != 0 {
			a = own
		}
		group.Limit = swtch.Limit{Mode: swtch.Dynamic, Alpha: alpha16(a, scale)}
		if on && b.XOFF > 0 {
			group.Limit = swtch.Limit{Mode: swtch.Static, Bytes: int64(b.XOFF)}
		}
		if !r.groupUsed(s, q) {
			*group = swtch.Group{}
		}
	}
}

// groupUsed reports whether any priority is mapped to a group: others need no
// memory.
func (r *Run) groupUsed(s *scenario.Switch, group uint8) bool {
	for q, g := range s.GroupMap {
		if g == group && r.usedPrios()&(1<<q) != 0 {
			return true
		}
	}
	return false
}

// usedPrios is the priorities that traffic may be in: those that any code point
// or tag in use is mapped to, on any switch or host.
func (r *Run) usedPrios() uint8 {
	if r.used != 0 {
		return r.used
	}
	m := uint8(0)
	v1 := false // its frames have no code point
	add := func(prio, dscp uint8) {
		m |= 1 << (prio & 7)
		for i := range r.Graph.Nodes {
			if r.Graph.Nodes[i].Kind == topo.Switch {
				s := r.switchAt(int32(i))
				m |= 1 << (s.DSCPMap[dscp&63] & 7)
				if v1 || s.Trust == scenario.TrustPCP {
					m |= 1<<(s.PCPMap[prio&7]&7) | 1<<(s.PCPMap[0]&7)
				}
				if len(r.Scenario.Switches) == 0 {
					break
				}
			}
		}
	}
	hosts := []scenario.Host{r.Scenario.Host}
	for i := range r.Graph.Nodes {
		if r.Graph.Nodes[i].Kind == topo.Host && len(r.Scenario.Hosts) > 0 {
			hosts = append(hosts, r.Scenario.HostFor(r.Graph.Nodes[i].Name))
		}
	}
	for i := range hosts {
		v1 = v1 || hosts[i].RoCE == "v1"
	}
	for i := range hosts {
		h := &hosts[i]
		add(h.RDMA.Priority, h.RDMA.DSCP)
		add(h.CNP.Priority, h.CNP.DSCP)
		add(h.TCP.Priority, h.TCP.DSCP)
	}
	for i := range r.Scenario.Workload {
		w := &r.Scenario.Workload[i]
		prio, dscp := w.Priority, w.DSCP
		if prio < 0 {
			prio = int8(r.Scenario.Host.RDMA.Priority)
		}
		if dscp < 0 {
			dscp = int8(r.Scenario.Host.RDMA.DSCP)
		}
		add(uint8(prio), uint8(dscp))
	}
	r.used = m
	return m
}

func alpha16(a scenario.Ratio, scale uint64) uint32 {
	return uint32(min(max(uint64(a)*scale>>16, 1), 64*swtch.AlphaOne))
}

// responseAt is how long the neighbour at a port takes to obey a pause.
func (r *Run) responseAt(node int32, i int) sim.Time {
	peer := r.Graph.Nodes[node].Ports[i].Peer
	if r.Graph.Nodes[peer].Kind == topo.Host {
		return r.hostAt(peer).NIC.ResponseDelay
	}
	return r.switchAt(peer).PFC.ResponseDelay
}

// paramsKey is what the parameters of DCQCN depend on: the host's settings, which
// most have in common, and the rate of the link.
type paramsKey struct {
	host *scenario.Host
	rate sim.Rate
}

// nicConfig makes the configuration of a NIC.
func (r *Run) nicConfig(node, i int32, h *scenario.Host, params map[paramsKey]*dcqcn.Params) (host.Config, error) {
	g, sc := r.Graph, r.Scenario
	n := &g.Nodes[node]
	e := n.Endpoint + i
	link := g.Link(node, i)
	mtu := h.MTU
	if mtu == 0 {
		mtu = sc.Packet.MTU
	}
	c := host.Config{
		Name: n.Name, Node: node, Port: int(i), Endpoint: e, Addr: g.Endpoints[e].Addr, Rate: link.Rate,
		MTU: ib.MTUFor(mtu), Payload: sc.Packet.Payload, Header: max(sc.Packet.Header, 0), Control: sc.Packet.Control,
		V1: h.RoCE == "v1", Tagged: h.Tagged, NoECT: !h.RDMA.ECN,
		CNPPrio: h.CNP.Priority, CNPDSCP: h.CNP.DSCP, AckEvery: h.RDMA.AckEvery,
		TimeoutExp: h.RDMA.TimeoutExp, RetryCnt: h.RDMA.RetryCnt, RNRRetry: h.RDMA.RNRRetry, MinRNRTimer: 12,
		PacketRate: h.NIC.PacketRate, QPRate: h.NIC.QPRate, RxQueues: h.NIC.RxQueues, RxRate: h.NIC.RxRate, RxPackets: h.NIC.RxPacketRate,
		DrainRate: h.NIC.PCIeRate, RxBuffer: int64(h.NIC.RxBuffer), XOFF: int64(h.NIC.XOFF), XON: int64(h.NIC.XON), Lossless: uint8(h.NIC.PFC),
	}
	if c.Payload > mtu {
		c.Payload = mtu
	}
	if c.XOFF == 0 {
		bytes := scenario.Buffer{Cell: 1}
		need := bytes.NeedHeadroom(r.linkOf(node, int(i)))
		c.XOFF = max(c.RxBuffer-need, c.RxBuffer/4)
	}
	switch h.NIC.RSS {
	case "ip":
		c.RSS = host.RSSAddresses
	case "off":
		c.RSS = host.RSSOff
	}
	if !h.DCQCN.Off() {
		key := paramsKey{h, link.Rate}
		p := params[key]
		if p == nil {
			v, err := h.DCQCN.Params()
			if err != nil {
				return c, err
			}
			scaled := v.Scaled(uint64(link.Rate))
			p = &scaled
			params[key] = p
		}
		c.DCQCN = p
	}
	return c, nil
}

// connect makes the links.
func (r *Run) connect() {
	g := r.Graph
	all := make([]port.Port, 2*len(g.Links))
	for i := range g.Nodes {
		n := len(g.Nodes[i].Ports)
		r.Ports[i] = make([]*port.Port, n)
		for k := range n {
			r.Ports[i][k] = &all[k]
		}
		all = all[n:]
	}
	faulty := r.faultyLinks()
	for l := range g.Links {
		link := &g.Links[l]
		a := r.makePort(link.A, link.APort, link, faulty)
		b := r.makePort(link.B, link.BPort, link, faulty)
		port.Connect(a, b)
	}
}

// faultyLinks reports whether links may begin to corrupt frames.
func (r *Run) faultyLinks() bool {
	return slices.ContainsFunc(r.Scenario.Faults, func(f scenario.Fault) bool { return f.Kind == scenario.Errors })
}

func (r *Run) makePort(node, i int32, link *topo.Link, faulty bool) *port.Port {
	st := &r.settings[node]
	errors := min(link.ErrorRate+uint64(r.Scenario.Topology.ErrorRate), 1<<32)
	c := port.Config{Rate: link.Rate, Delay: link.Delay, Gap: r.gap(), ErrorRate: errors}
	if errors > 0 || faulty {
		c.Rand = r.S.Rand(fmt.Sprintf("errors %s/%d", r.Graph.Nodes[node].Name, i))
	}
	fc := &port.PFC{Obeys: st.lossless}
	var owner port.Node
	if sw := r.Switches[node]; sw != nil {
		c.Early = st.cfg.CutThrough
		c.Quanta, c.Global = uint16(st.sw.PFC.Quanta), st.sw.PFC.GlobalPause
		fc.Response, fc.ObeysPause = st.sw.PFC.ResponseDelay, true
		owner = sw
	} else {
		c.Quanta = uint16(st.host.NIC.Quanta)
		fc.Response, fc.ObeysPause = st.host.NIC.ResponseDelay, true
		owner = r.NICs[r.Graph.Nodes[node].Endpoint+i]
	}
	p := r.Ports[node][i]
	p.Init(r.S, owner, int(i), uint64(node)<<8|uint64(i)&0xFF, c, fc)
	st.used = r.usedPrios()
	if sw := r.Switches[node]; sw != nil {
		sw.SetPort(int(i), p)
	} else {
		r.NICs[r.Graph.Nodes[node].Endpoint+i].SetPort(p)
	}
	p.Refreshed = func(now sim.Time, classes uint8) {
		for q := range uint8(8) {
			if classes&(1<<q) != 0 {
				r.refreshed(now, node, i, q)
			}
		}
	}
	return p
}

// refreshed notes that a neighbour is told again to stop, and what for.
func (r *Run) refreshed(now sim.Time, node, i int32, prio uint8) {
	var p result.Pause
	if sw := r.Switches[node]; sw != nil {
		p = sw.Standing(now, int(i), prio)
	} else {
		p = r.NICs[r.Graph.Nodes[node].Endpoint+i].Standing(now, prio)
	}
	p.Refresh = true
	r.Pause(p)
}

// shapeOf collects what readers of a result need to know.
func (r *Run) shapeOf() result.Shape {
	sc := r.Scenario
	s := result.Shape{
		Preset: sc.Host.DCQCN.Preset, AckEvery: sc.Host.RDMA.AckEvery, Payload: sc.Packet.Payload, Gap: r.gap(),
		Lossless: uint8(sc.Switch.PFC.Priorities), CNPPrio: sc.Host.CNP.Priority,
	}
	if s.Payload == 0 {
		s.Payload = sc.Packet.MTU
	}
	if len(r.NICs) > 0 {
		c := r.NICs[0].Config()
		s.Header = host.HeaderBytes(&c)
		if p := c.DCQCN; p != nil {
			s.AI, s.HAI, s.MinRate = sim.Rate(p.RPGAIRate), sim.Rate(p.RPGHAIRate), sim.Rate(p.RPGMinRate)
			s.IncreaseEvery, s.CNPEvery = sim.Of(p.RPGTimeReset), sim.Of(p.MinTimeBetweenCNPs)
		}
		if m, ok := sc.Switch.ECN.For(sc.Host.RDMA.Priority, c.Rate); ok {
			s.KMin, s.KMax, s.PMax = int64(m.KMin), int64(m.KMax), m.PMax.Float()
		}
	}
	return s
}
