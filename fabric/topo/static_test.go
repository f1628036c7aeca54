package topo

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func wantPorts(t *testing.T, r *Routes, sw string, dst int32, want ...uint16) {
	t.Helper()
	if got := r.Ports(r.g.Node(sw), dst); !slices.Equal(got, want) {
		t.Errorf("%s to endpoint %d: %v, want %v", sw, dst, got, want)
	}
}

// A route of an endpoint goes before that of its leaf, which goes before the
// shortest path; both keep only ports that are up, and yield when none is.
func TestStaticRoutes(t *testing.T) {
	g, r := build(t, SpineLeaf{Leaves: 3, Spines: 3, HostsPerLeaf: 2, Rate: gig100})
	leaf0, leaf2 := g.Node("leaf0"), g.Node("leaf2")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Set(leaf0, 4, 2, 3))
	wantPorts(t, r, "leaf0", 4, 2, 3)
	wantPorts(t, r, "leaf0", 5, 2, 3, 4)
	wantPorts(t, r, "leaf1", 4, 2, 3, 4)
	must(r.SetLeaf(leaf0, leaf2, 4))
	wantPorts(t, r, "leaf0", 4, 2, 3)
	wantPorts(t, r, "leaf0", 5, 4)
	must(r.Set(g.Node("leaf1"), 5, 2)) // 5 leaves the column of its leaf and keeps its route at leaf0
	wantPorts(t, r, "leaf0", 5, 4)
	must(r.SetLeaf(leaf0, leaf2, 3)) // ... and is still one of its leaf
	wantPorts(t, r, "leaf0", 5, 3)
	wantPorts(t, r, "leaf0", 4, 2, 3)
	wantPorts(t, r, "leaf0", 2, 2, 3, 4)

	link := func(port int) int32 { return g.Nodes[leaf0].Ports[port].Link }
	r.Rebuild(func(l int32) bool { return l == link(2) })
	wantPorts(t, r, "leaf0", 4, 3)
	r.Rebuild(func(l int32) bool { return l == link(2) || l == link(3) })
	wantPorts(t, r, "leaf0", 4, 4)
	wantPorts(t, r, "leaf0", 5, 4)
	must(r.Set(leaf0, 4, 4))
	must(r.Set(leaf0, 4, 3)) // down now: not what was laid before
	wantPorts(t, r, "leaf0", 4, 4)
	r.Rebuild(nil)
	wantPorts(t, r, "leaf0", 4, 3)
	wantPorts(t, r, "leaf0", 5, 3)

	for want, err := range map[string]error{
		"route: node 0 is no switch":                                       r.Set(0, 4, 1),
		"route: node -1 is no switch":                                      r.Set(-1, 4, 1),
		"route of node 6: endpoint 6 does not exist: there are 6":          r.Set(leaf0, 6, 1),
		"route of leaf0: no port given":                                    r.Set(leaf0, 4),
		"route of leaf0: port 5 does not exist: it has 5":                  r.Set(leaf0, 4, 5),
		"route of leaf0: port 2 follows port 2: ascending order is wanted": r.Set(leaf0, 4, 2, 2),
		"route of node 6: node 0 is no leaf: no endpoint hangs on it":      r.SetLeaf(leaf0, 0, 2),
		"route of leaf0: port 9 does not exist: it has 5":                  r.SetLeaf(leaf0, leaf2, 9),
		"route of node 6: node 9 is no leaf: no endpoint hangs on it":      r.SetLeaf(leaf0, g.Node("spine0"), 2),
		"route of leaf0: port 65535 does not exist: it has 5":              r.Set(leaf0, 4, 65535),
		"route of node 6: endpoint -1 does not exist: there are 6":         r.Set(leaf0, -1, 1),
		"route of node 6: node 100000 is no leaf: no endpoint hangs on it": r.SetLeaf(leaf0, 100000, 2),
		"route of leaf0: port 1 follows port 2: ascending order is wanted": r.Set(leaf0, 4, 2, 1),
		"route: node 100 is no switch":                                     r.SetLeaf(100, leaf2, 2),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wantPorts(t, r, "leaf0", 4, 3)
}

// Every endpoint can have a route of its own.
func TestManyColumns(t *testing.T) {
	g, r := build(t, SpineLeaf{Leaves: 4, Spines: 4, HostsPerLeaf: 16, Rate: gig100})
	leaf0 := g.Node("leaf0")
	for e := int32(16); e < 64; e++ {
		if err := r.Set(leaf0, e, uint16(16+e%4)); err != nil {
			t.Fatal(err)
		}
	}
	for e := int32(16); e < 64; e++ {
		wantPorts(t, r, "leaf0", e, uint16(16+e%4))
		if e/16 != 3 {
			wantPorts(t, r, "leaf3", e, 16, 17, 18, 19)
		}
	}
}

