package doctor

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// portFacts are those of RDMA devices, their ports and queue pairs.
var portFacts = map[string]fact{
	"device.name":            deviceFact("name of the device", func(d *snapshot.Device) snapshot.Value[string] { return snapshot.Known(d.Name) }, ""),
	"device.kind":            deviceFact("hardware, rxe, siw, verbena or sim", func(d *snapshot.Device) snapshot.Value[string] { return snapshot.Known(string(d.Kind)) }, ""),
	"device.driver":          deviceFact("driver", func(d *snapshot.Device) snapshot.Value[string] { return d.Driver }, "device/driver"),
	"device.board":           deviceFact("board id", func(d *snapshot.Device) snapshot.Value[string] { return d.BoardID }, "board_id"),
	"device.uverbs":          deviceFact("its uverbs device", func(d *snapshot.Device) snapshot.Value[string] { return d.UVerbs }, ""),
	"device.pci":             pciFact("address on PCI", func(p *snapshot.PCI) snapshot.Value[string] { return knownUnlessEmpty(p.Address) }, ""),
	"device.pci_speed":       pciFact("present speed of the PCI link, as sysfs writes it", func(p *snapshot.PCI) snapshot.Value[string] { return p.LinkSpeed }, "current_link_speed"),
	"device.pci_max_speed":   pciFact("greatest speed of the PCI link", func(p *snapshot.PCI) snapshot.Value[string] { return p.MaxLinkSpeed }, "max_link_speed"),
	"device.pci_width":       pciFact("present lanes of the PCI link", func(p *snapshot.PCI) snapshot.Value[int] { return p.LinkWidth }, "current_link_width"),
	"device.pci_max_width":   pciFact("greatest number of lanes", func(p *snapshot.PCI) snapshot.Value[int] { return p.MaxLinkWidth }, "max_link_width"),
	"device.pci_mbps":        {doc: "what the PCI link carries in Mb/s, after encoding and headers", each: ofDevice, get: func(s *scope) reading { return pciRate(s.now.dev) }},
	"device.iwarp":           {doc: "whether it speaks iWARP, which has no use for RoCE's GIDs and PFC", each: ofDevice, get: iwarp},
	"device.numa":            pciFact("NUMA node, -1 for none", func(p *snapshot.PCI) snapshot.Value[int] { return p.NUMANode }, "numa_node"),
	"device.virtual":         pciFact("whether it is a virtual function", func(p *snapshot.PCI) snapshot.Value[bool] { return p.Virtual }, "physfn"),
	"device.mr_bytes":        {doc: "bytes of all memory regions", each: ofDevice, get: once("device.mr_bytes", mrBytes)},
	"device.qps_stuck_init":  {doc: "queue pairs in INIT in both snapshots", each: ofDevice, get: once("stuck "+"INIT", stuck("INIT"))},
	"device.qps_stuck_rtr":   {doc: "queue pairs in RTR in both snapshots", each: ofDevice, get: once("stuck "+"RTR", stuck("RTR"))},
	"device.qps_error":       {doc: "queue pairs in ERR or SQE", each: ofDevice, get: once("device.qps_error", inState("ERR", "SQE"))},
	"device.max_inline":      attrFact("bytes that a work request can carry inline", "max_inline_data"),
	"device.max_qp":          attrFact("most queue pairs", "max_qp"),
	"device.max_qp_wr":       attrFact("most work requests of a queue", "max_qp_wr"),
	"device.max_cq":          attrFact("most completion queues", "max_cq"),
	"device.max_mr":          attrFact("most memory regions", "max_mr"),
	"device.qp_count":        countFact("queue pairs", "qp"),
	"device.cq_count":        countFact("completion queues", "cq"),
	"device.mr_count":        countFact("memory regions", "mr"),
	"device.ctx_count":       countFact("user contexts", "ctx"),
	"device.ctx_idle_others": {doc: "other devices that have as many contexts as this one and next to no queue pairs", each: ofDevice, get: idleContexts},

	"port.state":         portFact("1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE", func(p *snapshot.Port) snapshot.Value[int] { return p.State }, "state"),
	"port.phys_state":    portFact("1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 ErrorRecovery", func(p *snapshot.Port) snapshot.Value[int] { return p.PhysState }, "phys_state"),
	"port.rate":          portFact("rate as sysfs writes it", func(p *snapshot.Port) snapshot.Value[string] { return p.Rate }, "rate"),
	"port.rate_mbps":     portFact("rate in Mb/s", func(p *snapshot.Port) snapshot.Value[int64] { return p.RateMbps }, "rate"),
	"port.rate_error":    {doc: "why the rate cannot be read", each: ofPort, get: rateError},
	"port.link_layer":    portFact("Ethernet or InfiniBand", func(p *snapshot.Port) snapshot.Value[string] { return p.LinkLayer }, "link_layer"),
	"port.active_mtu":    portFact("active MTU in bytes", func(p *snapshot.Port) snapshot.Value[int] { return p.ActiveMTU }, ""),
	"port.max_mtu":       portFact("greatest MTU in bytes", func(p *snapshot.Port) snapshot.Value[int] { return p.MaxMTU }, ""),
	"port.number":        portFact("number of the port", func(p *snapshot.Port) snapshot.Value[int] { return snapshot.Known(p.Number) }, ""),
	"port.cm_mode":       portFact("RoCE version of the connection manager", func(p *snapshot.Port) snapshot.Value[string] { return p.CMRoCEMode }, "default_roce_mode"),
	"port.cm_tos":        portFact("type of service of the connection manager", func(p *snapshot.Port) snapshot.Value[int] { return p.CMTOS }, "default_roce_tos"),
	"port.traffic_class": portFact("traffic class forced for all queue pairs", func(p *snapshot.Port) snapshot.Value[int] { return p.TrafficClass }, "tc/1/traffic_class"),
	"port.in_use":        {doc: "whether something uses the port: an IP address, queue pairs, the program that is looked at", each: ofPort, get: inUse},
	"port.sibling_mbps":  {doc: "median rate in Mb/s of the ports of the same board", each: ofPort, get: siblingRate},

	"qp.type":     qpFact("RC, UC, UD, …", func(q *snapshot.QP) snapshot.Value[string] { return snapshot.Known(q.Type) }),
	"qp.state":    qpFact("RESET, INIT, RTR, RTS, SQD, SQE, ERR", func(q *snapshot.QP) snapshot.Value[string] { return snapshot.Known(q.State) }),
	"qp.path_mtu": qpFact("path MTU in bytes", func(q *snapshot.QP) snapshot.Value[int] { return q.PathMTU }),
	"qp.comm":     qpFact("program", func(q *snapshot.QP) snapshot.Value[string] { return snapshot.Known(cmp.Or(q.Comm, "its program")) }),

	"qp.traffic_class": qpFact("traffic class of its address vector", func(q *snapshot.QP) snapshot.Value[int] { return q.TrafficClass }),
}

