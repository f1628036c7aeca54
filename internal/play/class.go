package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// Class is the lossless ingresses of switches with equal links and settings,
// and the headroom (802.1Qbb) that they need and have.
type Class struct {
	Switch string // names without their numbers: "leaf"
	Peer   string // that sends to it: "host"
	Rate   sim.Rate
	Delay  sim.Time // one way
	Need   int64    // bytes for each priority
	Have   int64
	Ports  int
}

// Enough reports whether the ingresses cannot lose.
func (c *Class) Enough() bool { return c.Have >= c.Need }

// Links describes the links of a graph to the arithmetic of headroom.
type Links struct {
	sc       *scenario.Scenario
	g        *topo.Graph
	switches map[int32]*scenario.Switch
	hosts    map[int32]sim.Time // response to pauses
}

// LinksOf returns those of a scenario on its graph.
func LinksOf(sc *scenario.Scenario, g *topo.Graph) *Links {
	return &Links{sc, g, map[int32]*scenario.Switch{}, map[int32]sim.Time{}}
}

func (l *Links) sw(node int32) *scenario.Switch {
	if l.switches[node] == nil {
		sw := l.sc.SwitchFor(l.g.Nodes[node].Name)
		l.switches[node] = &sw
	}
	return l.switches[node]
}

// response is how long a node takes to obey a pause.
func (l *Links) response(node int32) sim.Time {
	if l.g.Nodes[node].Kind == topo.Switch {
		return l.sw(node).PFC.ResponseDelay
	}
	if _, ok := l.hosts[node]; !ok {
		h := l.sc.HostFor(l.g.Nodes[node].Name)
		l.hosts[node] = h.NIC.ResponseDelay
	}
	return l.hosts[node]
}

// At describes the link at a port of a switch.
func (l *Links) At(node, port int32) scenario.PortLink {
	link := l.g.Link(node, port)
	return scenario.PortLink{
		Rate: link.Rate, Delay: link.Delay, Response: l.response(l.g.Nodes[node].Ports[port].Peer),
		MaxFrame: l.sc.MaxFrame(), Least: l.sc.Packet.LeastFrame(), Gap: l.sc.Packet.GapBytes(),
	}
}

// Classes works out the headroom of every ingress of a lossless class.
func Classes(sc *scenario.Scenario, g *topo.Graph) []Class {
	links := LinksOf(sc, g)
	count := map[Class]int{}
	for i := range g.Nodes {
		node := int32(i)
		if g.Nodes[i].Kind != topo.Switch || links.sw(node).PFC.Priorities == 0 {
			continue
		}
		for p := range g.Nodes[i].Ports {
			l, b := links.At(node, int32(p)), &links.sw(node).Buffer
			count[Class{
				Switch: kindName(g.Nodes[i].Name), Peer: kindName(g.Nodes[g.Nodes[i].Ports[p].Peer].Name), Rate: l.Rate, Delay: l.Delay,
				Need: b.NeedHeadroom(l), Have: b.HaveHeadroom(l),
			}]++
		}
	}
	out := make([]Class, 0, len(count))
	for c, n := range count {
		c.Ports = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Need-b.Have, a.Need-a.Have), strings.Compare(a.Switch, b.Switch), strings.Compare(a.Peer, b.Peer),
			cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Delay, b.Delay), cmp.Compare(a.Have, b.Have), cmp.Compare(a.Need, b.Need))
	})
	return out
}

// kindName is a name without the number behind it.
func kindName(name string) string {
	if s := strings.TrimRight(name, "0123456789"); s != "" {
		return s
	}
	return name
}

// maxClasses is how many kinds of links are told.
const maxClasses = 12

// TellClasses writes the headroom of each kind of link, what is short first.
func TellClasses(w io.Writer, list []Class) {
	g := NewGrid("<link", "rate", "delay", "ports", "needs", "has", "<lossless")
	for i := range list[:min(len(list), maxClasses)] {
		c := &list[i]
		verdict := "yes"
		if !c.Enough() {
			verdict = "no: " + bytesText(c.Need-c.Have) + " short"
		}
		g.Row(c.Peer+" → "+c.Switch, scenario.RateText(c.Rate), scenario.TimeText(c.Delay), fmt.Sprint(c.Ports), bytesText(c.Need), bytesText(c.Have), verdict)
	}
	title := "HEADROOM of each port and lossless class, by kind of link (802.1Qbb)"
	if more := len(list) - len(g.rows); more > 0 {
		title += fmt.Sprintf("; %d more kinds", more)
	}
	g.write(w, title)
}
