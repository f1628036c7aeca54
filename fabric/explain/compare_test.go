package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
)

func TestCompare(t *testing.T) {
	a := spread()
	a.r.Digest = 1
	b := spread()
	b.r.Name, b.r.Shape.Preset, b.r.Digest = "victims, DCQCN", "mlx5", 2
	b.r.Pauses = nil
	for i := range b.r.Nodes {
		for j := range b.r.Nodes[i].Ports {
			b.r.Nodes[i].Ports[j].Prio[3] = result.PortPrio{}
		}
	}
	b.port(b.leaf[0], 0).Prio[3].Marked = 5000
	for i := range b.r.Flows {
		f := &b.r.Flows[i]
		f.Marks, f.CNPs, f.CNPsHandled = 300, 20, 20
		f.Finish = 6000 * us
	}
	b.r.Flows[16].Finish = 206 * us
	b.flow("new", 30, 31, 0, mb, 0, 100*us)
	d := Compare(a.sorted(), &b.r)
	if d.Same || len(d.Gone) != 1 || len(d.New) != 0 || len(d.Groups) != 3 {
		t.Errorf("%+v", d)
	}
	v := d.Groups[1]
	if v.Group != "victim" || v.A.Max != 1900*us || v.B.Max != 206*us {
		t.Errorf("victim %+v", v)
	}
	if n := d.Groups[2]; n.Group != "new" || n.OnlyIn != "B" {
		t.Errorf("new %+v", n)
	}
	var out bytes.Buffer
	if err := d.Text(&out, 100); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare", out.String())
}

func TestCompareSame(t *testing.T) {
	a := spread().sorted()
	var out bytes.Buffer
	if err := Compare(a, a).Text(&out, 80); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "the same run") || !strings.Contains(out.String(), "All as before.") {
		t.Error(out.String())
	}
	if d := Compare(nil, nil); !d.Same {
		t.Error("two empty runs differ")
	}
}

// Nearest rank: the smallest value that at least so many percent do not exceed.
func TestRank(t *testing.T) {
	v := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[int]int{1: 1, 10: 1, 11: 2, 50: 5, 99: 10, 100: 10} {
		if got := rank(v, p); got != want {
			t.Errorf("p%d: %d, want %d", p, got, want)
		}
	}
}

func TestDiffers(t *testing.T) {
	tests := []struct {
		c    Change
		want bool
	}{
		{Change{A: 100, B: 100.9}, false},
		{Change{A: 100, B: 102}, true},
		{Change{A: 0, B: 1}, true},
		{Change{}, false},
		{Change{TextA: "x", TextB: "x"}, false},
		{Change{TextA: "x"}, true},
	}
	for _, tt := range tests {
		if got := tt.c.Differs(); got != tt.want {
			t.Errorf("%+v: %v", tt.c, got)
		}
	}
}
