package topo

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

// transcript writes a graph for people: a line for each node, with what its
// ports lead to.
func transcript(g *Graph) string {
	var b strings.Builder
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "%s tier %d pod %d:", n.Name, n.Tier, n.Pod)
		for p, port := range n.Ports {
			l := g.Links[port.Link]
			fmt.Fprintf(&b, " %s=%s/%d %s %s", g.PortName(int32(i), int32(p)), g.Nodes[port.Peer].Name, port.PeerPort, l.Rate, l.Delay)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Small graphs, port by port.
func TestShapes(t *testing.T) {
	const us = sim.Microsecond
	for _, c := range []struct {
		shape Shape
		want  string
	}{
		{Star{Hosts: 2, NICs: 2, Rate: gig100, Delay: us}, `
host0 tier 0 pod 0: eth0=sw0/0 100Gbps 1us eth1=sw0/1 100Gbps 1us
host1 tier 0 pod 0: eth0=sw0/2 100Gbps 1us eth1=sw0/3 100Gbps 1us
sw0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 1us Ethernet1=host0/1 100Gbps 1us Ethernet2=host1/0 100Gbps 1us Ethernet3=host1/1 100Gbps 1us
`},
		{Dumbbell{Left: 2, Right: 1, Rate: gig100, BottleneckRate: gig100 / 4}, `
host0 tier 0 pod 0: eth0=sw0/0 100Gbps 0ps
host1 tier 0 pod 0: eth0=sw0/1 100Gbps 0ps
host2 tier 0 pod 0: eth0=sw1/0 100Gbps 0ps
sw0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=host1/0 100Gbps 0ps Ethernet2=sw1/1 25Gbps 0ps
sw1 tier 1 pod 0: Ethernet0=host2/0 100Gbps 0ps Ethernet1=sw0/2 25Gbps 0ps
`},
		{ParkingLot{Switches: 3, HostsPerSwitch: 1, Rate: gig100, TrunkRate: 4 * gig100, TrunkDelay: us}, `
host0 tier 0 pod 0: eth0=sw0/0 100Gbps 0ps
host1 tier 0 pod 1: eth0=sw1/0 100Gbps 0ps
host2 tier 0 pod 2: eth0=sw2/0 100Gbps 0ps
sw0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=sw1/1 400Gbps 1us
sw1 tier 1 pod 1: Ethernet0=host1/0 100Gbps 0ps Ethernet1=sw0/1 400Gbps 1us Ethernet2=sw2/1 400Gbps 1us
sw2 tier 1 pod 2: Ethernet0=host2/0 100Gbps 0ps Ethernet1=sw1/2 400Gbps 1us
`},
		{Ring{Switches: 3, HostsPerSwitch: 1, Rate: gig100}, `
host0 tier 0 pod 0: eth0=sw0/0 100Gbps 0ps
host1 tier 0 pod 1: eth0=sw1/0 100Gbps 0ps
host2 tier 0 pod 2: eth0=sw2/0 100Gbps 0ps
sw0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=sw1/1 100Gbps 0ps Ethernet2=sw2/2 100Gbps 0ps
sw1 tier 1 pod 1: Ethernet0=host1/0 100Gbps 0ps Ethernet1=sw0/1 100Gbps 0ps Ethernet2=sw2/1 100Gbps 0ps
sw2 tier 1 pod 2: Ethernet0=host2/0 100Gbps 0ps Ethernet1=sw1/2 100Gbps 0ps Ethernet2=sw0/2 100Gbps 0ps
`},
		{SpineLeaf{Leaves: 2, Spines: 1, HostsPerLeaf: 2, UplinksPerSpine: 2, Rate: gig100, UplinkRate: 4 * gig100}, `
host0 tier 0 pod 0: eth0=leaf0/0 100Gbps 0ps
host1 tier 0 pod 0: eth0=leaf0/1 100Gbps 0ps
host2 tier 0 pod 1: eth0=leaf1/0 100Gbps 0ps
host3 tier 0 pod 1: eth0=leaf1/1 100Gbps 0ps
leaf0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=host1/0 100Gbps 0ps Ethernet2=spine0/0 400Gbps 0ps Ethernet3=spine0/1 400Gbps 0ps
leaf1 tier 1 pod 1: Ethernet0=host2/0 100Gbps 0ps Ethernet1=host3/0 100Gbps 0ps Ethernet2=spine0/2 400Gbps 0ps Ethernet3=spine0/3 400Gbps 0ps
spine0 tier 2 pod -1: Ethernet0=leaf0/2 400Gbps 0ps Ethernet1=leaf0/3 400Gbps 0ps Ethernet2=leaf1/2 400Gbps 0ps Ethernet3=leaf1/3 400Gbps 0ps
`},
		{FatTree{K: 2, Rate: gig100}, `
host0 tier 0 pod 0: eth0=leaf0/0 100Gbps 0ps
host1 tier 0 pod 1: eth0=leaf1/0 100Gbps 0ps
leaf0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=agg0/0 100Gbps 0ps
leaf1 tier 1 pod 1: Ethernet0=host1/0 100Gbps 0ps Ethernet1=agg1/0 100Gbps 0ps
agg0 tier 2 pod 0: Ethernet0=leaf0/1 100Gbps 0ps Ethernet1=core0/0 100Gbps 0ps
agg1 tier 2 pod 1: Ethernet0=leaf1/1 100Gbps 0ps Ethernet1=core0/1 100Gbps 0ps
core0 tier 3 pod -1: Ethernet0=agg0/1 100Gbps 0ps Ethernet1=agg1/1 100Gbps 0ps
`},
		{ThreeTier{Pods: 1, LeavesPerPod: 1, AggsPerPod: 2, Cores: 2, HostsPerLeaf: 1, LinksPerCore: 2, Rate: gig100, CoreRate: 4 * gig100, UplinkDelay: us}, `
host0 tier 0 pod 0: eth0=leaf0/0 100Gbps 0ps
leaf0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=agg0/0 100Gbps 1us Ethernet2=agg1/0 100Gbps 1us
agg0 tier 2 pod 0: Ethernet0=leaf0/1 100Gbps 1us Ethernet1=core0/0 400Gbps 1us Ethernet2=core0/1 400Gbps 1us
agg1 tier 2 pod 0: Ethernet0=leaf0/2 100Gbps 1us Ethernet1=core1/0 400Gbps 1us Ethernet2=core1/1 400Gbps 1us
core0 tier 3 pod -1: Ethernet0=agg0/1 400Gbps 1us Ethernet1=agg0/2 400Gbps 1us
core1 tier 3 pod -1: Ethernet0=agg1/1 400Gbps 1us Ethernet1=agg1/2 400Gbps 1us
`},
		{Rail{Units: 1, HostsPerUnit: 2, NICs: 2, Spines: 1, Rate: gig100}, `
host0 tier 0 pod 0: eth0=leaf0/0 100Gbps 0ps eth1=leaf1/0 100Gbps 0ps
host1 tier 0 pod 0: eth0=leaf0/1 100Gbps 0ps eth1=leaf1/1 100Gbps 0ps
leaf0 tier 1 pod 0: Ethernet0=host0/0 100Gbps 0ps Ethernet1=host1/0 100Gbps 0ps Ethernet2=spine0/0 100Gbps 0ps
leaf1 tier 1 pod 0: Ethernet0=host0/1 100Gbps 0ps Ethernet1=host1/1 100Gbps 0ps Ethernet2=spine0/1 100Gbps 0ps
spine0 tier 2 pod -1: Ethernet0=leaf0/2 100Gbps 0ps Ethernet1=leaf1/2 100Gbps 0ps
`},
		{Explicit{
			Nodes: []NodeSpec{{Name: "a"}, {Name: "s", Kind: Switch}, {Name: "top", Kind: Switch}, {Name: "b", Pod: 3}},
			Links: []LinkSpec{{A: "a", B: "b", Rate: gig100}, {A: "s", B: "a", Rate: gig100, Delay: us}, {A: "s", B: "top", Rate: gig100, Count: 2}},
		}, `
a tier 0 pod 0: eth0=b/0 100Gbps 0ps eth1=s/0 100Gbps 1us
s tier 1 pod 0: Ethernet0=a/1 100Gbps 1us Ethernet1=top/0 100Gbps 0ps Ethernet2=top/1 100Gbps 0ps
top tier 2 pod 0: Ethernet0=s/1 100Gbps 0ps Ethernet1=s/2 100Gbps 0ps
b tier 0 pod 3: eth0=a/0 100Gbps 0ps
`},
	} {
		t.Run(fmt.Sprintf("%T", c.shape), func(t *testing.T) {
			g, _ := build(t, c.shape)
			if d := cmp.Diff(strings.TrimLeft(c.want, "\n"), transcript(g)); d != "" {
				t.Error(d)
			}
		})
	}
}

// Every shape: the ends of a link know each other, endpoints are numbered by
// host and port, addresses differ and share a prefix only within a subnet.
func checkGraph(t testing.TB, g *Graph) {
	t.Helper()
	for i := range g.Links {
		l := &g.Links[i]
		a, b := g.Nodes[l.A].Ports[l.APort], g.Nodes[l.B].Ports[l.BPort]
		if (a != Port{int32(i), l.B, l.BPort}) || (b != Port{int32(i), l.A, l.APort}) {
			t.Fatalf("link %d: %+v, ends %+v and %+v", i, *l, a, b)
		}
	}
	addr := map[netip.Addr]bool{}
	next := 0
	subnetOfLeaf := map[int32]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Kind == Switch {
			if n.Endpoint != -1 || n.Tier < 1 {
				t.Fatalf("%s: endpoint %d, tier %d", n.Name, n.Endpoint, n.Tier)
			}
			continue
		}
		if int(n.Endpoint) != next {
			t.Fatalf("%s: first endpoint %d, want %d", n.Name, n.Endpoint, next)
		}
		for p, port := range n.Ports {
			e := g.Endpoints[next]
			next++
			if int(e.Node) != i || int(e.Port) != p || g.Nodes[port.Peer].Kind == Switch && e.Leaf != port.Peer {
				t.Fatalf("%s port %d: %+v", n.Name, p, e)
			}
			if addr[e.Addr] || !netip.MustParsePrefix("10.0.0.0/8").Contains(e.Addr) {
				t.Fatalf("%s port %d: address %s", n.Name, p, e.Addr)
			}
			addr[e.Addr] = true
			if s, ok := subnetOfLeaf[e.Leaf]; ok && s != e.Subnet {
				t.Fatalf("%s port %d: subnet %d, its leaf has %d", n.Name, p, e.Subnet, s)
			}
			subnetOfLeaf[e.Leaf] = e.Subnet
		}
	}
	if next != len(g.Endpoints) {
		t.Fatalf("%d endpoints, want %d", len(g.Endpoints), next)
	}
	subnets := map[int]bool{}
	for _, s := range subnetOfLeaf {
		if subnets[s] || s >= len(subnetOfLeaf) {
			t.Fatalf("subnets by leaf: %v", subnetOfLeaf)
		}
		subnets[s] = true
	}
}

