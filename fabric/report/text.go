package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// textNICs is how many hosts' counters the text shows.
const textNICs = 2

// WriteText writes what a terminal should show of a run, at most TextWidth
// columns wide: how it ended, warnings, flows by group, faults and losses, ports,
// PFC counters of switches, counters of the hosts that have most to tell.
func WriteText(w io.Writer, r *result.Run) error {
	o := newOut(w)
	for _, l := range headLines(r) {
		_, _ = o.WriteString(wrap(l, TextWidth))
	}
	_, _ = o.WriteString("\n")
	if len(r.Warnings) > 0 {
		_, _ = o.WriteString("Warnings\n")
		for _, s := range r.Warnings {
			_, _ = o.WriteString(wrap("  "+clean(s), TextWidth))
		}
		_, _ = o.WriteString("\n")
	}
	for _, t := range tables(r, textRows()) {
		t.write(o)
	}
	for _, i := range tellingHosts(r, textNICs) {
		for _, l := range nicLines(r, i) {
			_, _ = o.WriteString(l + "\n")
		}
		_, _ = o.WriteString("\n")
	}
	return o.Flush()
}

// rows bounds tables.
type rows struct{ flows, ports, queues, switches int }

func textRows() rows { return rows{flows: 10, ports: 24, queues: 10, switches: 4} }

// tables returns those that have something to show, in the order in which an
// engineer asks.
func tables(r *result.Run, most rows) []*table {
	ts := []*table{groupTable(r), faultTable(r), dropTable(r), congestionTable(r), slowdownTable(r)}
	if len(r.Flows) > 1 || anyUnfinished(r) {
		ts = append(ts, worstTable(r, most.flows))
	}
	ts = append(ts, portTable(r, most.ports), queueTable(r, most.queues), losslessTable(r))
	ts = append(ts, pfcTables(r, most.switches)...)
	return slices.DeleteFunc(ts, func(t *table) bool { return t == nil })
}

func anyUnfinished(r *result.Run) bool {
	return slices.ContainsFunc(r.Flows, func(f result.Flow) bool { return f.State != result.Finished })
}

// tellingHosts returns the hosts whose counters say most: who stops the
// network, who is stopped, who sees marks.
func tellingHosts(r *result.Run, most int) []int {
	type host struct {
		i int
		w float64
	}
	var hosts []host
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Switch {
			continue
		}
		h := host{i: i}
		for j := range n.Ports {
			for k := range n.Ports[j].Prio {
				q := &n.Ports[j].Prio[k]
				h.w += float64(float64(q.PauseTx)*1e6) + float64(float64(q.PauseRx+drops(q))*1e3) + float64(q.RxBytes)/1e9
			}
		}
		for _, c := range n.NIC {
			if c.Name == "np_cnp_sent" || c.Name == "rp_cnp_handled" {
				h.w += float64(float64(c.Value) * 10)
			}
		}
		if h.w > 0 {
			hosts = append(hosts, h)
		}
	}
	slices.SortStableFunc(hosts, func(a, b host) int { return cmp.Compare(b.w, a.w) })
	var is []int
	for _, h := range hosts[:min(most, len(hosts))] {
		is = append(is, h.i)
	}
	return is
}
