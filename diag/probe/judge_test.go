package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

// measured is a prober as it is after a measurement without any fault, on one
// path.
func measured(t *testing.T) *prober {
	t.Helper()
	cfg, err := Config{Paths: 1, Count: 100}.filled()
	if err != nil {
		t.Fatal(err)
	}
	p := &prober{cfg: cfg, r: Result{
		Host: "b", Address: netip.MustParseAddr("10.0.0.2"), Local: netip.MustParseAddr("10.0.0.1"), Class: cfg.DSCP,
		Here: Host{Socket: true, Capture: true, MTU: 1500, Interface: "e0"}, There: Host{Socket: true, Capture: true, MTU: 1500},
	}}
	p.rev.reverse = true
	for _, rec := range []*record{&p.fwd, &p.rev} {
		rec.reach = sendAll(p.reachPlan([]uint8{0}, p.cfg.Count, false))
		rec.class = sendAll(p.classPlan([]uint8{0}))
		rec.mtus = []pathMTU{{lo: 1500}}
	}
	return p
}

func sendAll(probes []Probe) []trial {
	var out []trial
	for i, x := range probes {
		x.Seq = uint32(i)
		out = append(out, trial{probe: x, sent: Sent{Seq: x.Seq, At: int64(i) * 1000, Port: firstPort}, seen: &Sighting{
			Seq: x.Seq, At: int64(i)*1000 + 500, Order: uint32(i), TOS: x.TOS, TTL: 64, Size: x.Size, Port: firstPort, Socket: 1, Capture: 1, DF: 1, ICRC: 1,
		}})
	}
	return out
}

// lose makes the forward packets vanish.
func lose(p *prober) {
	for i := range p.fwd.reach {
		p.fwd.reach[i].seen = nil
	}
	p.fwd.class, p.fwd.mtus = nil, nil
	p.wits = witness{tried: true, there: true, back: true}
}

func ids(r *Result) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.ID+" "+f.Direction+" "+f.Status.String())
	}
	return strings.Join(out, ", ")
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name    string
		spoil   func(p *prober)
		forward Verdict
		where   string
		want    string
	}{
		{"nothing wrong", func(*prober) {}, Open, "", ""},
		{"nothing arrives", lose, Blocked, "network", "port-blocked forward fail"},
		{"nothing arrives where a hardware RNIC is", func(p *prober) {
			lose(p)
			p.r.There.Devices = []Device{{Name: "mlx5_0", Hardware: true}}
		}, CannotTell, "", "port-unknown forward unknown"},
		{"nothing arrives at the interface of rxe", func(p *prober) {
			lose(p)
			p.r.There.Devices, p.r.There.Socket = []Device{{Name: "rxe0"}}, false
		}, Blocked, "network", "port-blocked forward fail"},
		{"nobody listens", func(p *prober) {
			lose(p)
			p.r.There.Socket, p.r.There.Capture = false, false
		}, CannotTell, "", "port-unknown forward unknown"},
		{"a hardware RNIC, and an ICMP error", func(p *prober) {
			lose(p)
			p.r.There.Devices = []Device{{Name: "mlx5_0", Hardware: true}}
			p.fwd.notices = []Notice{{What: prohibited, From: netip.MustParseAddr("10.0.0.254"), Count: 3}}
		}, Blocked, "network", "port-blocked forward fail"},
		{"at the interface, not at the socket", func(p *prober) {
			for i := range p.fwd.reach {
				p.fwd.reach[i].seen.Socket = 0
			}
		}, Blocked, "receiver", "port-blocked forward fail"},
		{"at the interface, the port is another's", func(p *prober) {
			p.r.There.Socket = false
			for i := range p.fwd.reach {
				p.fwd.reach[i].seen.Socket = 0
			}
		}, Open, "", ""},
		{"not let out", func(p *prober) {
			lose(p)
			for i := range p.fwd.reach {
				p.fwd.reach[i].sent.Err = "EPERM"
			}
		}, Blocked, "sender", "port-blocked forward fail"},
		{"one of a hundred lost", func(p *prober) { p.fwd.reach[7].seen = nil }, Open, "", "loss forward fail"},
		{"overtaken", func(p *prober) {
			a, b := p.fwd.reach[7].seen, p.fwd.reach[8].seen
			a.Order, b.Order = b.Order, a.Order
		}, Open, "", "reordering forward warn"},
		{"doubled", func(p *prober) { p.rev.reach[7].seen.Socket = 2 }, Open, "", "duplication reverse warn"},
		{"changed", func(p *prober) { p.fwd.reach[7].seen.ICRC = 0 }, Open, "", "icrc forward fail"},
		{"DF cleared", func(p *prober) { p.fwd.reach[7].seen.DF = 0 }, Open, "", "icrc forward fail"},
		{"small path", func(p *prober) { p.fwd.mtus = []pathMTU{{lo: 1000, hi: 1004}} }, Open, "", "mtu-path forward fail"},
		{"marked now and then", func(p *prober) {
			p.fwd.reach[7].seen.TOS |= uint8(ip.CE)
		}, Open, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := measured(t)
			c.spoil(p)
			p.judge()
			if p.r.Forward.Verdict != c.forward || p.r.Forward.Where != c.where {
				t.Errorf("%q at %q, want %q at %q", p.r.Forward.Verdict, p.r.Forward.Where, c.forward, c.where)
			}
			if got := ids(&p.r); got != c.want {
				t.Errorf("findings %q, want %q", got, c.want)
			}
			var b strings.Builder
			if err := p.r.Print(&b, 0); err != nil || strings.Contains(b.String(), "%!") {
				t.Errorf("%v\n%s", err, b.String())
			}
		})
	}
}