func someShape(t *rapid.T) Shape {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	switch n("shape", 0, 8) {
	case 0:
		return Star{Hosts: n("hosts", 1, 20), NICs: n("NICs", 0, 3), Rate: gig100}
	case 1:
		return Dumbbell{Left: n("left", 1, 5), Right: n("right", 1, 5), Rate: gig100}
	case 2:
		return ParkingLot{Switches: n("switches", 2, 6), HostsPerSwitch: n("hosts", 1, 3), Rate: gig100}
	case 3:
		return Ring{Switches: n("switches", 3, 7), HostsPerSwitch: n("hosts", 1, 3), Rate: gig100, OneWay: n("one way", 0, 1) == 1}
	case 4:
		return SpineLeaf{
			Leaves: n("leaves", 1, 5), Spines: n("spines", 1, 4), HostsPerLeaf: n("hosts", 1, 4), NICs: n("NICs", 0, 2),
			UplinksPerSpine: n("uplinks", 0, 3), Rate: gig100,
		}
	case 5:
		k := n("half k", 1, 4)
		return FatTree{K: 2 * k, Rate: gig100, Oversubscription: k * n("oversubscribed", 0, 1)}
	case 6:
		aggs := n("aggs", 1, 3)
		return ThreeTier{
			Pods: n("pods", 1, 4), LeavesPerPod: n("leaves", 1, 3), AggsPerPod: aggs, Cores: aggs * n("plane", 1, 3),
			HostsPerLeaf: n("hosts", 1, 3), UplinksPerAgg: n("uplinks", 0, 2), LinksPerCore: n("core links", 0, 2), Rate: gig100,
		}
	case 7:
		return Rail{Units: n("units", 1, 3), HostsPerUnit: n("hosts", 1, 4), NICs: n("NICs", 1, 4), Spines: n("spines", 1, 3), Rate: gig100}
	}
	return Bounce{HostsPerLeaf: n("hosts", 1, 3), Rate: gig100}
}

