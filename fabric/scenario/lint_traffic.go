package scenario

import "slices"

// unused finds keys that do nothing for the kind of their part.
func (l *linter) unused() {
	for _, key := range l.s.unusedKeys("topology", sharedShapeKeys, shapeKeys[l.s.Topology.Kind]) {
		l.say("", []string{"topology"}, key, "does nothing: kind is %s", l.s.Topology.Kind)
	}
	for i := range l.s.Workload {
		w := &l.s.Workload[i]
		path := index("workload", i)
		for _, key := range l.s.unusedKeys(path, sharedTrafficKeys, trafficKeys[w.Kind]) {
			l.say("", []string{path}, key, "does nothing: kind is %s", w.Kind)
		}
	}
}

// idleMarks finds thresholds of priorities that are not marked.
func (l *linter) idleMarks() {
	e := &l.s.Switch.ECN
	for i, m := range e.ByPriority {
		if !e.Priorities.Has(m.Priority) {
			l.say("", []string{"switch"}, index("ecn.by_priority", i), "does nothing: priority %d is not among ecn.priorities, %s", m.Priority, e.Priorities)
		}
	}
}

// ends finds runs that end otherwise than one might think.
func (l *linter) ends() {
	if l.s.Until != UntilFlows {
		return
	}
	finite := len(l.s.Workload) == 0
	for i := range l.s.Workload {
		w := &l.s.Workload[i]
		endless := w.Endless || w.Kind == Long && w.Bytes == 0 || (w.Kind == Bursts || w.Kind == Poisson) && w.Count == 0 && w.End == 0
		finite = finite || !endless
	}
	if !finite {
		l.say("ends", nil, "until", "no workload ends by itself: the run lasts %s", TimeText(l.s.Duration))
	}
}

// used returns the priorities that traffic may be in, at any switch or host.
func (l *linter) used() uint8 {
	if !l.summed {
		l.prios, l.summed = l.sumPrios(), true
	}
	return l.prios
}

func (l *linter) sumPrios() uint8 {
	var m uint8
	add := func(prio, dscp uint8) {
		m |= 1 << prio
		for _, g := range l.switches {
			m |= 1 << l.classified(g, prio, dscp)
		}
	}
	for _, h := range l.hosts {
		add(h.set.RDMA.Priority, h.set.RDMA.DSCP)
		if !h.set.DCQCN.Off() {
			add(h.set.CNP.Priority, h.set.CNP.DSCP)
		}
		for i := range l.s.Workload {
			w := &l.s.Workload[i]
			add(classOf(w, &h.set))
		}
	}
	return m
}

// classOf returns priority and code point of a workload's data from a host.
func classOf(w *Workload, h *Host) (prio, dscp uint8) {
	prio, dscp = h.RDMA.Priority, h.RDMA.DSCP
	if w.Op == "tcp" {
		prio, dscp = h.TCP.Priority, h.TCP.DSCP
	}
	if w.Priority >= 0 {
		prio = uint8(w.Priority)
	}
	if w.DSCP >= 0 {
		dscp = uint8(w.DSCP)
	}
	return prio, dscp
}

// classified returns the priority in which a switch puts a packet.
func (l *linter) classified(g *switchGroup, prio, dscp uint8) uint8 {
	if g.set.Trust == TrustDSCP {
		return g.set.DSCPMap[dscp]
	}
	if l.tagged() {
		return g.set.PCPMap[prio]
	}
	return g.set.PCPMap[0]
}

// tagged reports whether hosts send tags.
func (l *linter) tagged() bool {
	return slices.ContainsFunc(l.hosts, func(h *hostGroup) bool { return h.set.Tagged })
}

// rdma reports whether there is RDMA traffic at all.
func (l *linter) rdma() bool {
	return slices.ContainsFunc(l.s.Workload, func(w Workload) bool { return w.Op != "tcp" })
}