// The result's status is that of its worst finding, and a failure outweighs
// what could not be judged.
func TestExitCodes(t *testing.T) {
	order := []Status{OK, Warn, Unknown, Fail}
	codes := []int{0, 1, 3, 2}
	for i, s := range order {
		if s.ExitCode() != codes[i] || i > 0 && s <= order[i-1] {
			t.Errorf("%v: exit code %d", s, s.ExitCode())
		}
		b, _ := s.MarshalText()
		var back Status
		if err := back.UnmarshalText(b); err != nil || back != s {
			t.Errorf("%v became %v, %v", s, back, err)
		}
	}
}

// An offset of the other clock is in neither one-way time.
func TestClock(t *testing.T) {
	const ahead = int64(time.Hour)
	p := measured(t)
	for i := range p.fwd.reach {
		p.fwd.reach[i].seen.At += ahead
		p.rev.reach[i].sent.At += ahead
	}
	p.s = newSession(token{}, p.r.Local, p.r.Address)
	p.s.echoes[3] = echo{sent: 0, heard: ahead + 400, echoed: ahead + 500, back: 900}
	p.judge()
	if c := p.r.Clock; c.Offset != time.Hour || c.Error != 400 || c.Source != "echo" {
		t.Errorf("clock %+v", c)
	}
	for _, d := range []*Direction{&p.r.Forward, &p.r.Reverse} {
		if d.OneWay.Median != 500 || d.OneWay.N != 100 {
			t.Errorf("one way %+v, want 500 ns", d.OneWay)
		}
	}
}

// Path MTU 1,024 fits the classical 1,500 and path MTU 4,096 the customary
// 4,200; Linux takes 1,024 for 1,500, 2,048 for 2,200, 4,096 for 4,200.
func TestRoCEMTU(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, c := range []struct{ n, active, in4, in6 int }{
		{1500, 1024, 1024, 1024},
		{2200, 2048, 2048, 2048},
		{4200, 4096, 4096, 4096},
		{9000, 4096, 4096, 4096},
		{1088, 512, 1024, 512},
		{1108, 512, 1024, 1024},
		{300, 0, 0, 0},
	} {
		if a, b, d := activeMTU(c.n), roceIn(c.n, v4), roceIn(c.n, v6); a != c.active || b != c.in4 || d != c.in6 {
			t.Errorf("%d: active %d, IPv4 %d, IPv6 %d; want %+v", c.n, a, b, d, c)
		}
	}
}

// Whatever the path's MTU, the search finds it to the step.
func TestMTUSearch(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.1")
	for _, top := range []int{1500, 4200, 9000, 9216} {
		for limit := smallSize; limit <= top; limit += 4 {
			m := []pathMTU{{lo: smallSize, hi: top + 4}}
			sent := 0
			for round := range mtuRounds {
				var got []trial
				for _, size := range m[0].candidates(round, top, addr, nil) {
					tr := trial{probe: Probe{Size: size}}
					if size <= limit {
						tr.seen = &Sighting{}
					}
					got = append(got, tr)
				}
				sent += len(got)
				narrow(m, got, top)
			}
			want := pathMTU{lo: limit, hi: limit + 4}
			if limit == top {
				want.hi = 0
			}
			if m[0] != want || sent > 50 {
				t.Fatalf("top %d, limit %d: %+v after %d packets", top, limit, m[0], sent)
			}
		}
	}
}

