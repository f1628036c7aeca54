package report

import (
	"fmt"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// dropTable counts lost packets by reason and place; nil if none was lost.
func dropTable(r *result.Run) *table {
	if len(r.Drops) == 0 {
		return nil
	}
	type place struct {
		node   int32
		prio   uint8
		reason result.DropReason
	}
	type sum struct {
		place
		n, bytes    uint64
		first, last sim.Time
	}
	index := map[place]int{}
	var sums []sum
	for i := range r.Drops {
		d := &r.Drops[i]
		p := place{d.Node, d.Prio, d.Reason}
		k, ok := index[p]
		if !ok {
			k = len(sums)
			index[p] = k
			sums = append(sums, sum{place: p, first: d.At})
		}
		sums[k].n++
		sums[k].bytes += uint64(max(0, d.Bytes))
		sums[k].last = d.At
	}
	t := &table{
		title: "Lost packets",
		cols:  []column{left("Where"), right("Pr"), left("Reason"), right("Packets"), right("Bytes"), left("When")},
	}
	n := names{r}
	for i, s := range sums {
		if i == defaultPorts {
			t.notes = append(t.notes, fmt.Sprintf("%d more places and reasons.", len(sums)-i))
			break
		}
		t.add(n.node(s.node), strconv.Itoa(int(s.prio)), s.reason.String(), commas(s.n), bytesText(s.bytes), spanText(s.first, s.last))
	}
	if r.DropsCut > 0 {
		t.notes = append(t.notes, commas(r.DropsCut)+" later drops were not kept.")
	}
	return t
}

// losslessTable is the verdict on headroom: where it was exceeded, or the
// tightest places.
func losslessTable(r *result.Run) *table {
	if len(r.Lossless) == 0 {
		return nil
	}
	t := &table{
		title: "Headroom of the lossless classes",
		cols:  []column{left("Ingress"), right("Pr"), right("Needs"), right("Has"), right("Most used"), right("Dropped"), left("Verdict")},
	}
	n := names{r}
	bad, short := 0, 0
	for pass := range 2 {
		for i := range r.Lossless {
			l := &r.Lossless[i]
			violated, tight := l.Dropped > 0 || l.Peak > l.Have, l.Have < l.Need
			if pass == 0 && violated {
				bad++
			}
			if pass == 0 && tight {
				short++
			}
			// First what is wrong, then what was used at all.
			if (pass == 0) != (violated || tight) || pass == 1 && l.Peak == 0 || len(t.rows) >= defaultPorts {
				continue
			}
			verdict := "holds"
			switch {
			case violated:
				verdict = "violated"
			case tight:
				verdict = "too small by " + bytesText(l.Need-l.Have)
			}
			t.add(n.port(l.Node, l.Port), strconv.Itoa(int(l.Prio)), bytesText(l.Need), bytesText(l.Have), bytesText(l.Peak), commas(l.Dropped), verdict)
		}
	}
	switch {
	case bad > 0:
		t.notes = append(t.notes, fmt.Sprintf("VIOLATED at %d of %d ingresses.", bad, len(r.Lossless)))
	case short > 0:
		t.notes = append(t.notes, fmt.Sprintf("Nothing was lost, but %d of %d ingresses have less headroom than the worst case needs.", short, len(r.Lossless)))
	default:
		t.notes = append(t.notes, fmt.Sprintf("All %d ingresses have the headroom that the worst case needs, and none used more.", len(r.Lossless)))
	}
	return t
}

// faultTable is deadlocks, storms, changes of links and invariants that did not
// hold; nil if there are none.
func faultTable(r *result.Run) *table {
	t := &table{title: "Deadlocks, storms, faults", cols: []column{left("What"), left("When"), left("Where")}}
	n := names{r}
	for i := range r.Deadlocks {
		d := &r.Deadlocks[i]
		where := "priority " + strconv.Itoa(int(d.Prio)) + ": "
		for j, h := range d.Cycle {
			if j > 0 {
				where += " > "
			}
			where += n.port(h.Node, h.Port)
		}
		t.add("deadlock", spanText(d.At, d.Until), where)
	}
	for i := range r.Storms {
		s := &r.Storms[i]
		where := n.port(s.Node, s.Port) + " priority " + strconv.Itoa(int(s.Prio)) + " stopped"
		if s.Watchdog {
			where += "; the watchdog stepped in, " + commas(s.Dropped) + " packets dropped"
			if s.Restored > 0 && s.Restored != sim.Never {
				where += "; as before from " + timeText(s.Restored)
			}
		}
		t.add("storm", spanText(s.From, s.To), where)
	}
	for i := range r.Links {
		l := &r.Links[i]
		what := "link down"
		if l.Up {
			what = "link up, " + rateText(l.Rate)
		}
		t.add(what, timeText(l.At), n.port(l.Node, l.Port))
	}
	for i := range r.Reroutes {
		t.add("routes", timeText(r.Reroutes[i].At), "shortest paths from here on")
	}
	for i := range r.Breaches {
		b := &r.Breaches[i]
		where := clean(b.Detail)
		if b.Node >= 0 {
			where = n.node(b.Node) + ": " + where
		}
		t.add("BROKEN: "+clean(b.Rule), timeText(b.At), where)
	}
	if len(t.rows) == 0 {
		return nil
	}
	if more := len(t.rows) - defaultPorts; more > 0 {
		t.rows = t.rows[:defaultPorts]
		t.notes = append(t.notes, fmt.Sprintf("%d more.", more))
	}
	return t
}
