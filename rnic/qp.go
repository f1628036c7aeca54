package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// QPConfig describes a queue pair to be made.
type QPConfig struct {
	Type           ib.QPType
	PD             mem.PD
	SendCQ, RecvCQ *CQ
	Cap            ib.QPCap // zero fields take defaults
	SigAll         bool     // every send request reports a completion
	// SRQ is where the queue pair's receives come from; nil for a queue of its
	// own. With one, the sizes of the receive queue mean nothing.
	SRQ *SRQ
	// DCQCN is the queue pair's own; nil for the adapter's.
	DCQCN *DCQCN
}

// QP is a queue pair. Number, Type, Cap and State may be called by anyone;
// Post and PostRecv by one goroutine at a time, which need not be the
// adapter's owner.
type QP struct {
	// What every packet needs comes first.
	eng   transport.Engine
	sched qpSched
	timer qpTimer
	pacer pacer
	rp    *reaction   // from the first notification on
	np    *notice     // from the first marked packet on; connected types
	cc    *congestion // its DCQCN; nil is off
	dest  *dest       // connected types, from RTR on, where there is a window
	path  path        // connected types, from RTR on
	qpn   ib.QPN
	state stateWord
	pkey  ib.PKey
	typ   ib.QPType
	flags qpFlags

	pd   mem.PD
	send transport.SendQueue
	recv transport.RecvQueue

	a              *Adapter
	bell           bell
	sendCQ, recvCQ *CQ
	attr           qpAttr // what the adapter has been told; the engine's part is asked for
}

// qpFlags share a byte: queue pairs of a simulated fabric are many.
type qpFlags uint8

const (
	qpGone    qpFlags = 1 << iota // destroyed
	qpECT                         // its data packets are ECN-capable
	qpOwnCC                       // its congestion control is not the adapter's
	qpCounted                     // it is the head of a countedQP
)

// qpAttr are the attributes that are the adapter's to remember: those of
// [ib.QPAttr] and [ib.AV] that path has not.
type qpAttr struct {
	dgid      ib.GID
	flowLabel uint32
	rateKbps  uint32
	destQPN   ib.QPN
	pkeyIndex uint16
	port      uint8
	hopLimit  uint8
	class     uint8
	sl        uint8
	pathMTU   ib.MTU
}

// Number returns the queue pair number.
func (q *QP) Number() ib.QPN { return q.qpn }

// Type returns the transport service.
func (q *QP) Type() ib.QPType { return q.typ }

// SRQ returns where the receives come from, or nil for a queue of its own.
// Owner.
func (q *QP) SRQ() *SRQ {
	from := q.recv.From()
	if from == nil {
		return nil
	}
	return from.User.(*SRQ)
}

// Cap returns the sizes of the queues, defaults filled in.
func (q *QP) Cap() ib.QPCap {
	return ib.QPCap{
		MaxSendWR: q.send.Depth(), MaxRecvWR: q.recv.Depth(),
		MaxSendSGE: q.send.MaxSGE(), MaxRecvSGE: q.recv.MaxSGE(), MaxInlineData: q.send.MaxInline(),
	}
}

// State returns the state as it was after the last call of the owner.
func (q *QP) State() ib.QPState { return q.state.load() }

// CreateQP makes a queue pair in the Reset state. It matches ErrInvalid for
// arguments out of range, ErrLimit when there are too many. Owner.
func (a *Adapter) CreateQP(now clock.Time, cfg QPConfig) (*QP, error) {
	if cfg.DCQCN != nil {
		if err := a.checkCongestion(cfg.DCQCN); err != nil {
			return nil, fmt.Errorf("create QP: %w", err)
		}
	}
	q, err := a.createQP(cfg, 0)
	if err == nil {
		cc := a.cc
		if cfg.DCQCN != nil {
			cc = congestionOf(cfg.DCQCN)
			q.flags |= qpOwnCC
		}
		q.setCongestion(now, cc)
	}
	return q, err
}

