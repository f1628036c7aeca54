package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// The measures of the topology's picture.
const (
	topoWidth  = 860
	topoRow    = 96  // pixels between tiers
	topoTop    = 66  // of the highest tier
	maxHosts   = 64  // more: one box for the hosts of a leaf
	maxLinks   = 800 // more: only those on which somebody was stopped
	maxHalves  = 400 // stopped ones, the longest
	labelRoom  = 34  // pixels that a name needs
	rootsDrawn = 3
)

// spot is a node, or the hosts of a leaf together, in the picture.
type spot struct {
	x, y  float64
	nodes []int32
}

// topologyPlan is where everything is.
type topologyPlan struct {
	r      *result.Run
	tiers  []int // of switches, highest first
	spots  []spot
	of     []int // spot of a node
	hosts  int
	height int
}

// topology draws nodes by tier and links, and on them the PFC tree: the half of
// a link at the stopped sender's side, by its distance from the root; the line
// is the wider the longer it was stopped. nil if there are no nodes.
func topology(r *result.Run) *plot.Drawing {
	if len(r.Nodes) == 0 {
		return nil
	}
	p := planTopology(r)
	d := &plot.Drawing{W: topoWidth, H: p.height, Title: "Topology and who stopped whom"}
	d.Text(8, 20, d.Title, plot.Font{Ink: plot.Text, Size: 14, Bold: true})
	t := treeOf(r)
	paused := p.links(d, &t)
	p.nodes(d, &t)
	p.legend(d, &t, paused)
	d.Desc = p.describe(&t, paused)
	return d
}

func planTopology(r *result.Run) *topologyPlan {
	p := &topologyPlan{r: r, of: make([]int, len(r.Nodes))}
	for i := range r.Nodes {
		if r.Nodes[i].Switch {
			p.tiers = append(p.tiers, r.Nodes[i].Tier)
		} else {
			p.hosts++
		}
	}
	slices.SortFunc(p.tiers, func(a, b int) int { return cmp.Compare(b, a) })
	p.tiers = slices.Compact(p.tiers)
	y := float64(topoTop)
	for _, tier := range p.tiers {
		var row []int32
		for i := range r.Nodes {
			if r.Nodes[i].Switch && r.Nodes[i].Tier == tier {
				row = append(row, int32(i))
			}
		}
		for i, node := range row {
			p.put(spot{x: place(i, len(row)), y: y, nodes: []int32{node}})
		}
		y += topoRow
	}
	p.hostRow(y)
	if p.hosts > 0 {
		y += topoRow
	}
	p.height = int(y) - topoRow + 70
	return p
}

func place(i, n int) float64 { return float64(topoWidth) * (float64(i) + 0.5) / float64(n) }

func (p *topologyPlan) put(s spot) {
	for _, node := range s.nodes {
		p.of[node] = len(p.spots)
	}
	p.spots = append(p.spots, s)
}

// hostRow puts hosts below the switches, in the order of the places of their
// leaves; many hosts of one leaf become one box.
func (p *topologyPlan) hostRow(y float64) {
	type host struct {
		node, leaf int32
		x          float64
	}
	var hs []host
	for i := range p.r.Nodes {
		if p.r.Nodes[i].Switch {
			continue
		}
		h := host{node: int32(i), leaf: -1}
		if ps := p.r.Nodes[i].Ports; len(ps) > 0 && at(p.r, ps[0].Peer, ps[0].PeerPort) != nil && p.r.Nodes[ps[0].Peer].Switch {
			h.leaf = ps[0].Peer
			h.x = p.spots[p.of[h.leaf]].x
		}
		hs = append(hs, h)
	}
	slices.SortStableFunc(hs, func(a, b host) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.leaf, b.leaf)) })
	if len(hs) <= maxHosts {
		for i, h := range hs {
			p.put(spot{x: place(i, len(hs)), y: y, nodes: []int32{h.node}})
		}
		return
	}
	var boxes []spot
	leaf := int32(-2)
	for _, h := range hs {
		if h.leaf != leaf {
			boxes = append(boxes, spot{y: y})
			leaf = h.leaf
		}
		b := &boxes[len(boxes)-1]
		b.nodes = append(b.nodes, h.node)
	}
	for i := range boxes {
		boxes[i].x = place(i, len(boxes))
		p.put(boxes[i])
	}
}

