package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// QPConfig describes a queue pair.
type QPConfig struct {
	Type   ib.QPType // RC, UC or UD
	SendCQ *CQ
	RecvCQ *CQ
	Cap    ib.QPCap // zero fields take defaults; [QP.Cap] tells
	SigAll bool     // every send work request is reported, signaled or not
	SRQ    *SRQ     // where the receives come from; nil for a queue of its own
	DCQCN  *DCQCN   // its own congestion control, which may be off; nil for the device's
}

// QP is a queue pair. Goroutines may post to both its queues at the same time;
// what one goroutine posts keeps its order.
type QP struct {
	pd     *PD
	qp     *rnic.QP
	shard  *shard
	sendCQ *CQ
	recvCQ *CQ
	srq    *SRQ
	dead   atomic.Bool
	dcqcn  *DCQCN // its own; under the driver's lock

	sendMu sync.Mutex // the poster's side of the send queue
	recvMu sync.Mutex // … of the receive queue
	peerAH *AH        // made by Connect; under sendMu
}

// CreateQP makes a queue pair in state Reset. The error matches ErrInvalid for
// sizes beyond the device's limits, ErrLimit when there are too many,
// ErrUnsupported for another type than RC, UC or UD.
func (p *PD) CreateQP(cfg QPConfig) (*QP, error) {
	if err := p.usable("create QP"); err != nil {
		return nil, err
	}
	d := p.dev
	if err := d.faults.control(faultplan.CreateQP); err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	for _, c := range []struct {
		name string
		cq   *CQ
	}{{"send CQ", cfg.SendCQ}, {"receive CQ", cfg.RecvCQ}} {
		switch {
		case c.cq == nil:
			return nil, errorf(ErrInvalid, "create QP: %s is missing", c.name)
		case c.cq.dev != d:
			return nil, errorf(ErrInvalid, "create QP: %s belongs to device %v, the PD to %v", c.name, c.cq.dev, d)
		}
	}
	var srq *rnic.SRQ
	if s := cfg.SRQ; s != nil {
		if s.pd.dev != d {
			return nil, errorf(ErrInvalid, "create QP: SRQ %d belongs to device %v, the PD to %v", s.Number(), s.pd.dev, d)
		}
		srq = s.srq
	}
	q := &QP{pd: p, sendCQ: cfg.SendCQ, recvCQ: cfg.RecvCQ, srq: cfg.SRQ, shard: cfg.RecvCQ.place()}
	err := d.do("create QP", func(now clock.Time) error {
		own, set, err := d.ownDCQCN(cfg.DCQCN)
		if err != nil {
			return fmt.Errorf("create QP: %w", err)
		}
		q.dcqcn = own
		qp, err := q.shard.adapter.CreateQP(now, rnic.QPConfig{
			Type: cfg.Type, PD: p.pd, SendCQ: cfg.SendCQ.cq, RecvCQ: cfg.RecvCQ.cq, Cap: cfg.Cap, SigAll: cfg.SigAll, SRQ: srq, DCQCN: set,
		})
		q.qp = qp
		return err
	})
	if err != nil {
		return nil, err
	}
	q.sendCQ.use(q.shard)
	q.recvCQ.use(q.shard)
	d.faults.created(q)
	d.adopt(q)
	return q, nil
}

// Num returns the queue pair number.
func (q *QP) Num() ib.QPN { return q.qp.Number() }

// Type returns the transport service.
func (q *QP) Type() ib.QPType { return q.qp.Type() }

// Cap returns the sizes of the queues, defaults filled in.
func (q *QP) Cap() ib.QPCap { return q.qp.Cap() }

// State returns the present state, which an error of the protocol changes too:
// whoever has seen a completion in error sees the state that belongs to it.
func (q *QP) State() ib.QPState {
	// Not q.qp.State alone: a completion is out before the copy is renewed.
	_ = q.shard.drv.Do(func(clock.Time) {})
	return q.qp.State()
}

// SRQ returns where the receives come from, nil for a queue of the queue pair's
// own: then [QP.PostRecv] posts, else [SRQ.PostRecv].
func (q *QP) SRQ() *SRQ { return q.srq }

// Device returns the device.
func (q *QP) Device() *Device { return q.pd.dev }

// PD returns the protection domain.
func (q *QP) PD() *PD { return q.pd }

// Modify changes the attributes that attr.Mask names and, with
// [ib.AttrState], the state (IBA vol.1 11.2.5.2). A refused call changes
// nothing; its error names the attribute, its value, what it may be and what
// would do. See [QP.ToInit], [QP.ToRTR] and [QP.ToRTS] for the usual way up.
func (q *QP) Modify(attr ib.QPAttr) error {
	if q.dead.Load() {
		return errorf(ErrClosed, "modify QP %v: it is closed", q.Num())
	}
	d := q.pd.dev
	kill, err := d.faults.modify(q)
	if err != nil {
		return fmt.Errorf("modify QP %v: %w", q.Num(), err)
	}
	err = q.shard.do(d, "modify QP", func(now clock.Time) error { return q.shard.adapter.ModifyQP(now, q.qp, &attr) })
	if kill && err == nil {
		q.killed()
	}
	return err
}

