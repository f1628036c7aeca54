package fabric

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/work"
	"github.com/verbena-rdma/verbena/ib"
)

// flowState is what the run keeps of a flow while it is under way; what is
// known of it in the end is in its result.Flow.
type flowState struct {
	lanes   []*lane
	open    int32 // messages posted and not ended
	waits   int32 // flows that must finish before
	delay   sim.Time
	endless bool
	sent    bool // of an unreliable service: everything has left
	over    bool
	next    []int32 // flows that wait for this one
	seen    int64   // Delivered at the last look of the watch
	moved   sim.Time
}

// admit takes the next flow of the source into the tables and schedules its
// start.
func (r *Run) admit(f *work.Flow) error {
	i := int32(len(r.flows))
	if int(i) >= maxFlows {
		return fmt.Errorf("more than %d flows: cut the trace, or shorten the run", maxFlows)
	}
	f.ID = i
	r.flows = append(r.flows, *f)
	g := r.Graph
	src, dst := &g.Endpoints[f.Src], &g.Endpoints[f.Dst]
	out := result.Flow{
		ID: i, Group: f.Group, Src: f.Src, Dst: f.Dst, SrcNode: src.Node, DstNode: dst.Node,
		Bytes: f.Bytes, Op: f.Op.String(), Service: serviceName(f), DstPort: 4791,
		Start: f.Start, Received: sim.Never, Finish: sim.Never, QPs: max(1, int(f.QPs)),
	}
	out.Prio, out.RateLimit = r.prioOf(f), f.Rate*sim.Rate(out.QPs)
	r.out = append(r.out, out)
	st := flowState{endless: f.Endless && f.Bytes == 0, delay: f.Start}
	for _, a := range f.After {
		if a < 0 || a >= i {
			return fmt.Errorf("flow %d waits for flow %d, which does not come before it", i, a)
		}
		if r.out[a].State != result.Finished {
			r.state[a].next = append(r.state[a].next, i)
			st.waits++
		}
	}
	r.state = append(r.state, st)
	if !f.Endless {
		r.unfinished++
	}
	if st.waits == 0 {
		r.S.At(f.Start, r, evStart|uint64(i)<<evShift)
	}
	return nil
}

// maxFlows bounds what a run keeps: about half a kilobyte each.
const maxFlows = 4 << 20

// feed admits flows up to the one that starts after now.
func (r *Run) feed(now sim.Time) {
	for r.more {
		if r.ahead == nil {
			f, ok := r.source.Next()
			if !ok {
				r.more = false
				if err := r.source.Err(); err != nil {
					r.fail(err)
				}
				return
			}
			r.ahead = &f
		}
		if len(r.ahead.After) == 0 && r.ahead.Start > now {
			r.S.At(r.ahead.Start, r, evFeed)
			return
		}
		if err := r.admit(r.ahead); err != nil {
			r.fail(err)
			r.more = false
			return
		}
		r.ahead = nil
	}
}

// start begins a flow.
func (r *Run) start(now sim.Time, i int32) {
	f, st, out := &r.flows[i], &r.state[i], &r.out[i]
	if f.Op == work.TCP {
		r.startTCP(now, i)
		return
	}
	out.State, out.Start = result.Running, now
	st.moved = now
	r.watch.running = append(r.watch.running, i)
	k := max(1, int(f.QPs))
	for q := range k {
		l, err := r.laneFor(now, f, q)
		if err != nil {
			out.State, out.Status = result.Failed, err.Error()
			r.ended(now, i)
			return
		}
		if q == 0 {
			out.SrcPort = l.c.SrcPort()
			out.Path = r.trace(f, l.c)
			out.Base = r.base(f, out.Path, r.traceBack(f, l.c))
		}
		st.lanes = append(st.lanes, l)
		bytes := f.Bytes / int64(k)
		if int64(q) < f.Bytes%int64(k) {
			bytes++
		}
		if st.endless {
			bytes = maxMessage
		}
		if bytes > 0 || f.Bytes == 0 && q == 0 {
			l.todo = append(l.todo, piece{flow: i, left: bytes, message: r.messageOf(f), op: wrOp(f.Op)})
		}
	}
	out.Paths = r.distinctPaths(f, st.lanes)
	for _, l := range st.lanes {
		if err := r.pump(now, l); err != nil {
			out.State, out.Status = result.Failed, err.Error()
			r.ended(now, i)
			return
		}
	}
}

