package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
)

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	PD     mem.PD // against which its receives are checked, whatever the domain of the queue pair
	MaxWR  int    // receives that may wait; 0 takes the default
	MaxSGE int    // elements of a receive; 0 takes the default
}

// SRQ is a receive queue that queue pairs share (IBA vol.1 10.2.9). PostRecv
// belongs to one goroutine at a time, which need not be the adapter's owner;
// the rest to the owner.
type SRQ struct {
	num   uint32
	queue transport.SharedQueue
	of    *common
	a     *Adapter   // who uses it at present
	lock  mem.Locker // where queue pairs of several shards receive from it; else nil
	by    uint64     // the shards of its queue pairs so far: bits
	pd    mem.PD
	users int // queue pairs
	gone  bool
}

// CreateSRQ makes a shared receive queue. It matches ErrInvalid for sizes out of
// range, ErrLimit when there are too many. Owner.
func (a *Adapter) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	refs, err := a.pd("create SRQ", cfg.PD)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name      string
		v         *int
		def, most int
	}{
		{"max_wr", &cfg.MaxWR, defaultRecvWR, a.limits.MaxSRQWR},
		{"max_sge", &cfg.MaxSGE, defaultRecvSGE, a.limits.MaxSGE},
	} {
		if *c.v == 0 {
			*c.v = min(c.def, c.most)
		}
		if *c.v < 0 || *c.v > c.most {
			return nil, fmt.Errorf("create SRQ: %s is %d, can be up to %d: %w", c.name, *c.v, c.most, ErrInvalid)
		}
	}
	if len(a.srqs) >= a.limits.MaxSRQ {
		return nil, fmt.Errorf("create SRQ: there are %d of %d: %w", len(a.srqs), a.limits.MaxSRQ, ErrLimit)
	}
	a.srqNum++
	s := &SRQ{num: a.srqNum, of: a.common, a: a, pd: cfg.PD}
	s.queue.Init(cfg.PD, cfg.MaxWR, cfg.MaxSGE, func() {
		s.a.events.push(ib.Event{Type: ib.EventSRQLimitReached, Element: s.num})
	})
	s.queue.User = s
	a.srqs[s] = struct{}{}
	refs.srqs++
	return s, nil
}

// ModifySRQ changes the attributes that the mask names: the greatest number of
// receives, which cannot be below the number that wait, and the limit, 0 for
// none. The limit raises one event when fewer receives wait than it says; where
// that is so already, at once. A refused call changes nothing. Owner; while the
// size changes nobody may post.
func (a *Adapter) ModifySRQ(s *SRQ, attr *ib.SRQAttr) error {
	if err := a.ownedSRQ("modify", s); err != nil {
		return err
	}
	fail := func(name string, v int, why string, args ...any) error {
		return fmt.Errorf("modify SRQ %d: %s is %d, %s: %w", s.num, name, v, fmt.Sprintf(why, args...), ErrInvalid)
	}
	if bad := attr.Mask &^ (ib.SRQMaxWR | ib.SRQLimit); bad != 0 {
		return fail("attribute mask", int(attr.Mask), "bits 0x%x name no attribute", uint32(bad))
	}
	depth := s.queue.Depth()
	if attr.Mask&ib.SRQMaxWR != 0 {
		depth = attr.MaxWR
		if depth < 1 || depth > a.limits.MaxSRQWR {
			return fail("max_wr", depth, "can be 1 to %d", a.limits.MaxSRQWR)
		}
		if n := s.queue.Posted(); depth < n {
			return fail("max_wr", depth, "and %d receives wait; it can be %d to %d", n, n, a.limits.MaxSRQWR)
		}
	}
	if attr.Mask&ib.SRQLimit != 0 && (attr.Limit < 0 || attr.Limit > depth) {
		return fail("srq_limit", attr.Limit, "can be 0 to %d, the receives that the queue holds", depth)
	}
	if attr.Mask&ib.SRQMaxWR != 0 {
		s.queue.Resize(depth)
	}
	if attr.Mask&ib.SRQLimit != 0 {
		s.queue.Arm(attr.Limit)
	}
	return nil
}

// QuerySRQ returns the attributes. Limit is 0 after its event. Owner.
func (a *Adapter) QuerySRQ(s *SRQ) ib.SRQAttr {
	return ib.SRQAttr{
		Mask: ib.SRQMaxWR | ib.SRQLimit, MaxWR: s.queue.Depth(), MaxSGE: s.queue.MaxSGE(), Limit: s.queue.Limit(),
	}
}

// DestroySRQ removes a shared receive queue; receives that wait vanish. While
// queue pairs use it, it is refused with ErrBusy. Owner.
func (a *Adapter) DestroySRQ(s *SRQ) error {
	if err := a.ownedSRQ("destroy", s); err != nil {
		return err
	}
	if s.users > 0 {
		return fmt.Errorf("destroy SRQ %d: %d queue pairs receive from it; destroy those first: %w", s.num, s.users, ErrBusy)
	}
	s.gone = true
	delete(a.srqs, s)
	a.pds[s.pd].srqs--
	return nil
}

func (a *Adapter) ownedSRQ(what string, s *SRQ) error {
	if s == nil || s.of != a.common || s.gone {
		return fmt.Errorf("%s SRQ: it does not exist: %w", what, ErrInvalid)
	}
	return nil
}

// Number returns the number by which events name the queue.
func (s *SRQ) Number() uint32 { return s.num }

// MaxSGE returns the most elements of a receive.
func (s *SRQ) MaxSGE() int { return s.queue.MaxSGE() }

// PostRecv adds receives, like [QP.PostRecv], whatever the states of the queue
// pairs. Poster.
func (s *SRQ) PostRecv(wrs []ib.RecvWR) (n int, err error) {
	free := s.queue.Free()
	for n < len(wrs) {
		w := &wrs[n]
		if n == free {
			err = s.refuse(n, "queue depth", fmt.Sprintf("%d, all in use", s.queue.Depth()), "", ErrQueueFull)
			break
		}
		if len(w.SGL) > s.queue.MaxSGE() {
			err = s.refuse(n, "number of elements", fmt.Sprint(len(w.SGL)), fmt.Sprintf("up to %d", s.queue.MaxSGE()), ErrInvalid)
			break
		}
		slot := s.queue.Slot(n)
		slot.ID = w.ID
		slot.SGL = append(slot.SGL, w.SGL...)
		n++
	}
	if n > 0 {
		s.queue.Publish(n)
	}
	return n, err
}

func (s *SRQ) refuse(i int, attr, value, limit string, err error) error {
	return &PostError{SRQ: s.num, Recv: true, Index: i, Attr: attr, Value: value, Limit: limit, Err: err}
}
