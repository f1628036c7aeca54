package verbs_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/ib"
)

// The round trips of 64 bytes, each beside the same exchange over bare UDP
// sockets: run them together and compare within one run.
//
//	go test ./verbs -run '^$' -bench RoundTrip -count 7

const pingBytes = 64

func BenchmarkRoundTripSpin(b *testing.B) {
	p := newPairUDP(b, ib.RC)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() { // echo: polls its CQ, answers each message
		defer close(done)
		var wcs [8]ib.WC
		for !stop.Load() {
			n := p.b.cq.Poll(wcs[:])
			for i := range n {
				if wcs[i].Op == ib.WCRecv {
					p.b.recv(b, 0, pingBytes)
					p.b.send(b, 0, pingBytes)
				}
			}
		}
	}()
	for range 16 {
		p.a.recv(b, 0, pingBytes)
		p.b.recv(b, 0, pingBytes)
	}
	var wcs [8]ib.WC
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		p.a.send(b, 0, pingBytes)
		for got := false; !got; {
			for i := range p.a.cq.Poll(wcs[:]) {
				got = got || wcs[i].Op == ib.WCRecv
			}
		}
		p.a.recv(b, 0, pingBytes)
	}
	b.StopTimer()
	stop.Store(true)
	<-done
}

func BenchmarkRoundTripBlock(b *testing.B) {
	p := newPairUDP(b, ib.RC)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wcs [8]ib.WC
		for {
			n, err := p.b.cq.Wait(ctx, wcs[:])
			if err != nil {
				return
			}
			for i := range n {
				if wcs[i].Op == ib.WCRecv {
					p.b.recv(b, 0, pingBytes)
					p.b.send(b, 0, pingBytes)
				}
			}
		}
	}()
	for range 16 {
		p.a.recv(b, 0, pingBytes)
		p.b.recv(b, 0, pingBytes)
	}
	var wcs [8]ib.WC
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		p.a.send(b, 0, pingBytes)
		for got := false; !got; {
			n, err := p.a.cq.Wait(ctx, wcs[:])
			if err != nil {
				b.Fatal(err)
			}
			for i := range n {
				got = got || wcs[i].Op == ib.WCRecv
			}
		}
		p.a.recv(b, 0, pingBytes)
	}
	b.StopTimer()
	cancel()
	<-done
}

func BenchmarkRoundTripRawSpin(b *testing.B) {
	open := func(addr string) int {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { unix.Close(fd) })
		sa := &unix.SockaddrInet4{Addr: netip.MustParseAddr(addr).As4()}
		if err := unix.Bind(fd, sa); err != nil {
			b.Fatal(err)
		}
		return fd
	}
	x, y := open("127.0.0.1"), open("127.0.0.2")
	connect := func(from, to int) {
		sa, err := unix.Getsockname(to)
		if err != nil {
			b.Fatal(err)
		}
		if err := unix.Connect(from, sa); err != nil {
			b.Fatal(err)
		}
	}
	connect(x, y)
	connect(y, x)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for !stop.Load() {
			if n, err := unix.Read(y, buf); err == nil {
				_, _ = unix.Write(y, buf[:n])
			} else {
				runtime.Gosched()
			}
		}
	}()
	buf := make([]byte, 2048)
	b.ResetTimer()
	for range b.N {
		_, _ = unix.Write(x, buf[:pingBytes+44])
		for {
			if _, err := unix.Read(x, buf); err == nil {
				break
			}
			runtime.Gosched()
		}
	}
	b.StopTimer()
	stop.Store(true)
	<-done
}

func BenchmarkRoundTripRawBlock(b *testing.B) {
	open := func(addr string) *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	x, y := open("127.0.0.1:0"), open("127.0.0.2:0")
	defer x.Close()
	ya := y.LocalAddr().(*net.UDPAddr).AddrPort()
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
	b.ResetTimer()
	for range b.N {
		_, _ = x.WriteToUDPAddrPort(buf[:pingBytes+44], ya)
		if _, _, err := x.ReadFromUDPAddrPort(buf); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	y.Close()
	<-done
}

// BenchmarkRoundTripMemory is the WRITE ping-pong of ib_write_lat: both ends
// poll memory and drive with Progress.
func BenchmarkRoundTripMemory(b *testing.B) {
	p := newPairUDP(b, ib.RC)
	var stop atomic.Bool
	done := make(chan struct{})
	await := func(e *end, want uint64) bool {
		word := e.word(pingBytes - 8)
		for word.Load() != want {
			if stop.Load() {
				return false
			}
			e.dev.Progress()
		}
		return true
	}
	put := func(e *end, v uint64) {
		binary.NativeEndian.PutUint64(e.mr.Bytes()[1024+pingBytes-8:], v)
		flags := ib.SendFlags(0)
		if v%64 == 0 {
			flags = ib.Signaled
		}
		if err := e.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: flags, SGL: e.mr.SGE(1024, pingBytes), Remote: e.peer.At(0)}); err != nil {
			b.Error(err)
			stop.Store(true)
		}
		var wcs [4]ib.WC
		if v%64 == 63 {
			e.cq.Poll(wcs[:])
		}
	}
	go func() {
		defer close(done)
		for v := uint64(1); await(p.b, v); v++ {
			put(p.b, v)
		}
	}()
	b.ResetTimer()
	start := time.Now()
	for v := uint64(1); v <= uint64(b.N) && !stop.Load(); v++ {
		put(p.a, v)
		await(p.a, v)
	}
	_ = start
	b.StopTimer()
	stop.Store(true)
	<-done
}
