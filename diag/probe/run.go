package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the way to a listener.
const (
	dialTime = 3 * time.Second // a name, or a connection, may take
	maxAddrs = 8               // of a name are tried
)

// Run probes hosts, each a name or an address, several at a time. The results
// are in the order of hosts; a host that could not be probed has an Error and
// status Unknown. The error is about cfg, or that ctx ended: results of hosts
// that were finished are there then too.
func Run(ctx context.Context, cfg Config, hosts []string) ([]Result, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("%d hosts: can be 1 to %d", len(hosts), maxHosts)
	}
	e := newEndpoint(cfg.RoCEPort, cfg.Capture, cfg.Sysfs)
	defer e.close()
	results := make([]Result, len(hosts))
	turn := make(chan struct{}, cfg.Parallel)
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i] = probeHost(ctx, cfg, e, host)
		})
	}
	wg.Wait()
	return results, ctx.Err()
}

// probeHost probes one host.
func probeHost(ctx context.Context, cfg Config, e *endpoint, host string) Result {
	p := &prober{cfg: cfg, e: e, r: Result{Host: host, Class: cfg.DSCP}}
	p.rev.reverse = true
	p.ctl.slack = cfg.patience
	err := p.dial(ctx, host)
	if err == nil {
		defer p.close()
		err = p.measure(ctx)
	}
	if err != nil {
		p.r.Error = oneLine(err.Error())
	}
	p.judge()
	return p.r
}

// prober is the near end of one session.
type prober struct {
	cfg  Config
	e    *endpoint
	ctl  control
	s    *session
	v    *voice
	r    Result
	fwd  record
	rev  record
	wits witness
	// overrun is what the ear here had dropped before the session.
	overrun int
}

// witness is whether UDP passes on the control channel's port.
type witness struct{ tried, there, back bool }

// dial opens the control channel, the ears and the mouths.
func (p *prober) dial(ctx context.Context, host string) error {
	c, err := p.connect(ctx, host)
	if err != nil {
		return err
	}
	p.ctl.c = c
	if err := p.greet(ctx); err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

// connect finds the first address of a host where a listener is.
func (p *prober) connect(ctx context.Context, host string) (net.Conn, error) {
	all, err := p.cfg.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if src := p.cfg.Source; src.IsValid() {
		all = slices.DeleteFunc(all, func(a netip.Addr) bool { return a.Is4() != src.Unmap().Is4() })
		if len(all) == 0 {
			return nil, fmt.Errorf("source %v and host %s are not of one family", src, host)
		}
	}
	var tried []string
	for _, addr := range all {
		p.r.Address = addr
		c, err := p.try(ctx, addr)
		if err == nil {
			if len(all) > 1 {
				p.r.Notes = append(p.r.Notes, oneLine(severalAddresses(host, all, addr, tried)))
			}
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		tried = append(tried, err.Error())
	}
	return nil, errors.New(strings.Join(tried, "; "))
}

func severalAddresses(host string, all []netip.Addr, addr netip.Addr, tried []string) string {
	var others []string
	for _, a := range all {
		if a != addr {
			others = append(others, a.String())
		}
	}
	text := fmt.Sprintf("%s has %d addresses: only the way to %v was probed, not to %s", host, len(all), addr, strings.Join(others, ", "))
	if len(tried) > 0 {
		text += "; " + strings.Join(tried, "; ")
	}
	return text
}

// try connects to one address.
func (p *prober) try(ctx context.Context, addr netip.Addr) (net.Conn, error) {
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		if addr.Zone() == "" {
			return nil, fmt.Errorf("%v is a link-local address: say on which interface, %v%%IF", addr, addr)
		}
		if _, err := net.InterfaceByName(addr.Zone()); err != nil {
			return nil, fmt.Errorf("%v: there is no interface %q here", addr.WithZone(""), addr.Zone())
		}
	}
	d := net.Dialer{Timeout: dialTime, Control: dialControl}
	if p.cfg.Source.IsValid() {
		if name, _ := interfaceOf(p.cfg.Source); name == "" {
			return nil, fmt.Errorf("source %v is no address of this host", p.cfg.Source)
		}
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.cfg.Source, 0))
	}
	at := netip.AddrPortFrom(addr, p.cfg.Port)
	c, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		return nil, noListener(at, err)
	}
	if local := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(); local == addr {
		return nil, errors.Join(fmt.Errorf("%v is this host itself: between it and itself there is no network", addr), c.Close())
	}
	return c, nil
}

