package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// openTimeout bounds the steps in which a peer has nothing to wait for.
const openTimeout = 30 * time.Second

// wire is the TCP connection of a handshake. A goroutine reads it, so that a
// loop can see that the peer has gone, or has come to its end, without taking
// its bytes.
type wire struct {
	net.Conn
	mu       sync.Mutex
	cond     sync.Cond
	buf      []byte
	err      error
	deadline time.Time
	timer    *time.Timer
	stopped  chan struct{}
}

func newWire(c net.Conn) *wire {
	w := &wire{Conn: c, stopped: make(chan struct{})}
	w.cond.L = &w.mu
	go w.pump()
	return w
}

// wireMost bounds what a peer can make us hold: more than any step sends at once.
const wireMost = 1 << 20

func (w *wire) pump() {
	defer close(w.stopped)
	b := make([]byte, 4096)
	for {
		n, err := w.Conn.Read(b)
		w.mu.Lock()
		w.buf = append(w.buf, b[:n]...)
		if err == nil && len(w.buf) > wireMost {
			err = errors.New("peer sends without end")
		}
		w.err = err
		w.mu.Unlock()
		w.cond.Broadcast()
		if err != nil {
			return
		}
	}
}

// Read takes what the pump has read. It waits until there is something, the
// connection has ended or the deadline has passed.
func (w *wire) Read(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.buf) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		if !w.deadline.IsZero() && !time.Now().Before(w.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		w.cond.Wait()
	}
	n := copy(b, w.buf)
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
	return n, nil
}

// within sets how long the reads from now on may wait in all; 0 is for ever.
func (w *wire) within(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.deadline = time.Time{}
	if d > 0 {
		w.deadline = time.Now().Add(d)
		w.timer = time.AfterFunc(d, w.cond.Broadcast)
	}
}

// waiting reports whether the peer has sent its next step already.
func (w *wire) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.buf) > 0
}

// gone reports whether the peer has closed its side.
func (w *wire) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// finish tells the peer that this end is through and waits, at most d, until
// the peer is too: only then may the queue pairs go, or the peer's last message
// could miss its acknowledgement.
func (w *wire) finish(d time.Duration) {
	if c, ok := w.Conn.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	w.within(d)
	_, _ = io.Copy(io.Discard, w)
}

// Close ends the connection and the goroutine.
func (w *wire) Close() error {
	w.within(0)
	err := w.Conn.Close()
	<-w.stopped
	return err
}

func (w *wire) addrs() (local, remote netip.Addr) {
	return addrOf(w.LocalAddr()), addrOf(w.RemoteAddr())
}

func addrOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap()
}

// dial connects to the server.
func dial(ctx context.Context, host string, port int, source string) (*wire, error) {
	d := net.Dialer{Timeout: openTimeout}
	if source != "" {
		ip := net.ParseIP(source)
		if ip == nil {
			return nil, usage("--source_ip %s: not an address", source)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1] // an IPv6 address as URLs have it
	}
	hp := net.JoinHostPort(host, strconv.Itoa(port))
	c, err := d.DialContext(ctx, "tcp", hp)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w%s", hp, root(err), dialHint(err))
	}
	return newWire(c), nil
}

func dialHint(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": is the same program running there as the server (the command without a host), on this port (-p)?"
	case errors.As(err, &dns):
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ": is the host up, and does a firewall let the port through?"
	}
	return ""
}

// root strips the repetition of addresses that net puts around its errors.
func root(err error) error {
	var op *net.OpError
	for errors.As(err, &op) {
		err = op.Err
	}
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err
	}
	return err
}

// listen waits for one client. ready is called when the port is open.
func listen(ctx context.Context, source string, port int, ready func()) (*wire, error) {
	hp := net.JoinHostPort(source, strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", hp)
	if err != nil {
		hint := ""
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = ": another server is waiting there: choose another port with -p on both ends"
		}
		return nil, fmt.Errorf("listen on TCP port %d: %w%s", port, root(err), hint)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	ready()
	c, err := l.Accept()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("accept on TCP port %d: %w", port, root(err))
	}
	return newWire(c), nil
}
