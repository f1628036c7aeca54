//go:build linux

package probe

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/verbena-rdma/verbena/diag/probe"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/verbs"
)

// linkLocal is the link-local address of an interface.
func linkLocal(x *rig, s *netns.Space, dev string) string {
	x.t.Helper()
	out, err := s.Output("ip", "-6", "-o", "addr", "show", "dev", dev, "scope", "link")
	if err != nil {
		x.t.Fatalf("%v\n%s", err, out)
	}
	for _, w := range strings.Fields(out) {
		if a, _, ok := strings.Cut(w, "/"); ok && strings.HasPrefix(a, "fe80::") {
			return a
		}
	}
	x.t.Fatalf("%s has no link-local address: %s", dev, out)
	return ""
}

// Two ends of one link by their link-local addresses: the zone is each end's own.
func TestLinkLocal(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.listen()
	far := linkLocal(x, x.b, "e0")
	for _, c := range []struct {
		host string
		exit int
		text string
	}{
		{far + "%right", 0, ""},
		{far, 3, "say on which interface"},
		{far + "%none", 3, `there is no interface "none"`},
	} {
		doc, exit := x.probeFrom(x.q, nil, c.host)
		r := &doc.Hosts[0]
		if exit != c.exit || !strings.Contains(r.Error, c.text) {
			t.Errorf("%s: exit status %d, %q", c.host, exit, r.Error)
		}
		if exit == 0 && (len(r.Findings) != 0 || r.Forward.HeardBy != "socket" || r.Reverse.HeardBy != "socket" || r.RTT[0].N != 25 || r.Forward.Paths[0].TTL != 64) {
			t.Errorf("%s: %+v", c.host, r)
		}
	}
}

// A host with several addresses answers from the one that was asked, also where
// its routes prefer another.
func TestSeveralAddresses(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.b.Run("ip addr add 10.5.0.1/32 dev lo", "ip addr add fd05::1/128 dev lo nodad", "ip addr add 10.3.0.9/24 dev e0")
	x.r.Run("ip route add 10.5.0.0/24 via 10.2.0.2", "ip -6 route add fd05::/64 via fd02::2")
	x.q.Run("ip route add 10.5.0.0/24 via 10.3.0.1", "ip -6 route add fd05::/64 via fd03::1")
	x.listen()
	for _, host := range []string{"10.5.0.1", "10.3.0.9", "fd05::1"} {
		doc, exit := x.probe(host)
		r := &doc.Hosts[0]
		// The loopback's MTU is not that of the way.
		for _, f := range r.Findings {
			if f.ID != "mtu-differs" && f.ID != "mtu-path" {
				t.Errorf("%s: %s: %s", host, f.ID, f.What)
			}
		}
		if r.Forward.Verdict != probe.Open || r.Reverse.Verdict != probe.Open || r.Forward.Strangers+r.Reverse.Strangers != 0 || r.ThereOwn.IsValid() || exit == 3 {
			t.Errorf("%s: exit status %d, %+v", host, exit, r)
		}
	}
}

// names runs a program that finds names in a file of its own.
func names(t *testing.T, lines string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, file}
}

// A name with several addresses, of which only one has a listener; an IPv6 name
// of a host that listens on IPv4 only; a name without address.
func TestNames(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.listen(b4)
	wrap := names(t, "fd03::1 far six\n10.3.0.1 far\n10.3.0.7 far\n")
	for _, c := range []struct {
		host string
		exit int
		want string
	}{
		{"far", 0, "note: far has 3 addresses: only the way to 10.3.0.1 was probed"},
		{"six", 3, "no probe listener at TCP [fd03::1]:14791: connect: connection refused"},
		{"nobody.invalid", 3, `host "nobody.invalid": the name was not resolved`},
	} {
		out, exit := x.text(x.a, wrap, c.host)
		if exit != c.exit || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit status %d\n%s", c.host, exit, out)
		}
	}
}

// One listener serves one prober twice at a time, under two names.
func TestOneHostTwice(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.listen()
	doc, exit := x.probe("--burst", "0", b4, b4, b6)
	if exit != 0 || len(doc.Hosts) != 3 {
		t.Errorf("exit status %d, %d hosts", exit, len(doc.Hosts))
	}
	for i := range doc.Hosts {
		if f := doc.Hosts[i].Findings; len(f) != 0 {
			t.Errorf("host %d: %+v", i, f)
		}
	}
}

