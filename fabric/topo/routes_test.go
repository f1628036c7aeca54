package topo

import (
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

const gig100 = 100 * sim.Gbps

func build(t testing.TB, s Shape) (*Graph, *Routes) {
	t.Helper()
	g, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Routes()
	if err != nil {
		t.Fatal(err)
	}
	return g, r
}

// Every leaf of a spine-leaf network has one way per spine to other leaves, and
// one port to its own hosts; a spine has the links to the leaf.
func TestSpineLeafRoutes(t *testing.T) {
	g, r := build(t, SpineLeaf{Leaves: 4, Spines: 8, HostsPerLeaf: 8, UplinksPerSpine: 2, Rate: gig100, Delay: sim.Microsecond})
	for e := range g.Endpoints {
		home := g.Endpoints[e].Leaf
		if want := g.Node("leaf0") + int32(e/8); home != want {
			t.Fatalf("host %d hangs on %s", e, g.Nodes[home].Name)
		}
		for l := range int32(4) {
			leaf := g.Node("leaf0") + l
			got := r.Ports(leaf, int32(e))
			want := []uint16{uint16(e % 8)}
			if leaf != home {
				want = nil
				for p := range uint16(16) {
					want = append(want, 8+p)
				}
			}
			if !slices.Equal(got, want) || r.Up(leaf, int32(e)) != (leaf != home) {
				t.Fatalf("%s to host%d: %v, up %v", g.Nodes[leaf].Name, e, got, r.Up(leaf, int32(e)))
			}
		}
		for s := range int32(8) {
			spine := g.Node("spine0") + s
			l := uint16(home - g.Node("leaf0"))
			if got := r.Ports(spine, int32(e)); !slices.Equal(got, []uint16{2 * l, 2*l + 1}) || r.Up(spine, int32(e)) {
				t.Fatalf("spine%d to host%d: %v", s, e, got)
			}
		}
	}
}

func TestRebuild(t *testing.T) {
	g, r := build(t, SpineLeaf{Leaves: 2, Spines: 2, HostsPerLeaf: 1, Rate: gig100})
	leaf0 := g.Node("leaf0")
	up := g.Nodes[leaf0].Ports[1].Link
	r.Rebuild(func(l int32) bool { return l == up })
	if got := r.Ports(leaf0, 1); !slices.Equal(got, []uint16{2}) {
		t.Errorf("with the first uplink down: %v", got)
	}
	r.Rebuild(nil)
	if got := r.Ports(leaf0, 1); !slices.Equal(got, []uint16{1, 2}) {
		t.Errorf("repaired: %v", got)
	}
}