// In every shape every endpoint reaches every other, over every choice of equal
// ways, in the same number of links; without static routes that number is the
// shortest.
func TestEveryPairIsConnected(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := someShape(rt)
		g, err := shape.Build()
		if err != nil {
			rt.Fatal(err)
		}
		checkGraph(t, g)
		r, err := g.Routes()
		if err != nil {
			rt.Fatal(err)
		}
		for src := range g.Endpoints {
			dist := distances(g, g.Endpoints[src].Node)
			for dst := range g.Endpoints {
				if g.Endpoints[src].Node == g.Endpoints[dst].Node {
					continue
				}
				pick := func(_ int32, ports []uint16) uint16 {
					if !slices.IsSorted(ports) {
						rt.Fatalf("ports %v", ports)
					}
					return rapid.SampledFrom(ports).Draw(rt, "port")
				}
				path, err := r.Path(int32(src), int32(dst), pick, nil)
				if err != nil {
					rt.Fatal(err)
				}
				leaf := dist[g.Endpoints[dst].Leaf] + 1
				if _, rail := shape.(Rail); len(g.Static) == 0 && !rail && len(path) != leaf {
					rt.Fatalf("%s to %s: %v, %d links, want %d", g.EndpointName(int32(src)), g.EndpointName(int32(dst)), path, len(path), leaf)
				}
			}
		}
	})
}

