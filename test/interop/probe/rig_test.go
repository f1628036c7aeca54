//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/probe"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/test/interop/netns"
)

var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// verbena is the program, built once: sockets of this process's goroutines would
// be in the namespace of the test.
func verbena(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "verbena-probe-"); built.err != nil {
			return
		}
		// Nobody may run it too.
		if built.err = os.Chmod(built.dir, 0o755); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "verbena")
		out, err := exec.Command("go", "build", "-o", built.path, "github.com/verbena-rdma/verbena/cmd/verbena").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("build verbena: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// The addresses of the two ends.
const (
	a4, b4 = "10.1.0.1", "10.3.0.1"
	a6, b6 = "fd01::1", "fd03::1"
)

// rig is a chain of two hosts and two routers.
type rig struct {
	t          *testing.T
	a, r, q, b *netns.Space
	undo       []func() // what mend does
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		need.Missing(t, "needs nftables: %v (scripts/judges.sh installs it)", err)
	}
	x := &rig{t: t, a: netns.New(t), r: netns.New(t), q: netns.New(t), b: netns.New(t)}
	netns.Join(x.a, "e0", x.r, "left")
	netns.Join(x.r, "right", x.q, "left")
	netns.Join(x.q, "right", x.b, "e0")
	for _, i := range x.interfaces() {
		i.s.Run(fmt.Sprintf("ip addr add 10.%d.0.%d/24 dev %s", i.net, i.host, i.dev))
	}
	for _, s := range []*netns.Space{x.r, x.q} {
		s.Run("sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv6.conf.all.forwarding=1",
			// Not by peer, and by no bucket that all namespaces of the host share.
			"sysctl -qw net.ipv4.icmp_ratelimit=0", "sysctl -qw net.ipv6.icmp.ratelimit=0",
			"sysctl -qw net.ipv4.icmp_ratemask=0", "sysctl -qw net.ipv6.icmp.ratemask=200")
	}
	x.a.Run("ip route add default via 10.1.0.2")
	x.r.Run("ip route add 10.3.0.0/24 via 10.2.0.2")
	x.q.Run("ip route add 10.1.0.0/24 via 10.2.0.1")
	x.b.Run("ip route add default via 10.3.0.2")
	x.address6()
	return x
}

// iface is one interface of a rig.
type iface struct {
	s         *netns.Space
	dev       string
	net, host int
}

func (x *rig) interfaces() []iface {
	return []iface{{x.a, "e0", 1, 1}, {x.r, "left", 1, 2}, {x.r, "right", 2, 1}, {x.q, "left", 2, 2}, {x.q, "right", 3, 2}, {x.b, "e0", 3, 1}}
}

// address6 gives the interfaces their IPv6 addresses and routes. A smaller MTU
// than 1,280 takes them away; mend has set it back only after this is called.
func (x *rig) address6() {
	x.t.Helper()
	for _, link := range links {
		x.mtu(link, usualMTU)
	}
	for _, i := range x.interfaces() {
		i.s.Run(fmt.Sprintf("ip addr replace fd0%d::%d/64 dev %s nodad", i.net, i.host, i.dev))
	}
	x.a.Run("ip -6 route replace default via fd01::2")
	x.r.Run("ip -6 route replace fd03::/64 via fd02::2")
	x.q.Run("ip -6 route replace fd01::/64 via fd02::1")
	x.b.Run("ip -6 route replace default via fd03::2")
}

var links = []string{"a-r", "r-q", "q-b"}

// nft makes a chain at a hook of one of the four and puts rules into it.
func (x *rig) nft(s *netns.Space, hook string, rules ...string) {
	x.t.Helper()
	x.nftFamily("inet", s, hook, rules...)
}

// nftFamily is nft for rules that only "ip" or "ip6" knows.
func (x *rig) nftFamily(family string, s *netns.Space, hook string, rules ...string) {
	x.t.Helper()
	kind := "filter"
	if hook == "postrouting" {
		kind = "nat"
	}
	all := append([]string{"add table " + family + " t", fmt.Sprintf("add chain %s t %s { type %s hook %s priority 0 ; }", family, hook, kind, hook)}, rules...)
	x.undo = append(x.undo, func() { s.Run("nft flush ruleset") })
	for i, c := range all {
		if i > 1 {
			c = fmt.Sprintf("add rule %s t %s %s", family, hook, c)
		}
		if out, err := s.Output("nft", c); err != nil {
			x.t.Fatalf("nft %s: %v\n%s", c, err, out)
		}
	}
}

// mtu sets both ends of a link: "a-r", "r-q" or "q-b".
func (x *rig) mtu(link string, n int) {
	x.t.Helper()
	ends := map[string][2]struct {
		s   *netns.Space
		dev string
	}{
		"a-r": {{x.a, "e0"}, {x.r, "left"}}, "r-q": {{x.r, "right"}, {x.q, "left"}}, "q-b": {{x.q, "right"}, {x.b, "e0"}},
	}[link]
	for _, e := range ends {
		e.s.Run(fmt.Sprintf("ip link set %s mtu %d", e.dev, n))
	}
	if n == usualMTU {
		return
	}
	x.undo = append(x.undo, func() {
		x.mtu(link, usualMTU)
		for _, s := range []*netns.Space{x.a, x.b} {
			// What an ICMP error has taught about the way.
			s.Run("ip route flush cache", "ip -6 route flush cache")
		}
	})
}

