package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// portPrio is one priority of one port.
type portPrio struct {
	node, port int32
	prio       int
	p          *result.Port
	q          *result.PortPrio
}

// portPrios returns all that have counted something, in the order of nodes,
// ports and priorities.
func portPrios(r *result.Run) []portPrio {
	var all []portPrio
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			p := &r.Nodes[i].Ports[j]
			for k := range p.Prio {
				if p.Prio[k] != (result.PortPrio{}) {
					all = append(all, portPrio{int32(i), int32(j), k, p, &p.Prio[k]})
				}
			}
		}
	}
	return all
}

// WritePorts writes the ports where something happened: marks, drops, pauses,
// queues. most (0: 40) bounds the lines; the busiest are kept.
func WritePorts(w io.Writer, r *result.Run, most int) error {
	return writeTables(w, portTable(r, most))
}

const defaultPorts = 40

func portTable(r *result.Run, most int) *table {
	if most <= 0 {
		most = defaultPorts
	}
	t := &table{
		title: "Ports",
		cols: []column{
			left("Port"), right("Pr"), right("Sent"), right("Busy"), right("Marked"), right("Drops"), right("XOFF rx"), right("XOFF tx"),
			right("Paused"), right("Peak queue"), right("Mean"), right("Headroom"),
		},
	}
	var rows []portPrio
	for _, x := range portPrios(r) {
		if q := x.q; q.Marked+drops(q)+q.PauseRx+q.PauseTx > 0 || q.PausedFor > 0 || q.PeakQueue > 0 {
			rows = append(rows, x)
		}
	}
	if len(rows) == 0 {
		t.notes = []string{"No port has queued, marked, paused or dropped anything."}
		return t
	}
	if more := len(rows) - most; more > 0 {
		slices.SortStableFunc(rows, func(a, b portPrio) int { return cmp.Compare(weight(b.q), weight(a.q)) })
		rows = rows[:most]
		slices.SortStableFunc(rows, func(a, b portPrio) int {
			return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.port, b.port), cmp.Compare(a.prio, b.prio))
		})
		t.notes = append(t.notes, fmt.Sprintf("%d more with less in them; the CSV file has all.", more))
	}
	n := names{r}
	for _, x := range rows {
		q := x.q
		t.add(n.port(x.node, x.port), strconv.Itoa(x.prio), bytesText(q.TxBytes), shareText(float64(x.p.TxBusy), float64(r.End)),
			countText(q.Marked), countText(drops(q)), countText(q.PauseRx), countText(q.PauseTx),
			shareText(float64(q.PausedFor), float64(r.End)), bytesText(q.PeakQueue), bytesText(q.MeanQueue), bytesText(q.PeakHeadroom))
	}
	t.notes = append(t.notes, "XOFF rx: PFC frames that stopped this port. XOFF tx: frames by which it stopped its neighbour. "+
		"Paused: share of the time it was stopped. Headroom: most of it in use by what came in here.")
	return t
}

func drops(q *result.PortPrio) uint64 { return q.RxDrops + q.TxDrops + q.WatchdogDropped }

// weight says how much there is to see of a port: losses, then pauses, then
// marks, then queues.
func weight(q *result.PortPrio) float64 {
	w := float64(q.PeakQueue)
	for _, n := range [...]struct {
		n uint64
		w float64
	}{{drops(q), 1e9}, {q.PauseRx + q.PauseTx, 1e6}, {q.Marked, 1e3}} {
		w += float64(float64(n.n) * n.w)
	}
	return w + float64(q.PausedFor)/1e3
}

// WriteQueues writes the egress queues with the highest peaks, at most so many
// (0: 10).
func WriteQueues(w io.Writer, r *result.Run, most int) error {
	return writeTables(w, queueTable(r, most))
}

func queueTable(r *result.Run, most int) *table {
	if most <= 0 {
		most = 10
	}
	var rows []portPrio
	for _, x := range portPrios(r) {
		if x.q.PeakQueue > 0 {
			rows = append(rows, x)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b portPrio) int { return cmp.Compare(b.q.PeakQueue, a.q.PeakQueue) })
	t := &table{
		title: "Longest queues",
		cols: []column{
			left("Egress"), right("Pr"), left("To"), right("Peak"), right("Wait at peak"), right("Mean"), right("Kmin"), right("Kmax"), right("Marked"),
		},
	}
	n := names{r}
	for _, x := range rows[:min(most, len(rows))] {
		kmin, kmax := "-", "-"
		if x.q.KMax > 0 {
			kmin, kmax = bytesText(x.q.KMin), bytesText(x.q.KMax)
		}
		wait := "-"
		if x.p.Rate > 0 {
			wait = timeText(x.p.Rate.For(int(x.q.PeakQueue)))
		}
		t.add(n.port(x.node, x.port), strconv.Itoa(x.prio), n.node(x.p.Peer), bytesText(x.q.PeakQueue), wait,
			bytesText(x.q.MeanQueue), kmin, kmax, shareText(float64(x.q.Marked), float64(x.q.TxPackets)))
	}
	return t
}

// WritePFCCounters writes what `show pfc counters` of SONiC shows on each switch:
// PFC frames by port and priority, received and then sent, of ports that have
// any. Frames that stop are counted; those that resume are in the CSV file.
func WritePFCCounters(w io.Writer, r *result.Run) error {
	return writeTables(w, pfcTables(r, len(r.Nodes))...)
}