// Traffic of a bounce goes down and up again, by the four links that wait for
// each other.
func TestBounce(t *testing.T) {
	g, r := build(t, Bounce{HostsPerLeaf: 1, Rate: gig100})
	way := func(src, dst int32) string {
		path, err := r.Path(src, dst, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, h := range path {
			names = append(names, g.Nodes[h.Node].Name)
		}
		return strings.Join(names, " ")
	}
	if got := way(0, 2); got != "host0 leaf0 spine0 leaf1 spine1 leaf2" {
		t.Error(got)
	}
	if got := way(3, 1); got != "host3 leaf3 spine1 leaf2 spine0 leaf1" {
		t.Error(got)
	}
	for sw, want := range map[string]bool{"leaf0": true, "spine0": false, "leaf1": true, "spine1": false, "leaf2": false} {
		if r.Up(g.Node(sw), 2) != want {
			t.Errorf("up at %s: %v", sw, !want)
		}
	}
}

// Without the routes that were laid by hand all are those of a graph that never had
// any.
func TestForget(t *testing.T) {
	g, r := build(t, Bounce{HostsPerLeaf: 1, Rate: gig100})
	_, plain := build(t, SpineLeaf{Leaves: 4, Spines: 2, HostsPerLeaf: 1, Rate: gig100})
	r.Forget()
	r.Rebuild(nil)
	for sw := range g.Nodes {
		for dst := range g.Endpoints {
			if g.Nodes[sw].Endpoint >= 0 {
				continue
			}
			if got, want := r.Ports(int32(sw), int32(dst)), plain.Ports(int32(sw), int32(dst)); !slices.Equal(got, want) {
				t.Errorf("%s to endpoint %d by %v, want %v", g.Nodes[sw].Name, dst, got, want)
			}
		}
	}
}

// Routes that are rebuilt around links that are down are those of a graph that
// never had them.
func TestRebuildAsIfNeverThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := someShape(rt)
		g, err := shape.Build()
		if err != nil {
			rt.Fatal(err)
		}
		g.Static = nil
		r, err := g.Routes()
		if err != nil {
			rt.Fatal(err)
		}
		down := make([]bool, len(g.Links))
		for range rapid.IntRange(0, len(down)/2).Draw(rt, "downs") {
			down[rapid.IntRange(0, len(down)-1).Draw(rt, "down")] = true
		}
		r.Rebuild(func(l int32) bool { return down[l] })
		for dst := range g.Endpoints {
			dist := upDistances(g, down, g.Endpoints[dst].Leaf)
			for sw := range g.Nodes {
				if g.Nodes[sw].Kind == Host {
					continue
				}
				var want []uint16
				for p, port := range g.Nodes[sw].Ports {
					if down[port.Link] {
						continue
					}
					if g.Endpoints[dst].Leaf == int32(sw) {
						if e := g.Endpoints[dst]; port.Peer == e.Node && port.PeerPort == e.Port {
							want = append(want, uint16(p))
						}
						continue
					}
					a, okA := dist[int32(sw)]
					b, okB := dist[port.Peer]
					if okA && okB && b == a-1 {
						want = append(want, uint16(p))
					}
				}
				if got := r.Ports(int32(sw), int32(dst)); !slices.Equal(got, want) {
					rt.Fatalf("%s to %d: %v, want %v", g.Nodes[sw].Name, dst, got, want)
				}
			}
		}
		r.Rebuild(nil)
		fresh, _ := g.Routes()
		for dst := range g.Endpoints {
			for sw := range g.Nodes {
				if a, b := r.Ports(int32(sw), int32(dst)), fresh.Ports(int32(sw), int32(dst)); !slices.Equal(a, b) {
					rt.Fatalf("repaired: %s to %d: %v, want %v", g.Nodes[sw].Name, dst, a, b)
				}
			}
		}
	})
}

func upDistances(g *Graph, down []bool, leaf int32) map[int32]int {
	dist := map[int32]int{leaf: 0}
	for queue := []int32{leaf}; len(queue) > 0; queue = queue[1:] {
		for _, p := range g.Nodes[queue[0]].Ports {
			if _, ok := dist[p.Peer]; !ok && !down[p.Link] && g.Nodes[p.Peer].Kind == Switch {
				dist[p.Peer] = dist[queue[0]] + 1
				queue = append(queue, p.Peer)
			}
		}
	}
	return dist
}

func TestNoWay(t *testing.T) {
	_, r := build(t, Rail{Units: 1, HostsPerUnit: 2, NICs: 2, Rate: gig100})
	for _, c := range []struct {
		src, dst int32
		want     string
	}{
		{0, 3, "no way from host0/eth0 to host1/eth1: leaf0 has no route"},
		{0, 1, "host0 sends to itself"},
	} {
		if _, err := r.Path(c.src, c.dst, nil, nil); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
		if r.Hops(c.src, c.dst) != 0 {
			t.Errorf("%d to %d has hops", c.src, c.dst)
		}
	}
	if src, dst, err := r.Pair(0, 1); src != 0 || dst != 2 || err != nil {
		t.Error(src, dst, err)
	}
	r.Rebuild(func(l int32) bool { return l == 0 })
	if src, dst, err := r.Pair(0, 1); src != 1 || dst != 3 || err != nil {
		t.Error("without the first rail:", src, dst, err)
	}
	if _, err := r.Path(0, 2, nil, nil); err == nil || err.Error() != "no way from host0/eth0 to host1/eth0: eth0 of host0 is down" {
		t.Error(err)
	}
	if _, err := r.Path(2, 0, nil, nil); err == nil || err.Error() != "no way from host1/eth0 to host0/eth0: leaf0 has no route" {
		t.Error(err)
	}
	if _, _, err := r.Pair(0, 0); err == nil || err.Error() != "host0 sends to itself" {
		t.Error(err)
	}

	var g *Graph
	g, r = build(t, SpineLeaf{Leaves: 2, Spines: 1, HostsPerLeaf: 1, Rate: gig100})
	if err := r.Set(g.Node("spine0"), 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Path(0, 1, nil, nil); err == nil || err.Error() != "no way from host0 to host1: routes lead in a circle at spine0" {
		t.Error(err)
	}
}

func TestPortsDoesNotAllocate(t *testing.T) {
	g, r := build(t, FatTree{K: 4, Rate: gig100})
	leaf := g.Node("leaf0")
	n := 0
	if a := testing.AllocsPerRun(100, func() {
		for e := range int32(16) {
			n += len(r.Ports(leaf, e))
		}
	}); a != 0 || n == 0 {
		t.Errorf("%v allocations", a)
	}
}
