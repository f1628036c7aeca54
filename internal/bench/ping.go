package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
)

// trips collects round-trip times of one slot.
type trips struct {
	ns  []uint32
	end time.Time
	was time.Time
	cpu time.Duration
	t0  time.Time
}

const maxTrips = 1 << 19

// start begins a slot; the first round trips, which wake things up, are not
// counted.
func (t *trips) start(d time.Duration) {
	if t.ns == nil {
		t.ns = make([]uint32, 0, maxTrips)
	}
	t.ns = t.ns[:0]
	t.t0 = time.Now()
	t.was, t.end, t.cpu = t.t0, t.t0.Add(d), processCPU()
}

// back notes that an answer has come, and reports whether the slot goes on.
func (t *trips) back() bool {
	now := time.Now()
	if len(t.ns) < cap(t.ns) {
		t.ns = append(t.ns, uint32(now.Sub(t.was)))
	}
	t.was = now
	return now.Before(t.end)
}

// late reports whether an answer is overdue by far.
func (t *trips) late() bool { return time.Since(t.was) > patience/2 }

var errLate = errors.New("no answer comes any more")

func (t *trips) sample(size int) Sample {
	s := Sample{Messages: uint64(len(t.ns)), Seconds: t.was.Sub(t.t0).Seconds(), CPU: (processCPU() - t.cpu).Seconds()}
	s.Bytes = s.Messages * uint64(size)
	ns := t.ns
	if len(ns) > 200 {
		ns = ns[100:]
	}
	if len(ns) == 0 {
		return s
	}
	ns = slices.Clone(ns)
	slices.Sort(ns)
	s.P50, s.P99 = float64(ns[len(ns)/2])/1e3, float64(ns[len(ns)*99/100])/1e3
	return s
}

// ping sends messages there and back: WRITEs that both ends find by polling
// memory, or SENDs that they find by their completions.
type ping struct {
	host
	trips
	n uint64 // round trips so far, as both ends count them
}

const (
	pingOut   = 0
	pingIn    = 4096
	pingRecvs = 16
	pingSends = 64
	pingEvery = 16 // one of so many is signaled
)

func newPing(c *child, s *Spec) *ping { return &ping{host: newHost(c, s)} }

func (p *ping) prepare() (Offer, error) { return p.open(1, pingSends, pingRecvs) }

func (p *ping) join(peer Offer) error {
	if err := p.host.join(peer); err != nil || p.spec.Op == "write" {
		return err
	}
	for range pingRecvs {
		if err := p.postRecv(); err != nil {
			return err
		}
	}
	return nil
}

func (p *ping) postRecv() error {
	return p.qps[0].PostRecv(ib.RecvWR{SGL: p.mr.SGE(pingIn, p.spec.Size)})
}

// put sends message n.
func (p *ping) put(n uint64) error {
	wr := ib.SendWR{Op: opOf(p.spec.Op), SGL: p.mr.SGE(pingOut, p.spec.Size), Remote: p.remote(pingIn)}
	if n%pingEvery == 0 {
		wr.Flags = ib.Signaled
	}
	binary.NativeEndian.PutUint64(p.mem.Bytes()[pingOut+p.spec.Size-8:], n)
	return p.qps[0].PostSend(wr)
}

// word is what a WRITE changes last, atomically.
func (p *ping) word() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&p.mem.Bytes()[pingIn+p.spec.Size-8]))
}

// awaitWrite polls memory for message n. It reports false when h says stop.
func (p *ping) awaitWrite(n uint64, h *halt) (bool, error) {
	w := p.word()
	for spins := 1; w.Load() != n; spins++ {
		p.dev.Progress()
		if h != nil && h.stop.Load() {
			return false, nil
		}
		if h == nil && spins%(1<<16) == 0 && p.late() {
			return false, errLate
		}
	}
	if n%pingEvery == pingEvery-1 {
		k := p.cq.Poll(p.wcs[:])
		return true, check(p.wcs[:k])
	}
	return true, nil
}

// awaitSend takes completions until a receive is among them.
func (p *ping) awaitSend(h *halt) (bool, error) {
	ctx := context.Background()
	if h != nil {
		ctx = h.ctx
	}
	for spins := 1; ; spins++ {
		var k int
		var err error
		if p.spec.Blocking {
			if k, err = p.cq.Wait(ctx, p.wcs[:]); err != nil {
				if h != nil && h.stop.Load() {
					return false, nil
				}
				return false, err
			}
		} else if k = p.cq.Poll(p.wcs[:]); k == 0 {
			if h != nil && h.stop.Load() {
				return false, nil
			}
			if h == nil && spins%(1<<16) == 0 && p.late() {
				return false, errLate
			}
			continue
		}
		if err := check(p.wcs[:k]); err != nil {
			return false, err
		}
		for i := range k {
			if p.wcs[i].Op == ib.WCRecv {
				return true, p.postRecv()
			}
		}
	}
}

func (p *ping) await(n uint64, h *halt) (bool, error) {
	if p.spec.Op == "write" {
		return p.awaitWrite(n, h)
	}
	return p.awaitSend(h)
}

func (p *ping) slot(d time.Duration) (Sample, error) {
	before := p.resent()
	p.start(d)
	for {
		p.n++
		if err := p.put(p.n); err != nil {
			return Sample{}, err
		}
		if _, err := p.await(p.n, nil); err != nil {
			return Sample{}, err
		}
		if !p.back() {
			break
		}
	}
	s := p.sample(p.spec.Size)
	s.Resent = p.resent() - before
	return s, nil
}

func (p *ping) serve(h *halt) error {
	for {
		ok, err := p.await(p.n+1, h)
		if !ok || err != nil {
			return err
		}
		p.n++
		if err := p.put(p.n); err != nil {
			return err
		}
	}
}