// asNobody runs a program without any privilege.
var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}

// Without privileges the same is found, except where a packet was dropped, and
// it is said what could not be tried.
func TestWithoutPrivileges(t *testing.T) {
	if _, err := exec.LookPath(asNobody[0]); err != nil {
		need.Missing(t, "needs setpriv of util-linux: %v", err)
	}
	t.Parallel()
	x := newRig(t)
	x.listenAs(asNobody)
	for _, f := range []fault{
		{name: "healthy", look: func(r *probe.Result) error {
			if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "CAP_NET_RAW") || !strings.Contains(r.Notes[1], "CAP_NET_RAW") {
				return fmt.Errorf("notes %q", r.Notes)
			}
			return healthy(r)
		}},
		{
			name: "dropped by the far host", exit: 2, want: []string{"port-blocked forward fail"},
			spoil: func(x *rig) { x.nft(x.b, "input", udp+"drop") },
			look:  both(verdicts(probe.Blocked, "network or receiver", probe.Open, ""), why(forward, "packet socket")),
		},
		{
			name: "rejected by the far host", exit: 2, want: []string{"port-blocked forward fail"},
			spoil: func(x *rig) { x.nft(x.b, "input", udp+"reject") },
			look:  verdicts(probe.Blocked, "receiver", probe.Open, ""),
		},
		{
			// The socket is told of fragments where it is not told of the flag.
			name: "cut on the way", exit: 2, want: []string{"icrc forward fail", "mtu-path both fail"},
			spoil: func(x *rig) {
				x.mtu("a-r", 4200)
				x.mtu("q-b", 4200)
				x.nft(x.r, "prerouting", udp+"ip daddr "+b4+" ip frag-off set 0")
			},
			look: func(r *probe.Result) error { return equal("path MTU there", r.Forward.MTU.Path, 1500) },
		},
		{
			name: "a hop with a smaller MTU", exit: 2, want: []string{"mtu-path both fail"},
			spoil: func(x *rig) { x.mtu("a-r", 4200); x.mtu("q-b", 4200) }, look: mtus(1500, 1024, 1500),
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			x.t = t
			defer x.mend()
			if f.spoil != nil {
				f.spoil(x)
			}
			doc, exit := x.probeFrom(x.a, asNobody, b4)
			check(t, &f, doc, exit)
		})
	}
}

// An RNIC of ours at the near end has the port there: what comes back is heard
// at the interface.
func TestRNICHere(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	var dev *verbs.Device
	var err error
	x.a.Do(func() { dev, err = verbs.Open(verbs.Config{Addr: netip.MustParseAddr(a4)}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	x.listen()
	doc, exit := x.probe(b4)
	check(t, &fault{look: func(r *probe.Result) error {
		if r.Reverse.HeardBy != "capture" || r.Forward.HeardBy != "socket" || r.Reverse.Seen != 100 {
			return fmt.Errorf("forward heard by %q, reverse by %q, %d", r.Forward.HeardBy, r.Reverse.HeardBy, r.Reverse.Seen)
		}
		return nil
	}}, doc, exit)
	// Without a packet socket nobody knows.
	doc, exit = x.probe("--no-capture", b4)
	check(t, &fault{exit: 3, want: []string{"port-unknown reverse unknown"}, look: verdicts(probe.Open, "", probe.CannotTell, "")}, doc, exit)
}

// A listener that is gone in the midst of a probe: the probe ends and says so.
func TestListenerIsKilled(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	listener := x.start(x.b, nil)
	listener.await("listening on", 2)
	cmd := x.command(nil, "--json", "--count", "1000", "--interval", "20ms", b4)
	var out strings.Builder
	cmd.Stdout = &out
	if err := x.a.Start(cmd); err != nil {
		t.Fatal(err)
	}
	listener.await("probes", 1)
	if err := listener.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "the listener ended the connection") && !strings.Contains(out.String(), "connection reset") {
		t.Errorf("%s", out.String())
	}
}
