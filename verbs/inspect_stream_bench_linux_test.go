package verbs_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// BenchmarkStreamWatched is a stream of WRITEs of a device with 10,000 queue pairs,
// while nobody reads its control socket, and while somebody does: again and again the
// counts only or the lists, and the lists once a second. gap-ms is the longest time between completions: it has
// what the system's scheduler does in it, so compare within one run.
//
//	go test ./verbs -run '^$' -bench StreamWatched -benchtime 2s
func BenchmarkStreamWatched(b *testing.B) {
	const idle = 10000
	x := newEnd(b, open(b, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
	y := newEnd(b, open(b, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
	join(b, x, y)
	pd, cq := x.dev.AllocPD(), newCQ(b, x.dev, verbs.CQConfig{})
	for range idle {
		if _, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1}}); err != nil {
			b.Fatal(err)
		}
	}
	s, err := control.Listen(func(w control.Want) snapshot.Device { return x.dev.Snapshot(w.Resources) })
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		name, request string
		every         time.Duration // 0 for without a pause
	}{
		{"reader=none", "", 0},
		{"reader=counts", `{"version":1}` + "\n", 0},
		{"reader=lists", `{"version":1,"resources":true}` + "\n", 0},
		{"reader=lists once a second", `{"version":1,"resources":true}` + "\n", time.Second},
	} {
		b.Run(c.name, func(b *testing.B) {
			stop, now := make(chan struct{}), make(chan time.Time)
			close(now)
			pause := (<-chan time.Time)(now)
			if c.every > 0 {
				t := time.NewTicker(c.every)
				defer t.Stop()
				pause = t.C
			}
			var reader sync.WaitGroup
			answers := 0
			if c.request != "" {
				reader.Go(func() {
					for ; ; answers++ {
						select {
						case <-stop:
							return
						case <-pause:
						}
						if err := readControl(s.Name(), c.request); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			b.ResetTimer()
			start := time.Now()
			gap := streamWrites(b, x)
			took := time.Since(start)
			b.StopTimer()
			close(stop)
			reader.Wait()
			b.ReportMetric(float64(gap.Microseconds())/1000, "gap-ms")
			b.ReportMetric(float64(answers)/took.Seconds(), "answers/s")
		})
	}
}

// readControl asks a control socket and throws the answer away, as a reader in another
// process would: what it makes of the answer is not this process's.
func readControl(name, request string) error {
	c, err := net.Dial("unix", name)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// streamWrites keeps a queue pair busy and returns the longest time between completions.
func streamWrites(b *testing.B, x *end) (longest time.Duration) {
	const size, depth = 16 << 10, 8
	b.SetBytes(size)
	wcs := make([]ib.WC, depth)
	last := time.Now()
	for posted, done := 0, 0; done < b.N; {
		for ; posted < b.N && posted-done < depth; posted++ {
			if err := x.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: x.mr.SGE(0, size), Remote: x.peer.At(0)}); err != nil {
				b.Fatal(err)
			}
		}
		n := x.cq.Poll(wcs)
		if n == 0 {
			continue
		}
		for _, wc := range wcs[:n] {
			if wc.Status != ib.Success {
				b.Fatalf("%+v", wc)
			}
		}
		done += n
		now := time.Now()
		longest = max(longest, now.Sub(last))
		last = now
	}
	return longest
}