func knownUnlessEmpty(s string) snapshot.Value[string] {
	if s == "" {
		return snapshot.Value[string]{}
	}
	return snapshot.Known(s)
}

func devicePath(d *snapshot.Device, rest string) string {
	if rest == "" {
		return d.Name
	}
	return "/sys/class/infiniband/" + d.Name + "/" + rest
}

func portPath(s *scope, rest string) string {
	if rest == "" || s.now.port == nil {
		return s.name()
	}
	return devicePath(s.now.dev, "ports/"+format(s.now.port.Number)+"/"+rest)
}

func deviceFact[T any](doc string, get func(*snapshot.Device) snapshot.Value[T], file string) fact {
	return fact{doc: doc, each: ofDevice, get: func(s *scope) reading {
		if s.now.dev == nil {
			return none("", "no RDMA device on it")
		}
		return val(get(s.now.dev), devicePath(s.now.dev, file))
	}}
}

func pciFact[T any](doc string, get func(*snapshot.PCI) snapshot.Value[T], file string) fact {
	return fact{doc: doc, each: ofDevice, get: func(s *scope) reading {
		if s.now.dev == nil || s.now.dev.PCI == nil {
			return none("", "no PCI device behind it, or not recorded")
		}
		return val(get(s.now.dev.PCI), devicePath(s.now.dev, "device/"+file))
	}}
}

func portFact[T any](doc string, get func(*snapshot.Port) snapshot.Value[T], file string) fact {
	return fact{doc: doc, each: ofPort, get: func(s *scope) reading {
		if s.now.port == nil {
			return none("", "no RDMA port on it")
		}
		return val(get(s.now.port), portPath(s, file))
	}}
}

func qpFact[T any](doc string, get func(*snapshot.QP) snapshot.Value[T]) fact {
	return fact{doc: doc, each: []Each{EachQP}, get: func(s *scope) reading { return val(get(s.now.qp), s.name()) }}
}

func attrFact(doc, name string) fact {
	return fact{doc: doc, each: ofDevice, get: func(s *scope) reading {
		if s.now.dev == nil {
			return none("", "no RDMA device on it")
		}
		a, ok := s.now.dev.Attr.Get()
		if !ok {
			return none(s.now.dev.Name, "attributes of %s: %s", s.now.dev.Name, s.now.dev.Attr.Why())
		}
		v, ok := a[name]
		if !ok {
			return none(s.now.dev.Name, "%s is not among the attributes of %s", name, s.now.dev.Name)
		}
		return is(float64(v), "attributes of "+s.now.dev.Name)
	}}
}

func countFact(doc, kind string) fact {
	return fact{doc: "number of " + doc, each: ofDevice, get: func(s *scope) reading {
		if s.now.dev == nil {
			return none("", "no RDMA device on it")
		}
		n, ok := s.now.dev.Resources[kind]
		if !ok {
			return none(s.now.dev.Name, "the %s of %s are not recorded", doc, s.now.dev.Name)
		}
		return is(float64(n), "rdma res "+s.now.dev.Name)
	}}
}

func rateError(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	v := s.now.port.Rate
	switch {
	case v.IsZero():
		return none(portPath(s, "rate"), "%s", v.Why())
	case v.IsKnown():
		return is("", portPath(s, "rate"))
	}
	return is(v.Why(), portPath(s, "rate"))
}