const usualMTU = 1500

// tc puts queues at the way out of the first router.
func (x *rig) tc(commands ...string) {
	x.t.Helper()
	x.undo = append(x.undo, func() { x.r.Run("tc qdisc del dev right root") })
	for _, c := range commands {
		x.r.Run("tc " + c)
	}
}

// second makes another link between the routers, which only what comes back uses.
func (x *rig) second() {
	x.t.Helper()
	netns.Join(x.r, "right2", x.q, "left2")
	x.r.Run("ip addr add 10.4.0.1/24 dev right2")
	x.q.Run("ip addr add 10.4.0.2/24 dev left2", "ip route replace 10.1.0.0/24 via 10.4.0.1")
	x.undo = append(x.undo, func() {
		x.q.Run("ip route replace 10.1.0.0/24 via 10.2.0.1")
		x.r.Run("ip link del right2")
	})
}

// mend undoes what a fault has done.
func (x *rig) mend() {
	x.t.Helper()
	for _, f := range x.undo {
		f()
	}
	x.undo = nil
}

// command is the program with what it is wrapped in, to be started in a space.
func (x *rig) command(wrap []string, args ...string) *exec.Cmd {
	x.t.Helper()
	all := append(append(slices.Clone(wrap), verbena(x.t), "probe"), args...)
	return exec.Command(all[0], all[1:]...)
}

// listener is a program that listens.
type listener struct {
	t   *testing.T
	cmd *exec.Cmd
	mu  sync.Mutex
	out []string
	// more is closed and made anew at each line.
	more chan struct{}
}

// start starts a listener; lines of both outputs are kept.
func (x *rig) start(s *netns.Space, wrap []string, args ...string) *listener {
	x.t.Helper()
	l := &listener{t: x.t, cmd: x.command(wrap, append([]string{"--listen"}, args...)...), more: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		x.t.Fatal(err)
	}
	l.cmd.Stdout, l.cmd.Stderr = w, w
	err = s.Start(l.cmd)
	w.Close()
	if err != nil {
		r.Close()
		x.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer r.Close()
		for in := bufio.NewScanner(r); in.Scan(); {
			l.mu.Lock()
			l.out = append(l.out, in.Text())
			close(l.more)
			l.more = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	t := x.t // of the rig, not of the fault
	t.Cleanup(func() {
		_ = l.cmd.Process.Signal(syscall.SIGINT)
		err := l.cmd.Wait()
		<-read
		if err != nil && !killed(err) {
			t.Errorf("listener: %v", err)
		}
		if t.Failed() {
			t.Logf("the listener said:\n%s", strings.Join(l.out, "\n"))
		}
	})
	return l
}

func killed(err error) bool {
	var e *exec.ExitError
	return errors.As(err, &e) && e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

// await waits until n lines hold a text.
func (l *listener) await(text string, n int) {
	l.t.Helper()
	end := time.After(time.Minute)
	for {
		l.mu.Lock()
		got, more := 0, l.more
		for _, s := range l.out {
			if strings.Contains(s, text) {
				got++
			}
		}
		l.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-more:
		case <-end:
			l.t.Fatalf("the listener does not say %q", text)
		}
	}
}

// listen starts a listener on b and waits until it listens.
func (x *rig) listen(args ...string) {
	x.t.Helper()
	x.listenAs(nil, args...)
}

func (x *rig) listenAs(wrap []string, args ...string) {
	x.t.Helper()
	n := 0
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			n++
		}
	}
	if n == 0 {
		n = 2 // all of IPv4 and of IPv6
	}
	x.start(x.b, wrap, args...).await("listening on", n)
}

// document is what the program prints.
type document struct {
	Status probe.Status
	Hosts  []probe.Result
}

// probe runs the probe on a and returns its document and exit status.
func (x *rig) probe(args ...string) (document, int) {
	x.t.Helper()
	return x.probeFrom(x.a, nil, args...)
}

func (x *rig) probeFrom(s *netns.Space, wrap []string, args ...string) (document, int) {
	x.t.Helper()
	out, exit := x.text(s, wrap, append([]string{"--json"}, args...)...)
	var doc document
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		x.t.Fatalf("the probe's document: %v\n%s", err, out)
	}
	if len(doc.Hosts) == 0 {
		x.t.Fatalf("no host in the document:\n%s", out)
	}
	t := x.t
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the document:\n%s", out)
		}
	})
	return doc, exit
}

// text runs the probe in a space and returns what it printed and its exit status.
func (x *rig) text(s *netns.Space, wrap []string, args ...string) (string, int) {
	x.t.Helper()
	// Between namespaces nothing is under way for long, and what has arrived is
	// waited for besides.
	cmd := x.command(wrap, append([]string{"--timeout", "300ms"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := s.Start(cmd); err != nil {
		x.t.Fatal(err)
	}
	ended := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	err := cmd.Wait()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		x.t.Fatal(err)
	}
	if errs.Len() > 0 {
		x.t.Logf("the probe said: %s", errs.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
