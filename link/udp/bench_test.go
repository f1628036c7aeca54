package udp_test

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
)

// ends opens two links on loopback; what a sends from port reaches b.
func ends(tb testing.TB, cfg udp.Config) (a, b link.Link, port uint16) {
	tb.Helper()
	cfg.Port = testPort(tb)
	cfg.Addrs = []netip.Addr{lo1}
	a = open(tb, cfg)
	cfg.Addrs = []netip.Addr{lo2}
	b = open(tb, cfg)
	p, err := a.Path(lo1, lo2, 0xC100)
	if err != nil {
		tb.Fatal(err)
	}
	return a, b, p.SrcPort
}

// flood sends b.N runs with at most window payload bytes in flight, as an
// acknowledging transport would hold them, and receives them in another
// goroutine. Both spin. What is lost ends a window's wait after a while.
func flood(b *testing.B, cfg udp.Config, seg, segs, window int) {
	src, dst, port := ends(b, cfg)
	if src.Caps().Segments < segs {
		segs = 1
	}
	var got atomic.Int64 // bytes
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		rx := make([]frame.Rx, 32)
		for !stop.Load() {
			n, err := dst.Recv(0, rx)
			if err != nil {
				return
			}
			if n == 0 {
				continue
			}
			bytes := 0
			for i := range rx[:n] {
				bytes += len(rx[i].Data)
			}
			dst.Release(rx[:n])
			got.Add(int64(bytes))
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tx := make([]frame.Run, 8)
	sent := int64(0)
	b.SetBytes(int64(seg * segs))
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		n := src.Reserve(tx[:min(len(tx), left)])
		for i := range tx[:n] {
			r := &tx[i]
			r.Src, r.Dst, r.SrcPort = lo1, lo2, port
			r.Seg, r.Segs, r.N = seg, segs, seg*segs
			sent += int64(r.N)
		}
		if err := src.Commit(0, tx[:n]); err != nil {
			b.Fatal(err)
		}
		left -= n
		for spins := 0; sent-got.Load() > int64(window); spins++ {
			if spins > 1<<22 {
				got.Store(sent) // lost
			}
		}
	}
	for spins := 0; sent > got.Load() && spins < 1<<22; spins++ {
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*segs)/b.Elapsed().Seconds()/1e6, "Mpkt/s")
	b.ReportMetric(float64(dst.Counters().RxDropped)/float64(b.N*segs), "lost/pkt")
	stop.Store(true)
	<-done
}

// BenchmarkUDPBandwidth is the bare road that everything else is measured
// against: MB/s counts the bytes of frames.
func BenchmarkUDPBandwidth(b *testing.B) {
	for _, c := range []struct{ seg, segs int }{{4156, 15}, {4156, 8}, {4156, 4}, {4156, 1}, {1084, 60}, {1084, 16}} {
		b.Run(fmt.Sprintf("seg=%d/segs=%d", c.seg, c.segs), func(b *testing.B) {
			flood(b, udp.Config{}, c.seg, c.segs, 512<<10)
		})
	}
	b.Run("seg=4156/segs=15/rcvbuf=212992", func(b *testing.B) {
		flood(b, udp.Config{RecvBuffer: 212992}, 4156, 15, 256<<10)
	})
	b.Run("seg=4156/nooffload", func(b *testing.B) {
		flood(b, udp.Config{NoOffload: true}, 4156, 1, 512<<10)
	})
}

// BenchmarkUDPMessages sends packets as small as a 64-byte WRITE.
func BenchmarkUDPMessages(b *testing.B) {
	for _, segs := range []int{64, 16, 1} {
		b.Run(fmt.Sprintf("seg=96/segs=%d", segs), func(b *testing.B) {
			flood(b, udp.Config{}, 96, segs, 64<<10)
		})
	}
	b.Run("seg=96/nooffload", func(b *testing.B) { flood(b, udp.Config{NoOffload: true}, 96, 1, 64<<10) })
}

// BenchmarkUDPRoundTrip sends one small packet there and back; both ends spin,
// or both wait.
func BenchmarkUDPRoundTrip(b *testing.B) {
	for _, wait := range []bool{false, true} {
		b.Run(fmt.Sprintf("wait=%v", wait), func(b *testing.B) {
			src, dst, port := ends(b, udp.Config{})
			back, err := dst.Path(lo2, lo1, 0xC200)
			if err != nil {
				b.Fatal(err)
			}
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				rx, tx := make([]frame.Rx, 4), make([]frame.Run, 1)
				for !stop.Load() {
					if recvOne(dst, rx, wait) {
						sendOne(dst, tx, lo2, lo1, back.SrcPort, 96)
					}
				}
			}()
			rx, tx := make([]frame.Rx, 4), make([]frame.Run, 1)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				sendOne(src, tx, lo1, lo2, port, 96)
				for !recvOne(src, rx, wait) {
				}
			}
			b.StopTimer()
			stop.Store(true)
			dst.Wake()
			<-done
		})
	}
}

// BenchmarkNetUDPConn is what a waiting round trip is measured against.
func BenchmarkNetUDPConn(b *testing.B) {
	listen := func(a netip.Addr) *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	x, y := listen(lo1), listen(lo2)
	to := y.LocalAddr().(*net.UDPAddr).AddrPort()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := y.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = y.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	buf := make([]byte, 2048)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := x.WriteToUDPAddrPort(buf[:96], to); err != nil {
			b.Fatal(err)
		}
		if _, _, err := x.ReadFromUDPAddrPort(buf); err != nil {
			b.Fatal(err)
		}
	}
	_, _ = x.Close(), y.Close()
	<-done
}

func recvOne(l link.Link, rx []frame.Rx, wait bool) bool {
	if wait {
		_ = l.Wait(0, clock.Time(time.Second))
	}
	n, err := l.Recv(0, rx)
	if n == 0 || err != nil {
		return false
	}
	l.Release(rx[:n])
	return true
}

func sendOne(l link.Link, tx []frame.Run, src, dst netip.Addr, port uint16, n int) {
	for l.Reserve(tx) == 0 {
	}
	r := &tx[0]
	r.Src, r.Dst, r.SrcPort, r.N, r.Seg, r.Segs = src, dst, port, n, n, 1
	_ = l.Commit(0, tx)
}

// BenchmarkUDPCost sends and receives in turn in one goroutine and reports the
// processor time of a run there and its arrival, which a busy machine disturbs
// less than the bandwidth.
func BenchmarkUDPCost(b *testing.B) {
	for _, c := range []struct{ seg, segs, batch int }{{4156, 15, 4}, {1084, 60, 4}, {96, 64, 4}, {96, 1, 1}, {96, 1, 16}, {4156, 1, 16}} {
		b.Run(fmt.Sprintf("seg=%d/segs=%d/batch=%d", c.seg, c.segs, c.batch), func(b *testing.B) {
			src, dst, port := ends(b, udp.Config{})
			tx, rx := make([]frame.Run, c.batch), make([]frame.Rx, 32)
			b.SetBytes(int64(c.seg * c.segs))
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := processorTime()
			for left := b.N; left > 0; {
				n := src.Reserve(tx[:min(len(tx), left)])
				for i := range tx[:n] {
					r := &tx[i]
					r.Src, r.Dst, r.SrcPort = lo1, lo2, port
					r.Seg, r.Segs, r.N = c.seg, c.segs, c.seg*c.segs
				}
				_ = src.Commit(0, tx[:n])
				for got := 0; got < n; {
					m, _ := dst.Recv(0, rx)
					dst.Release(rx[:m])
					got += m
				}
				left -= n
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
