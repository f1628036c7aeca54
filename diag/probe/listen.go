package probe

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Limits of a listener.
const (
	defaultSessions = 16
	maxPerPeer      = 4
	idleTime        = 30 * time.Second
	sessionTime     = 10 * time.Minute
)

// ListenConfig says what Listen opens. The zero value listens on every address.
type ListenConfig struct {
	// Addrs are the addresses to listen on; none: all of this host.
	Addrs []netip.Addr
	// Port is the control channel's; 0 is ControlPort.
	Port uint16
	// RoCEPort is where probes go; 0 is 4791. Anything else is for tests.
	RoCEPort uint16
	// MaxSessions bounds the sessions at a time; 0 is 16. One address may have
	// 4.
	MaxSessions int
	// Capture says whether a packet socket listens too.
	Capture CaptureMode
	// Version is told to probing hosts.
	Version string
	// Sysfs is where the kernel shows its RDMA devices; "" is /sys.
	Sysfs string
	// Logf, where not nil, hears of each session. It may be called from several
	// goroutines.
	Logf func(format string, args ...any)
}

// Listener is the far end. Close it.
type Listener struct {
	cfg   ListenConfig
	e     *endpoint
	tcp   []net.Listener
	udp   []socket
	name  string
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]netip.Addr
	shut  bool
}

// Listen opens the control channel and the ears. That UDP 4791 has another
// owner is no error: what can be heard then is told to each probing host.
func Listen(cfg ListenConfig) (*Listener, error) {
	if cfg.Port == 0 {
		cfg.Port = ControlPort
	}
	if cfg.MaxSessions <= 0 {
		cfg.MaxSessions = defaultSessions
	}
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	l := &Listener{cfg: cfg, e: newEndpoint(cfg.RoCEPort, cfg.Capture, cfg.Sysfs), conns: map[net.Conn]netip.Addr{}}
	l.name, _ = os.Hostname()
	addrs := cfg.Addrs
	all := len(addrs) == 0
	if all {
		addrs = []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	}
	var last error
	for _, a := range addrs {
		err := l.open(a.Unmap())
		if err != nil && !all {
			return nil, errors.Join(fmt.Errorf("listen on %v: %w", a, err), l.Close())
		}
		if err != nil {
			last = err
		}
	}
	if len(l.tcp) == 0 {
		return nil, errors.Join(fmt.Errorf("listen on TCP port %d: %w", cfg.Port, last), l.Close())
	}
	return l, nil
}

// open listens on one address.
func (l *Listener) open(a netip.Addr) error {
	network := "tcp6"
	if a.Is4() {
		network = "tcp4"
	}
	lc := net.ListenConfig{Control: dialControl}
	at := netip.AddrPortFrom(a, l.cfg.Port)
	t, err := lc.Listen(context.Background(), network, at.String())
	if err != nil {
		return err
	}
	u, err := openSocket(at)
	if err != nil {
		return errors.Join(err, t.Close())
	}
	l.e.listen(a)
	l.tcp, l.udp = append(l.tcp, t), append(l.udp, u)
	l.wg.Go(func() { u.serve(func(a *arrival, b []byte) { l.witness(a, b, u) }) })
	return nil
}

// witness hears packets to the control channel's port.
func (l *Listener) witness(a *arrival, b []byte, u socket) {
	var d datagram
	if d.decode(b) && d.kind == kindWitness {
		l.e.arrive(a, b, u)
	}
}

// Hears says of each address listened on how packets to UDP 4791 are heard.
func (l *Listener) Hears() []Hearing {
	var out []Hearing
	for _, t := range l.tcp {
		at := t.Addr().(*net.TCPAddr).AddrPort()
		bound := at.Addr().Unmap()
		out = append(out, Hearing{Control: netip.AddrPortFrom(bound, at.Port()), Host: l.e.host(bound, bound, l.name, l.cfg.Version)})
	}
	return out
}

// Hearing is one address of a Listener.
type Hearing struct {
	Control netip.AddrPort
	Host    Host
}

// Serve answers until ctx ends, then closes the listener and returns nil.
func (l *Listener) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	done := make(chan struct{}, len(l.tcp))
	l.mu.Lock()
	if l.shut {
		done <- struct{}{}
	} else {
		for _, t := range l.tcp {
			l.wg.Go(func() { l.accept(ctx, t); done <- struct{}{} })
		}
	}
	l.mu.Unlock()
	<-done
	return l.Close()
}

