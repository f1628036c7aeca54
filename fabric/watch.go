package fabric

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/rnic"
)

// watch is what looks at a run from beside: deadlocks, storms, and the rules
// that every run keeps.
type watch struct {
	breaches  []result.Breach
	deadlocks []result.Deadlock
	closed    map[uint64]closure // cycles under suspicion, by a key of their egresses
	open      []int              // deadlocks that have not opened again
	storms    []result.Storm
	inStorm   map[uint64]int
	told      map[string]int // breaches of a rule so far
	running   []int32        // RDMA flows that have started, and some that have ended since
}

// closure is a cycle that was seen closed.
type closure struct {
	cycle []result.Hop
	prio  uint8
	since sim.Time
	sent  uint64 // packets that its egresses had sent
}

const (
	// watchEvery is the time between two looks.
	watchEvery = 20 * sim.Microsecond
	// watchIdle is the most between two looks while nothing happens.
	watchIdle = 100 * watchEvery
	// deadAfter is how long nothing must have moved in a cycle until it is a
	// deadlock. Pauses of plain congestion let something move far sooner.
	deadAfter = 200 * sim.Microsecond
	// maxBreaches is how many breaches of one rule are kept.
	maxBreaches = 20
	// silentFor is how long a queue pair may be silent without a cause.
	silentFor = 100 * sim.Microsecond
)

// breach notes that a rule did not hold.
func (r *Run) breach(now sim.Time, rule string, node int32, format string, args ...any) {
	if r.watch.told == nil {
		r.watch.told = make(map[string]int)
	}
	if r.watch.told[rule]++; r.watch.told[rule] > maxBreaches {
		return
	}
	r.watch.breaches = append(r.watch.breaches, result.Breach{At: now, Rule: rule, Node: node, Detail: fmt.Sprintf(format, args...)})
}

// look is called again and again while the run goes on.
func (r *Run) look(now sim.Time) {
	r.findCycles(now)
	r.findStorms(now)
	r.silence(now, silentFor)
	if r.again(now, watchEvery, evWatch) {
		return
	}
	r.silence(now, 0)
	r.end(now, r.quiet())
}

// again schedules a look from beside, unless nothing else is left to happen.
func (r *Run) again(now, every sim.Time, ev uint64) bool {
	if r.over {
		return true
	}
	if r.S.Pending() <= r.beside {
		return false
	}
	next := now + every
	if ev == evWatch {
		// Where nothing happens for a while there is nothing to see but time that
		// passes: stops and silence that last.
		next = max(next, min(r.S.Next(), now+watchIdle))
	}
	r.S.At(next, r, ev)
	return true
}

// egress is a class of an egress port as a node of the wait-for graph.
type egress struct {
	node, port int32
	prio       uint8
}

func (e egress) key() uint64 {
	return uint64(uint32(e.node))<<24 | uint64(uint32(e.port))<<8 | uint64(e.prio)
}

// findCycles looks for cycles of stopped egresses, each of which waits for room
// that the next one holds: egress e of a switch is stopped by the switch at its
// other end, whose ingress there holds packets for egresses that are stopped
// too.
func (r *Run) findCycles(now sim.Time) {
	w := &r.watch
	color := make(map[uint64]uint8)
	var path []egress
	var visit func(e egress)
	seen := make(map[uint64]bool)
	visit = func(e egress) {
		color[e.key()] = 1
		path = append(path, e)
		peer := r.Graph.Nodes[e.node].Ports[e.port]
		if sw := r.Switches[peer.Peer]; sw != nil {
			sw.HeldFor(int(peer.PeerPort), e.prio, func(out int, bytes int64) {
				n := egress{peer.Peer, int32(out), e.prio}
				if bytes == 0 || !r.stopped(n) {
					return
				}
				switch color[n.key()] {
				case 0:
					visit(n)
				case 1:
					for i := range path {
						if path[i] == n {
							r.suspect(now, path[i:], seen)
							break
						}
					}
				}
			})
		}
		path = path[:len(path)-1]
		color[e.key()] = 2
	}
	for node, sw := range r.Switches {
		if sw == nil {
			continue
		}
		for i, p := range r.Ports[node] {
			for m, q := p.Classes(), uint8(0); m != 0; m, q = m>>1, q+1 {
				e := egress{int32(node), int32(i), q}
				if m&1 != 0 && r.stopped(e) && color[e.key()] == 0 {
					visit(e)
				}
			}
		}
	}
	// A cycle that is not there any more has opened: somebody resumed, or a
	// watchdog has thrown away what waited.
	open := w.open[:0]
	for _, i := range w.open {
		d := &w.deadlocks[i]
		key := cycleKey(d.Cycle, d.Prio)
		if seen[key] && r.cycleSent(d.Cycle, d.Prio) == w.closed[key].sent {
			open = append(open, i)
			continue
		}
		d.Until = now
		delete(w.closed, key)
	}
	w.open = open
	for k := range w.closed {
		if !seen[k] {
			delete(w.closed, k)
		}
	}
}

