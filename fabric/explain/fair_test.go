package explain

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// lot is a parking lot: three flows come to leaf 1 by one uplink and one by
// its own port, all to host 4. fct gives their completion times.
func lot(fct [4]sim.Time) *fabric {
	f := spineLeaf(2, 1, 4)
	f.r.Name = "parking lot"
	for i, src := range []int{0, 1, 2, 5} {
		f.flow("lot", src, 4, 0, 10*mb, 0, fct[i])
	}
	f.r.End = max(fct[0], fct[3])
	return f
}

// unit is how long one of the flows lasts alone.
func unit() sim.Time { return (100 * g).For(int(wire(10 * mb))) }

// Port-fair: the lone flow gets 1/2 and is done after 2 units. The three have
// 1/6 until then, a third of their data; the other two thirds at 1/3 take two
// more. Goodputs are as 2 : 1 : 1 : 1, Jain's index 25/28.
func TestParkingLot(t *testing.T) {
	u := unit()
	s := Explain(&lot([4]sim.Time{4 * u, 4 * u, 4 * u, 2 * u}).r)
	if len(s.Fairness.Groups) != 1 {
		t.Fatalf("%d unfair groups", len(s.Fairness.Groups))
	}
	gr := &s.Fairness.Groups[0]
	if gr.At.Name != "leaf1:Ethernet0" || !gr.PortFair || math.Abs(gr.Jain-25./28) > 0.001 {
		t.Errorf("at %s, port-fair %v, Jain %g", gr.At, gr.PortFair, gr.Jain)
	}
	in := gr.Inputs
	if len(in) != 2 || in[0].Port.Name != "leaf1:Ethernet1" || in[0].Flows != 1 || in[1].Port.Name != "leaf1:Ethernet4" || in[1].Flows != 3 {
		t.Fatalf("inputs %+v", in)
	}
	if r := float64(in[0].Each) / float64(in[1].Each); math.Abs(r-2) > 0.01 {
		t.Errorf("ratio %g, want 2", r)
	}
	if s.Verdict.Main != MainUnfair {
		t.Errorf("main %v", s.Verdict.Main)
	}
	golden(t, "parkinglot", text(t, s))
}

// Flows that still run have 1/2 and 1/6: Jain's index 3/4.
func TestParkingLotEndless(t *testing.T) {
	u := unit()
	f := lot([4]sim.Time{u, u, u, u})
	for i := range f.r.Flows {
		x := &f.r.Flows[i]
		x.State, x.Finish = result.Running, sim.Never
		if x.Delivered = x.Bytes / 6; i == 3 {
			x.Delivered = x.Bytes / 2
		}
	}
	s := Explain(&f.r)
	if len(s.Fairness.Groups) != 1 || !s.Fairness.Groups[0].PortFair || math.Abs(s.Fairness.Groups[0].Jain-0.75) > 0.001 {
		t.Errorf("groups %+v", s.Fairness.Groups)
	}
}

func TestFairness(t *testing.T) {
	u := unit()
	tests := []struct {
		name     string
		fct      [4]sim.Time
		unfair   bool
		portFair bool
	}{
		{"all equal", [4]sim.Time{4 * u, 4 * u, 4 * u, 4 * u}, false, false},
		{"a little spread", [4]sim.Time{4 * u, 4 * u, 18 * u / 5, 19 * u / 5}, false, false},
		// One of the three is fast: neither model has that.
		{"unfair within a port", [4]sim.Time{11 * u / 10, 4 * u, 4 * u, 4 * u}, true, false},
		{"the lone flow starves", [4]sim.Time{3 * u / 2, 3 * u / 2, 3 * u / 2, 4 * u}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Explain(&lot(tt.fct).r)
			if got := len(s.Fairness.Groups) > 0; got != tt.unfair {
				t.Errorf("unfair %v (Jain %g), want %v", got, s.Fairness.Least, tt.unfair)
			}
			if got := len(s.Fairness.Groups) > 0 && s.Fairness.Groups[0].PortFair; got != tt.portFair {
				t.Errorf("port-fair %v, want %v", got, tt.portFair)
			}
		})
	}
}

// What differs in size or start, or has room, is not compared.
func TestNotCompared(t *testing.T) {
	u := unit()
	f := lot([4]sim.Time{4 * u, 4 * u, 4 * u, 2 * u})
	f.r.Flows[3].Bytes, f.r.Flows[3].Delivered = 5*mb, 5*mb
	if s := Explain(&f.r); len(s.Fairness.Groups) != 0 {
		t.Errorf("another size: %+v", s.Fairness.Groups)
	}
	f = lot([4]sim.Time{4 * u, 4 * u, 4 * u, 2 * u})
	f.r.Flows[3].Start += 2 * u
	f.r.Flows[3].Finish += 2 * u
	if s := Explain(&f.r); len(s.Fairness.Groups) != 0 {
		t.Errorf("another start: %+v", s.Fairness.Groups)
	}
	f = lot([4]sim.Time{16 * u, 16 * u, 16 * u, 8 * u}) // the port is a quarter full
	if s := Explain(&f.r); len(s.Fairness.Groups) != 0 {
		t.Errorf("a port with room: %+v", s.Fairness.Groups)
	}
}

// Flows of two priorities, or of TCP and RDMA, are not alike: weights share
// between them. Within each class they are compared.
func TestFairnessByClass(t *testing.T) {
	u := unit()
	for _, tc := range []struct {
		name   string
		change func(f *result.Flow)
		fair   int
	}{
		{"one class", func(*result.Flow) {}, 0},
		{"priority", func(f *result.Flow) { f.Prio = 0 }, 2},
		{"TCP", func(f *result.Flow) { f.Op, f.Service = "tcp", "" }, 2},
	} {
		f := star(5)
		for i := range 4 {
			x := f.flow("mix", i, 4, 0, 10*mb, 0, 4*u)
			x.State, x.Finish, x.Received = result.Running, sim.Never, sim.Never
			if x.Delivered = x.Bytes * 3 / 8; i >= 2 {
				x.Delivered = x.Bytes / 8
				tc.change(x)
			}
		}
		f.r.End = u
		s := Explain(&f.r)
		if unfair := len(s.Fairness.Groups); s.Fairness.Fair != tc.fair || (unfair == 0) != (tc.fair > 0) {
			t.Errorf("%s: %d fair groups and %d unfair", tc.name, s.Fairness.Fair, unfair)
		}
	}
}