// createQP is CreateQP for a number with a meaning of its own, or 0 for any.
func (a *Adapter) createQP(cfg QPConfig, qpn ib.QPN) (*QP, error) {
	fail := func(attr string, value any, limit string, err error) (*QP, error) {
		if limit != "" {
			limit = ", " + limit
		}
		return nil, fmt.Errorf("create QP: %s is %v%s: %w", attr, value, limit, err)
	}
	switch cfg.Type {
	case ib.RC, ib.UC, ib.UD:
	default:
		return fail("type", cfg.Type, "can be RC, UC or UD", ErrUnsupported)
	}
	refs, err := a.pd("create QP", cfg.PD)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name string
		cq   *CQ
	}{{"send CQ", cfg.SendCQ}, {"receive CQ", cfg.RecvCQ}} {
		if c.cq == nil || c.cq.of != a.common || c.cq.slot < 0 {
			return fail(c.name, "none of this adapter", "", ErrInvalid)
		}
		if c.cq.Overrun() {
			return fail(c.name, fmt.Sprintf("CQ %d, which has overflowed", c.cq.num), "", ErrState)
		}
	}
	if s := cfg.SRQ; s != nil {
		if err := a.ownedSRQ("create QP with", s); err != nil {
			return nil, err
		}
		cfg.Cap.MaxRecvWR, cfg.Cap.MaxRecvSGE = 0, 0
	}
	limit := a.limits
	for _, c := range []struct {
		name      string
		v         *int
		def, most int
	}{
		{"max_send_wr", &cfg.Cap.MaxSendWR, defaultSendWR, limit.MaxQPWR},
		{"max_recv_wr", &cfg.Cap.MaxRecvWR, defaultRecvWR, limit.MaxQPWR},
		{"max_send_sge", &cfg.Cap.MaxSendSGE, defaultSendSGE, limit.MaxSGE},
		{"max_recv_sge", &cfg.Cap.MaxRecvSGE, defaultRecvSGE, limit.MaxSGE},
		{"max_inline_data", &cfg.Cap.MaxInlineData, defaultInline, limit.MaxInline},
	} {
		if *c.v == 0 {
			*c.v = min(c.def, c.most)
		}
		if *c.v < 0 || *c.v > c.most {
			return fail(c.name, *c.v, fmt.Sprintf("can be up to %d", c.most), ErrInvalid)
		}
	}
	if a.nqp >= limit.MaxQP {
		return nil, fmt.Errorf("create QP: there are %d of %d: %w", a.nqp, limit.MaxQP, ErrLimit)
	}

	q := a.newQP()
	q.a, q.typ, q.pd, q.pkey = a, cfg.Type, cfg.PD, ib.DefaultPKey
	q.sendCQ, q.recvCQ = cfg.SendCQ, cfg.RecvCQ
	q.send.Init(cfg.Cap.MaxSendWR, cfg.Cap.MaxSendSGE, cfg.Cap.MaxInlineData)
	if cfg.SRQ != nil {
		q.recv.InitShared(&cfg.SRQ.queue)
	} else {
		q.recv.Init(cfg.Cap.MaxRecvWR, cfg.Cap.MaxRecvSGE)
	}
	if q.qpn = qpn; qpn == 0 {
		q.qpn = a.qpn.next(&a.qps, a.shard, uint32(len(a.shards)))
	}
	q.timer.index = -1
	count := &a.tcount
	if a.cfg.CountQPs {
		q.own().engine.Sum = count
		count = &q.own().engine
	}
	q.eng = a.newEngine(cfg.Type, transport.Config{
		QPN: q.qpn, PD: cfg.PD, Mem: a.mem, Send: &q.send, Recv: &q.recv, Sink: (*sink)(q),
		SigAll: cfg.SigAll, Payload: uint16(a.cfg.Payload), AckEvery: uint16(a.cfg.AckEvery), Counters: count, Scratch: &a.scratch.engine,
	})
	if q.eng == nil {
		return fail("type", cfg.Type, "", ErrUnsupported)
	}
	a.qps.put(q)
	*a.counted(q)++
	a.nqp++
	refs.qps++
	cfg.SendCQ.join(q)
	cfg.RecvCQ.join(q)
	if cfg.SRQ != nil {
		cfg.SRQ.join(q)
	}
	return q, nil
}

// ModifyQP changes attributes and, with AttrState, the state of a queue pair
// (IBA vol.1 11.2.5.2). A refused call changes nothing; its error is a
// [*ModifyError] for what is wrong with an attribute. Owner.
func (a *Adapter) ModifyQP(now clock.Time, q *QP, attr *ib.QPAttr) error {
	if err := a.owned("modify", q); err != nil {
		return err
	}
	// The path is made while it can still be refused.
	var p path
	var routeMTU int
	route := func(av *ib.AV) string {
		var err error
		if p, routeMTU, err = a.resolve(av, a.portOf(q.qpn)); err != nil {
			return fmt.Sprintf("no route from %v: %v", a.addrs[p.row], err)
		}
		return ""
	}
	err := checkModify(q.typ, q.eng.State(), attr, qpState{
		qpn: q.qpn, activeMTU: a.mtu, maxRdAtomic: a.limits.MaxRdAtomic, gid: a.gid, version: a.gidType, pkeys: a.cfg.PKeys, route: route,
	})
	if err != nil {
		return err
	}

	told := *attr
	if q.typ == ib.UD && attr.Mask&ib.AttrState != 0 && attr.State == ib.Init {
		told.Mask |= ib.AttrPathMTU // a message is one packet of the port's MTU
		told.PathMTU = a.mtu
	}
	if attr.Mask&ib.AttrState != 0 && attr.State == ib.Reset {
		q.forget(now)
	}
	if attr.Mask&ib.AttrPKeyIndex != 0 {
		q.pkey = a.cfg.PKeys[attr.PKeyIndex]
		told.PKey = q.pkey
	}
	if attr.Mask&ib.AttrRateLimit != 0 {
		q.attr.rateKbps = attr.RateLimitKbps
		q.repace(now)
	}
	if attr.Mask&ib.AttrAV != 0 && q.typ != ib.UD {
		q.setPath(p)
	}
	q.attr.keep(attr)
	q.eng.Modify(now, &told)
	a.look(now, q)
	a.settle(now)
	if need := q.needs(); attr.Mask&ib.AttrAV != 0 && routeMTU != 0 && routeMTU < need {
		a.events.push(ib.Event{Type: ib.EventPathMTU, Element: uint32(q.qpn), Detail: fmt.Sprintf(
			"path MTU %v makes frames of up to %d bytes, the route from %v to %v carries %d", q.attr.pathMTU, need, a.addrs[p.row], p.dst, routeMTU)})
	}
	return nil
}

