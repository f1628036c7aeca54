package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

// tcpDuo is a TCP connection between the two addresses, whose ends count their
// system calls.
type tcpDuo struct{ a, b *countedConn }

func openTCP(ctx context.Context, client, server netip.Addr) (*tcpDuo, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(server, 0).String())
	if err != nil {
		return nil, err
	}
	defer l.Close()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0))}
	a, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	b, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	ca, err := newCountedConn(a)
	if err != nil {
		return nil, errors.Join(err, a.Close(), b.Close())
	}
	cb, err := newCountedConn(b)
	if err != nil {
		return nil, errors.Join(err, a.Close(), b.Close())
	}
	return &tcpDuo{ca, cb}, nil
}

func (d *tcpDuo) close() error { return errors.Join(d.a.Close(), d.b.Close()) }

func (d *tcpDuo) measure(name string, far func() error, f func() (uint64, uint64, error)) (result, error) {
	done := make(chan error, 1)
	go func() { done <- far() }()
	calls, cpu, start := d.a.calls()+d.b.calls(), processCPU(), time.Now()
	bytes, messages, err := f()
	if err = errors.Join(err, d.a.CloseWrite(), <-done); err != nil {
		return result{}, fmt.Errorf("%s: %w", name, err)
	}
	return result{
		name: name, bytes: bytes, messages: messages,
		elapsed: time.Since(start), cpu: processCPU() - cpu,
		syscalls: d.a.calls() + d.b.calls() - calls,
	}, nil
}

// tcpBandwidth writes messages of size bytes for the duration.
func tcpBandwidth(ctx context.Context, cfg *Config, name string, size int, dur time.Duration) (result, error) {
	d, err := openTCP(ctx, cfg.Client, cfg.Server)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	sink := make([]byte, size)
	far := func() error {
		for {
			_, err := io.ReadFull(d.b, sink)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return d.measure(name, far, func() (uint64, uint64, error) {
		buf := make([]byte, regionBytes)
		end := time.Now().Add(dur)
		var n uint64
		for time.Now().Before(end) && ctx.Err() == nil {
			off := int(n) * size % regionBytes
			if _, err := d.a.Write(buf[off : off+size]); err != nil {
				return 0, 0, err
			}
			n++
		}
		return n * uint64(size), n, ctx.Err()
	})
}

// tcpRoundTrips is a ping-pong of 64 bytes.
func tcpRoundTrips(ctx context.Context, cfg *Config, name string, dur time.Duration) (result, error) {
	d, err := openTCP(ctx, cfg.Client, cfg.Server)
	if err != nil {
		return result{}, err
	}
	defer d.close()
	s := newSamples()
	far := func() error {
		var buf [pingSize]byte
		for {
			_, err := io.ReadFull(d.b, buf[:])
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				_, err = d.b.Write(buf[:])
			}
			if err != nil {
				return err
			}
		}
	}
	var buf [pingSize]byte
	r, err := d.measure(name, far, func() (uint64, uint64, error) {
		return s.run(ctx, dur, func(uint64) error {
			if _, err := d.a.Write(buf[:]); err != nil {
				return err
			}
			_, err := io.ReadFull(d.a, buf[:])
			return err
		})
	})
	r.median, r.p99 = s.percentile(50), s.percentile(99)
	return r, err
}