// pfcTables makes two tables for each of at most so many switches, those with
// the most frames.
func pfcTables(r *result.Run, most int) []*table {
	var switches []int
	frames := make([]uint64, len(r.Nodes))
	for i := range r.Nodes {
		if !r.Nodes[i].Switch {
			continue
		}
		for j := range r.Nodes[i].Ports {
			for k := range r.Nodes[i].Ports[j].Prio {
				q := &r.Nodes[i].Ports[j].Prio[k]
				frames[i] += q.PauseRx + q.PauseTx
			}
		}
		if frames[i] > 0 {
			switches = append(switches, i)
		}
	}
	more := len(switches) - most
	if more > 0 {
		slices.SortStableFunc(switches, func(a, b int) int { return cmp.Compare(frames[b], frames[a]) })
		switches = switches[:most]
		slices.Sort(switches)
	}
	var ts []*table
	for _, i := range switches {
		rx := pfcTable(&r.Nodes[i], "Port Rx", func(q *result.PortPrio) uint64 { return q.PauseRx })
		tx := pfcTable(&r.Nodes[i], "Port Tx", func(q *result.PortPrio) uint64 { return q.PauseTx })
		rx.title = names{r}.node(int32(i)) + ": show pfc counters"
		for _, t := range []*table{rx, tx} {
			if len(t.rows) == 0 {
				t.notes = []string{t.cols[0].head + ": none"}
			}
			ts = append(ts, t)
		}
	}
	if more > 0 {
		last := ts[len(ts)-1]
		last.notes = append(last.notes, fmt.Sprintf("%d more switches with fewer PFC frames.", more))
	}
	return ts
}

func pfcTable(node *result.Node, head string, count func(*result.PortPrio) uint64) *table {
	t := &table{cols: []column{name(head)}}
	for p := range 8 {
		t.cols = append(t.cols, right("PFC"+strconv.Itoa(p)))
	}
	for i := range node.Ports {
		p := &node.Ports[i]
		cells := []string{clean(p.Name)}
		any := false
		for k := range p.Prio {
			c := count(&p.Prio[k])
			any = any || c > 0
			cells = append(cells, commas(c))
		}
		if any {
			t.add(cells...)
		}
	}
	return t
}

// WriteNIC writes the counters of a host as `ethtool -S` and the hw_counters of
// a NIC show them: what the adapter counts, and for each port the counters of
// priorities that carried anything or have PFC. Names are mlx5's.
//
// rx_prio3_pause: PFC frames that stopped this host. tx_prio3_pause: frames by
// which it stopped the switch, because it could not take in what came.
func WriteNIC(w io.Writer, r *result.Run, node int) error {
	if node < 0 || node >= len(r.Nodes) || r.Nodes[node].Switch {
		return fmt.Errorf("counters of node %d: it is no host", node)
	}
	o := newOut(w)
	for _, l := range nicLines(r, node) {
		_, _ = o.WriteString(l + "\n")
	}
	_, _ = o.WriteString("\n")
	return o.Flush()
}

func nicLines(r *result.Run, node int) []string {
	n := &r.Nodes[node]
	lines := []string{names{r}.node(int32(node)) + ": NIC statistics:"}
	add := func(name string, v uint64) {
		lines = append(lines, "     "+clean(name)+": "+strconv.FormatUint(v, 10))
	}
	taken := map[string]bool{}
	for _, c := range n.NIC {
		taken[c.Name] = true
		add(c.Name, c.Value)
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		prefix := ""
		if len(n.Ports) > 1 {
			prefix = p.Name + " "
		}
		for k := range p.Prio {
			if p.Prio[k] == (result.PortPrio{}) && r.Shape.Lossless&(1<<k) == 0 {
				continue
			}
			for _, c := range prioCounters(r, p, k) {
				if !taken[c.Name] {
					add(prefix+c.Name, c.Value)
				}
			}
		}
		if p.GlobalPauses > 0 && !taken["tx_global_pause"] {
			add(prefix+"tx_global_pause", p.GlobalPauses)
		}
		if p.LinkErrors > 0 && !taken["rx_crc_errors_phy"] {
			add(prefix+"rx_crc_errors_phy", p.LinkErrors)
		}
	}
	return lines
}

// prioCounters are a port's counters of a priority under mlx5's names. Durations
// are in microseconds, as there.
func prioCounters(r *result.Run, p *result.Port, k int) []result.Counter {
	q := &p.Prio[k]
	name := func(dir, what string) string { return dir + "_prio" + strconv.Itoa(k) + "_" + what }
	cs := []result.Counter{
		{Name: name("rx", "bytes"), Value: q.RxBytes},
		{Name: name("rx", "packets"), Value: q.RxPackets},
		{Name: name("tx", "bytes"), Value: q.TxBytes},
		{Name: name("tx", "packets"), Value: q.TxPackets},
	}
	if r.Shape.Lossless&(1<<k) != 0 || q.PauseRx+q.PauseTx > 0 {
		peer := uint64(0)
		if o := at(r, p.Peer, p.PeerPort); o != nil {
			peer = uint64(o.Prio[k].PausedFor / 1e6)
		}
		cs = append(cs,
			result.Counter{Name: name("rx", "pause"), Value: q.PauseRx},
			result.Counter{Name: name("rx", "pause_duration"), Value: uint64(q.PausedFor / 1e6)},
			result.Counter{Name: name("rx", "pause_transition"), Value: q.ResumeRx},
			result.Counter{Name: name("tx", "pause"), Value: q.PauseTx},
			result.Counter{Name: name("tx", "pause_duration"), Value: peer})
	}
	if q.RxDrops > 0 {
		cs = append(cs, result.Counter{Name: name("rx", "discards"), Value: q.RxDrops})
	}
	return cs
}
