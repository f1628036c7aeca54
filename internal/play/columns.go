package play

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// maxGroups and maxPorts bound the tables of two screens.
const (
	maxGroups = 8
	maxPorts  = 6
)

// tellFlows writes a line for each group of flows.
func tellFlows(w io.Writer, r *result.Run) {
	g := NewGrid("<group", "done", "FCT p50", "p99", "max", "per flow", "slowdown", "p99", "marks", "CNPs", "again")
	groups := report.Groups(r)
	for i := range groups {
		if i == maxGroups {
			g.Row(fmt.Sprintf("%d more", len(groups)-i), "", "", "", "", "", "", "", "", "", "")
			break
		}
		x := &groups[i]
		done := fmt.Sprint(x.Flows)
		if x.Finished < x.Flows {
			done = fmt.Sprintf("%d of %d", x.Finished, x.Flows)
		}
		g.Row(x.Name, done, timeText(x.P50), timeText(x.P99), timeText(x.Max), rateText(x.FlowGoodput), slowText(x.SlowP50),
			slowText(x.SlowP99), countText(x.Marks), countText(x.CNPs), countText(x.Retransmitted))
	}
	g.write(w, "FLOWS")
}

func slowText(f float64) string {
	if f <= 0 {
		return "-"
	}
	return digits(f) + "x"
}

// busy is a class of a port that has something to tell.
type busy struct {
	node, port int32
	prio       int
	q          *result.PortPrio
}

func (b *busy) drops() uint64 { return b.q.RxDrops + b.q.TxDrops }

// telling returns the classes of ports at which something happened: losses
// first, then the longest queues.
func telling(r *result.Run) []busy {
	var all []busy
	frame := int64(r.Shape.Payload + r.Shape.Header)
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			for k := range r.Nodes[i].Ports[j].Prio {
				b := busy{int32(i), int32(j), k, &r.Nodes[i].Ports[j].Prio[k]}
				if b.drops()+b.q.Marked+b.q.PauseTx > 0 || b.q.PausedFor > 0 || b.q.PeakQueue > 4*max(frame, 64) {
					all = append(all, b)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b busy) int {
		return cmp.Or(cmp.Compare(b.drops(), a.drops()), cmp.Compare(b.q.PeakQueue, a.q.PeakQueue), cmp.Compare(b.q.PausedFor, a.q.PausedFor))
	})
	return all
}

// tellPorts writes the ports at which something happened.
func tellPorts(w io.Writer, r *result.Run) {
	g := NewGrid("<port", "<to", "pr", "sent", "busy", "marked", "lost", "XOFFs", "stopped", "peak", "Kmin")
	n := names{r}
	all := telling(r)
	for _, b := range all[:min(maxPorts, len(all))] {
		p := &r.Nodes[b.node].Ports[b.port]
		to, kmin := "", "-"
		if p.Peer >= 0 {
			to = r.Nodes[p.Peer].Name
		}
		if b.q.KMin > 0 {
			kmin = bytesText(b.q.KMin)
		}
		g.Row(n.port(b.node, b.port), to, fmt.Sprint(b.prio), bytesText(int64(b.q.TxBytes)), shareText(float64(p.TxBusy), float64(r.End)),
			countText(b.q.Marked), countText(b.drops()), countText(b.q.PauseTx), shareText(float64(b.q.PausedFor), float64(r.End)),
			bytesText(b.q.PeakQueue), kmin)
	}
	title := "PORTS where something happened"
	if more := len(all) - len(g.rows); more > 0 {
		title += fmt.Sprintf(", the %d worst of %d", len(g.rows), len(all))
	}
	g.write(w, title)
}

// shareText writes part of whole in percent.
func shareText(part, whole float64) string {
	if whole <= 0 || part <= 0 {
		return "0"
	}
	p := 100 * part / whole
	if p < 0.1 {
		return "<0.1 %"
	}
	return digits(p) + " %"
}
