package rdmacm_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// Ten thousand connections, made and ended over UDP sockets, eight at a time, leave file descriptors, goroutines and memory as they were.
func TestTenThousandCycles(t *testing.T) {
	const cycles, port = 10_000, 14792
	a, b := newUDPSide(t, "127.0.0.1", port), newUDPSide(t, "127.0.0.2", port)
	l := b.listen(rdmacm.TCP, 7)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	route := a.route(b, 7)
	run := func(n int) {
		const workers = 8
		errs := make(chan error, 2*workers)
		for range workers {
			go func() { errs <- b.serve(ctx, l, n/workers) }()
			go func() { errs <- a.call(ctx, route, n/workers) }()
		}
		for range 2 * workers {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
	run(1000)
	before := take(t, a, b)
	run(cycles)
	after := take(t, a, b)
	t.Logf("before %+v, after %+v", before, after)
	flat(t, before, after)
}

// Requests that are refused, by the listener's program or because nobody
// listens, and lookups of datagrams that are, leave nothing either.
func TestRefusedCyclesStayFlat(t *testing.T) {
	a, b := newUDPSide(t, "127.0.0.1", 14795), newUDPSide(t, "127.0.0.2", 14795)
	l := b.listen(rdmacm.TCP, 7)
	go func() {
		for {
			req, err := l.Next(t.Context())
			if err != nil {
				return
			}
			_ = req.Reject([]byte("no"))
		}
	}()
	ctx := within(t) // for all: what it holds is the test's
	run := func(n int) {
		for i := range n {
			q, err := a.newQP(ib.RC)
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.m.Dial(ctx, a.route(b, 7+uint16(i%2)), q, rdmacm.Options{})
			if !errors.Is(err, rdmacm.ErrRejected) {
				t.Fatal(err)
			}
			if _, err := a.m.Lookup(ctx, a.route(b, 7), rdmacm.Options{}); !errors.Is(err, rdmacm.ErrRefused) {
				t.Fatal(err)
			}
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(200)
	before := take(t, a, b)
	run(1000)
	after := take(t, a, b)
	t.Logf("before %+v, after %+v", before, after)
	flat(t, before, after)
}

// flat compares what a process used before and after.
func flat(t *testing.T, before, after usage) {
	t.Helper()
	if after.fds != before.fds {
		t.Errorf("%d file descriptors before, %d after", before.fds, after.fds)
	}
	if after.goroutines > before.goroutines {
		t.Errorf("%d goroutines before, %d after", before.goroutines, after.goroutines)
	}
	// What a connection would leave is hundreds of bytes; what tables have grown
	// to while their time went on is not given back.
	if grown := int64(after.heap) - int64(before.heap); grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

func newUDPSide(t *testing.T, addr string, port uint16) *side {
	t.Helper()
	s := &side{t: t, addr: netip.MustParseAddr(addr)}
	var err error
	if s.dev, err = verbs.Open(verbs.Config{Addr: s.addr, Port: port}); err != nil {
		t.Fatal(err)
	}
	s.equip()
	return s
}

// call makes n connections and ends each.
func (s *side) call(ctx context.Context, to rdmacm.Route, n int) error {
	for range n {
		q, err := s.newQP(ib.RC)
		if err != nil {
			return err
		}
		c, err := s.m.Dial(ctx, to, q, rdmacm.Options{})
		if err == nil {
			err = c.Disconnect(ctx, nil)
		}
		if err := errors.Join(err, q.Close()); err != nil {
			return err
		}
	}
	return nil
}

// serve accepts n connections, each until it ends.
func (s *side) serve(ctx context.Context, l *rdmacm.Listener, n int) error {
	for range n {
		req, err := l.Next(ctx)
		if err != nil {
			return err
		}
		q, err := s.newQP(ib.RC)
		if err != nil {
			return err
		}
		c, err := req.Accept(ctx, q, rdmacm.Options{})
		if err != nil {
			return err
		}
		<-c.Done()
		if err := q.Close(); err != nil {
			return err
		}
	}
	return nil
}

// usage is what a process uses.
type usage struct {
	fds, goroutines int
	heap            uint64
}

// take waits until all connections are forgotten, and measures.
func take(t *testing.T, sides ...*side) usage {
	t.Helper()
	for _, s := range sides {
		for s.m.Connections() > 0 {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("connections are remembered for ever")
			}
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		need.Missing(t, "no /proc: %v", err)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{len(fds), runtime.NumGoroutine(), m.HeapAlloc}
}