// noListener says what a connection that did not come up means.
func noListener(at netip.AddrPort, err error) error {
	timeout := os.IsTimeout(err)
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	text := fmt.Sprintf("no probe listener at TCP %v: %v", at, err)
	switch {
	case refused(err):
		return fmt.Errorf("%s: the host is there, and runs none (verbena probe --listen) on this address, or its firewall rejects TCP %d", text, at.Port())
	case timeout:
		return fmt.Errorf("no probe listener at TCP %v: no answer within %v: the host is down, or a firewall drops TCP %d", at, dialTime, at.Port())
	}
	return fmt.Errorf("%s: look at the routes to %v", text, at.Addr())
}

// greet makes the session.
func (p *prober) greet(ctx context.Context) error {
	addr := p.r.Address
	local := p.ctl.c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	p.r.Local = local
	if name, _ := interfaceOf(addr); name != "" {
		p.r.Notes = append(p.r.Notes, fmt.Sprintf("%v is an address of this host (%s): its packets do not leave it", addr, name))
	}
	p.e.listen(local)
	p.r.Here = p.e.host(local, local, "", p.cfg.Version)
	hello, err := p.ctl.ask(ctx, &request{Op: "hello", Version: protocol}, 0, 0)
	if err != nil {
		return err
	}
	t, err := parseToken(hello.Token)
	if err != nil {
		return err
	}
	if hello.Host == nil {
		return errors.New("control response: a hello without host")
	}
	p.r.There = *hello.Host
	p.translated(hello)
	ports := make([]uint16, p.cfg.Paths)
	for i := range ports {
		// Far apart, as those of queue pairs are: a switch may hash any bit.
		ports[i] = firstPort + uint16(i)*977
	}
	if p.v, err = p.e.voices(local, addr, ports); err != nil {
		return err
	}
	p.s = newSession(t, local, addr)
	if !p.e.add(p.s) {
		p.v.close()
		return errors.New("control response: the token of another session")
	}
	p.overrun = p.e.dropped(local)
	return nil
}

// translated notes where the listener sees other addresses than this end.
func (p *prober) translated(hello *response) {
	if a, err := netip.ParseAddr(hello.Peer); err == nil && a.Unmap() != p.r.Local.WithZone("") {
		p.r.SeenAs = a
	}
	if a, err := netip.ParseAddr(hello.Own); err == nil && a.Unmap() != p.r.Address.WithZone("") {
		p.r.ThereOwn = a
	}
}

func (p *prober) close() {
	p.e.remove(p.s)
	p.v.close()
	_ = p.ctl.c.Close()
}

// ports are the source ports of the paths.
func (p *prober) ports() []uint16 {
	var out []uint16
	for _, m := range p.v.mouths {
		out = append(out, m.local.Port())
	}
	return out
}

// resolve finds the addresses of a host, at most maxAddrs, in the order of the
// resolver (RFC 6724).
func (c Config) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	family := c.Family
	network := "ip"
	if family != 0 {
		network = fmt.Sprintf("ip%d", family)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		if family != 0 && a.Is4() != (family == 4) {
			return nil, fmt.Errorf("%v is no IPv%d address", a, family)
		}
		if a.IsUnspecified() || a.IsMulticast() {
			return nil, fmt.Errorf("%v is not the address of one host", a)
		}
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	as, err := c.lookup(ctx, network, host)
	var dns *net.DNSError
	if errors.As(err, &dns) {
		// As it is it names the server's port and the network twice.
		return nil, fmt.Errorf("host %q: the name was not resolved: %s", shown(host), dns.Err)
	}
	if err != nil {
		return nil, err
	}
	var all []netip.Addr
	for _, a := range as {
		if a = a.Unmap(); !slices.Contains(all, a) && !a.IsUnspecified() && !a.IsMulticast() && len(all) < maxAddrs {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("host %q has no address", shown(host))
	}
	return all, nil
}

// control is the near end of the control channel.
type control struct {
	c net.Conn
	// slack is what is left of the time that answers may take besides what a
	// request takes by itself, over the whole session: a listener that is slow
	// each time does not hold the probe up for long.
	slack time.Duration
}

// ask sends a request, filled up to n bytes, and waits for the response, which
// takes a time by itself.
func (k *control) ask(ctx context.Context, r *request, n int, itself time.Duration) (*response, error) {
	stop := context.AfterFunc(ctx, func() { _ = k.c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	begin := time.Now()
	_ = k.c.SetDeadline(begin.Add(itself + k.slack))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := writeFrame(k.c, r, n); err != nil {
		return nil, fmt.Errorf("control channel: %w", plain(err))
	}
	b, err := readFrame(k.c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if over := time.Since(begin) - itself; over > 0 {
		k.slack -= over
	}
	if err != nil {
		return nil, fmt.Errorf("control channel: %q was not answered: %w", r.Op, plain(err))
	}
	return parseResponse(b)
}

// plain says what an error of the control channel means.
func plain(err error) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the listener ended the connection (%w)", err)
	case os.IsTimeout(err):
		return errors.New("no answer in time")
	}
	return err
}
