package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/host/tcp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// lossy is what the run keeps of the lossy class. All of it is made when the
// first flow needs it.
type lossy struct {
	stacks []*tcp.Stack         // by endpoint; nil: none yet
	shared map[uint64]*tcp.Conn // connections that flows have in common
}

// tcpBoss hears of the lossy class for the run.
type tcpBoss struct{ r *Run }

// stack returns the stack of an endpoint's NIC.
func (r *Run) stack(endpoint int32) *tcp.Stack {
	l := &r.lossy
	if l.stacks == nil {
		l.stacks = make([]*tcp.Stack, len(r.NICs))
		l.shared = make(map[uint64]*tcp.Conn)
	}
	if l.stacks[endpoint] == nil {
		h := &r.hostOf(endpoint).TCP
		c := tcp.Config{
			MSS: h.MSS, InitWindow: h.InitWindow, MaxWindow: int64(h.MaxWindow), MinRTO: h.MinRTO, G: uint64(h.G),
		}
		if h.Kind == "reno" {
			c.Kind = tcp.Reno
		}
		l.stacks[endpoint] = tcp.New(r.S, r.NICs[endpoint], c, tcpBoss{r})
	}
	return l.stacks[endpoint]
}

// startTCP begins a flow of the lossy class. What there are queue pairs of in
// RDMA there are connections of here; messages mean nothing to a stream.
func (r *Run) startTCP(now sim.Time, i int32) {
	f, st, out := &r.flows[i], &r.state[i], &r.out[i]
	out.State, out.Start, out.DstPort = result.Running, now, tcp.Port
	st.moved = now
	k := max(1, int(f.QPs))
	conns := make([]*tcp.Conn, k)
	paths := make(map[uint64]bool)
	for q := range conns {
		c, err := r.tcpConn(f, q)
		if err != nil {
			for _, c := range conns[:q] {
				r.closeTCP(f, c)
			}
			out.State, out.Status = result.Failed, err.Error()
			r.ended(now, i)
			return
		}
		conns[q] = c
		path := r.walk(f.Src, f.Dst, c.Hash())
		if q == 0 {
			out.SrcPort, out.Path = c.SrcPort(), path
			out.Base = r.base(f, path, r.walk(f.Dst, f.Src, c.ReverseHash()))
		}
		paths[hopsKey(path)] = true
	}
	out.Paths = len(paths)
	for q, c := range conns {
		bytes := share(f.Bytes, k, q)
		if st.endless {
			bytes = -1
		}
		if bytes == 0 {
			r.closeTCP(f, c)
			continue
		}
		st.open++
		c.Send(now, i, bytes)
	}
	if st.open == 0 {
		out.Received = now
		r.tcpFinished(now, i)
	}
}

// share is part q of k of a number of bytes.
func share(bytes int64, k, q int) int64 {
	n := bytes / int64(k)
	if int64(q) < bytes%int64(k) {
		n++
	}
	return n
}

// tcpConn returns the connection that part q of a flow uses.
func (r *Run) tcpConn(f *work.Flow, q int) (*tcp.Conn, error) {
	key := uint64(uint32(f.QP))<<16 | uint64(q)
	a, b := r.stack(f.Src), r.stack(f.Dst)
	if f.QP != 0 {
		if c := r.lossy.shared[key]; c != nil {
			return c, nil
		}
	}
	port := f.SrcPort
	if port != 0 {
		port += uint16(q)
	}
	c, err := tcp.Dial(a, b, tcp.Spec{
		Prio: r.prioOf(f), DSCP: r.dscpOf(f), SrcPort: port, Rate: r.rateOf(f), RTT: r.handshake(f),
	})
	if err != nil {
		return nil, err
	}
	if f.QP != 0 {
		r.lossy.shared[key] = c
	}
	return c, nil
}

// handshake is the round trip of two shortest frames on an idle network, over
// the first of the ways.
func (r *Run) handshake(f *work.Flow) sim.Time {
	var t sim.Time
	for _, h := range append(r.walk(f.Src, f.Dst, 0), r.walk(f.Dst, f.Src, 0)...) {
		p := r.Ports[h.Node][h.Port]
		t += p.Delay() + p.Rate().For(tcp.AckBytes+r.gap())
	}
	return t
}

// closeTCP closes a connection that no other flow will use.
func (r *Run) closeTCP(f *work.Flow, c *tcp.Conn) {
	if f.QP == 0 {
		c.Close()
	}
}

// tcpFinished ends a flow of which everything is acknowledged.
func (r *Run) tcpFinished(now sim.Time, i int32) {
	out := &r.out[i]
	out.State, out.Finish = result.Finished, now
	if out.Delivered != out.Bytes {
		r.breach(now, "bytes are conserved", out.DstNode, "flow %d of %d bytes is acknowledged and %d bytes were delivered in order", i, out.Bytes, out.Delivered)
	}
	r.S.At(now, r, evEnded|uint64(i)<<evShift)
}

// Segment implements tcp.Boss.
func (b tcpBoss) Segment(_ sim.Time, flow int32, again bool) {
	if flow >= 0 {
		out := &b.r.out[flow]
		out.Packets++
		if again {
			out.Retransmitted++
		}
	}
}

// Delivered implements tcp.Boss.
func (b tcpBoss) Delivered(now sim.Time, flow int32, n int) { b.r.Delivered(now, nil, flow, n) }

// Marked implements tcp.Boss.
func (b tcpBoss) Marked(now sim.Time, flow int32) { b.r.Marked(now, flow) }

// Timeout implements tcp.Boss.
func (b tcpBoss) Timeout(_ sim.Time, flow int32) {
	if flow >= 0 {
		b.r.out[flow].Timeouts++
	}
}

// Acked implements tcp.Boss.
func (b tcpBoss) Acked(now sim.Time, c *tcp.Conn, flow int32) {
	r := b.r
	r.S.Note(uint64(flow)<<8 | 0xD1)
	r.closeTCP(&r.flows[flow], c)
	st := &r.state[flow]
	if st.open--; st.open == 0 && r.out[flow].State == result.Running {
		r.tcpFinished(now, flow)
	}
}

// hopsKey names a way.
func hopsKey(hops []result.Hop) uint64 {
	k := uint64(0)
	for _, h := range hops {
		k = sim.Mix(k ^ uint64(uint32(h.Node))<<32 ^ uint64(uint32(h.Port)))
	}
	return k
}