func TestDevicesOf(t *testing.T) {
	sys := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(sys, "class/infiniband", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0ac0:ebff:fe21:03da\n")
	write("mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0002\n")
	write("mlx5_1/ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a00:0003\n")
	write("rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0002\n")
	write("rxe0/ports/1/gids/2", "nonsense")
	write("rxe0/parent", "eth0\n")
	got := devicesOf(sys, netip.MustParseAddr("10.0.0.2"))
	if want := []Device{{"mlx5_0", true}, {"rxe0", false}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := devicesOf(filepath.Join(sys, "none"), netip.MustParseAddr("10.0.0.2")); got != nil {
		t.Errorf("%+v without sysfs", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]Config{
		"paths": {Paths: 17}, "count": {Count: 10_001}, "interval": {Interval: time.Second}, "timeout": {Timeout: time.Hour},
		"DSCP": {DSCP: 64, Class: true}, "DSCP 99": {DSCPs: []uint8{99}}, "burst": {Burst: 513}, "family": {Family: 5}, "parallel": {Parallel: -1},
	} {
		if _, err := c.filled(); err == nil || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// dropping is a way on which drop decides about the nth packet.
func dropping(rec *record, drop func(n int, x Probe) bool) *way {
	n := 0
	var got map[uint32]*Sighting
	w := &way{rec: rec}
	w.send = func(_ context.Context, probes []Probe, _ time.Duration) ([]Sent, error) {
		var out []Sent
		got = map[uint32]*Sighting{}
		for _, x := range probes {
			out = append(out, Sent{Seq: x.Seq, Port: firstPort + uint16(x.Path)})
			if !drop(n, x) {
				got[x.Seq] = &Sighting{Seq: x.Seq, Order: uint32(n), Path: x.Path, TOS: x.TOS, TTL: 64, Size: x.Size, Port: firstPort + uint16(x.Path), Socket: 1, Capture: 1, DF: 1, ICRC: 1}
			}
			n++
		}
		return out, nil
	}
	w.seen = func(_ context.Context, first uint32, n, _ int) ([]Sighting, error) {
		var out []Sighting
		for i := range uint32(n) {
			if s := got[first+i]; s != nil {
				out = append(out, *s)
			}
		}
		return out, nil
	}
	return w
}

// A policer drops every nth packet, or lets only every nth through: neither is a
// dead path, a class that is dropped or a smaller MTU, whatever n is. A path
// that is dead is found between losses, too.
func TestPeriodicLossIsLoss(t *testing.T) {
	const allLive = -1
	for period := 2; period <= 8; period++ {
		for _, keep := range []bool{false, true} {
			for paths := 1; paths <= 8; paths++ {
				periodicLoss(t, period, keep, paths, allLive)
				if paths >= 4 && period <= 4 {
					periodicLoss(t, period, keep, paths, 1)
				}
			}
		}
	}
}

func periodicLoss(t *testing.T, period int, keep bool, paths, dead int) {
	what := fmt.Sprintf("period %d, keep %v, dead path %d of %d", period, keep, dead, paths)
	cfg, err := Config{Paths: paths}.filled()
	if err != nil {
		t.Fatal(err)
	}
	p := &prober{cfg: cfg, r: Result{Address: netip.MustParseAddr("10.0.0.2"), There: Host{Socket: true, MTU: 1500}}, chance: rand.New(rand.NewPCG(1, 2))}
	w := dropping(&p.fwd, func(n int, x Probe) bool { return int(x.Path) == dead || (n%period == 0) != keep })
	if err := p.tryPaths(t.Context(), w, p.r.There, false); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := p.tryClasses(t.Context(), w, p.r.There, p.live(w.rec, p.r.There)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := w.findMTU(t.Context(), p, 1500); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	p.r.Forward = p.direction(&p.fwd, p.r.Here, p.r.There)
	s := side{name: "forward", d: &p.r.Forward}
	p.findPaths(s)
	p.findLoss(s)
	p.findClasses(s)
	want := "loss forward fail"
	if dead >= 0 {
		want = "path-blocked forward fail, " + want
	}
	if got := ids(&p.r); got != want {
		t.Errorf("%s: %s, want %s\n%+v", what, got, want, p.r.Forward.Paths)
	}
	if got := p.r.Forward.MTU.Path; got != 1500 {
		t.Errorf("%s: MTU %d", what, got)
	}
}
