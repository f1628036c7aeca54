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

// SRQConfig describes a shared receive queue.
type SRQConfig struct {
	MaxWR  int // receives that may wait; 0 takes the default, 512
	MaxSGE int // elements of a receive; 0 takes the default, 1
	Limit  int // see [SRQ.SetLimit]; 0 for none
}

// SRQ is a receive queue that several queue pairs take their receives from.
// Goroutines may post to it at the same time.
//
// Its receives are checked against its own protection domain, whatever the
// queue pair's. A queue pair that goes to Error completes with WR_FLUSH_ERR the
// receive that it has begun to fill, if there is one, and then raises
// [ib.EventQPLastWQEReached]: what waits in the queue stays there for others.
type SRQ struct {
	pd   *PD
	srq  *rnic.SRQ
	dead atomic.Bool
	mu   sync.Mutex // the poster's side
}

// CreateSRQ makes a shared receive queue. The error matches ErrInvalid for sizes
// beyond the device's limits, ErrLimit when there are too many.
func (p *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	if err := p.usable("create SRQ"); err != nil {
		return nil, err
	}
	s := &SRQ{pd: p}
	d := p.dev
	if err := d.faults.control(faultplan.CreateSRQ); err != nil {
		return nil, fmt.Errorf("create SRQ: %w", err)
	}
	err := d.do("create SRQ", func(clock.Time) error {
		q, err := d.adapter.CreateSRQ(rnic.SRQConfig{PD: p.pd, MaxWR: cfg.MaxWR, MaxSGE: cfg.MaxSGE})
		if err == nil && cfg.Limit != 0 {
			if err = d.adapter.ModifySRQ(q, &ib.SRQAttr{Mask: ib.SRQLimit, Limit: cfg.Limit}); err != nil {
				_ = d.adapter.DestroySRQ(q)
			}
		}
		s.srq = q
		return err
	})
	if err != nil {
		return nil, err
	}
	d.adopt(s)
	return s, nil
}

// Number returns the number by which asynchronous events name the queue.
func (s *SRQ) Number() uint32 { return s.srq.Number() }

// MaxSGE returns the most elements of a receive.
func (s *SRQ) MaxSGE() int { return s.srq.MaxSGE() }

// SetLimit arms the limit: [ib.EventSRQLimitReached] is raised once when fewer
// than n receives wait, at once if that is so already. 0 disarms. A receive
// waits until a message takes it, which is its first packet.
func (s *SRQ) SetLimit(n int) error { return s.Modify(ib.SRQAttr{Mask: ib.SRQLimit, Limit: n}) }

// Resize changes how many receives may wait. It is refused with ErrInvalid if
// more do. Nothing that waits is lost, and queue pairs go on meanwhile.
func (s *SRQ) Resize(n int) error { return s.Modify(ib.SRQAttr{Mask: ib.SRQMaxWR, MaxWR: n}) }

// Modify changes the attributes that attr.Mask names. A refused call changes
// nothing.
func (s *SRQ) Modify(attr ib.SRQAttr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return errorf(ErrClosed, "modify SRQ %d: it is closed", s.Number())
	}
	d := s.pd.dev
	return d.do("modify SRQ", func(clock.Time) error { return d.adapter.ModifySRQ(s.srq, &attr) })
}

// Query returns all attributes; after its event the limit is 0. Of a closed
// queue it returns none.
func (s *SRQ) Query() (attr ib.SRQAttr) {
	d := s.pd.dev
	_ = d.do("query SRQ", func(clock.Time) error {
		if !s.dead.Load() {
			attr = d.adapter.QuerySRQ(s.srq)
		}
		return nil
	})
	return attr
}

// PostRecv posts one receive; see [QP.PostRecv]. It is taken whatever the states
// of the queue pairs. It does not allocate.
func (s *SRQ) PostRecv(wr ib.RecvWR) error {
	one := [1]ib.RecvWR{wr}
	_, err := s.PostRecvBatch(one[:])
	return err
}

// PostRecvBatch posts receives in order and returns how many were accepted:
// all, unless there is an error, which is about the first that was not.
func (s *SRQ) PostRecvBatch(wrs []ib.RecvWR) (int, error) {
	if f := s.pd.dev.faults; f != nil && f.Asks(faultplan.PostRecv) {
		return s.postFaulty(wrs)
	}
	return s.postRecv(wrs)
}

func (s *SRQ) postRecv(wrs []ib.RecvWR) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return 0, errorf(ErrClosed, "post receive to SRQ %d: it is closed", s.Number())
	}
	return s.srq.PostRecv(wrs)
}

// Close frees the queue and the receives in it. It matches ErrBusy while a queue
// pair receives from it.
func (s *SRQ) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.pd.dev
	_, err := d.release(s, &s.dead, func(clock.Time) error { return d.adapter.DestroySRQ(s.srq) })
	return err
}

func (s *SRQ) kill() { s.dead.Store(true) }