// pairKey names a queue pair that flows share.
type pairKey struct {
	src, dst, qp int32
	part         int
}

// laneFor returns the connection that part q of a flow uses.
func (r *Run) laneFor(now sim.Time, f *work.Flow, q int) (*lane, error) {
	key := pairKey{f.Src, f.Dst, f.QP, q}
	if f.QP != 0 {
		if l := r.shared[key]; l != nil {
			return l, nil
		}
	}
	a, b := r.NICs[f.Src], r.NICs[f.Dst]
	port := f.SrcPort
	if port != 0 {
		port += uint16(q)
	}
	depth := 1
	if f.QP != 0 || f.Bytes > r.messageOf(f) || f.Endless {
		depth = laneDepth
	}
	c, err := host.Dial(now, a, b, host.Spec{
		Service: serviceOf(f), Prio: r.prioOf(f), DSCP: r.dscpOf(f), SrcPort: port, Depth: depth, Rate: r.rateOf(f), Sends: f.Op == work.Send,
	})
	if err != nil {
		return nil, err
	}
	l := &lane{c: c, depth: depth, shared: f.QP != 0}
	r.lanes[c] = l
	if l.shared {
		r.shared[key] = l
	}
	return l, nil
}

// laneDepth is how many messages of a lane are posted at a time.
const laneDepth = 16

// Done implements host.Boss.
func (r *Run) Done(now sim.Time, c *host.Conn, flow int32, _ uint64, status ib.WCStatus) {
	if flow < 0 {
		return
	}
	st, out := &r.state[flow], &r.out[flow]
	st.open--
	l := r.lanes[c]
	if l != nil && len(l.todo) > 0 {
		// A completion is told from inside a call of the adapter: what follows is
		// posted when that has returned. On a queue pair that has failed and is
		// shared it will be flushed, which tells its flows.
		r.S.At(now, r, evPump|uint64(r.slot(l))<<evShift)
	}
	if status != ib.Success {
		if out.State == result.Running {
			out.State, out.Status = result.Failed, status.String()
			r.ended(now, flow)
		}
		return
	}
	r.S.Note(uint64(flow)<<8 | 0xD0)
	if out.State != result.Running || st.open != 0 || !r.nothingLeft(flow) {
		return
	}
	if c.Spec.Service != ib.RC && out.Delivered < out.Bytes {
		// Nobody will say what has arrived: it is waited for.
		st.sent = true
		r.S.At(now+linger, r, evEnded|uint64(flow)<<evShift)
		return
	}
	r.finished(now, flow)
}

// linger is how long the last packets of an unreliable flow are waited for.
const linger = sim.Millisecond

// finished notes that a flow has ended well; what it had is given back when
// nobody stands in a call of its adapter any more.
func (r *Run) finished(now sim.Time, flow int32) {
	r.out[flow].State, r.out[flow].Finish = result.Finished, now
	r.S.At(now, r, evEnded|uint64(flow)<<evShift)
}

// nothingLeft reports whether all of a flow has been posted.
func (r *Run) nothingLeft(flow int32) bool {
	for _, l := range r.state[flow].lanes {
		for i := range l.todo {
			if l.todo[i].flow == flow {
				return false
			}
		}
	}
	return true
}

// Delivered implements host.Boss.
func (r *Run) Delivered(now sim.Time, _ *host.Conn, flow int32, n int) {
	if flow < 0 {
		return
	}
	out := &r.out[flow]
	out.Delivered += int64(n)
	if out.Delivered >= out.Bytes && out.Bytes > 0 && out.Received == sim.Never {
		out.Received = now
		if r.state[flow].sent && out.State == result.Running {
			r.finished(now, flow)
		}
	}
}

