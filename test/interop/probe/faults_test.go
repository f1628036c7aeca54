//go:build linux

package probe

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// fault is one way to break the network and what it must be called.
type fault struct {
	name  string
	v6    bool
	args  []string // of the probe, besides the host
	spoil func(x *rig)
	exit  int
	// want are all findings, "ID direction status".
	want []string
	// look checks what the findings do not say.
	look func(r *probe.Result) error
}

const udp = "udp dport 4791 "

var plainFaults = []fault{
	{name: "healthy", look: healthy},
	{name: "healthy, IPv6", v6: true, look: healthy},
	{name: "healthy, jumbo", spoil: func(x *rig) { x.mtu("a-r", 9000); x.mtu("r-q", 9000); x.mtu("q-b", 9000) }, look: func(r *probe.Result) error {
		return equal("RoCE MTU", r.RoCEMTU, 4096)
	}},

	{
		name: "dropped on the way there", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+b4+" drop") },
		look:  verdicts(probe.Blocked, "network", probe.Open, ""),
	},
	{
		name: "dropped on the way there, IPv6", v6: true, exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip6 daddr "+b6+" drop") },
		look:  verdicts(probe.Blocked, "network", probe.Open, ""),
	},
	{
		name: "dropped on the way back", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+a4+" drop") },
		look:  verdicts(probe.Open, "", probe.Blocked, "network"),
	},
	{
		name: "dropped both ways", exit: 2, want: []string{"port-blocked both fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"drop") },
		look:  verdicts(probe.Blocked, "network", probe.Blocked, "network"),
	},
	{
		name: "all UDP dropped", exit: 2, want: []string{"port-blocked both fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", "meta l4proto udp drop") },
		look:  func(r *probe.Result) error { return contains(r.Forward.Why, "UDP 14791 does not pass either") },
	},
	{
		name: "rejected by a router", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip daddr "+b4+" reject with icmpx type admin-prohibited") },
		look:  both(verdicts(probe.Blocked, "network", probe.Open, ""), func(r *probe.Result) error { return contains(r.Forward.Why, "10.2.0.2") }),
	},
	{
		name: "rejected by a router, IPv6", v6: true, exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.q, "forward", udp+"ip6 daddr "+b6+" reject with icmpx type admin-prohibited") },
		look:  verdicts(probe.Blocked, "network", probe.Open, ""),
	},
	{
		name: "dropped by the far host", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.b, "input", udp+"drop") },
		look:  verdicts(probe.Blocked, "receiver", probe.Open, ""),
	},
	{
		name: "dropped by this host", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.a, "input", udp+"drop") },
		look:  verdicts(probe.Open, "", probe.Blocked, "receiver"),
	},
	{
		name: "not let out by this host", exit: 2, want: []string{"port-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.a, "output", udp+"drop") },
		look:  verdicts(probe.Blocked, "sender", probe.Open, ""),
	},
	{
		name: "not let out by the far host", exit: 2, want: []string{"port-blocked reverse fail"},
		spoil: func(x *rig) { x.nft(x.b, "output", udp+"drop") },
		look:  verdicts(probe.Open, "", probe.Blocked, "sender"),
	},
	{
		name: "one path dead", exit: 2, want: []string{"path-blocked forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"udp sport 50129 ip daddr "+b4+" drop") },
		look:  verdicts(probe.Partly, "", probe.Open, ""),
	},
	{
		name: "translated", exit: 2, want: []string{"address-translated forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "postrouting", udp+"ip saddr "+a4+" masquerade") },
	},

	{
		name: "DSCP rewritten on the way there", exit: 1, want: []string{"dscp-rewritten forward warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip dscp set cs1") },
		look: func(r *probe.Result) error {
			for _, c := range r.Forward.DSCP {
				if !slices.Equal(c.As, []int{8}) {
					return fmt.Errorf("DSCP %d arrived as %v", c.Sent, c.As)
				}
			}
			return nil
		},
	},
	{
		name: "DSCP rewritten on the way back, IPv6", v6: true, exit: 1, want: []string{"dscp-rewritten reverse warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+a6+" ip6 dscp set cs0") },
	},
	{
		name: "one class dropped", exit: 2, want: []string{"dscp-dropped forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip dscp 46 drop") },
	},
	{
		name: "ECN bleached both ways", exit: 1, want: []string{"ecn-bleached both warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip ecn set not-ect") },
	},
	{
		name: "ECN bleached on the way there, IPv6", v6: true, exit: 1, want: []string{"ecn-bleached forward warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip6 daddr "+b6+" ip6 ecn set not-ect") },
	},
	{
		name: "CE cleared", exit: 1, want: []string{"ecn-bleached reverse warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+a4+" ip ecn ce ip ecn set ect0") },
	},
	{
		name: "CE set on everything", exit: 1, want: []string{"ecn-always-marked forward warn"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" ip ecn set ce") },
	},

	{
		name: "a hop with a smaller MTU", exit: 2, want: []string{"mtu-path both fail"},
		spoil: func(x *rig) { x.mtu("a-r", 4200); x.mtu("r-q", 1500); x.mtu("q-b", 4200) }, look: mtus(1500, 1024, 1500),
	},
	{
		name: "a hop with a smaller MTU, IPv6", v6: true, exit: 2, want: []string{"mtu-path both fail"},
		spoil: func(x *rig) { x.mtu("a-r", 4200); x.mtu("r-q", 1500); x.mtu("q-b", 4200) }, look: mtus(1500, 1024, 1500),
	},
	{
		name: "a black hole", exit: 2, want: []string{"mtu-path both fail"},
		spoil: func(x *rig) {
			x.mtu("a-r", 4200)
			x.mtu("r-q", 1500)
			x.mtu("q-b", 4200)
			x.nft(x.r, "output", "icmp type destination-unreachable drop")
			x.nft(x.q, "output", "icmp type destination-unreachable drop")
		}, look: mtus(1500, 1024, 0),
	},
	{
		name: "a hop that is smaller but large enough", exit: 1, want: []string{"mtu-path both warn"},
		spoil: func(x *rig) { x.mtu("r-q", 1280) }, look: mtus(1280, 1024, 1280),
	},
	{
		name: "ends that differ", exit: 1, want: []string{"mtu-differs both warn", "mtu-path forward warn"},
		spoil: func(x *rig) { x.mtu("a-r", 4200) },
	},

	{
		name: "loss", exit: 2, want: []string{"loss forward fail"},
		spoil: func(x *rig) { x.nft(x.r, "forward", udp+"ip daddr "+b4+" numgen inc mod 7 0 drop") },
		look:  func(r *probe.Result) error { return equal("lost", r.Forward.Sent-r.Forward.Seen, 15) }, // each 7th of 100, the first too
	},
	{
		name: "a policer", exit: 2, want: []string{"burst-loss forward fail"},
		spoil: func(x *rig) { x.tc("qdisc add dev right root tbf rate 20mbit burst 16kb limit 4kb") },
		look:  anyRate,
	},
	{
		name: "a shaper", exit: 1, want: []string{"rate-limited forward warn"},
		spoil: func(x *rig) {
			x.tc("qdisc add dev right root handle 1: htb default 1",
				"class add dev right parent 1: classid 1:1 htb rate 5mbit ceil 5mbit burst 2k cburst 2k")
		},
		look: func(r *probe.Result) error {
			// The trains' own bytes at the rate, Ethernet headers included.
			if got := r.Forward.Burst.Rate; got < 3_500_000 || got > 7_500_000 {
				return fmt.Errorf("rate %d, want about 5 Mbit/s", got)
			}
			return nil
		},
	},
}

