package report

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// span is a time in which an egress was stopped.
type span struct{ From, To sim.Time }

// stopped is an egress (or a whole port) that was stopped by its neighbour, in
// one priority.
type stopped struct {
	node, port int32 // whose egress
	by, byPort int32 // by whom
	prio       uint8
	global     bool // 802.3x: every priority
	cause      result.Cause
	spans      []span
	total      sim.Time
	frames     uint64 // that stopped, repeated ones left out
}

// longestPause is how long one PFC frame stops at most: 65535 quanta of 512 bit
// times (802.1Qbb, 802.3 Annex 31B).
func longestPause(p *result.Port) sim.Time { return p.Rate.For(65535 * 512 / 8) }

// stops returns who was stopped when, from the run's changes of pauses, in the
// order of first stops. A stop that nobody resumed ends when its last frame ran
// out, at the latest, and with the run.
func stops(r *result.Run) []*stopped {
	type key struct {
		node, port int32
		prio       uint8
		global     bool
	}
	type state struct {
		s    *stopped
		open bool
		from sim.Time
		last sim.Time // frame
	}
	index := map[key]*state{}
	var order []*state // maps have no order that may be seen
	shut := func(st *state, to sim.Time) {
		p := at(r, st.s.node, st.s.port)
		to = min(to, st.last.Add(longestPause(p)), r.End)
		if to > st.from {
			st.s.spans = append(st.s.spans, span{st.from, to})
			st.s.total += to - st.from
		}
		st.open = false
	}
	for i := range r.Pauses {
		p := &r.Pauses[i]
		from := at(r, p.Node, p.Port)
		if from == nil || at(r, from.Peer, from.PeerPort) == nil {
			continue
		}
		k := key{from.Peer, from.PeerPort, p.Prio, p.Cause == result.CauseGlobal}
		if k.global {
			k.prio = 0
		}
		st := index[k]
		if st == nil {
			st = &state{s: &stopped{node: k.node, port: k.port, by: p.Node, byPort: p.Port, prio: k.prio, global: k.global, cause: p.Cause}}
			index[k] = st
			order = append(order, st)
		}
		switch {
		case !p.On && st.open:
			shut(st, p.At)
		case p.On:
			if st.open && p.At > st.last.Add(longestPause(from)) {
				shut(st, p.At)
			}
			if !st.open {
				st.open, st.from = true, p.At
			}
			st.last = p.At
			if !p.Refresh {
				st.s.frames++
			}
		}
	}
	all := make([]*stopped, 0, len(order))
	for _, st := range order {
		if st.open {
			shut(st, r.End)
		}
		if len(st.s.spans) > 0 {
			all = append(all, st.s)
		}
	}
	slices.SortStableFunc(all, func(a, b *stopped) int { return cmp.Compare(a.spans[0].From, b.spans[0].From) })
	return all
}