// distances is a plain search over switches from a host.
func distances(g *Graph, from int32) map[int32]int {
	dist := map[int32]int{from: 0}
	for queue := []int32{from}; len(queue) > 0; queue = queue[1:] {
		for _, p := range g.Nodes[queue[0]].Ports {
			if _, ok := dist[p.Peer]; !ok && g.Nodes[p.Peer].Kind == Switch {
				dist[p.Peer] = dist[queue[0]] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	return dist
}

// paths counts the equal ways between two endpoints.
func paths(g *Graph, r *Routes, at, dst int32) int {
	if g.Endpoints[dst].Node == at {
		return 1
	}
	n := 0
	for _, p := range r.Ports(at, dst) {
		n += paths(g, r, g.Nodes[at].Ports[p].Peer, dst)
	}
	return n
}

// Hop counts and widths by formula: a fat tree has k³/4 hosts, (k/2)² ways
// between pods and k/2 within one; a spine-leaf network one a spine.
func TestWidths(t *testing.T) {
	ft := func(k, over int) FatTree { return FatTree{K: k, Oversubscription: over, Rate: gig100} }
	for _, c := range []struct {
		shape             Shape
		hosts             int
		src, dst, n, hops int
	}{
		{Star{Hosts: 9, Rate: gig100}, 9, 0, 8, 1, 2},
		{Dumbbell{Left: 2, Right: 2, Rate: gig100}, 4, 0, 3, 1, 3},
		{ParkingLot{Switches: 5, HostsPerSwitch: 2, Rate: gig100}, 10, 0, 9, 1, 6},
		{Ring{Switches: 6, HostsPerSwitch: 1, Rate: gig100}, 6, 0, 3, 2, 5},
		{Ring{Switches: 6, HostsPerSwitch: 1, Rate: gig100, OneWay: true}, 6, 0, 5, 1, 7},
		{SpineLeaf{Leaves: 4, Spines: 8, HostsPerLeaf: 8, Rate: gig100}, 32, 0, 31, 8, 4},
		{SpineLeaf{Leaves: 4, Spines: 8, HostsPerLeaf: 8, UplinksPerSpine: 2, Rate: gig100}, 32, 0, 31, 32, 4},
		{ft(4, 1), 16, 0, 15, 4, 6},
		{ft(8, 1), 128, 0, 127, 16, 6},
		{ft(8, 1), 128, 0, 15, 4, 4},
		{ft(8, 1), 128, 0, 3, 1, 2},
		{ft(8, 2), 128, 0, 127, 8, 6},
		{ThreeTier{Pods: 16, LeavesPerPod: 8, AggsPerPod: 8, Cores: 64, HostsPerLeaf: 8, Rate: gig100}, 1024, 0, 1023, 64, 6},
		{Rail{Units: 2, HostsPerUnit: 4, NICs: 4, Spines: 3, Rate: gig100}, 8, 0, 4, 1, 2},
		{Rail{Units: 2, HostsPerUnit: 4, NICs: 4, Spines: 3, Rate: gig100}, 8, 0, 5, 3, 4},
		{Rail{Units: 2, HostsPerUnit: 4, NICs: 4, Spines: 3, Rate: gig100}, 8, 0, 28, 3, 4},
		{Bounce{HostsPerLeaf: 1, Rate: gig100}, 4, 0, 2, 1, 6},
	} {
		g, r := build(t, c.shape)
		src, dst := int32(c.src), int32(c.dst)
		got := paths(g, r, g.Endpoints[src].Leaf, dst)
		if g.Hosts() != c.hosts || got != c.n || r.Hops(src, dst) != c.hops {
			t.Errorf("%T %s: %d hosts, %d ways, %d links; want %d, %d, %d", c.shape, g.Name, g.Hosts(), got, r.Hops(src, dst), c.hosts, c.n, c.hops)
		}
	}
}

func TestInvalidShapes(t *testing.T) {
	sl := SpineLeaf{Leaves: 2, Spines: 2, HostsPerLeaf: 2, Rate: gig100}
	with := func(f func(*SpineLeaf)) SpineLeaf {
		s := sl
		f(&s)
		return s
	}
	nodes := []NodeSpec{{Name: "a"}, {Name: "b", Kind: Switch}}
	explicit := func(l LinkSpec) Explicit { return Explicit{Nodes: nodes, Links: []LinkSpec{l}} }
	for _, c := range []struct {
		shape Shape
		want  string
	}{
		{Star{Rate: gig100}, "star: hosts 0 is less than 1"},
		{Star{Hosts: 1}, "star: rate 0bps is not positive"},
		{Star{Hosts: 4096, NICs: 2, Rate: gig100}, "star: 8192 ports of the switch are over the limit of 4096"},
		{Star{Hosts: 1, Rate: gig100, Delay: -1}, "star: delay -1ps is negative"},
		{Star{Hosts: 1, Rate: 1e18}, "star: rate 1e+09Gbps is over the limit of 1e+05Gbps"},
		{Dumbbell{Left: 1, Rate: gig100}, "dumbbell: right 0 is less than 1"},
		{Dumbbell{Left: 1, Right: 1, Rate: gig100, BottleneckRate: -1}, "dumbbell: bottleneck rate -1bps is not positive"},
		{ParkingLot{Switches: 1, HostsPerSwitch: 1, Rate: gig100}, "parking lot: switches 1 is less than 2"},
		{Ring{Switches: 2, HostsPerSwitch: 1, Rate: gig100}, "ring: switches 2 is less than 3"},
		{Ring{Switches: 4096, HostsPerSwitch: 4000, Rate: gig100}, "ring: 16388096 nodes are over the limit of 262144"},
		{with(func(s *SpineLeaf) { s.Spines = 0 }), "spine-leaf: spines 0 is less than 1"},
		{with(func(s *SpineLeaf) { s.UplinksPerSpine = -1 }), "spine-leaf: uplinks per spine -1 is less than 1"},
		{with(func(s *SpineLeaf) { s.NICs = 65 }), "spine-leaf: NICs 65 is over the limit of 64"},
		{with(func(s *SpineLeaf) { s.UplinkDelay = 2 * sim.Second }), "spine-leaf: uplink delay 2s is over the limit of 1s"},
		{with(func(s *SpineLeaf) { s.Leaves = 1 << 30 }), "spine-leaf: leaves 1073741824 is over the limit of 4096"},
		{with(func(s *SpineLeaf) { s.HostsPerLeaf = 4095 }), "spine-leaf: 4097 ports of a leaf are over the limit of 4096"},
		{FatTree{K: 3, Rate: gig100}, "fat tree: K 3 is odd"},
		{FatTree{K: 82, Rate: gig100}, "fat tree: K 82 is over the limit of 80"},
		{FatTree{K: 8, Oversubscription: 3, Rate: gig100}, "fat tree: oversubscription 3 does not divide K/2 = 4"},
		{
			ThreeTier{Pods: 1, LeavesPerPod: 1, AggsPerPod: 2, Cores: 3, HostsPerLeaf: 1, Rate: gig100},
			"three-tier: cores 3 is no multiple of the 2 aggregation switches of a pod",
		},
		{
			ThreeTier{Pods: 4096, LeavesPerPod: 4096, AggsPerPod: 2, Cores: 2, HostsPerLeaf: 4000, Rate: gig100},
			"three-tier: 16777216 leaves are over the limit of 262144",
		},
		{Rail{Units: 1, HostsPerUnit: 1, Rate: gig100}, "rail: NICs 0 is less than 1"},
		{Bounce{Rate: gig100}, "bounce: hosts per leaf 0 is less than 1"},
		{Explicit{}, "explicit: nodes are missing"},
		{Explicit{Nodes: nodes}, "host a has no link"},
		{Explicit{Nodes: []NodeSpec{{Name: "a"}, {Name: "a"}}}, `explicit: nodes[1]: name "a" is taken by node 0`},
		{Explicit{Nodes: []NodeSpec{{Name: "a b"}}}, `explicit: nodes[0]: name "a b" is not 1 to 64 letters, digits, - _ .`},
		{Explicit{Nodes: []NodeSpec{{Name: "a", Kind: 7}}}, "explicit: nodes[0]: kind 7 is neither host nor switch"},
		{Explicit{Nodes: []NodeSpec{{Name: "a", Tier: -1}}}, "explicit: nodes[0]: tier -1 is not in 0 to 255"},
		{explicit(LinkSpec{A: "a", B: "c", Rate: 1}), `explicit: links[0]: node "c" does not exist`},
		{explicit(LinkSpec{A: "a", B: "a", Rate: 1}), "explicit: links[0]: a is joined to itself"},
		{explicit(LinkSpec{A: "a", B: "b"}), "explicit: links[0]: a to b: rate 0bps is not positive"},
		{explicit(LinkSpec{A: "a", B: "b", Rate: 1, ErrorRate: 1 << 33}), "explicit: links[0]: error rate 8589934592 is over the limit of 2^32"},
		{explicit(LinkSpec{A: "a", B: "b", Rate: 1, Count: 65}), "host a has 65 ports, over the limit of 64"},
	} {
		g, err := c.shape.Build()
		if g != nil || err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.shape, err, c.want)
		}
	}
}

func TestSubnets(t *testing.T) {
	g, _ := build(t, SpineLeaf{Leaves: 3, Spines: 1, HostsPerLeaf: 2, Rate: gig100})
	if a := g.Endpoints[5]; a.Subnet != 2 || a.Addr != netip.MustParseAddr("10.0.2.2") {
		t.Errorf("%+v", a)
	}
	if err := g.OneSubnet(); err != nil || g.Endpoints[5].Addr != netip.MustParseAddr("10.0.0.6") || g.Endpoints[5].Subnet != 0 {
		t.Errorf("%+v, %v", g.Endpoints[5], err)
	}
	before := slices.Clone(g.Endpoints)
	for of, want := range map[int]string{
		-1:      "subnet -1 of host0: 0 to 16777215 are possible",
		1 << 23: "8388609 subnets of up to 6 endpoints do not fit into 10.0.0.0/8",
	} {
		if err := g.SetSubnets(func(int32) int { return of }); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if !slices.Equal(before, g.Endpoints) {
		t.Error("a failed call has changed addresses")
	}
	// A leaf of more than 254 hosts has a larger subnet, 255 and 0 in it are free.
	g, _ = build(t, SpineLeaf{Leaves: 2, Spines: 1, HostsPerLeaf: 255, Rate: gig100})
	if a := g.Endpoints[255].Addr; a != netip.MustParseAddr("10.0.2.1") {
		t.Errorf("%s", a)
	}
}
