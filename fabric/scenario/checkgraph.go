package scenario

import (
	"iter"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/topo"
)

// Check compares the scenario with the graph that it runs on: every name must
// be there, and the settings of every node be possible. An error is an *Error.
func (s *Scenario) Check(g *topo.Graph) error {
	n := newNames(g)
	for _, f := range []func(*names) error{s.checkMatches, s.checkNodes, s.checkSelections, s.checkPlaces, s.checkSubnets} {
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}

// checkMatches finds overlays that are for nobody.
func (s *Scenario) checkMatches(n *names) error {
	for _, l := range []struct {
		key  string
		kind topo.Kind
		list []Overlay
	}{{"switches", topo.Switch, s.Switches}, {"hosts", topo.Host, s.Hosts}} {
		for i := range l.list {
			for _, name := range l.list[i].Match {
				if !n.any(Select{name}, l.kind) {
					return s.unknownNode(join(index(l.key, i), "match"), l.kind.String(), name, n)
				}
			}
		}
	}
	return nil
}

// any reports whether a selection means some node of a kind.
func (n *names) any(sel Select, k topo.Kind) bool {
	if len(sel) == 1 && literal(sel[0]) {
		i, ok := n.node[sel[0]]
		return ok && n.g.Nodes[i].Kind == k
	}
	for i := range n.g.Nodes {
		if n.g.Nodes[i].Kind == k && sel.Matches(n.g.Nodes[i].Name) {
			return true
		}
	}
	return false
}

// checkNodes checks the settings of nodes for which patterns hold.
func (s *Scenario) checkNodes(n *names) error {
	seen := map[string]bool{}
	for i := range n.g.Nodes {
		node := &n.g.Nodes[i]
		list, key, base := s.Switches, "switches", "switch"
		if node.Kind == topo.Host {
			list, key, base = s.Hosts, "hosts", "host"
		}
		if len(list) == 0 {
			continue
		}
		c := checks{s: s, within: []string{base}}
		var combo strings.Builder
		combo.WriteString(base)
		for j := range list {
			if list[j].Matches(node.Name) {
				// Later ones are looked at first: they hold.
				c.within = append([]string{index(key, j)}, c.within...)
				combo.WriteString(index(key, j))
			}
		}
		if len(c.within) == 1 || seen[combo.String()] {
			continue
		}
		seen[combo.String()] = true
		if node.Kind == topo.Host {
			h := s.HostFor(node.Name)
			c.checkHost(&h)
		} else {
			sw := s.SwitchFor(node.Name)
			c.checkSwitch(&sw)
		}
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// checkSelections resolves what workloads name.
func (s *Scenario) checkSelections(n *names) error {
	for i := range s.Workload {
		w := &s.Workload[i]
		path := index("workload", i)
		var ends [3][]int32
		for k, sel := range []struct {
			key  string
			list Select
		}{{"src", w.Src}, {"dst", w.Dst}, {"hosts", w.Hosts}} {
			list, err := n.endpoints(sel.list, sel.key == "hosts")
			if err != nil {
				return s.Fail(join(path, sel.key), "%s", err)
			}
			ends[k] = list
		}
		if err := s.checkPairs(n, i, ends[0], ends[1]); err != nil {
			return err
		}
		if err := s.checkGroup(n, i, ends[2]); err != nil {
			return err
		}
		for j, f := range w.List {
			at := index(join(path, "list"), j)
			src, err := n.endpoints(Select{f.Src}, false)
			if err != nil {
				return s.Fail(join(at, "src"), "%s", err)
			}
			dst, err := n.endpoints(Select{f.Dst}, false)
			if err != nil {
				return s.Fail(join(at, "dst"), "%s", err)
			}
			if len(src) != 1 || len(dst) != 1 {
				return s.Fail(at, "a flow has one src and one dst")
			}
			if src[0] == dst[0] {
				return s.Fail(join(at, "dst"), "%s sends to itself", clip(f.Src))
			}
		}
	}
	return nil
}

// checkPairs finds traffic from an endpoint to itself, and far too much of it.
func (s *Scenario) checkPairs(n *names, i int, src, dst []int32) error {
	w, path := &s.Workload[i], index("workload", i)
	if w.Kind != Incast && w.Kind != Bursts && w.Kind != Long {
		return nil
	}
	if n.work += len(src) * len(dst); n.work > maxEndpoints {
		return s.Fail(join(path, "src"), "%d senders to %d receivers are too many flows", len(src), len(dst))
	}
	flows := 0
	for a, b := range pairs(w, src, dst) {
		if a == b {
			return s.Fail(join(path, "dst"), "%s sends to itself", n.g.EndpointName(a))
		}
		flows++
	}
	if flows == 0 {
		return s.Fail(join(path, "dst"), "%s sends to itself", n.g.EndpointName(src[0]))
	}
	return nil
}

// pairs visits the senders and receivers of a workload as they will be: pair by
// pair where there are as many of both, but for an incast; else each to each
// but itself.
func pairs(w *Workload, src, dst []int32) iter.Seq2[int32, int32] {
	return func(yield func(int32, int32) bool) {
		for i, a := range src {
			if len(src) == len(dst) && w.Kind != Incast {
				if !yield(a, dst[i]) {
					return
				}
				continue
			}
			for _, b := range dst {
				if a != b && !yield(a, b) {
					return
				}
			}
		}
	}
}

// checkGroup finds collective traffic that is impossible for its hosts.
func (s *Scenario) checkGroup(n *names, i int, hosts []int32) error {
	w, path := &s.Workload[i], index("workload", i)
	switch w.Kind {
	case Permutation, AllToAll, AllReduceRing, AllReduceTree, Poisson:
	case Incast, Bursts, Long, Flows, Trace:
		return nil
	}
	if len(w.Hosts) == 0 {
		hosts, _ = n.endpoints(Select{"all"}, true)
	}
	if len(hosts) < 2 {
		return s.Fail(join(path, "hosts"), "%d NIC; %s needs two or more", len(hosts), w.Kind)
	}
	seen := make(map[int32]bool, len(hosts))
	byLeaf := map[int32]int{}
	for _, e := range hosts {
		if seen[e] {
			return s.Fail(join(path, "hosts"), "%s is named twice", n.g.EndpointName(e))
		}
		seen[e] = true
		byLeaf[n.g.Endpoints[e].Leaf]++
	}
	if w.CrossLeaf && w.Kind == Permutation {
		for _, e := range hosts {
			// Hall's condition: more than half under one leaf cannot all leave it.
			if k := byLeaf[n.g.Endpoints[e].Leaf]; 2*k > len(hosts) {
				return s.Fail(join(path, "cross_leaf"), "%d of %d hosts are on one leaf: not all can have a partner on another", k, len(hosts))
			}
		}
	}
	return nil
}

// checkPlaces resolves where faults happen and what is recorded.
func (s *Scenario) checkPlaces(n *names) error {
	for i := range s.Faults {
		f, path := &s.Faults[i], join(index("faults", i), "where")
		switch f.Kind {
		case Storm, SlowReceiver:
			list, err := n.endpoints(Select{f.Where}, false)
			if err != nil {
				return s.Fail(path, "%s", err)
			}
			if len(list) != 1 {
				return s.Fail(path, "%q names %d hosts; give one", clip(f.Where), len(list))
			}
		case LinkDown, Flap, Errors, DropNext:
			if err := n.link(f.Where); err != nil {
				return s.Fail(path, "%s", err)
			}
		case Reroute:
		}
	}
	for _, name := range s.Record.PCAP {
		if !literal(name) {
			continue
		}
		if _, _, err := n.port(name); err != nil {
			return s.Fail("record.pcap", "%s", err)
		}
	}
	for _, name := range s.Record.Ports {
		if !literal(name) {
			continue
		}
		if _, _, err := n.port(name); err != nil {
			return s.Fail("record.ports", "%s", err)
		}
	}
	for _, name := range s.Record.Flows {
		if !s.hasFlows(name) {
			all := make([]string, len(s.Workload))
			for i := range s.Workload {
				all[i] = s.Workload[i].Name
			}
			c := checks{s: s, within: []string{"record"}}
			c.unknown("flows", "workload", name, all)
			return c.err
		}
	}
	return nil
}

func (s *Scenario) hasFlows(name string) bool {
	for i := range s.Workload {
		if (Select{name}).Matches(s.Workload[i].Name) {
			return true
		}
	}
	return false
}

// checkSubnets finds RDMA from RoCEv1 to RoCEv2 hosts: they do not understand
// each other's frames.
func (s *Scenario) checkSubnets(n *names) error {
	if len(s.Hosts) == 0 {
		return nil
	}
	version := make([]string, len(n.g.Nodes))
	for i := range n.g.Nodes {
		if n.g.Nodes[i].Kind == topo.Host {
			version[i] = s.HostFor(n.g.Nodes[i].Name).RoCE
		}
	}
	for i := range s.Workload {
		w := &s.Workload[i]
		if w.Kind != Incast && w.Kind != Bursts && w.Kind != Long || w.Op == "tcp" {
			continue
		}
		src, _ := n.endpoints(w.Src, false)
		dst, _ := n.endpoints(w.Dst, false)
		for x, y := range pairs(w, src, dst) {
			a, b := n.g.Endpoints[x].Node, n.g.Endpoints[y].Node
			if version[a] != version[b] {
				return s.Fail(join(index("workload", i), "dst"), "%s speaks RoCE%s and %s RoCE%s",
					n.g.Nodes[a].Name, version[a], n.g.Nodes[b].Name, version[b])
			}
		}
	}
	return nil
}