func (r *Run) isOpen(key uint64) bool {
	for _, i := range r.watch.open {
		d := &r.watch.deadlocks[i]
		if cycleKey(d.Cycle, d.Prio) == key {
			return true
		}
	}
	return false
}

// stopped reports whether an egress of a switch is stopped and has something to
// send.
func (r *Run) stopped(e egress) bool {
	return r.Ports[e.node][e.port].Classes()&(1<<e.prio) != 0 && r.Switches[e.node].QueueBytes(int(e.port), e.prio) > 0
}

// suspect notes a cycle; when nothing has moved in it for long enough it is a
// deadlock.
func (r *Run) suspect(now sim.Time, cycle []egress, seen map[uint64]bool) {
	least := 0
	for i := range cycle {
		if cycle[i].key() < cycle[least].key() {
			least = i
		}
	}
	hops := make([]result.Hop, 0, len(cycle))
	for i := range cycle {
		e := cycle[(least+i)%len(cycle)]
		hops = append(hops, result.Hop{Node: e.node, Port: e.port})
	}
	prio := cycle[0].prio
	key := cycleKey(hops, prio)
	seen[key] = true
	w := &r.watch
	if w.closed == nil {
		w.closed = make(map[uint64]closure)
	}
	sent := r.cycleSent(hops, prio)
	c, ok := w.closed[key]
	if !ok || c.sent != sent {
		w.closed[key] = closure{cycle: hops, prio: prio, since: now, sent: sent}
		return
	}
	if now-c.since >= deadAfter && !r.isOpen(key) {
		w.open = append(w.open, len(w.deadlocks))
		w.deadlocks = append(w.deadlocks, result.Deadlock{At: c.since, Until: sim.Never, Cycle: hops, Prio: prio})
		if r.Scenario.StopOnDeadlock {
			r.end(now, "deadlock")
		}
	}
}

func cycleKey(hops []result.Hop, prio uint8) uint64 {
	k := uint64(prio)
	for _, h := range hops {
		k = sim.Mix(k ^ uint64(uint32(h.Node))<<32 ^ uint64(uint32(h.Port)))
	}
	return k
}

// cycleSent counts what the egresses of a cycle have sent.
func (r *Run) cycleSent(hops []result.Hop, prio uint8) uint64 {
	n := uint64(0)
	for _, h := range hops {
		n += r.Ports[h.Node][h.Port].Prio(prio).TxPackets
	}
	return n
}

// findStorms notes egresses that have been stopped for longer than the
// watchdog's time.
func (r *Run) findStorms(now sim.Time) {
	w := &r.watch
	for node := range r.Ports {
		limit := r.settings[node].stormAfter
		for i, p := range r.Ports[node] {
			m := p.Classes()
			if m == 0 && len(w.inStorm) == 0 {
				continue
			}
			for q := range uint8(8) {
				key := egress{int32(node), int32(i), q}.key()
				at, in := w.inStorm[key]
				long := m&(1<<q) != 0 && now-p.StoppedSince(q) >= limit
				switch {
				case long && !in:
					if w.inStorm == nil {
						w.inStorm = make(map[uint64]int)
					}
					w.inStorm[key] = len(w.storms)
					w.storms = append(w.storms, result.Storm{From: p.StoppedSince(q), To: sim.Never, Restored: sim.Never, Node: int32(node), Port: int32(i), Prio: q})
				case in && m&(1<<q) == 0:
					w.storms[at].To = now
					delete(w.inStorm, key)
				}
			}
		}
	}
}

// silence says why queue pairs that have sent nothing for a time have not, and
// finds those that have no reason.
func (r *Run) silence(now, least sim.Time) {
	running := r.watch.running
	r.watch.running = running[:0]
	for _, i := range running {
		out, st := &r.out[i], &r.state[i]
		if out.State != result.Running || len(st.lanes) == 0 {
			continue
		}
		r.watch.running = append(r.watch.running, i)
		if out.Delivered != st.seen {
			st.seen, st.moved = out.Delivered, now
			continue
		}
		if now-st.moved < least {
			continue
		}
		for _, l := range st.lanes {
			if l.c.Posted() == 0 && len(l.todo) == 0 {
				continue // its part is done
			}
			n, q := l.c.Sender()
			why := n.Adapter().Why(q)
			if why.Cause == rnic.CauseIdle && n != l.c.A {
				// Of a READ: who is to answer has not been asked. Who asks waits.
				why = l.c.A.Adapter().Why(l.c.QP())
			}
			out.Silent = why.String()
			if n.Port().Down() {
				out.Silent = "link down"
			}
			if why.Cause == rnic.CauseIdle || why.Cause == rnic.CauseUnknown {
				r.breach(now, "no queue pair is silent without cause", out.SrcNode,
					"flow %d (%s) has %d of %d bytes to deliver and its queue pair %#x says: %v", i, out.Group, out.Bytes-out.Delivered, out.Bytes, uint32(q.Number()), why)
			}
		}
	}
}