// TestFaults breaks a few networks again and again: most of the time is waiting
// for packets that do not come.
func TestFaults(t *testing.T) {
	const rigs = 6
	faults := slices.Concat(plainFaults, portFaults, classFaults, sizeFaults, flowFaults)
	for i := range rigs {
		t.Run(fmt.Sprintf("rig %d", i), func(t *testing.T) {
			t.Parallel()
			x := newRig(t)
			x.listen()
			for k := i; k < len(faults); k += rigs {
				f := &faults[k]
				t.Run(f.name, func(t *testing.T) {
					x.t = t
					defer x.mend()
					if f.spoil != nil {
						f.spoil(x)
					}
					host := b4
					if f.v6 {
						host = b6
					}
					doc, exit := x.probe(append(slices.Clone(f.args), host)...)
					check(t, f, doc, exit)
				})
			}
		})
	}
}

func check(t *testing.T, f *fault, doc document, exit int) {
	t.Helper()
	if exit != f.exit {
		t.Errorf("exit status %d, want %d", exit, f.exit)
	}
	if len(doc.Hosts) != 1 {
		t.Fatalf("%d hosts", len(doc.Hosts))
	}
	r := &doc.Hosts[0]
	var got []string
	for _, g := range r.Findings {
		got = append(got, fmt.Sprintf("%s %s %v", g.ID, g.Direction, g.Status))
		if len(g.Evidence) == 0 && g.ID != "no-control" || g.Effect.What == "" || len(g.Fix) == 0 || g.Confidence == "" {
			t.Errorf("finding %s says too little: %+v", g.ID, g)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, f.want) {
		t.Errorf("findings %q, want %q", got, f.want)
	}
	if f.look != nil {
		if err := f.look(r); err != nil {
			t.Error(err)
		}
	}
}

func healthy(r *probe.Result) error {
	for name, d := range map[string]*probe.Direction{"forward": &r.Forward, "reverse": &r.Reverse} {
		if d.Verdict != probe.Open || d.HeardBy != "socket" || d.Sent != 100 || d.Seen != 100 || d.BadICRC != 0 || d.ClearedDF != 0 || d.MTU.Path != 1500 || d.MTU.RoCE != 1024 {
			return fmt.Errorf("%s: %+v", name, d)
		}
		for _, p := range d.Paths {
			if p.TTL != 62 || p.OneWay.N != 25 {
				return fmt.Errorf("%s: path %+v", name, p)
			}
		}
	}
	for _, rtt := range r.RTT {
		if rtt.N != 25 || rtt.Min <= 0 || rtt.Max < rtt.Min {
			return fmt.Errorf("round trips %+v", rtt)
		}
	}
	// One machine has one clock.
	if o := r.Clock.Offset.Abs(); len(r.RTT) != 4 || r.Clock.Source == "" || o > r.Clock.Error {
		return fmt.Errorf("clock %+v of one machine", r.Clock)
	}
	return equal("RoCE MTU", r.RoCEMTU, 1024)
}

func verdicts(f probe.Verdict, fWhere string, v probe.Verdict, vWhere string) func(*probe.Result) error {
	return func(r *probe.Result) error {
		if r.Forward.Verdict != f || r.Forward.Where != fWhere || r.Reverse.Verdict != v || r.Reverse.Where != vWhere {
			return fmt.Errorf("forward %q %q, reverse %q %q; want %q %q, %q %q",
				r.Forward.Verdict, r.Forward.Where, r.Reverse.Verdict, r.Reverse.Where, f, fWhere, v, vWhere)
		}
		return nil
	}
}

func mtus(path, roce, told int) func(*probe.Result) error {
	return func(r *probe.Result) error {
		for _, d := range []*probe.Direction{&r.Forward, &r.Reverse} {
			if d.MTU.Path != path || d.MTU.RoCE != roce || d.MTU.Told != told || !d.MTU.Limited {
				return fmt.Errorf("MTU %+v, want path %d, RoCE %d, told %d", d.MTU, path, roce, told)
			}
		}
		return nil
	}
}

func both(f, g func(*probe.Result) error) func(*probe.Result) error {
	return func(r *probe.Result) error {
		if err := f(r); err != nil {
			return err
		}
		return g(r)
	}
}

func contains(s, part string) error {
	if !strings.Contains(s, part) {
		return fmt.Errorf("%q does not say %q", s, part)
	}
	return nil
}

func equal(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s is %d, want %d", what, got, want)
	}
	return nil
}

