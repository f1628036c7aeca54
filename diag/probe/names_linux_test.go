package probe

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// The first address of a name where a listener is counts, and the result says
// which it is and what was wrong with the others.
func TestNames(t *testing.T) {
	t.Parallel()
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	cfg.lookup = func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		switch host {
		case "several":
			return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.78.9"), netip.MustParseAddr("127.0.78.2"), netip.MustParseAddr("::ffff:127.0.78.9")}, nil
		case "one":
			return []netip.Addr{netip.MustParseAddr("127.0.78.2")}, nil
		case "elsewhere":
			return []netip.Addr{netip.MustParseAddr("127.0.78.9"), netip.MustParseAddr("127.0.78.8")}, nil
		case "six":
			return []netip.Addr{netip.MustParseAddr("::1")}, nil
		case "void":
			return []netip.Addr{netip.IPv4Unspecified()}, nil
		case "slow":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.1:53", IsNotFound: true}
	}
	hosts := []string{"several", "one", "elsewhere", "six", "void", "nobody", "127.0.78.1", "fe80::1", "fe80::1%nix", "224.0.0.1", "a\x1b[31mb"}
	rs, err := Run(t.Context(), cfg, hosts)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"", "", "127.0.78.9:14791; 127.0.78.8", "source 127.0.78.1 and host six are not of one family", `"void" has no address`, `"nobody": the name was not resolved: no such host`,
		"connection refused", "source", "source", "not the address of one host", `"a?[31mb"`,
	} {
		want = strings.ReplaceAll(want, "14791; 127.0.78.8", "")
		r := &rs[i]
		if !strings.Contains(r.Error, want) || (want == "") != (r.Error == "") || (want == "") != (r.Status == OK) {
			t.Errorf("%q: %v, %q does not say %q", hosts[i], r.Status, r.Error, want)
		}
		fit(t, hosts[i], r)
	}
	if n := strings.Join(rs[0].Notes, "\n"); rs[0].Address.String() != "127.0.78.2" || !strings.Contains(n, "several has 2 addresses") || !strings.Contains(n, "not to 127.0.78.9") || !strings.Contains(n, "refused") {
		t.Errorf("%v, notes %s", rs[0].Address, n)
	}
	if n := strings.Join(rs[1].Notes, "\n"); strings.Contains(n, "addresses") {
		t.Errorf("one address: notes %s", n)
	}
	if n := strings.Count(rs[2].Error, "no probe listener"); n != 2 {
		t.Errorf("%d addresses were tried: %s", n, rs[2].Error)
	}
	cfg.Source = netip.Addr{}
	rs, err = Run(t.Context(), cfg, []string{"fe80::1", "fe80::1%nix", "slow"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"say on which interface", `no interface "nix"`, "deadline"} {
		if !strings.Contains(rs[i].Error, want) {
			t.Errorf("%q does not say %q", rs[i].Error, want)
		}
	}
	cfg.Source = netip.MustParseAddr("127.0.78.2")
	if rs, _ = Run(t.Context(), cfg, []string{"one"}); !strings.Contains(rs[0].Error, "is this host itself") {
		t.Errorf("%q", rs[0].Error)
	} else if fix := strings.Join(rs[0].Findings[0].Fix, " "); strings.Contains(fix, "--listen") {
		t.Errorf("a listener on this host does not help: %q", fix)
	}
	cfg.Source = netip.MustParseAddr("10.99.99.99")
	if rs, _ = Run(t.Context(), cfg, []string{"one"}); !strings.Contains(rs[0].Error, "no address of this host") {
		t.Errorf("%q", rs[0].Error)
	}
}

// What takes longer than a listener keeps a session is refused before it begins.
func TestTimeIsBounded(t *testing.T) {
	for _, c := range []Config{
		{Count: 2000, Interval: maxInterval}, {Count: 400, Interval: maxInterval, Timeout: maxWait}, {Paths: 16, Count: 512, Interval: maxInterval},
	} {
		if _, err := c.filled(); err == nil || !strings.Contains(err.Error(), "each way") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// The longest there is: all phases and their waiting are shorter than a session.
	c, err := Config{Paths: 16, Count: 100, Interval: 70 * time.Millisecond, Timeout: 5 * time.Second}.filled()
	if err != nil {
		t.Fatal(err)
	}
	waits := 1 + 1 + 2*mtuRounds + 1 + maxTrains + 1
	if all := 2*(c.reachTime()+time.Duration(waits)*c.Timeout) + 4*slowTime + c.patience; all > sessionTime {
		t.Errorf("may take %v of %v", all, sessionTime)
	}
}
