package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// pausedFor returns the longest time that a priority of a port was stopped, as
// a share of the run.
func (p *topologyPlan) pausedFor(port *result.Port) float64 {
	if p.r.End <= 0 {
		return 0
	}
	most := 0.0
	for k := range port.Prio {
		most = math.Max(most, float64(port.Prio[k].PausedFor)/float64(p.r.End))
	}
	return math.Min(1, most)
}

// links draws the links, one for each two places, and over them the stopped
// halves; it returns how many egresses were stopped.
func (p *topologyPlan) links(d *plot.Drawing, t *tree) (paused int) {
	n := names{p.r}
	if ls := p.plain(); len(ls) <= maxLinks {
		for _, l := range ls {
			port := at(p.r, l.node, l.port)
			pen := plot.Pen{Ink: plot.Grid, Width: 1}
			if port.Down > 0 {
				pen = plot.Pen{Ink: plot.Muted, Width: 1, Dash: []float64{2, 4}}
			}
			tip := n.port(l.node, l.port) + " to " + n.port(l.peer, port.PeerPort) + ", " + rateText(port.Rate)
			if l.more > 0 {
				tip = fmt.Sprintf("%d links, %s each", l.more+1, rateText(port.Rate))
			}
			d.Path(p.bow(p.of[l.node], p.of[l.peer]), pen, tip)
		}
	}
	halves := p.stoppedHalves(t)
	drawn := map[[2]int]bool{} // places; looked up, never walked
	for _, h := range halves {
		ends := [2]int{p.of[h.node], p.of[h.peer]}
		if drawn[ends] || len(drawn) == maxHalves {
			continue // the longest of several is drawn
		}
		drawn[ends] = true
		half := p.bow(ends[0], ends[1])
		half = half[:len(half)/2+1]
		tip := fmt.Sprintf("%s stopped by %s for %s of the time", n.port(h.node, h.port), n.node(h.peer), shareText(h.share, 1))
		if h.level > 0 {
			tip += fmt.Sprintf(", %d from the root", h.level)
		}
		d.Path(half, plot.Pen{Ink: levelInk(h.level), Width: 1.5 + float64(4*h.share)}, tip)
	}
	for _, dead := range p.r.Deadlocks {
		for _, h := range dead.Cycle {
			if port := at(p.r, h.Node, h.Port); port != nil && at(p.r, port.Peer, port.PeerPort) != nil {
				way := p.bow(p.of[h.Node], p.of[port.Peer])
				d.Path(way, plot.Pen{Ink: plot.Bad, Width: 3, Dash: []float64{3, 5}}, "deadlock: "+n.port(h.Node, h.Port)+" waits for "+n.node(port.Peer))
			}
		}
	}
	return len(halves)
}

// link is one between two places of the picture, and how many more there are.
type link struct {
	node, port, peer int32
	more             int
}

func (p *topologyPlan) plain() []link {
	var ls []link
	index := map[[2]int]int{} // places; looked up, never walked
	for i := range p.r.Nodes {
		for j := range p.r.Nodes[i].Ports {
			port := &p.r.Nodes[i].Ports[j]
			if at(p.r, port.Peer, port.PeerPort) == nil || int(port.Peer) < i || p.of[i] == p.of[port.Peer] {
				continue
			}
			ends := [2]int{p.of[i], p.of[port.Peer]}
			if k, ok := index[ends]; ok {
				ls[k].more++
				continue
			}
			index[ends] = len(ls)
			ls = append(ls, link{node: int32(i), port: int32(j), peer: port.Peer})
		}
	}
	return ls
}

// half is the sender's half of a link on which it was stopped.
type half struct {
	node, port, peer int32
	share            float64 // of the run
	level            int
}

// stoppedHalves returns them, those stopped longest first.
func (p *topologyPlan) stoppedHalves(t *tree) []half {
	var hs []half
	for i := range p.r.Nodes {
		for j := range p.r.Nodes[i].Ports {
			port := &p.r.Nodes[i].Ports[j]
			h := half{int32(i), int32(j), port.Peer, p.pausedFor(port), t.level(int32(i), int32(j))}
			if (h.share > 0 || h.level > 0) && at(p.r, port.Peer, port.PeerPort) != nil {
				hs = append(hs, h)
			}
		}
	}
	slices.SortStableFunc(hs, func(a, b half) int { return cmp.Compare(b.share, a.share) })
	return hs
}

// bow returns the way of a link: straight between rows, an arc within one.
func (p *topologyPlan) bow(a, b int) []plot.Point {
	s, e := p.spots[a], p.spots[b]
	lift := 0.0
	if s.y == e.y {
		lift = math.Min(40, math.Abs(e.x-s.x)/4)
	}
	const n = 8
	pts := make([]plot.Point, n+1)
	for i := range pts {
		f := float64(i) / n
		pts[i] = plot.Point{
			X: s.x + float64((e.x-s.x)*f),
			Y: s.y + float64((e.y-s.y)*f) - float64(lift*4*f*(1-f)),
		}
	}
	if lift == 0 {
		return []plot.Point{pts[0], pts[n/2], pts[n]}
	}
	return pts
}

// levelInk returns the colour of a distance from the root.
func levelInk(level int) plot.Ink {
	switch level {
	case 0:
		return plot.Series(7) // stopped, no root known
	case 1:
		return plot.Bad
	case 2:
		return plot.Series(1)
	case 3:
		return plot.Series(4)
	}
	return plot.Series(3)
}