func anyRate(*probe.Result) error { return nil }

// holdPort takes UDP 4791 of the far end as an RNIC of another process would.
func holdPort(t *testing.T, x *rig) {
	t.Helper()
	var c net.PacketConn
	var err error
	x.b.Do(func() { c, err = net.ListenPacket("udp4", "0.0.0.0:4791") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
}

// Where another process has the port and nothing else may listen, nothing is
// known: that is not a blocked port.
func TestPortOfAnother(t *testing.T) {
	t.Run("no packet socket", func(t *testing.T) {
		t.Parallel()
		x := newRig(t)
		holdPort(t, x)
		x.listen("--no-capture")
		doc, exit := x.probe(b4)
		check(t, &fault{exit: 3, want: []string{"port-unknown forward unknown"}, look: verdicts(probe.CannotTell, "", probe.Open, "")}, doc, exit)
	})
	t.Run("heard at the interface", func(t *testing.T) {
		t.Parallel()
		x := newRig(t)
		holdPort(t, x)
		x.listen()
		doc, exit := x.probe(b4)
		check(t, &fault{look: func(r *probe.Result) error {
			if r.Forward.HeardBy != "capture" || r.Reverse.HeardBy != "socket" || len(r.Notes) != 1 {
				return fmt.Errorf("forward heard by %q, reverse by %q, notes %q", r.Forward.HeardBy, r.Reverse.HeardBy, r.Notes)
			}
			return nil
		}}, doc, exit)
	})
	t.Run("blocked before the interface", func(t *testing.T) {
		t.Parallel()
		x := newRig(t)
		holdPort(t, x)
		x.nft(x.q, "forward", udp+"ip daddr "+b4+" drop")
		x.listen()
		doc, exit := x.probe(b4)
		check(t, &fault{exit: 2, want: []string{"port-blocked forward fail"}, look: verdicts(probe.Blocked, "network", probe.Open, "")}, doc, exit)
	})
}

// Without a packet socket the network and the far host's firewall are one.
func TestBlockedWithoutPacketSocket(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.nft(x.b, "input", udp+"drop")
	x.listen("--no-capture")
	doc, exit := x.probe("--no-capture", b4)
	check(t, &fault{exit: 2, want: []string{"port-blocked forward fail"}, look: verdicts(probe.Blocked, "network or receiver", probe.Open, "")}, doc, exit)
}

// Several hosts at once, one of which does not listen.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	x := newRig(t)
	x.listen()
	doc, exit := x.probe(b4, "10.2.0.1", b6)
	if exit != 3 || len(doc.Hosts) != 3 {
		t.Fatalf("exit status %d, %d hosts", exit, len(doc.Hosts))
	}
	for i, want := range []probe.Status{probe.OK, probe.Unknown, probe.OK} {
		if doc.Hosts[i].Status != want {
			t.Errorf("host %d is %v, want %v", i, doc.Hosts[i].Status, want)
		}
	}
	check(t, &fault{exit: 3, want: []string{"no-control  unknown"}}, document{Hosts: doc.Hosts[1:2]}, exit)
}