// Marked implements host.Boss.
func (r *Run) Marked(_ sim.Time, flow int32) {
	if flow >= 0 {
		r.out[flow].Marks++
	}
}

// CNP implements host.Boss.
func (r *Run) CNP(_ sim.Time, flow int32, sent bool) {
	switch {
	case flow < 0:
	case sent:
		r.out[flow].CNPs++
	default:
		r.out[flow].CNPsHandled++
	}
}

// NAK implements host.Boss.
func (r *Run) NAK(_ sim.Time, flow int32) {
	if flow >= 0 {
		r.out[flow].NAKs++
	}
}

// ended closes what a flow had to itself and starts those that waited for it.
func (r *Run) ended(now sim.Time, i int32) {
	st, out := &r.state[i], &r.out[i]
	if st.over {
		return
	}
	st.over = true
	if out.State == result.Running { // unreliable, and something was lost
		out.State, out.Finish = result.Finished, now-linger
	}
	for _, l := range st.lanes {
		r.account(now, out, l)
		if !l.shared {
			delete(r.lanes, l.c)
			l.c.Close(now)
		}
	}
	st.lanes = nil
	if !r.flows[i].Endless {
		r.unfinished--
	}
	for _, k := range st.next {
		w := &r.state[k]
		if w.waits--; w.waits == 0 {
			r.S.At(now.Add(w.delay), r, evStart|uint64(k)<<evShift)
		}
	}
	st.next = nil
	if r.unfinished == 0 && r.untilFlows && !r.finiteAhead() {
		r.end(now, r.done())
	}
}

// finiteAhead reports whether flows that the run waits for may still come.
func (r *Run) finiteAhead() bool {
	return r.ahead != nil && !r.ahead.Endless || r.more && r.source.Finite()
}

func wrOp(o work.Op) ib.WROp {
	switch o {
	case work.Send:
		return ib.Send
	case work.Read:
		return ib.Read
	case work.Write, work.TCP:
	}
	return ib.Write
}

func serviceOf(f *work.Flow) ib.QPType {
	switch f.Service {
	case 1:
		return ib.UC
	case 2:
		return ib.UD
	}
	return ib.RC
}

func serviceName(f *work.Flow) string {
	if f.Op == work.TCP {
		return "TCP"
	}
	return serviceOf(f).String()
}

// prioOf returns the priority that the sender's NIC puts a flow in.
func (r *Run) prioOf(f *work.Flow) uint8 {
	h := r.hostOf(f.Src)
	switch {
	case f.Prio >= 0:
		return uint8(f.Prio)
	case f.Op == work.TCP:
		return h.TCP.Priority
	}
	return h.RDMA.Priority
}

// dscpOf returns the code point of a flow's packets.
func (r *Run) dscpOf(f *work.Flow) uint8 {
	h := r.hostOf(f.Src)
	switch {
	case f.DSCP >= 0:
		return uint8(f.DSCP)
	case f.Op == work.TCP:
		return h.TCP.DSCP
	}
	return h.RDMA.DSCP
}

// messageOf returns the bytes of a flow's messages.
func (r *Run) messageOf(f *work.Flow) int64 {
	if serviceOf(f) == ib.UD {
		full, _, _ := r.frameSizes(f)
		return int64(full)
	}
	m := f.Message
	if m == 0 {
		m = int64(r.hostOf(f.Src).RDMA.Message)
	}
	if m == 0 || m > maxMessage {
		m = maxMessage
	}
	return m
}

// rateOf returns the limit of each of a flow's queue pairs; 0: none.
func (r *Run) rateOf(f *work.Flow) sim.Rate { return f.Rate }

func (r *Run) hostOf(endpoint int32) *scenario.Host {
	return r.settings[r.Graph.Endpoints[endpoint].Node].host
}
