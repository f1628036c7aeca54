package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
)

// result is one line of the table.
type result struct {
	name     string
	bytes    uint64
	messages uint64
	elapsed  time.Duration
	cpu      time.Duration // of the whole process: both ends
	syscalls uint64
	copied   uint64 // payload bytes copied by the adapters; 0 where they cannot be counted
	median   time.Duration
	p99      time.Duration
}

// traffic runs f while the far end's goroutine only makes its device progress,
// as a one-sided operation leaves it.
func (d *duo) traffic(ctx context.Context, name string, far func(stop *atomic.Bool) error, f func() (uint64, uint64, error)) (result, error) {
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() { done <- far(&stop) }()
	before := d.usage()
	bytes, messages, err := f()
	after := d.usage()
	stop.Store(true)
	if farErr := <-done; err == nil {
		err = farErr
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", name, err)
	}
	return result{
		name: name, bytes: bytes, messages: messages,
		elapsed: after.wall.Sub(before.wall), cpu: after.cpu - before.cpu,
		syscalls: after.syscalls - before.syscalls, copied: after.copied - before.copied,
	}, nil
}

type usage struct {
	wall     time.Time
	cpu      time.Duration
	syscalls uint64
	copied   uint64
}

func (d *duo) usage() usage {
	u := usage{wall: time.Now(), cpu: processCPU()}
	for _, e := range []*end{d.a, d.b} {
		c := e.dev.LinkCounters()
		u.syscalls += c.SendCalls + c.RecvCalls + c.WaitCalls
		s := e.dev.Stats()
		u.copied += s.Get("tx_copied_bytes") + s.Get("rx_copied_bytes")
	}
	return u
}

// progress is the far end of a one-sided operation.
func (e *end) progress(stop *atomic.Bool) error {
	for !stop.Load() {
		e.dev.Progress()
	}
	return nil
}

// bandwidth keeps depth work requests of size bytes in flight for the duration.
// post fills in the operation; the far end does what far says.
func (d *duo) bandwidth(ctx context.Context, name string, size int, dur time.Duration, op ib.WROp) (result, error) {
	const depth = 32
	a := d.a
	far := d.b.progress
	if op.IsSend() {
		far = func(stop *atomic.Bool) error { return d.b.receive(size, stop) }
	}
	return d.traffic(ctx, name, far, func() (uint64, uint64, error) {
		var posted, done uint64
		end := time.Now().Add(dur)
		slots := regionBytes / size
		stopping := false
		for !stopping || done < posted {
			for !stopping && posted-done < depth {
				off := int(posted%uint64(slots)) * size
				wr := ib.SendWR{ID: posted, Op: op, Flags: ib.Signaled, SGL: a.mr.SGE(off, size), Remote: a.peer.Remote(off)}
				if op.IsAtomic() {
					wr.SwapAdd = 1
					wr.Remote = a.peer.Remote(0)
				}
				if err := a.qp.PostSend(wr); err != nil {
					return 0, 0, err
				}
				posted++
			}
			n := a.cq.Poll(a.wcs[:])
			if err := check(a.wcs[:n]); err != nil {
				return 0, 0, err
			}
			done += uint64(n)
			if n > 0 && !stopping {
				stopping = time.Now().After(end) || ctx.Err() != nil
			}
		}
		return done * uint64(size), done, nil
	})
}

// receive keeps the receive queue full.
func (e *end) receive(size int, stop *atomic.Bool) error {
	slots := regionBytes / size
	post := func(i int) error {
		return e.qp.PostRecv(ib.RecvWR{ID: uint64(i), SGL: e.mr.SGE(i%slots*size, size)})
	}
	for i := range recvDepth {
		if err := post(i); err != nil {
			return err
		}
	}
	for !stop.Load() {
		n := e.cq.Poll(e.wcs[:])
		if err := check(e.wcs[:n]); err != nil {
			return err
		}
		for i := range n {
			if err := post(int(e.wcs[i].ID)); err != nil {
				return err
			}
		}
	}
	return nil
}

// flagAt returns the word that a pinging WRITE changes last. The adapter stores
// it atomically, so it is read atomically.
func (e *end) flagAt(off int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&e.mem.Bytes()[off]))
}

const (
	pingSize = 64
	outOff   = 0    // where a ping is written from
	inOff    = 4096 // where it arrives
)

