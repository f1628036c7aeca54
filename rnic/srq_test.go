package rnic

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// srqPair is a pair whose receiving end has several queue pairs on one shared
// receive queue of another protection domain.
type srqPair struct {
	*pair
	srq  *SRQ
	from []*QP // at a
	to   []*QP // at b
	base uint64
	buf  []byte
	key  ib.LKey
}

// short runs make messages of several queue pairs arrive in turns.
func short(c *Config) { c.Wire.Segments = 2 }

func newSRQPair(t *testing.T, typ ib.QPType, qps int, mode cableMode) *srqPair {
	t.Helper()
	p := &srqPair{pair: newPair(t, typ, mode, ib.MTU256, 1<<16, short), base: 1 << 30, buf: make([]byte, 1<<16)}
	pd, err := p.b.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.b.RegisterMR(pd, p.buf, p.base, ib.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	p.key = r.LKey
	if p.srq, err = p.b.CreateSRQ(SRQConfig{PD: pd, MaxWR: 16, MaxSGE: 2}); err != nil {
		t.Fatal(err)
	}
	for range qps {
		qa := p.a.qp(typ, nil)
		qb := p.b.qp(typ, func(c *QPConfig) { c.SRQ = p.srq })
		p.a.connect(qa, ib.GIDFromAddr(addrB), 0, qb.qpn, ib.MTU256)
		p.b.connect(qb, ib.GIDFromAddr(addrA), 0, qa.qpn, ib.MTU256)
		p.from, p.to = append(p.from, qa), append(p.to, qb)
	}
	return p
}

// post adds receives of 4 KiB; receive id lies at 4 KiB · id.
func (p *srqPair) postRecv(ids ...int) {
	p.t.Helper()
	for _, id := range ids {
		sge := ib.SGE{Addr: p.base + uint64(id)<<12, Length: 4096, LKey: p.key}
		if _, err := p.srq.PostRecv([]ib.RecvWR{{ID: uint64(id), SGL: []ib.SGE{sge}}}); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *srqPair) sendFrom(i, n int) {
	p.t.Helper()
	wr := ib.SendWR{ID: uint64(i), Op: ib.Send, Flags: ib.Signaled, SGL: p.sgl(i<<12, n)}
	if _, err := p.from[i].Post([]ib.SendWR{wr}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// Messages of several packets that arrive in turns keep the receives that they
// have begun with, and each ends in one of its own.
func TestSharedReceivesOfInterleavedMessages(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		for _, mode := range []cableMode{asRuns, asPackets} {
			t.Run(fmt.Sprint(typ, mode), func(t *testing.T) {
				p := newSRQPair(t, typ, 3, mode)
				for i := range p.bufA {
					p.bufA[i] = byte(i>>12)*31 + byte(i)
				}
				p.postRecv(0, 1, 2, 3, 4, 5)
				sizes := []int{4096, 700, 2000}
				for round := range 2 {
					for i, n := range sizes {
						p.sendFrom(i, n-round)
					}
					p.settleAll()
				}
				got := map[ib.QPN]int{}
				seen := map[uint64]bool{}
				for _, wc := range p.b.poll() {
					i := slices.IndexFunc(p.to, func(q *QP) bool { return q.qpn == wc.QPN })
					if wc.Status != ib.Success || i < 0 || seen[wc.ID] || int(wc.Bytes) != sizes[i]-got[wc.QPN] {
						t.Fatalf("completion %+v", wc)
					}
					got[wc.QPN]++
					seen[wc.ID] = true
					if at := int(wc.ID) << 12; !bytes.Equal(p.buf[at:at+int(wc.Bytes)], p.bufA[i<<12:i<<12+int(wc.Bytes)]) {
						t.Errorf("receive %d holds other bytes", wc.ID)
					}
				}
				if len(seen) != 6 || p.srq.queue.Posted() != 0 {
					t.Errorf("%d receives, %d left", len(seen), p.srq.queue.Posted())
				}
			})
		}
	}
}

// An empty shared queue is an RNR NAK on RC, and no credits are advertised.
func TestEmptySharedQueueIsNotReady(t *testing.T) {
	p := newSRQPair(t, ib.RC, 1, asRuns)
	p.sendFrom(0, 300)
	p.cable.settle()
	if n := p.b.Stats().Get("send_rnr_err"); n != 1 || len(p.b.poll()) != 0 {
		t.Fatalf("%d RNR NAKs", n)
	}
	p.postRecv(3)
	p.now = p.a.Deadline()
	p.settleAll()
	if wcs := p.b.poll(); len(wcs) != 1 || wcs[0].ID != 3 || wcs[0].Bytes != 300 {
		t.Errorf("%+v", wcs)
	}
}

func (h *host) eventTypes() (types []ib.EventType) {
	for ev, ok := h.Event(); ok; ev, ok = h.Event() {
		types = append(types, ev.Type)
	}
	return types
}

// The limit raises one event when the receives that wait fall below it, and
// again only when it is armed again.
func TestSRQLimit(t *testing.T) {
	p := newSRQPair(t, ib.RC, 2, asRuns)
	p.postRecv(0, 1, 2, 3)
	arm := func(n int) {
		t.Helper()
		if err := p.b.ModifySRQ(p.srq, &ib.SRQAttr{Mask: ib.SRQLimit, Limit: n}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(limit int, types ...ib.EventType) {
		t.Helper()
		if got := p.b.eventTypes(); !slices.Equal(got, types) || p.b.QuerySRQ(p.srq).Limit != limit {
			t.Errorf("events %v, limit %d; want %v, %d", got, p.b.QuerySRQ(p.srq).Limit, types, limit)
		}
	}
	arm(3)
	want(3)
	p.sendFrom(0, 10)
	p.settleAll()
	want(3) // three wait: not below
	p.sendFrom(1, 10)
	p.settleAll()
	want(0, ib.EventSRQLimitReached)
	p.sendFrom(1, 10)
	p.settleAll()
	want(0)
	arm(2) // one waits
	want(0, ib.EventSRQLimitReached)
	arm(1)
	want(1)
	arm(0)
	p.sendFrom(1, 10)
	p.settleAll()
	want(0)
}

// A queue pair that fails flushes the receive that it has begun to fill, and
// none that others may take; then it says that nothing more comes.
func TestErrorOnASharedQueue(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		p := newSRQPair(t, typ, 2, asPackets)
		p.postRecv(0, 1)
		p.b.eventTypes()
		p.sendFrom(0, 1000)
		p.a.Advance(0)
		p.run.Reset()
		if !p.a.Egress(0, &p.run) {
			t.Fatal("nothing sent")
		}
		p.run.N, p.run.Segs = p.run.Seg, 1
		p.deliver(0, &p.run) // the first packet alone
		p.b.modify(p.to[0], ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
		wantWC(t, p.b.poll(), ib.WC{ID: 0, Status: ib.WRFlushErr, Op: ib.WCRecv, QPN: p.to[0].qpn})
		p.b.modify(p.to[0], ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
		if got := p.b.eventTypes(); !slices.Equal(got, []ib.EventType{ib.EventQPLastWQEReached}) {
			t.Errorf("%v: %v", typ, got)
		}
		p.sendFrom(1, 1000)
		p.settleAll()
		wcs := p.b.poll()
		if len(wcs) != 1 || wcs[0].ID != 1 || wcs[0].Status != ib.Success || wcs[0].QPN != p.to[1].qpn {
			t.Errorf("%v: %+v", typ, wcs)
		}
	}
}

func TestSRQSizes(t *testing.T) {
	p := newSRQPair(t, ib.RC, 1, asRuns)
	modify := func(n int) error { return p.b.ModifySRQ(p.srq, &ib.SRQAttr{Mask: ib.SRQMaxWR, MaxWR: n}) }
	for id := range 16 {
		p.postRecv(id)
	}
	if _, err := p.srq.PostRecv(make([]ib.RecvWR, 1)); !errors.Is(err, ErrQueueFull) || err.Error() != "post receive to SRQ 1: work request 0: queue depth is 16, all in use: queue full" {
		t.Error(err)
	}
	for _, n := range []int{-1, 0, 15, p.b.limits.MaxSRQWR + 1} {
		if err := modify(n); !errors.Is(err, ErrInvalid) {
			t.Errorf("resize to %d: %v", n, err)
		}
	}
	if err := p.b.ModifySRQ(p.srq, &ib.SRQAttr{Mask: ib.SRQLimit | ib.SRQMaxWR, MaxWR: 20, Limit: 21}); !errors.Is(err, ErrInvalid) || p.b.QuerySRQ(p.srq).MaxWR != 16 {
		t.Errorf("limit beyond the size: %v", err)
	}
	if err := modify(p.b.limits.MaxSRQWR); err != nil {
		t.Error(err)
	}
	if err := modify(17); err != nil {
		t.Error(err)
	}
	p.postRecv(16 - 1)
	if _, err := p.srq.PostRecv([]ib.RecvWR{{SGL: make([]ib.SGE, 3)}}); !errors.Is(err, ErrQueueFull) {
		t.Error(err)
	}
	for i := range 17 {
		p.sendFrom(0, 100+i)
	}
	p.settleAll()
	for i, wc := range p.b.poll() {
		if wc.ID != uint64(min(i, 15)) || wc.Bytes != uint32(100+i) {
			t.Errorf("receive %d: %+v", i, wc)
		}
	}
	if _, err := p.srq.PostRecv([]ib.RecvWR{{SGL: make([]ib.SGE, 3)}}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if _, err := p.to[0].PostRecv(make([]ib.RecvWR, 1)); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if c := p.to[0].Cap(); c.MaxRecvWR != 0 || c.MaxRecvSGE != 0 || p.to[0].SRQ() != p.srq || p.qb.SRQ() != nil {
		t.Errorf("%+v", c)
	}
}

func TestSRQLives(t *testing.T) {
	p := newSRQPair(t, ib.UD, 0, asRuns)
	q := p.b.qp(ib.UD, func(c *QPConfig) { c.SRQ = p.srq })
	if err := p.b.DestroySRQ(p.srq); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if err := p.b.DeallocPD(p.srq.pd); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if err := p.b.DestroyQP(0, q); err != nil {
		t.Fatal(err)
	}
	if err := p.b.DestroySRQ(p.srq); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		p.b.DestroySRQ(p.srq), p.b.DestroySRQ(nil), p.b.ModifySRQ(p.srq, &ib.SRQAttr{}),
		func() error {
			_, err := p.b.CreateQP(0, QPConfig{Type: ib.RC, PD: p.b.pd, SendCQ: p.b.cq, RecvCQ: p.b.cq, SRQ: p.srq})
			return err
		}(),
		func() error { _, err := p.b.CreateSRQ(SRQConfig{PD: 99}); return err }(),
		func() error { _, err := p.b.CreateSRQ(SRQConfig{PD: p.b.pd, MaxSGE: 33}); return err }(),
		func() error { _, err := p.b.CreateSRQ(SRQConfig{PD: p.b.pd, MaxWR: -1}); return err }(),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
}