func (l *Listener) accept(ctx context.Context, t net.Listener) {
	for {
		c, err := t.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, or a connection that was reset: others may come.
			if !pause(ctx, time.Now().Add(100*time.Millisecond)) {
				return
			}
			continue
		}
		peer := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if why := l.admit(c, peer); why != "" {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_ = writeFrame(c, response{Err: why}, 0)
			_ = c.Close()
			continue
		}
		l.wg.Go(func() {
			defer l.leave(c)
			if err := l.serve(ctx, c, peer); err != nil && ctx.Err() == nil {
				l.cfg.Logf("%v: %s", peer, shown(err.Error()))
			}
		})
	}
}

// admit keeps account of sessions; the answer says why one is refused.
func (l *Listener) admit(c net.Conn, peer netip.Addr) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return "the listener ends"
	}
	same := 0
	for _, p := range l.conns {
		if p == peer {
			same++
		}
	}
	if len(l.conns) >= l.cfg.MaxSessions || same >= maxPerPeer {
		return fmt.Sprintf("busy with %d sessions, %d of them yours; try again later", len(l.conns), same)
	}
	l.conns[c] = peer
	return ""
}

func (l *Listener) leave(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// serve is one session.
func (l *Listener) serve(ctx context.Context, c net.Conn, peer netip.Addr) error {
	end := time.Now().Add(sessionTime)
	local := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	bound := local
	if len(l.cfg.Addrs) == 0 {
		bound = netip.IPv6Unspecified()
		if local.Is4() {
			bound = netip.IPv4Unspecified()
		}
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	in := bufio.NewReader(c)
	var s *session
	var v *voice
	var ports []uint16 // of v
	defer func() {
		if s != nil {
			l.e.remove(s)
		}
		if v != nil {
			v.close()
		}
	}()
	for {
		_ = c.SetDeadline(earlier(end, time.Now().Add(idleTime)))
		frame, err := readFrame(in)
		heard := time.Now().UnixNano()
		if err != nil {
			if s == nil {
				return fmt.Errorf("not a probe's control connection: %w", err)
			}
			return nil // it has what it wanted
		}
		r, err := parseRequest(frame)
		if err == nil && s == nil && r.Op != "hello" {
			err = errors.New("control request: the first is hello")
		}
		if err == nil && s != nil && r.Op == "hello" {
			err = errors.New("control request: a second hello")
		}
		if err != nil {
			_ = writeFrame(c, response{Err: err.Error()}, 0)
			return err
		}
		var answer response
		switch r.Op {
		case "hello":
			var t token
			_, _ = rand.Read(t[:])
			s = newSession(t, local, peer)
			l.e.add(s)
			h := l.e.host(local, bound, l.name, l.cfg.Version)
			answer.Token, answer.Host = hex.EncodeToString(t[:]), &h
			l.cfg.Logf("%v probes %v", peer, local)
		case "clock":
			answer.HeardNs, answer.AnsweredNs = heard, time.Now().UnixNano()
		case "send":
			if v == nil || !slices.Equal(ports, r.Ports) {
				if v != nil {
					v.close()
				}
				if v, err = l.e.voices(local, peer, r.Ports); err != nil {
					_ = writeFrame(c, response{Err: err.Error()}, 0)
					return err
				}
				ports = r.Ports
			}
			answer.Sent = v.send(ctx, s.token, r.Probes, time.Duration(r.IntervalNs))
			answer.Notices = s.said()
		case "report":
			answer.Sightings = s.report(ctx, r.First, r.N, r.Want, l.e.hasSocket(bound), time.Duration(r.WaitNs))
			if v != nil {
				v.collect()
			}
			s.mu.Lock()
			answer.Strangers, answer.Witnesses = s.strangers, s.witnesses
			s.mu.Unlock()
			answer.Notices = s.said()
		}
		_ = c.SetDeadline(earlier(end, time.Now().Add(idleTime)))
		if err := writeFrame(c, answer, 0); err != nil {
			return err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Close ends all sessions and waits for the listener's goroutines.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.shut = true
	for c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	for _, t := range l.tcp {
		_ = t.Close()
	}
	for _, u := range l.udp {
		_ = u.Close()
	}
	l.wg.Wait()
	l.e.close()
	return nil
}