// roundTrips measures one WRITE, READ or ATOMIC after the other. WRITE goes
// there and back; the others are a round trip by themselves.
func (d *duo) roundTrips(ctx context.Context, name string, op ib.WROp, dur time.Duration) (result, error) {
	s := newSamples()
	far := d.b.progress
	one := func(uint64) error { return d.a.roundTrip(op, inOff) }
	if op.IsWrite() {
		far = d.b.echoWrites
		one = func(i uint64) error { return d.a.ping(ctx, i+1) }
	}
	r, err := d.traffic(ctx, name, far, func() (uint64, uint64, error) { return s.run(ctx, dur, one) })
	r.median, r.p99 = s.percentile(50), s.percentile(99)
	return r, err
}

// ping writes n to the peer and waits until the peer has written it back.
func (e *end) ping(ctx context.Context, n uint64) error {
	if err := e.writeFlag(n); err != nil {
		return err
	}
	for in := e.flagAt(inOff + pingSize - 8); in.Load() != n; {
		e.dev.Progress()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return e.reap()
}

func (e *end) writeFlag(n uint64) error {
	binary.NativeEndian.PutUint64(e.mem.Bytes()[outOff+pingSize-8:], n)
	return e.qp.PostSend(ib.SendWR{
		Op: ib.Write, Flags: ib.Signaled, SGL: e.mr.SGE(outOff, pingSize), Remote: e.peer.Remote(inOff),
	})
}

// reap takes the completions that are there.
func (e *end) reap() error {
	n := e.cq.Poll(e.wcs[:])
	return check(e.wcs[:n])
}

func (e *end) echoWrites(stop *atomic.Bool) error {
	in, next := e.flagAt(inOff+pingSize-8), uint64(1)
	for !stop.Load() {
		e.dev.Progress()
		if in.Load() != next {
			continue
		}
		if err := e.writeFlag(next); err != nil {
			return err
		}
		if err := e.reap(); err != nil {
			return err
		}
		next++
	}
	return nil
}

// roundTrip posts one READ or ATOMIC at offset remote and polls for its
// completion.
func (e *end) roundTrip(op ib.WROp, remote int) error {
	size := pingSize
	if op.IsAtomic() {
		size = 8
	}
	err := e.qp.PostSend(ib.SendWR{Op: op, Flags: ib.Signaled, SGL: e.mr.SGE(outOff, size), Remote: e.peer.Remote(remote), SwapAdd: 1})
	if err != nil {
		return err
	}
	for {
		if n := e.cq.Poll(e.wcs[:]); n > 0 {
			return check(e.wcs[:n])
		}
	}
}

// sendRoundTrips is a ping-pong of SENDs. Both ends poll their completion
// queue, or, with block, sleep until there is a completion.
func (d *duo) sendRoundTrips(ctx context.Context, name string, dur time.Duration, block bool) (result, error) {
	s := newSamples()
	postRecv := func(e *end) error { return e.qp.PostRecv(ib.RecvWR{SGL: e.mr.SGE(inOff, pingSize)}) }
	send := func(e *end) error {
		return e.qp.PostSend(ib.SendWR{ID: 1, Op: ib.Send, Flags: ib.Signaled, SGL: e.mr.SGE(outOff, pingSize)})
	}
	next := func(ctx context.Context, e *end) (int, error) {
		if block {
			return e.cq.Wait(ctx, e.wcs[:])
		}
		return e.cq.Poll(e.wcs[:]), nil
	}
	// received returns when a receive has completed, or with the error of ctx.
	received := func(ctx context.Context, e *end) error {
		for ctx.Err() == nil {
			n, err := next(ctx, e)
			if err == nil {
				err = check(e.wcs[:n])
			}
			if err != nil {
				return err
			}
			for i := range n {
				if e.wcs[i].Op == ib.WCRecv {
					return postRecv(e)
				}
			}
		}
		return ctx.Err()
	}
	for _, e := range []*end{d.a, d.b} {
		for range 4 {
			if err := postRecv(e); err != nil {
				return result{}, err
			}
		}
	}
	farCtx, stop := context.WithCancel(ctx)
	defer stop()
	far := func(*atomic.Bool) error {
		for {
			if err := received(farCtx, d.b); errors.Is(err, context.Canceled) && ctx.Err() == nil {
				return nil // no more to echo
			} else if err != nil {
				return err
			}
			if err := send(d.b); err != nil {
				return err
			}
		}
	}
	r, err := d.traffic(ctx, name, far, func() (uint64, uint64, error) {
		defer stop()
		return s.run(ctx, dur, func(uint64) error {
			if err := send(d.a); err != nil {
				return err
			}
			return received(ctx, d.a)
		})
	})
	r.median, r.p99 = s.percentile(50), s.percentile(99)
	return r, err
}