// setPath gives a connected queue pair its way to the peer.
func (q *QP) setPath(p path) {
	d := q.a.destFor(p.dst.WithZone(""))
	q.a.sched.remove(q)
	q.a.dropDest(q.dest)
	q.path, q.dest = p, d
	q.sched.prio = p.prio & (numPrios - 1)
	if w, ok := q.eng.(windower); ok {
		w.SetWindow(d.windowOf())
	}
}

// forget takes back what modify calls have given.
func (q *QP) forget(now clock.Time) {
	a := q.a
	a.sched.remove(q)
	if w, ok := q.eng.(windower); ok {
		w.SetWindow(nil)
	}
	if d := q.dest; d != nil {
		q.dest = nil
		a.wake(d)
		a.dropDest(d)
	}
	q.path = path{}
	q.attr.rateKbps = 0
	q.calm(now)
	q.attr, q.pkey = qpAttr{}, ib.DefaultPKey
	a.mem.ForgetQP(q.qpn)
}

// needs returns the largest frame that the queue pair sends.
func (q *QP) needs() int { return q.attr.pathMTU.Bytes() + q.a.cfg.Wire.overhead() }

// QueryQP returns all attributes of a queue pair. Owner.
func (a *Adapter) QueryQP(q *QP) ib.QPAttr {
	var attr ib.QPAttr
	q.eng.Query(&attr)
	// What the engine has no use for is the adapter's to remember.
	attr.Mask, attr.State, attr.CurState = attrsDefined, q.eng.State(), q.eng.State()
	t := &q.attr
	attr.Port, attr.PKeyIndex, attr.RateLimitKbps = t.port, t.pkeyIndex, t.rateKbps
	attr.PKey = a.cfg.PKeys[t.pkeyIndex]
	attr.AV = ib.AV{
		DGID: t.dgid, SGIDIndex: int(q.path.row), HopLimit: t.hopLimit, TrafficClass: t.class,
		FlowLabel: t.flowLabel, SL: t.sl,
	}
	return attr
}

// SourcePort returns the UDP source port of a connected queue pair's packets; 0
// before RTR, for datagrams, which choose by destination, and for RoCEv1. Owner.
func (a *Adapter) SourcePort(q *QP) uint16 {
	if !q.path.ok {
		return 0
	}
	return q.path.sport
}

// DestroyQP removes a queue pair. Requests that are posted and not completed
// vanish without completions; completions that are queued stay. Owner.
func (a *Adapter) DestroyQP(now clock.Time, q *QP) error {
	if err := a.owned("destroy", q); err != nil {
		return err
	}
	if n := a.attached(q); n > 0 {
		return fmt.Errorf("destroy QP %v: it is attached to %d multicast groups; detach it first: %w", q.qpn, n, ErrBusy)
	}
	q.eng.Modify(now, &ib.QPAttr{Mask: ib.AttrState, State: ib.Reset})
	q.forget(now)
	q.flags |= qpGone
	*a.counted(q)--
	q.state.store(ib.Reset)
	a.timers.remove(q)
	a.qps.remove(q)
	a.nqp--
	a.pds[q.pd].qps--
	q.sendCQ.users--
	q.recvCQ.users--
	if s := q.SRQ(); s != nil {
		s.users--
	}
	return nil
}

// keep notes the attributes that the mask of from names.
func (t *qpAttr) keep(from *ib.QPAttr) {
	m := from.Mask
	if m&ib.AttrPKeyIndex != 0 {
		t.pkeyIndex = from.PKeyIndex
	}
	if m&ib.AttrPort != 0 {
		t.port = from.Port
	}
	if m&ib.AttrAV != 0 {
		av := &from.AV
		t.dgid, t.flowLabel = av.DGID, av.FlowLabel
		t.hopLimit, t.class, t.sl = av.HopLimit, av.TrafficClass, av.SL
	}
	if m&ib.AttrPathMTU != 0 {
		t.pathMTU = from.PathMTU
	}
	if m&ib.AttrDestQPN != 0 {
		t.destQPN = from.DestQPN
	}
}

func (a *Adapter) owned(what string, q *QP) error {
	if q == nil || q.a != a || a.qps.get(q.qpn) != q {
		return fmt.Errorf("%s QP: it does not exist: %w", what, ErrInvalid)
	}
	return nil
}