func (p *topologyPlan) nodes(d *plot.Drawing, t *tree) {
	rooted := map[int]bool{} // spots
	for i, root := range t.roots {
		if i < rootsDrawn {
			rooted[p.of[root.node]] = true
		}
	}
	perRow := map[float64]int{}
	for _, s := range p.spots {
		perRow[s.y]++
	}
	for i, s := range p.spots {
		room := float64(topoWidth) / float64(perRow[s.y])
		p.node(d, &s, rooted[i], room)
	}
}

func (p *topologyPlan) node(d *plot.Drawing, s *spot, rooted bool, room float64) {
	n := names{p.r}
	node := &p.r.Nodes[s.nodes[0]]
	ring := plot.Pen{Ink: plot.Bad}
	if rooted {
		ring.Width = 3
	}
	name := n.node(s.nodes[0])
	size := math.Max(1.5, math.Min(8, room/3))
	ink := plot.Text
	if len(s.nodes) > 1 {
		name = fmt.Sprintf("%d hosts", len(s.nodes))
	}
	tip := name
	if len(s.nodes) > 1 {
		tip += ": " + n.node(s.nodes[0]) + " … " + n.node(s.nodes[len(s.nodes)-1])
	}
	if room < 4 {
		tip = "" // nobody could point at it
	}
	if node.Switch {
		w := math.Max(3, math.Min(26, room*0.7))
		if rooted {
			d.Rect(s.x-w/2-3, s.y-10, w+6, 20, plot.Bad, 0, tip)
		}
		d.Rect(s.x-w/2, s.y-7, w, 14, ink, 0, tip)
	} else {
		d.Circle(s.x, s.y, size, plot.Muted, ring, tip)
	}
	if room < labelRoom {
		return
	}
	f := plot.Font{Ink: plot.Text, Size: 11, Anchor: plot.Middle, Bold: rooted}
	y := s.y + 24
	if node.Switch {
		y = s.y - 14
	}
	name = plot.Fit(name, 11, room)
	w := plot.Width(name, 11)
	d.Rect(s.x-w/2, y-10, w, 13, plot.Paper, 0.2, "") // links pass behind
	d.Text(s.x, y, name, f)
}

func (p *topologyPlan) legend(d *plot.Drawing, t *tree, paused int) {
	x, y := 8.0, float64(p.height-12)
	word := func(s string) {
		d.Text(x, y, s, plot.Font{Ink: plot.Muted, Size: 11})
		x += plot.Width(s, 11) + 16
	}
	if paused == 0 {
		word("Nobody was stopped.")
		return
	}
	mark := func(ink plot.Ink, s string) {
		d.Line(x, y-4, x+18, y-4, plot.Pen{Ink: ink, Width: 4})
		x += 23
		word(s)
	}
	word("Stopped sender's half:")
	mark(levelInk(1), "next to the root")
	mark(levelInk(2), "2nd")
	mark(levelInk(3), "3rd")
	mark(levelInk(4), "farther")
	mark(levelInk(0), "no root")
	if len(t.roots) > 0 {
		word("Framed red: root.")
	}
	if len(p.r.Deadlocks) > 0 {
		word("Dots: deadlock.")
	}
}

func (p *topologyPlan) describe(t *tree, paused int) string {
	switches := 0
	for i := range p.r.Nodes {
		if p.r.Nodes[i].Switch {
			switches++
		}
	}
	s := fmt.Sprintf("%d hosts, %d switches in %d tiers. ", p.hosts, switches, len(p.tiers))
	if paused == 0 {
		return s + "Nobody was stopped."
	}
	s += fmt.Sprintf("%d egresses were stopped", paused)
	if len(t.roots) > 0 {
		r := t.roots[0]
		where := names{p.r}.node(r.node)
		if r.port >= 0 {
			where = names{p.r}.port(r.node, r.port)
		}
		s += ", most on account of " + where
	}
	if len(p.r.Deadlocks) > 0 {
		s += fmt.Sprintf("; deadlocks: %d", len(p.r.Deadlocks))
	}
	return s + "."
}
