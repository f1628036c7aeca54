package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// A device may consist of several adapters, its shards: each has a link, an
// owner and queue pairs of its own, and the number of a queue pair, modulo the
// number of shards, says whose it is. Objects that all queue pairs may name are
// in one place, common.
//
// What one shard's owner may do at any time: all that has to do with packets,
// doorbells and timers, and ModifyQP and QueryQP of its own queue pairs, Stats and
// Event. All other control calls change what the owners of other
// shards read: they belong to somebody who is the owner of all shards at once, and
// may be made on any of them, but for CreateQP, which is made on the shard that the
// queue pair is to be of, and ModifyQP, DestroyQP, AttachMcast and DetachMcast,
// which are made on its own.
//
// Where a completion queue is used by queue pairs of several shards, or a shared
// receive queue, their owners meet there at the same time: it gets a lock (IBA
// knows no order between completions of different queue pairs).

// MaxShards is the most shards that a device can have.
const MaxShards = 64

// common is what the shards of one device share.
type common struct {
	shards []*Adapter
	qpn    qpnAllocator
	nqp    int
	pds    map[mem.PD]*pdRefs
	pdNum  mem.PD
	cqs    []*CQ
	cqNum  uint32
	srqs   map[*SRQ]struct{}
	srqNum uint32
	ahs    ahTable
	mrs    map[*mem.Region]struct{}
	mws    map[*mem.Window]struct{}
}

// pdRefs counts what a protection domain still holds.
type pdRefs struct{ qps, mrs, ahs, srqs, mws int }

func newCommon(a *Adapter) *common {
	c := &common{
		shards: []*Adapter{a},
		pds:    make(map[mem.PD]*pdRefs),
		mrs:    make(map[*mem.Region]struct{}),
		mws:    make(map[*mem.Window]struct{}),
		srqs:   make(map[*SRQ]struct{}),
	}
	c.qpn.init(a.cfg.Rand)
	return c
}

// NewShard makes another shard of the device, before the device has any object.
// The configuration is that of the first, which has NewLock, but for its link:
// wire, path, join, leave and wake are as in [Config]. It matches ErrInvalid. Owner
// of all shards.
func (a *Adapter) NewShard(cfg *Config) (*Adapter, error) {
	n := len(a.shards)
	fail := func(why string, args ...any) (*Adapter, error) {
		return nil, fmt.Errorf("adapter %q: shard %d: %s: %w", a.cfg.Name, n, fmt.Sprintf(why, args...), ErrInvalid)
	}
	first := a.shards[0]
	switch {
	case first.cfg.NewLock == nil:
		return fail("no way to make locks")
	case n == MaxShards:
		return fail("there can be %d", MaxShards)
	case a.nqp+len(a.cqs)+len(a.pds) > 0:
		return fail("the device has objects already")
	case cfg.Wire.Encap != first.cfg.Wire.Encap || cfg.Wire.MTU != first.cfg.Wire.MTU:
		return fail("its link carries frames of %d bytes, that of shard 0 %d", cfg.Wire.MTU, first.cfg.Wire.MTU)
	}
	c := first.cfg
	c.Wire, c.Path, c.Join, c.Leave, c.Wake, c.Scratch = cfg.Wire, cfg.Path, cfg.Join, cfg.Leave, cfg.Wake, nil
	s := newShard(c, first.limits, first.mtu)
	s.common = a.common
	s.mem = first.mem.Share(first.cfg.NewLock())
	s.shard = uint32(n)
	a.shards = append(a.shards, s)
	for _, o := range a.shards {
		if o.alarm == nil {
			o.alarm = &QP{a: o, flags: qpGone}
		}
	}
	return s, nil
}

// Shard returns which shard of its device the adapter is, from 0.
func (a *Adapter) Shard() int { return int(a.shard) }

// QPs returns how many queue pairs the shard has. Owner.
func (a *Adapter) QPs() int { return a.qps.len() }

// ShardOf returns to which of n shards a queue pair number belongs: packets for
// QP 0 and QP 1 and for multicast groups go to the first.
func ShardOf(qpn ib.QPN, n int) int {
	if qpn <= ib.QPGSI || qpn == ib.QPMulticast {
		return 0
	}
	return int(uint32(qpn) % uint32(n))
}

// Shard returns the shard that the queue pair belongs to.
func (q *QP) Shard() int { return int(q.a.shard) }

// join makes the completion queue one of q's. Owner of all shards.
func (c *CQ) join(q *QP) {
	c.users++
	c.by |= 1 << q.a.shard
	if c.lock == nil && c.by&(c.by-1) != 0 {
		c.lock = q.a.shards[0].cfg.NewLock()
	}
}

// Shards returns in which shards queue pairs have completed here so far, as a
// bit mask.
func (c *CQ) Shards() uint64 { return c.by }

// join makes q one that receives from the queue. Owner of all shards.
func (s *SRQ) join(q *QP) {
	s.users++
	s.by |= 1 << q.a.shard
	if s.lock == nil {
		s.a = q.a
	}
	if s.lock == nil && s.by&(s.by-1) != 0 {
		s.lock = q.a.shards[0].cfg.NewLock()
	}
}

// receive gives a packet to the engine of a queue pair, alone with the shared
// receive queue that it may take a receive from.
func (q *QP) receive(now clock.Time, p *wire.Packet, in *transport.In) {
	s := q.SRQ()
	if s == nil || s.lock == nil {
		q.eng.Receive(now, p, in)
		return
	}
	s.lock.Lock()
	s.a = q.a // whose event it is if the limit is reached
	q.eng.Receive(now, p, in)
	s.lock.Unlock()
}

// sound tells the other shards that a completion queue of theirs has
// overflowed.
func (a *Adapter) sound(c *CQ) {
	for i, o := range a.shards {
		if o != a && c.by>>i&1 != 0 {
			o.bell.ring(o.alarm)
			if o.cfg.Wake != nil {
				o.cfg.Wake()
			}
		}
	}
}

// alarmed looks for queue pairs whose completion queue another shard has found
// to overflow.
func (a *Adapter) alarmed(now clock.Time) {
	for _, c := range a.qps.broken() {
		a.failUsers(now, c)
	}
}
