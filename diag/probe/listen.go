package probe

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
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
	helloTime       = 5 * time.Second // until the first request
	idleTime        = 30 * time.Second
	sessionTime     = 15 * time.Minute
)

// ListenConfig says what Listen opens. The zero value listens on every address.
type ListenConfig struct {
	// Addrs are the addresses to listen on; none: all of this host.
	Addrs []netip.Addr
	// Port is the control channel's; 0 is ControlPort.
	Port uint16
	// RoCEPort is where probes go; 0 is 4791. Anything else is for tests.
	RoCEPort uint16
	// MaxSessions bounds the sessions at a time; 0 is 16. One address may
	// have 4, one IPv6 network of 64 bits half of them.
	MaxSessions int
	// Capture says whether a packet socket listens too.
	Capture CaptureMode
	// Version is told to probing hosts.
	Version string
	// Sysfs is where the kernel shows its RDMA devices; "" is /sys.
	Sysfs string
	// Logf, where not nil, hears of sessions, of at most 20 a minute. It may be
	// called from several goroutines.
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
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	mu    sync.Mutex
	conns map[net.Conn]netip.Addr
	shut  bool
	lines lines
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
	l := &Listener{cfg: cfg, e: newEndpoint(cfg.RoCEPort, cfg.Capture, cfg.Sysfs), conns: map[net.Conn]netip.Addr{}}
	l.ctx, l.end = context.WithCancel(context.Background())
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
	ctx = l.ctx
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
				l.log("%v: %s", peer.WithZone(""), shown(err.Error()))
			}
		})
	}
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
	overrun := 0 // before the session
	late := func(ctx context.Context) { l.e.drain(ctx, bound) }
	defer func() {
		if s != nil {
			l.e.remove(s)
		}
		if v != nil {
			v.close()
		}
	}()
	for {
		patience := idleTime
		if s == nil {
			patience = helloTime
		}
		_ = c.SetDeadline(earlier(end, time.Now().Add(patience)))
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
			s.far = true
			l.e.add(s)
			h := l.e.host(local, bound, l.name, l.cfg.Version)
			answer.Token, answer.Host = hex.EncodeToString(t[:]), &h
			answer.Peer, answer.Own = peer.WithZone("").String(), local.WithZone("").String()
			overrun = l.e.dropped(bound)
			l.log("%v probes %v", peer.WithZone(""), local.WithZone(""))
		case "clock":
			answer.HeardNs, answer.AnsweredNs = heard, time.Now().UnixNano()
		case "send":
			if v == nil || !slices.Equal(v.ports, r.Ports) {
				s.speak(nil)
				if v != nil {
					v.close()
				}
				if v, err = l.e.voices(local, peer, r.Ports); err != nil {
					_ = writeFrame(c, response{Err: err.Error()}, 0)
					return err
				}
				s.speak(v)
			}
			answer.Sent = v.send(ctx, s.token, r.Probes, time.Duration(r.IntervalNs))
			answer.Notices = s.said()
		case "report":
			answer.Sightings = s.report(ctx, r.First, r.N, r.Want, l.e.hasSocket(bound), time.Duration(r.WaitNs), late)
			if v != nil {
				v.collect()
			}
			s.mu.Lock()
			answer.Strangers, answer.Witnesses = s.strangers, bits.OnesCount64(s.witnesses)
			s.mu.Unlock()
			answer.Overrun = max(l.e.dropped(bound)-overrun, 0)
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
	l.end()
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