// priorities follows the data class through maps and PFC.
func (l *linter) priorities() {
	if !l.rdma() {
		return
	}
	lossless := false
	for _, g := range l.switches {
		lossless = lossless || g.set.PFC.Priorities != 0
	}
	for _, g := range l.switches {
		if g.set.Trust == TrustPCP && !l.tagged() {
			l.say("trust", g.paths, "trust",
				"%s trusts PCP, but hosts send frames without tags: all of them are in priority %d", l.name(g.nodes), g.set.PCPMap[0])
		}
		for _, h := range l.hosts {
			prio, dscp := h.set.RDMA.Priority, h.set.RDMA.DSCP
			at := l.classified(g, prio, dscp)
			key := "dscp_map"
			if g.set.Trust == TrustPCP {
				key = "trust"
			}
			switch {
			case lossless && !g.set.PFC.Priorities.Has(at) && g.set.PFC.Priorities != 0:
				l.say("lossy", g.paths, key,
					"%s puts RDMA with DSCP %d of %s in priority %d, which has no PFC: it is dropped in congestion, and go-back-N sends it again",
					l.name(g.nodes), dscp, l.name(h.nodes), at)
			case lossless && g.set.PFC.Priorities == 0:
				l.say("no pfc", g.paths, "pfc.priorities",
					"%s has no PFC and others have: RDMA is dropped there in congestion", l.name(g.nodes))
			case g.set.PFC.Priorities.Has(at) && !h.set.NIC.PFC.Has(at):
				l.say("nic pfc", h.paths, "nic.pfc",
					"%s does not obey pauses of priority %d, in which %s puts its RDMA: the switch drops what is beyond its headroom",
					l.name(h.nodes), at, l.name(g.nodes))
			case g.set.PFC.Priorities.Has(at) && at != prio:
				l.say("other priority", h.paths, "rdma.priority",
					"%s sends in priority %d, but %s pauses priority %d for it (DSCP %d): the pause does not stop it",
					l.name(h.nodes), prio, l.name(g.nodes), at, dscp)
			}
			if cnp := l.classified(g, h.set.CNP.Priority, h.set.CNP.DSCP); cnp == at && !h.set.DCQCN.Off() {
				l.say("cnp", h.paths, "cnp.dscp",
					"%s puts CNPs (DSCP %d) in priority %d, that of the data: they wait behind it and are paused with it, and senders slow down late",
					l.name(g.nodes), h.set.CNP.DSCP, cnp)
			}
		}
	}
}

// congestion finds marks without anybody to heed them, and the reverse.
func (l *linter) congestion() {
	if !l.rdma() {
		return
	}
	for _, h := range l.hosts {
		marked := false
		for _, g := range l.switches {
			marked = marked || g.set.ECN.Priorities.Has(l.classified(g, h.set.RDMA.Priority, h.set.RDMA.DSCP))
		}
		marked = marked && h.set.RDMA.ECN
		switch {
		case h.set.DCQCN.Off() && marked:
			l.say("dcqcn off", h.paths, "dcqcn.preset",
				"DCQCN is off at %s and switches mark its packets: nobody slows down, and only PFC holds the queues", l.name(h.nodes))
		case !h.set.DCQCN.Off() && !marked:
			l.say("no marks", h.paths, "rdma.ecn",
				"no switch marks RDMA of %s: DCQCN never hears of congestion, and only PFC holds the queues", l.name(h.nodes))
		}
		p, err := h.set.DCQCN.Params()
		if err != nil || p == nil {
			continue
		}
		for _, text := range p.Warnings(uint64(l.g.Link(h.nodes[0], 0).Rate)) {
			l.say("dcqcn "+text, h.paths, "dcqcn", "%s", text)
		}
	}
}

// receivers finds hosts whose receive side is the bottleneck by its settings.
func (l *linter) receivers() {
	flows := l.flowsInto()
	for _, h := range l.hosts {
		n := &h.set.NIC
		for _, node := range h.nodes {
			rate := l.g.Link(node, 0).Rate
			if n.RxRate > 0 && (n.RSS == "off" || n.RxQueues == 1) && n.RxRate < rate && flows[node] > 1 {
				l.say("rss", h.paths, "nic.rss",
					"all %d flows into %s go through one receive queue of %s, on a link of %s", flows[node], l.g.Nodes[node].Name, RateText(n.RxRate), RateText(rate))
			}
			if n.RSS == "ip" && n.RxQueues > 1 && n.RxRate > 0 && flows[node] > 1 {
				l.say("rss ip", h.paths, "nic.rss",
					"flows of one pair of addresses go through one receive queue of %s of %s", RateText(n.RxRate), l.g.Nodes[node].Name)
			}
			if n.PCIeRate > 0 && n.PCIeRate < rate {
				text := "the NIC pauses its switch"
				if n.PFC == 0 {
					text = "the NIC drops"
				}
				l.say("pcie", h.paths, "nic.pcie_rate",
					"%s takes in %s of the %s that its link brings: beyond that, %s", l.g.Nodes[node].Name, RateText(n.PCIeRate), RateText(rate), text)
			}
			if slow := n.RxRate > 0 || n.PCIeRate > 0; slow && n.PFC != 0 {
				link := l.link(node, 0)
				buf := Buffer{Cell: 1}
				if need := buf.NeedHeadroom(link); int64(n.RxBuffer-n.XOFF) < need && n.XOFF > 0 || int64(n.RxBuffer) <= need {
					l.say("nic headroom", h.paths, "nic.xoff",
						"%s leaves less than the %s of headroom that its link needs: the NIC drops in spite of PFC", l.g.Nodes[node].Name, Bytes(need))
				}
			}
		}
	}
}