// Query returns all attributes. Of a closed queue pair it returns none.
func (q *QP) Query() ib.QPAttr {
	var attr ib.QPAttr
	_ = q.shard.do(q.pd.dev, "query QP", func(clock.Time) error {
		if !q.dead.Load() {
			attr = q.shard.adapter.QueryQP(q.qp)
		}
		return nil
	})
	return attr
}

// PostSend posts one send work request. It is copied, with its list and its
// inline data; the memory that the list names belongs to the device until the
// request completes. What can leave has left when PostSend returns, unless
// somebody else drives the device. It does not allocate.
//
// The error is a [*PostError] and matches ErrQueueFull, ErrState or ErrInvalid;
// or it matches ErrClosed.
func (q *QP) PostSend(wr ib.SendWR) error {
	one := [1]ib.SendWR{wr}
	_, err := q.PostSendBatch(one[:])
	return err
}

// PostSendBatch posts send work requests in order and returns how many were
// accepted: all, unless there is an error, which is about the first that was
// not. One call for many small requests sends them many in a piece.
func (q *QP) PostSendBatch(wrs []ib.SendWR) (int, error) {
	if f := q.pd.dev.faults; f != nil && f.Asks(faultplan.PostSend) {
		return q.postFaulty(wrs)
	}
	return q.postSend(wrs)
}

func (q *QP) postSend(wrs []ib.SendWR) (int, error) {
	q.sendMu.Lock()
	if q.dead.Load() {
		q.sendMu.Unlock()
		return 0, errorf(ErrClosed, "post send to QP %v: it is closed", q.Num())
	}
	var n int
	var err error
	if readsInline(wrs) {
		regs := &q.pd.dev.regions
		regs.mu.RLock()
		n, err = q.qp.Post(wrs, q.pd.inline)
		regs.mu.RUnlock()
	} else {
		n, err = q.qp.Post(wrs, nil)
	}
	q.sendMu.Unlock()
	if n > 0 {
		q.shard.drv.Kick()
	}
	return n, err
}

// readsInline reports whether posting reads registered memory.
func readsInline(wrs []ib.SendWR) bool {
	for i := range wrs {
		if wrs[i].Flags&ib.Inline != 0 && len(wrs[i].SGL) > 0 {
			return true
		}
	}
	return false
}

// PostRecv posts one receive, on UD with 40 bytes more than the message: see
// [ib.RecvWR]. It is copied, with its list; the memory that the list names belongs to the device until the receive completes. The errors are
// those of PostSend.
func (q *QP) PostRecv(wr ib.RecvWR) error {
	one := [1]ib.RecvWR{wr}
	_, err := q.PostRecvBatch(one[:])
	return err
}

// PostRecvBatch posts receives in order and returns how many were accepted:
// all, unless there is an error, which is about the first that was not.
func (q *QP) PostRecvBatch(wrs []ib.RecvWR) (int, error) {
	if f := q.pd.dev.faults; f != nil && f.Asks(faultplan.PostRecv) {
		return q.recvFaulty(wrs)
	}
	return q.postRecv(wrs)
}

func (q *QP) postRecv(wrs []ib.RecvWR) (int, error) {
	q.recvMu.Lock()
	if q.dead.Load() {
		q.recvMu.Unlock()
		return 0, errorf(ErrClosed, "post receive to QP %v: it is closed", q.Num())
	}
	n, err := q.qp.PostRecv(wrs)
	q.recvMu.Unlock()
	if n > 0 && q.qp.State() == ib.Error {
		// Nothing leaves because of a receive; but here it wants to be flushed.
		q.shard.drv.Kick()
	}
	return n, err
}

// Close destroys the queue pair. Requests that are posted and not completed
// vanish without completions; move the queue pair to Error and poll first to
// see them flushed. Completions that are queued stay in their queues.
func (q *QP) Close() error {
	d := q.pd.dev
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	did, err := d.release(q, &q.dead, func(now clock.Time) error {
		q.shard.adapter.Advance(now) // no doorbell of this queue pair is left
		return q.shard.adapter.DestroyQP(now, q.qp)
	})
	if did {
		d.faults.closed(q)
	}
	if did && q.peerAH != nil {
		err = q.peerAH.Close()
	}
	return err
}

// keep makes an address handle, which may be nil, end with the queue pair. It
// returns false if that has ended already.
func (q *QP) keep(h *AH) bool {
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	if q.dead.Load() {
		return false
	}
	if h != nil {
		if q.peerAH != nil {
			_ = q.peerAH.Close() // of an earlier connection
		}
		q.peerAH = h
	}
	return true
}

func (q *QP) kill() { q.dead.Store(true) }
