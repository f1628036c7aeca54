package perf

import (
	"fmt"
	"math/rand/v2"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/perf/run"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// grhLen is what a datagram's receive holds before the message.
const grhLen = 40

// rig is the memory and the queue pairs of a test. Each lane has two stretches of
// memory of part bytes: what it sends from (or reads into), and what its peer
// writes to (or reads from), in perftest's arrangement: all of the first kind,
// then all of the second.
type rig struct {
	cfg   *Config
	dev   *verbs.Device
	pd    *verbs.PD
	mem   *verbs.Memory
	mr    *verbs.MR
	cq    *verbs.CQ
	srq   *verbs.SRQ // nil: each queue pair has its own receives
	ch    *verbs.CompChannel
	qps   []*verbs.QP
	lanes []run.Lane
	keys  []handshake.Key
	gid   verbs.GIDEntry

	mtu         ib.MTU
	part        uint64
	cycle, line uint64
	outReads    int
	inline      int
	closers     []func() error
}

// newRig makes the resources for messages of up to most bytes.
func newRig(cfg *Config, dev *verbs.Device, gid verbs.GIDEntry, a handshake.Agreed, most uint64) (_ *rig, err error) {
	r := &rig{cfg: cfg, dev: dev, gid: gid, mtu: a.MTU, cycle: uint64(a.CycleBuffer), line: max(uint64(a.CacheLine), 8)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	r.part = roundUp(max(most, r.cycle)+r.line, max(r.line, r.cycle))
	limits := dev.Attr().Limits
	r.inline = min(cfg.Inline, limits.MaxInline)
	if r.inline < cfg.Inline {
		cfg.note("-I %d: %s sends at most %d bytes inline", cfg.Inline, dev.Name(), limits.MaxInline)
	}
	r.outReads = 1
	if cfg.Verb == handshake.Read || cfg.Verb == handshake.Atomic {
		r.outReads = min(limits.MaxRdAtomic, 255)
		if cfg.OutReads > r.outReads {
			cfg.note("-o %d: %s has at most %d outstanding", cfg.OutReads, dev.Name(), r.outReads)
		} else if cfg.OutReads > 0 {
			r.outReads = cfg.OutReads
		}
	}
	r.pd = dev.AllocPD()
	r.closers = append(r.closers, r.pd.Close)
	n := 2 * r.part * uint64(cfg.QPs)
	if r.mem, err = verbs.Alloc(int(n)); err != nil {
		return nil, fmt.Errorf("memory for %d queue pairs of %d bytes: %w", cfg.QPs, 2*r.part, err)
	}
	r.closers = append(r.closers, r.mem.Close)
	if r.mr, err = r.pd.RegisterMR(r.mem.Bytes(), ib.LocalWrite|r.remoteAccess()); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, r.mr.Close)
	depth := (cfg.TxDepth + cfg.RxDepth + 2*latencySlack) * cfg.QPs
	cqc := verbs.CQConfig{Depth: min(depth, limits.MaxCQE), Vector: verbs.SpreadVectors}
	if cfg.Events {
		if cfg.Vector >= 0 {
			cqc.Vector = verbs.VectorOf(cfg.Vector)
		}
		r.ch = dev.CreateCompChannel()
		r.closers = append(r.closers, r.ch.Close)
		cqc.Channel = r.ch
	}
	if r.cq, err = dev.CreateCQ(cqc); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, r.cq.Close)
	if cfg.SRQ {
		if r.srq, err = r.pd.CreateSRQ(verbs.SRQConfig{MaxWR: cfg.RxDepth}); err != nil {
			return nil, fmt.Errorf("-r %d: %w", cfg.RxDepth, err)
		}
		r.closers = append(r.closers, r.srq.Close)
	}
	for i := range cfg.QPs {
		if err = r.addQP(i); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// latencySlack is how many more requests a queue holds than perftest's latency
// tests have outstanding: ours do not wait for each completion.
const latencySlack = 128

func (r *rig) remoteAccess() ib.Access {
	switch r.cfg.Verb {
	case handshake.Write:
		return ib.RemoteWrite
	case handshake.Read:
		return ib.RemoteRead
	case handshake.Atomic:
		return ib.RemoteAtomic
	case handshake.Send:
	}
	return 0
}

func (r *rig) addQP(i int) error {
	c := r.cfg
	capacity := ib.QPCap{MaxSendWR: c.TxDepth, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: r.inline}
	if c.Latency {
		capacity.MaxSendWR = latencySlack
	}
	if c.Verb == handshake.Send && r.srq == nil {
		capacity.MaxRecvWR = c.RxDepth
	}
	qp, err := r.pd.CreateQP(verbs.QPConfig{Type: c.Conn, SendCQ: r.cq, RecvCQ: r.cq, Cap: capacity, SRQ: r.srq})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, qp.Close)
	r.qps = append(r.qps, qp)
	if c.Conn == ib.UD {
		err = qp.ToInitUD(r.qkey())
	} else {
		err = qp.ToInit(r.remoteAccess())
	}
	if err != nil {
		return err
	}
	r.lanes = append(r.lanes, run.Lane{QP: qp})
	r.keys = append(r.keys, handshake.Key{
		OutReads: uint16(r.outReads), QPN: qp.Num(), PSN: ib.PSN(rand.Uint32()) & ib.PSNMask,
		RKey: r.mr.RKey(), Addr: r.mr.Addr() + r.recvAt(i), GID: r.gid.GID,
	})
	return nil
}

// sendAt and recvAt return where in the memory a lane's two parts begin.
func (r *rig) sendAt(lane int) uint64 { return uint64(lane) * r.part }
func (r *rig) recvAt(lane int) uint64 { return uint64(r.cfg.QPs+lane) * r.part }

// connect takes every queue pair to RTS. ours says that the peer is of this project.
func (r *rig) connect(theirs []handshake.Key, ours bool) error {
	c := r.cfg
	for i, qp := range r.qps {
		k := theirs[i]
		if c.Conn == ib.UD {
			if err := r.address(i, ib.AV{DGID: k.GID, SGIDIndex: r.gid.Index, TrafficClass: c.TClass, SL: c.SL}, k.QPN, QKey); err != nil {
				return err
			}
		}
		p := verbs.Path{
			DestQPN: k.QPN, PSN: k.PSN, LocalPSN: r.keys[i].PSN, GID: k.GID, GIDIndex: r.gid.Index, MTU: r.mtu,
			TrafficClass: c.TClass, SL: c.SL, TimeoutExp: c.Timeout, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 12,
			MaxRdAtomic: uint8(min(max(int(k.OutReads), 1), max(r.outReads, 1))), MaxDestRdAtomic: uint8(r.outReads),
			LateAck: ours,
		}
		if err := qp.ToRTR(p); err != nil {
			return err
		}
		if err := qp.ToRTS(p); err != nil {
			return err
		}
		r.lanes[i].Remote = ib.Remote{Addr: k.Addr, RKey: k.RKey}
	}
	return nil
}

// qkey is that of the rig's own queue pairs: perftest's, or the one that
// everybody uses in port space UDP.
func (r *rig) qkey() ib.QKey {
	if r.cfg.CM {
		return rdmacm.QKeyUDP
	}
	return QKey
}

// address makes a lane send its datagrams to a queue pair.
func (r *rig) address(lane int, av ib.AV, qpn ib.QPN, key ib.QKey) error {
	ah, err := r.pd.CreateAH(av)
	if err != nil {
		return fmt.Errorf("address handle for %v: %w", av.DGID.Addr(), err)
	}
	r.closers = append(r.closers, ah.Close)
	r.lanes[lane].UD = ib.Datagram{AH: ah.Handle(), QPN: qpn, QKey: key}
	return nil
}

// layout places the slots of messages of size bytes.
func (r *rig) layout(size uint64) {
	inc := roundUp(max(size, r.line), r.line)
	slots := uint64(1)
	if !r.cfg.Latency && size <= r.cycle/2 {
		slots = r.cycle / inc
	}
	rsize := size
	if r.cfg.Conn == ib.UD {
		rsize += grhLen
	}
	rinc := roundUp(max(rsize, r.line), r.line)
	rslots := uint64(1)
	if !r.cfg.Latency {
		rslots = max(1, r.part/rinc)
	}
	for i := range r.lanes {
		l := &r.lanes[i]
		l.Local = run.Buffer{Key: r.mr.LKey(), Addr: r.mr.Addr() + r.sendAt(i), Stride: inc, Slots: slots}
		l.Recv = run.Buffer{Key: r.mr.LKey(), Addr: r.mr.Addr() + r.recvAt(i), Stride: rinc, Slots: rslots}
	}
}

// out and in return the memory of a lane's two parts.
func (r *rig) out(lane int) []byte { return r.mem.Bytes()[r.sendAt(lane):][:r.part] }
func (r *rig) in(lane int) []byte  { return r.mem.Bytes()[r.recvAt(lane):][:r.part] }

// prepare writes the patterns for messages of size bytes. WRITE and READ carry
// the pattern of their place, so that slots may be compared after any number
// of messages; SENDs carry that of offset 0, because they land where the
// receiver likes.
func (r *rig) prepare(size uint64) {
	for i := range r.lanes {
		switch l := &r.lanes[i]; r.cfg.Verb {
		case handshake.Write:
			fill(r.out(i), i, 0)
		case handshake.Read:
			fill(r.in(i), i, 0)
		case handshake.Send:
			for s := range l.Local.Slots {
				fill(r.out(i)[s*l.Local.Stride:][:size], i, 0)
			}
		case handshake.Atomic: // counts from 0
		}
	}
}

// compareSends checks what SENDs of one size have left, received messages a
// lane.
func (r *rig) compareSends(c *comparison, size uint64, received []uint64) {
	skip := uint64(0)
	if r.cfg.Conn == ib.UD {
		skip = grhLen
	}
	for i := range r.lanes {
		l := &r.lanes[i]
		for s := range min(received[i], l.Recv.Slots) {
			b := r.in(i)[s*l.Recv.Stride+skip:][:size]
			if r.srq == nil {
				c.check(b, i, 0)
				continue
			}
			// Any lane's message may have come here, and two at a time where receives
			// outnumber the places: then each packet is of one of them.
			for off := uint64(0); off < uint64(len(b)); off += leastMTU {
				piece := b[off:min(off+leastMTU, uint64(len(b)))]
				c.check(piece, laneOfPattern(piece, off, len(r.lanes), i), off)
			}
		}
	}
}

// comparePlaces checks a part that WRITEs or READs of size bytes have filled,
// sent messages a lane. The last byte of a latency test of WRITE is its counter.
func (r *rig) comparePlaces(c *comparison, part func(int) []byte, size uint64, sent []uint64) {
	n := size
	if r.cfg.Latency && r.cfg.Verb == handshake.Write {
		n--
	}
	for i := range min(len(r.lanes), len(sent)) {
		l := &r.lanes[i]
		for s := range min(sent[i], l.Local.Slots) {
			off := s * l.Local.Stride
			c.check(part(i)[off:][:n], i, off)
		}
	}
}

// compareCounters checks what ATOMICs have left, sent by the peer.
func (r *rig) compareCounters(c *comparison, sent []uint64) {
	for i := range min(len(r.lanes), len(sent)) {
		want := sent[i]
		if r.cfg.CompareSwap {
			want = 0
		}
		l := &r.lanes[i]
		c.counters(r.in(i)[:l.Local.Slots*l.Local.Stride], l.Local.Stride, want, i)
	}
}

// close frees everything, last made first.
func (r *rig) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		_ = r.closers[i]()
	}
	r.closers = nil
}

func roundUp(v, to uint64) uint64 { return (v + to - 1) / to * to }
