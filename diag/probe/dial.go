package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

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
		p.self = true
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
