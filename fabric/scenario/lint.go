package scenario

import (
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// Lint returns what is unwise about a scenario on its graph, and what will
// happen. It runs all the same. Check has been passed. Equal switches and hosts
// are named once.
func (s *Scenario) Lint(g *topo.Graph) []Warning {
	l := linter{s: s, g: g, names: newNames(g), said: map[string]int{}}
	l.settings()
	for _, f := range []func(){
		l.unused, l.idleMarks, l.ends, l.packets, l.priorities, l.thresholds, l.headroom, l.buffers, l.congestion, l.receivers, l.subnets, l.hashing, l.watchdogs, l.losses, l.cycles,
	} {
		f()
	}
	for i := range l.out {
		if n := l.more[i]; n > 0 {
			l.out[i].Text += more(n)
		}
	}
	return l.out
}

// linter collects warnings.
type linter struct {
	s     *Scenario
	g     *topo.Graph
	names *names
	out   []Warning
	more  []int          // how many other nodes a warning is for
	said  map[string]int // where in out, by subject

	prios  uint8 // see used
	summed bool

	switches []*switchGroup
	hosts    []*hostGroup
}

// switchGroup is the switches with the same settings.
type switchGroup struct {
	set   Switch
	nodes []int32
	paths []string // where the settings may be given
}

// hostGroup is the hosts with the same settings.
type hostGroup struct {
	set   Host
	nodes []int32
	paths []string
}

// settings groups the nodes by the overlays that are for them.
func (l *linter) settings() {
	sw, hosts := map[string]*switchGroup{}, map[string]*hostGroup{}
	for i := range l.g.Nodes {
		n := &l.g.Nodes[i]
		if n.Kind == topo.Switch {
			key, paths := l.overlays(n.Name, "switches", "switch", l.s.Switches)
			if sw[key] == nil {
				sw[key] = &switchGroup{set: l.s.SwitchFor(n.Name), paths: paths}
				l.switches = append(l.switches, sw[key])
			}
			sw[key].nodes = append(sw[key].nodes, int32(i))
			continue
		}
		key, paths := l.overlays(n.Name, "hosts", "host", l.s.Hosts)
		if hosts[key] == nil {
			hosts[key] = &hostGroup{set: l.s.HostFor(n.Name), paths: paths}
			l.hosts = append(l.hosts, hosts[key])
		}
		hosts[key].nodes = append(hosts[key].nodes, int32(i))
	}
}

func (l *linter) overlays(name, key, base string, list []Overlay) (id string, paths []string) {
	paths = []string{base}
	for j := range list {
		if list[j].Matches(name) {
			id += index(key, j)
			paths = append([]string{index(key, j)}, paths...)
		}
	}
	return id, paths
}

// say adds a warning about a key, once for each subject.
func (l *linter) say(subject string, paths []string, key, format string, args ...any) {
	if i, ok := l.said[subject]; ok && subject != "" {
		l.more[i]++
		return
	}
	full := make([]string, len(paths))
	for i, p := range paths {
		full[i] = join(p, key)
	}
	if len(full) == 0 {
		full = []string{key}
	}
	l.said[subject] = len(l.out)
	l.out = append(l.out, l.s.warn(full, format, args...))
	l.more = append(l.more, 0)
}

func more(n int) string {
	if n == 1 {
		return " (and for one other group of nodes or ports)"
	}
	return " (and for " + formatInt(int64(n)) + " other groups of nodes or ports)"
}

// name names the first node of a group, and how many are like it.
func (l *linter) name(nodes []int32) string {
	s := l.g.Nodes[nodes[0]].Name
	switch len(nodes) {
	case 1:
		return s
	case 2:
		return s + " (and one other)"
	}
	return s + " (and " + formatInt(int64(len(nodes)-1)) + " others)"
}

// link describes a port to the arithmetic of headroom.
func (l *linter) link(node, port int32) PortLink {
	link := l.g.Link(node, port)
	peer := l.g.Nodes[node].Ports[port].Peer
	name := l.g.Nodes[peer].Name
	p := PortLink{
		Rate: link.Rate, Delay: link.Delay, MaxFrame: l.s.MaxFrame(), Least: l.s.Packet.LeastFrame(), Gap: l.s.Packet.GapBytes(),
	}
	if l.g.Nodes[peer].Kind == topo.Host {
		p.Response = l.s.HostFor(name).NIC.ResponseDelay
	} else {
		p.Response = l.s.SwitchFor(name).PFC.ResponseDelay
	}
	return p
}

// portShape groups ports whose links are alike.
type portShape struct {
	rate  sim.Rate
	delay sim.Time
	peer  topo.Kind
}

// ports visits one port of each shape of a group's switches.
func (l *linter) ports(g *switchGroup, visit func(node, port int32)) {
	seen := map[portShape]bool{}
	for _, node := range g.nodes {
		for p := range l.g.Nodes[node].Ports {
			link := l.g.Link(node, int32(p))
			k := portShape{link.Rate, link.Delay, l.g.Nodes[l.g.Nodes[node].Ports[p].Peer].Kind}
			if !seen[k] {
				seen[k] = true
				visit(node, int32(p))
			}
		}
	}
}

// portName names a port with its node.
func (l *linter) portName(node, port int32) string {
	return l.g.Nodes[node].Name + "/" + l.g.PortName(node, port)
}
