package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dialTime is how long a name or a connection may take.
const dialTime = 3 * time.Second

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
}

// witness is whether UDP passes on the control channel's port.
type witness struct{ tried, there, back bool }

// dial opens the control channel, the ears and the mouths.
func (p *prober) dial(ctx context.Context, host string) error {
	addr, err := resolve(ctx, host, p.cfg.Family)
	if err != nil {
		return err
	}
	p.r.Address = addr
	d := net.Dialer{Timeout: dialTime, Control: dialControl}
	if p.cfg.Source.IsValid() {
		if p.cfg.Source.Unmap().Is4() != addr.Is4() {
			return fmt.Errorf("source %v and host %v are not of one family", p.cfg.Source, addr)
		}
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.cfg.Source, 0))
	}
	at := netip.AddrPortFrom(addr, p.cfg.Port)
	c, err := d.DialContext(ctx, "tcp", at.String())
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return fmt.Errorf("no probe listener at TCP %v: %w; run \"verbena probe --listen\" there, and let TCP %d through", at, err, p.cfg.Port)
	}
	p.ctl.c = c
	local := c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	p.r.Local = local
	p.e.listen(local)
	p.r.Here = p.e.host(local, local, "", p.cfg.Version)
	hello, err := p.ctl.ask(ctx, &request{Op: "hello", Version: protocol}, 0, ctlTime)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	t, err := parseToken(hello.Token)
	if err == nil && hello.Host == nil {
		err = errors.New("control response: a hello without host")
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p.r.There = *hello.Host
	ports := make([]uint16, p.cfg.Paths)
	for i := range ports {
		// Far apart, as those of queue pairs are: a switch may hash any bit.
		ports[i] = pathPort + uint16(i)*977
	}
	if p.v, err = p.e.voices(local, addr, ports); err != nil {
		return errors.Join(err, c.Close())
	}
	p.s = newSession(t, local, addr)
	p.e.add(p.s)
	return nil
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

// resolve finds the address of a host.
func resolve(ctx context.Context, host string, family int) (netip.Addr, error) {
	network := "ip"
	if family != 0 {
		network = fmt.Sprintf("ip%d", family)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		if family != 0 && a.Is4() != (family == 4) {
			return a, fmt.Errorf("%v is no IPv%d address", a, family)
		}
		if a.IsUnspecified() || a.IsMulticast() {
			return a, fmt.Errorf("%v is not the address of one host", a)
		}
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	as, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(as) == 0 {
		return netip.Addr{}, fmt.Errorf("%s has no address", host)
	}
	return as[0].Unmap(), nil
}

// control is the near end of the control channel.
type control struct{ c net.Conn }

// ask sends a request, filled up to n bytes, and waits for the response.
func (k *control) ask(ctx context.Context, r *request, n int, patience time.Duration) (*response, error) {
	stop := context.AfterFunc(ctx, func() { _ = k.c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = k.c.SetDeadline(time.Now().Add(patience))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := writeFrame(k.c, r, n); err != nil {
		return nil, fmt.Errorf("control channel: %w", err)
	}
	b, err := readFrame(k.c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("control channel: %s was not answered: %w", r.Op, err)
	}
	return parseResponse(b)
}