// siblingRate is the median rate of the ports that share a board id with this one.
func siblingRate(s *scope) reading {
	board, ok := s.now.dev.BoardID.Get()
	if !ok {
		return none(s.now.dev.Name, "board id of %s: %s", s.now.dev.Name, s.now.dev.BoardID.Why())
	}
	var rates []int64
	for i := range s.now.host.Devices {
		d := &s.now.host.Devices[i]
		if d.BoardID.Or("") != board || d == s.now.dev {
			continue
		}
		for j := range d.Ports {
			if r, ok := d.Ports[j].RateMbps.Get(); ok {
				rates = append(rates, r)
			}
		}
	}
	if len(rates) == 0 {
		return none(s.now.dev.Name, "no other port of board %s", board)
	}
	slices.Sort(rates)
	return is(rates[len(rates)/2], "ports of board "+board)
}

// mrBytes adds up the memory regions of a device.
func mrBytes(s *scope) reading {
	if s.now.dev == nil {
		return none("", "no RDMA device on it")
	}
	mrs, ok := s.now.dev.MRs.Get()
	if !ok {
		return none(s.now.dev.Name, "memory regions of %s: %s", s.now.dev.Name, s.now.dev.MRs.Why())
	}
	sum := 0.0
	for i := range mrs {
		sum += float64(mrs[i].Length)
	}
	return is(sum, "rdma res show mr dev "+s.now.dev.Name)
}

func inState(states ...string) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.dev == nil {
			return none("", "no RDMA device on it")
		}
		qps, ok := s.now.dev.QPs.Get()
		if !ok {
			return none(s.now.dev.Name, "queue pairs of %s: %s", s.now.dev.Name, s.now.dev.QPs.Why())
		}
		n := 0
		for i := range qps {
			if slices.Contains(states, qps[i].State) && qps[i].Type != "GSI" && qps[i].Type != "SMI" {
				n++
			}
		}
		return is(n, "rdma res show qp dev "+s.now.dev.Name)
	}
}

// stuck counts the queue pairs that are in a state in both snapshots; those of
// datagrams may stay in INIT or RTR as long as they like.
func stuck(state string) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.dev == nil {
			return none("", "no RDMA device on it")
		}
		if s.before == nil || s.before.dev == nil {
			return none(s.now.dev.Name, "it takes two snapshots to see a queue pair that stays in %s", state)
		}
		now, ok := s.now.dev.QPs.Get()
		before, ok2 := s.before.dev.QPs.Get()
		if !ok || !ok2 {
			return none(s.now.dev.Name, "queue pairs of %s: %s", s.now.dev.Name, s.now.dev.QPs.Why())
		}
		was := map[uint32]bool{}
		for i := range before {
			was[before[i].LQPN] = before[i].State == state
		}
		n := 0
		for i := range now {
			if now[i].State == state && was[now[i].LQPN] && (now[i].Type == "RC" || now[i].Type == "UC") {
				n++
			}
		}
		return is(n, "rdma res show qp dev "+s.now.dev.Name)
	}
}

// idleContexts counts the other devices that are opened as often as this one and
// hardly used.
func idleContexts(s *scope) reading {
	if s.now.dev == nil {
		return none("", "no RDMA device on it")
	}
	mine, ok := s.now.dev.Resources["ctx"]
	if !ok {
		return none(s.now.dev.Name, "the contexts of %s are not recorded", s.now.dev.Name)
	}
	n := 0
	for i := range s.now.host.Devices {
		d := &s.now.host.Devices[i]
		if ctx, ok := d.Resources["ctx"]; ok && d != s.now.dev && ctx >= mine && d.Resources["qp"] < ctx/10 {
			n++
		}
	}
	return is(n, "rdma res")
}

// inUse is true where an address, queue pairs or the program say so, false where all
// that is recorded says no.
func inUse(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	asked := false
	if a := s.app(); a != nil {
		if name, ok := a.Device.Get(); ok {
			asked = true
			if name == s.now.dev.Name {
				return is(true, "the program")
			}
		}
	}
	if qps, ok := s.now.dev.QPs.Get(); ok {
		asked = true
		for i := range qps {
			if qps[i].Type != "GSI" && qps[i].Type != "SMI" {
				return is(true, "rdma res show qp")
			}
		}
	}
	if r := ipCount(s); r.value != nil {
		asked = true
		if r.value.(int) > 0 {
			return is(true, r.place)
		}
	}
	if !asked {
		return none("", "neither addresses nor queue pairs nor a program are known")
	}
	return is(false, "")
}

// nodeRNIC is the node type of iWARP devices, include/rdma/ib_verbs.h.
const nodeRNIC = 4

// iwarp takes a device that does not say what it is for one of InfiniBand or RoCE.
func iwarp(s *scope) reading {
	if s.now.dev == nil {
		return none("", "no RDMA device")
	}
	return is(s.now.dev.NodeType.Or(0) == nodeRNIC, devicePath(s.now.dev, "node_type"))
}
