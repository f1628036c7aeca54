package topo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// The grammar's variants, each for two hosts behind one switch or more.
var hpccSamples = map[string]string{
	"HPCC": `4 2 3
2 3
0 2 100Gbps 0.001ms 0
1 3 100Gbps 1000ns 0.000000
2 3 400Gbps 1us 0.5
`,
	"switch number first, on several lines": `3 1 2

0
1 0 25Gbps 1us 0 0 2 25Gbps 1us 0`,
	"ns3-datacenter": `3 1 1 2
2
0 2 25000000000.0 2us 0
1 2 25000000000 2us 0
`,
	"ns3-datacenter with rates": `3 1 1 2 25000000000 25000000000
2
0 2 25000000000 2us 0
1 2 25000000000 2us 0
`,
	"SimAI": `4 2 1 1 4 H100
2 3
0 2 2400Gbps 0.000025ms 0
0 3 100Gbps 0.0005ms 0
1 2 2400Gbps 0.000025ms 0
1 3 100Gbps 0.0005ms 0
`,
}

func TestReadHPCC(t *testing.T) {
	for name, want := range map[string]string{
		"HPCC": `
host0 tier 0 pod 0: eth0=sw2/0 100Gbps 1us
host1 tier 0 pod 0: eth0=sw3/0 100Gbps 1us
sw2 tier 1 pod 0: Ethernet0=host0/0 100Gbps 1us Ethernet1=sw3/1 400Gbps 1us
sw3 tier 1 pod 0: Ethernet0=host1/0 100Gbps 1us Ethernet1=sw2/1 400Gbps 1us
`,
		"switch number first, on several lines": `
sw0 tier 1 pod 0: Ethernet0=host1/0 25Gbps 1us Ethernet1=host2/0 25Gbps 1us
host1 tier 0 pod 0: eth0=sw0/0 25Gbps 1us
host2 tier 0 pod 0: eth0=sw0/1 25Gbps 1us
`,
		"ns3-datacenter": `
host0 tier 0 pod 0: eth0=sw2/0 25Gbps 2us
host1 tier 0 pod 0: eth0=sw2/1 25Gbps 2us
sw2 tier 1 pod 0: Ethernet0=host0/0 25Gbps 2us Ethernet1=host1/0 25Gbps 2us
`,
		"ns3-datacenter with rates": `
host0 tier 0 pod 0: eth0=sw2/0 25Gbps 2us
host1 tier 0 pod 0: eth0=sw2/1 25Gbps 2us
sw2 tier 1 pod 0: Ethernet0=host0/0 25Gbps 2us Ethernet1=host1/0 25Gbps 2us
`,
		"SimAI": `
host0 tier 0 pod 0: eth0=nvsw2/0 2400Gbps 25ns eth1=sw3/0 100Gbps 500ns
host1 tier 0 pod 0: eth0=nvsw2/1 2400Gbps 25ns eth1=sw3/1 100Gbps 500ns
nvsw2 tier 1 pod 0: Ethernet0=host0/0 2400Gbps 25ns Ethernet1=host1/0 2400Gbps 25ns
sw3 tier 1 pod 0: Ethernet0=host0/1 100Gbps 500ns Ethernet1=host1/1 100Gbps 500ns
`,
	} {
		g, err := ReadHPCC(iotest.OneByteReader(strings.NewReader(hpccSamples[name])), "topology.txt")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkGraph(t, g)
		if d := cmp.Diff(strings.TrimLeft(want, "\n"), transcript(g)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if g.Name != "topology.txt, 2 hosts" {
			t.Errorf("%s: named %s", name, g.Name)
		}
	}
	g, _ := ReadHPCC(strings.NewReader(hpccSamples["HPCC"]), "")
	if e := g.Links[2].ErrorRate; e != 1<<31 {
		t.Errorf("error rate %d", e)
	}
}

// What is written reads as the same graph but for names, tiers and pods.
func TestWriteHPCC(t *testing.T) {
	shape := Explicit{
		Nodes: []NodeSpec{{Name: "host0"}, {Name: "sw1", Kind: Switch}, {Name: "host2"}, {Name: "sw3", Kind: Switch}},
		Links: []LinkSpec{
			{A: "host0", B: "sw1", Rate: 100 * sim.Gbps, Delay: sim.Microsecond, ErrorRate: 1},
			{A: "sw3", B: "sw1", Rate: 2_500_000_001, Delay: 1500, ErrorRate: 1<<32 - 1, Count: 2},
			{A: "sw3", B: "host2", Rate: 400 * sim.Gbps, ErrorRate: 4294967},
		},
	}
	g, _ := build(t, shape)
	var b bytes.Buffer
	if err := WriteHPCC(&b, g); err != nil {
		t.Fatal(err)
	}
	want := `4 2 4
1 3
0 1 100Gbps 1000ns 2.3283064365386963e-10
3 1 2500000001bps 1500ps 0.9999999997671694
3 1 2500000001bps 1500ps 0.9999999997671694
3 2 400Gbps 0ns 0.0009999999310821295
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
	back, err := ReadHPCC(&b, "")
	if err != nil {
		t.Fatal(err)
	}
	back.Name = g.Name
	if d := cmp.Diff(g, back, cmp.Comparer(func(a, b Endpoint) bool { return a == b })); d != "" {
		t.Error(d)
	}
	broken := errors.New("disk full")
	if err := WriteHPCC(failingWriter{broken}, g); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestReadHPCCErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "t: is empty: the first line gives the numbers of nodes, switches and links",
		"\n# only a comment\n":         "t: is empty: the first line gives the numbers of nodes, switches and links",
		"3 1":                          "t:1:1: the first line has 2 fields: 3 (nodes switches links), 4 or 6 (nodes switches ToRs links [rate rate]) or 6 (nodes gpus_per_server nvswitches switches links gpu) are known",
		"1 2 3 4 5 6 7 8 9":            "t:1:1: the first line has 8 fields: 3 (nodes switches links), 4 or 6 (nodes switches ToRs links [rate rate]) or 6 (nodes gpus_per_server nvswitches switches links gpu) are known",
		"x 1 2":                        `t:1:1: number of nodes "x" is not a whole number`,
		"999999999 1 2":                "t:1:1: number of nodes 999999999 is over the limit of 262144",
		"3 4 2":                        "t:1:3: number of switches 4 is over the limit of 3",
		"3 1 99999999":                 "t:1:5: number of links 99999999 is over the limit of 1048576",
		"200000 1 2":                   "t:1:10: 2 links are too few to give each of 200000 nodes one",
		"3 8 4 1 2 H100":               "t:1:5: number of NVSwitches 4 is over the limit of 3",
		"3 1 2\n":                      "t:2: the file ends after 0 of 1 switches",
		"3 1 2\n3\n":                   "t:2:1: number of a switch 3 is over the limit of 2",
		"4 2 2\n3 3\n":                 "t:2:3: switch 3 is listed twice",
		"3 1 2\n2\n0 2 1Gbps 1us 0\n":  "t:4: the file ends after 1 of 2 links",
		"3 1 2\n2\n0 2 1Gbps 1us 0\n1": "t:4: the file ends after 1 of 2 links",
		"3 1 2\n2\n0 2 1Gbps 1us":      "t:3: the file ends after 0 of 2 links",
		"3 1 2\n2\n0 5 1Gbps 1us 0":    "t:3:3: node 5 is over the limit of 2",
		"3 1 2\n2\n0 0 1Gbps 1us 0":    "t:3:3: node 0 is joined to itself",
		"3 1 2\n2\n0 2 1Gops 1us 0":    `t:3:5: rate "1Gops" is not a rate such as 100Gbps`,
		"3 1 2\n2\n0 2 0Gbps 1us 0":    "t:3:5: rate 0Gbps is not positive",
		"3 1 2\n2\n0 2 1Gbps 1 hour 0": "", // a delay of 1 s, then "hour"
		"3 1 2\n2\n0 2 1Gbps 2s 0":     "t:3:11: delay 2s is over the limit of 1s",
		"3 1 2\n2\n0 2 1Gbps -1us 0":   `t:3:11: delay "-1us" is not a time such as 1us`,
		"3 1 2\n2\n0 2 1Gbps 1us 2":    `t:3:15: error rate "2" is not a number from 0 to 1`,
		"3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n0 0":      "t:5:1: text after the last of 2 links",
		"3 1 2\n2\n0 2 1Gbps 1us 0\n0 2 1Gbps 1us 0\n":         "t: host host1 has no link",
		"3 1 2\n2\n0 2 " + strings.Repeat("9", 300) + " 1us 0": "t:3:5: field is longer than 256 bytes",
		"2 1 65\n1\n" + strings.Repeat("0 1 1Gbps 0 0\n", 65):  "t:67:1: host 0 has more than 64 links",
	} {
		g, err := ReadHPCC(strings.NewReader(in), "t")
		if g != nil || err == nil || want != "" && err.Error() != want {
			t.Errorf("%.60q: %v, want %s", in, err, want)
		}
	}
	broken := errors.New("disk gone")
	for _, at := range []int{0, 3, 8, 20} {
		in := io.MultiReader(strings.NewReader(hpccSamples["HPCC"][:at]), iotest.ErrReader(broken))
		if _, err := ReadHPCC(in, "t"); !errors.Is(err, broken) {
			t.Errorf("broken at %d: %v", at, err)
		}
	}
}

const htsim2 = `Nodes 32
Tiers 2
Podsize 32

Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 2
Queue_Down 1001
Downlink_Latency_ns 1000
Switch_Latency_ns 300
Oversubscribed 4

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 500
`

// Three tiers of which the upper one is slower and bundled.
const htsim3 = `# comment
nodes 8
tiers 3
podsize 4
tier 0
downlink_speed_gbps 200
radix_down 2
radix_up 2
downlink_latency_ns 1000
tier 1
downlink_speed_gbps 200
radix_down 2
radix_up 4
downlink_latency_ns 1000
switch_latency_ns 200
tier 2
downlink_speed_gbps 100
radix_down 4
downlink_latency_ns 600000
bundle 2
`

func TestReadHTSim(t *testing.T) {
	us := sim.Microsecond
	for _, c := range []struct {
		in   string
		want Shape
		name string
		at   map[string]sim.Time
	}{
		{
			htsim2,
			SpineLeaf{Leaves: 4, Spines: 2, HostsPerLeaf: 8, Rate: gig100, Delay: us, UplinkDelay: us / 2},
			"x.topo, spine-leaf 4x2, 32 hosts",
			map[string]sim.Time{"leaf3": 300 * sim.Nanosecond, "spine0": 0},
		},
		{
			htsim3,
			ThreeTier{
				Pods: 2, LeavesPerPod: 2, AggsPerPod: 2, Cores: 4, HostsPerLeaf: 2, LinksPerCore: 2,
				Rate: 2 * gig100, CoreRate: gig100, Delay: us, CoreDelay: 600 * us,
			},
			"x.topo, three-tier, 8 hosts",
			map[string]sim.Time{"leaf0": 0, "agg3": 200 * sim.Nanosecond, "core0": 0},
		},
	} {
		g, err := ReadHTSim(strings.NewReader(c.in), "x.topo")
		if err != nil {
			t.Fatal(err)
		}
		want, _ := build(t, c.want)
		if d := cmp.Diff(transcript(want), transcript(g)); d != "" || g.Name != c.name {
			t.Error(g.Name, d)
		}
		for n, l := range c.at {
			if got := g.Nodes[g.Node(n)].Latency; got != l {
				t.Errorf("latency of %s: %s", n, got)
			}
		}
	}
}

func TestReadHTSimErrors(t *testing.T) {
	edit := func(old, new string) string { return strings.Replace(htsim3, old, new, 1) }
	for in, want := range map[string]string{
		"":                                    "t: nodes are missing",
		"nodes 8":                             "t: tiers are missing",
		"nodes 8\ntiers 2":                    "t: podsize is missing",
		"nodes":                               "t:1:1: nodes has no value",
		"nodes\n8":                            "t:1:1: nodes has no value",
		"nodes 8 9":                           `t:1:9: "9" does not belong here: a line has a key and a number`,
		"nodes x":                             `t:1:7: nodes "x" is not a whole number`,
		"Nodes 99999999":                      "t:1:7: Nodes 99999999 is over the limit of 262144",
		"nodes 8\nnodes 8":                    "t:2:7: nodes comes twice",
		"tiers 4":                             "t:1:7: tiers 4 is over the limit of 3",
		"nodse 8":                             `t:1:1: key "nodse" is not known`,
		"radix_up 8":                          "t:1:1: radix_up comes before any tier",
		edit("tier 1", "tier 0"):              "t:10:1: tier 0 comes twice",
		edit("tier 1", "tier 3"):              "t:10:6: tier 3 is over the limit of 2",
		edit("radix_up 2", "radix_down 2"):    "t:8:1: radix_down of tier 0 comes twice",
		edit("radix_up 2\n", ""):              "t: tier 0 has no radix_up",
		edit("downlink_speed_gbps 200\n", ""): "t: tier 0 has no downlink_speed_gbps",
		edit("ns 1000", "ns 0"):               "t:9:21: downlink_latency_ns 0 is less than 1",
		edit("tiers 3", "tiers 2"):            "t: two tiers have one pod: podsize 4 is not nodes 8",
		edit("podsize 4", "podsize 3"):        "t: nodes 8 are no multiple of podsize 3",
		edit("radix_down 2", "radix_down 3"):  "t: podsize 4 is no multiple of radix_down 3 of tier 0",
		edit("radix_up 2", "radix_up 2\nbundle 2"):  "t: bundle 2 of tier 0: hosts have one link",
		edit("radix_up 4", "radix_up 5"):            "t: radix_up 5 of tier 1 is no multiple of bundle 2 of tier 2",
		edit("radix_up 4", "radix_up 8"):            "t: tier 1 has 2 x 200 Gb/s down and 8 x 100 Gb/s up, which is not oversubscribed 1",
		edit("radix_down 4", "radix_down 16"):       "t: radix_down 16 of tier 2: 4 are needed, for 2 switches by 2",
		edit("radix_up 2", "radix_up 1"):            "t: tier 0 has 2 x 200 Gb/s down and 1 x 200 Gb/s up, which is not oversubscribed 1",
		edit("tier 2", "#")[:len(htsim3)-90]:        "",
		edit("speed_gbps 200", "speed_gbps 200000"): "t:6:21: downlink_speed_gbps 200000 is over the limit of 100000",
	} {
		g, err := ReadHTSim(strings.NewReader(in), "t")
		if g != nil || err == nil || want != "" && err.Error() != want {
			t.Errorf("%.60q: %v, want %s", in, err, want)
		}
	}
	broken := errors.New("disk gone")
	for at := range len(htsim3) {
		in := io.MultiReader(strings.NewReader(htsim3[:at]), iotest.ErrReader(broken))
		if _, err := ReadHTSim(in, "t"); !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
	}
}

func TestResolver(t *testing.T) {
	g, err := ReadHPCC(strings.NewReader(hpccSamples["SimAI"]), "")
	if err != nil {
		t.Fatal(err)
	}
	r, _ := g.Routes()
	v := NewResolver(r)
	for _, c := range []struct {
		by       func(a, b string) (int32, int32, error)
		src, dst string
		want     string
	}{
		{v.ByNode, "0", "1", "0 2 <nil>"}, // both by their NVSwitch: as near as the other, and lower
		{v.ByNode, "0", "0", "0 0 host0 sends to itself"},
		{v.ByNode, "0", "3", "0 0 node 3 is a switch"},
		{v.ByNode, "4", "0", "0 0 node 4 does not exist: there are 4"},
		{v.ByNode, "-1", "0", `0 0 "-1" is no node's number`},
		{v.ByHost, "1", "0", "2 0 <nil>"},
		{v.ByHost, "2", "0", "0 0 host 2 does not exist: there are 2"},
		{v.ByHost, "a", "0", `0 0 "a" is no host's number`},
		{v.ByName, "host0", "host1", "0 2 <nil>"},
		{v.ByName, "host0/eth1", "host1", "1 3 <nil>"},
		{v.ByName, "host0", "host1/eth1", "1 3 <nil>"},
		{v.ByName, "0", "host1/eth1", "1 3 <nil>"},
		{v.ByName, "host0/eth0", "host1/eth1", "0 0 no way from host0/eth0 to host1/eth1: nvsw2 has no route"},
		{v.ByName, "host0/eth2", "host1", `0 0 host0 has no "eth2": it has 2 ports`},
		{v.ByName, "sw3", "host1", `0 0 "sw3" is a switch`},
		{v.ByName, "host7", "host1", `0 0 "host7" does not exist`},
		{v.ByName, "7", "host1", `0 0 "7" does not exist`},
	} {
		a, b, err := c.by(c.src, c.dst)
		if got := fmt.Sprint(a, b, err); got != strings.Replace(c.want, " <nil>", "<nil>", 1) && got != c.want {
			t.Errorf("%s %s: %s, want %s", c.src, c.dst, got, c.want)
		}
	}
}

func FuzzReadHPCC(f *testing.F) {
	for _, s := range hpccSamples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		g, err := ReadHPCC(strings.NewReader(in), "t")
		if err != nil {
			oneLine(t, err)
			return
		}
		checkGraph(t, g)
		if _, err := g.Routes(); err != nil {
			oneLine(t, err)
		}
		var b bytes.Buffer
		if err := WriteHPCC(&b, g); err != nil {
			t.Fatal(err)
		}
		back, err := ReadHPCC(&b, "t")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(g.Links, back.Links); d != "" {
			t.Error(d)
		}
	})
}

func FuzzReadHTSim(f *testing.F) {
	f.Add(htsim2)
	f.Add(htsim3)
	f.Fuzz(func(t *testing.T, in string) {
		g, err := ReadHTSim(strings.NewReader(in), "t")
		if err != nil {
			oneLine(t, err)
			return
		}
		checkGraph(t, g)
	})
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if s := err.Error(); !strings.HasPrefix(s, "t:") || strings.Contains(s, "\n") {
		t.Errorf("not one line with its place: %q", s)
	}
}