// flowsInto counts the flows that single workloads send to each node.
func (l *linter) flowsInto() []int {
	count := make([]int, len(l.g.Nodes))
	for i := range l.s.Workload {
		w := &l.s.Workload[i]
		qps := max(1, w.QPs)
		switch w.Kind {
		case Incast, Bursts, Long:
			src, err1 := l.names.endpoints(w.Src, false)
			dst, err2 := l.names.endpoints(w.Dst, false)
			if err1 != nil || err2 != nil || len(src) == 0 || len(dst) == 0 {
				continue
			}
			for _, to := range pairs(w, src, dst) {
				count[l.g.Endpoints[to].Node] += qps
			}
		case AllToAll, Poisson, Permutation, AllReduceRing, AllReduceTree:
			sel := w.Hosts
			if len(sel) == 0 {
				sel = Select{"all"}
			}
			list, _ := l.names.endpoints(sel, true)
			per := qps
			if w.Kind == AllToAll || w.Kind == Poisson {
				per = qps * max(1, len(list)-1)
			}
			for _, e := range list {
				count[l.g.Endpoints[e].Node] += per
			}
		case Flows, Trace:
		}
	}
	return count
}

// subnets finds RoCEv1 traffic that would have to be routed.
func (l *linter) subnets() {
	if l.s.Topology.Subnets != SubnetPerLeaf {
		return
	}
	v1 := make([]bool, len(l.g.Nodes))
	for _, h := range l.hosts {
		for _, n := range h.nodes {
			v1[n] = h.set.RoCE == "v1"
		}
	}
	for i := range l.s.Workload {
		if w := &l.s.Workload[i]; w.Op != "tcp" && l.crosses(w, v1) {
			l.say("v1", []string{"host"}, "roce",
				"RoCEv1 is not routed: packets of %s to other subnets are dropped at their leaf, and the queue pairs fail after their retries", w.Name)
		}
	}
}

// crosses reports whether a workload goes from a RoCEv1 host to another subnet.
func (l *linter) crosses(w *Workload, v1 []bool) bool {
	src, _ := l.names.endpoints(w.Src, false)
	dst, _ := l.names.endpoints(w.Dst, false)
	if len(src) > 0 && len(dst) > 0 {
		for from, to := range pairs(w, src, dst) {
			a, b := &l.g.Endpoints[from], &l.g.Endpoints[to]
			if v1[a.Node] && a.Subnet != b.Subnet {
				return true
			}
		}
		return false
	}
	hosts := w.Hosts
	if len(hosts) == 0 {
		hosts = Select{"all"}
	}
	list, _ := l.names.endpoints(hosts, true)
	for _, e := range list {
		if a := &l.g.Endpoints[e]; v1[a.Node] && a.Subnet != l.g.Endpoints[list[0]].Subnet {
			return true
		}
	}
	return false
}

// losses finds settings in which a lost packet ends a flow for ever.
func (l *linter) losses() {
	if !l.rdma() {
		return
	}
	for _, h := range l.hosts {
		if h.set.RDMA.Service == "rc" && h.set.RDMA.TimeoutExp == 0 {
			l.say("timeout", h.paths, "rdma.timeout_exp",
				"without ACK timeout a lost last packet is never sent again, and its flow never ends")
		}
	}
	for _, g := range l.switches {
		if g.set.PFC.Priorities != 0 {
			l.quanta(g.paths, "pfc.quanta", g.set.PFC.Quanta)
		}
	}
	for _, h := range l.hosts {
		if h.set.NIC.PFC != 0 {
			l.quanta(h.paths, "nic.quanta", h.set.NIC.Quanta)
		}
	}
}

// quanta finds pauses that end before a frame has been sent: they stop nobody.
func (l *linter) quanta(paths []string, key string, quanta int) {
	pause := int64(quanta) * 512 / 8 // bytes
	if frame := l.s.MaxFrame(); pause < 2*frame {
		l.say("quanta", paths, key,
			"%d last as long as %d bytes on the link, less than two frames of %d: pauses end while they are being refreshed",
			quanta, pause, frame)
	}
}
