package theory_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// CoNEXT'16's defaults at three rates, worked out by others with the exact root.
var fixedPoints = []struct {
	c                         float64
	n                         int
	p, taylor, alpha, q, each string // %, %, , KB, Gb/s
}{
	{40e9, 2, "0.0777", "0.0925", "0.1014", "20.2", "20"},
	{40e9, 4, "0.1888", "0.2320", "0.1218", "41.8", "10"},
	{40e9, 8, "0.4552", "0.5832", "0.1452", "93.8", "5"}, // Taylor printed 0.5831 here and 0.5832 for 10G/2; it is 0.58315 for both
	{40e9, 10, "0.6032", "0.7849", "0.1533", "122.6", "4"},
	{100e9, 2, "0.0239", "0.0276", "0.0788", "9.7", "50"},
	{100e9, 8, "0.1420", "0.1725", "0.1149", "32.7", "12.5"},
	{100e9, 16, "0.3432", "0.4333", "0.1373", "71.9", "6.25"},
	{100e9, 32, "0.8225", "1.0904", "0.1626", "165.4", "3.125"},
	{10e9, 2, "0.4552", "0.5832", "0.1452", "93.8", "5"},
}

func fixedPoint(t *testing.T, d theory.DCQCN) theory.FixedPoint {
	t.Helper()
	fp, err := d.FixedPoint()
	if err != nil {
		t.Fatal(err)
	}
	return fp
}

func TestFixedPoints(t *testing.T) {
	for _, c := range fixedPoints {
		d := theory.PaperDCQCN(c.c, c.n)
		fp := fixedPoint(t, d)
		printed(t, "p*, %", 100*fp.P, c.p)
		printed(t, "p* by Taylor, %", 100*d.TaylorP(), c.taylor)
		printed(t, "alpha*", fp.Alpha, c.alpha)
		printed(t, "q*, KB", fp.Queue/1e3, c.q)
		printed(t, "rate, Gb/s", fp.Rate/1e9, c.each)
		if !fp.Interior {
			t.Errorf("%+v: no interior point", c)
		}
		// Taylor is 15 (100G/2) to 36 % high.
		if over := d.TaylorP()/fp.P - 1; over < 0.15 || over > 0.36 {
			t.Errorf("Taylor is %.0f %% off", 100*over)
		}
	}
}

// From 15 flows at 40 Gb/s on, p* is above Pmax and the queue chatters at Kmax.
func TestNoInteriorPoint(t *testing.T) {
	for n := 1; n < 40; n++ {
		fp := fixedPoint(t, theory.PaperDCQCN(40e9, n))
		if fp.Interior != (n < 15) {
			t.Errorf("%d flows: interior %v, p* %g", n, fp.Interior, fp.P)
		}
		if !fp.Interior && fp.Queue != 200e3 {
			t.Errorf("%d flows: queue %g", n, fp.Queue)
		}
	}
	step := theory.PaperDCQCN(100e9, 2)
	step.Kmin, step.Kmax, step.Pmax = 8e3, 8e3, 1
	if fp := fixedPoint(t, step); fp.Interior || fp.Queue != 8e3 {
		t.Errorf("marking by step: %+v", fp)
	}
}

// p* and q* depend on C/N only: 40G/4 = 100G/10 = 41.8 KB; without
// the byte counter they are the same to four digits.
func TestFixedPointScaling(t *testing.T) {
	a, b := fixedPoint(t, theory.PaperDCQCN(40e9, 4)), fixedPoint(t, theory.PaperDCQCN(100e9, 10))
	near(t, "p*", a.P, b.P, 1e-12)
	near(t, "q*", a.Queue, b.Queue, 1e-12)
	for _, n := range []int{2, 4, 8, 10} {
		d := theory.PaperDCQCN(40e9, n)
		with := fixedPoint(t, d)
		d.ByteCounter = 0
		near(t, "p* without byte counter", fixedPoint(t, d).P, with.P, 5e-4)
	}
}

// At the fixed point the right-hand sides of the fluid model are zero. The terms
// are written out here as the paper prints them.
func TestFixedPointSolvesTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := theory.PaperDCQCN(
			rapid.SampledFrom([]float64{10e9, 25e9, 40e9, 100e9, 400e9}).Draw(t, "C"),
			rapid.IntRange(1, 64).Draw(t, "N"))
		d.PacketBytes = rapid.SampledFrom([]float64{1000, 1048, 1064, 4200}).Draw(t, "packet")
		d.CNPInterval = rapid.Float64Range(4e-6, 100e-6).Draw(t, "tau")
		d.AlphaInterval = rapid.Float64Range(4e-6, 100e-6).Draw(t, "tau'")
		d.Timer = rapid.Float64Range(20e-6, 900e-6).Draw(t, "T")
		d.ByteCounter = rapid.SampledFrom([]float64{1e6, 2097088, 10e6, 300e6}).Draw(t, "B")
		d.FastRecovery = rapid.Float64Range(1, 10).Draw(t, "F")
		d.Additive = rapid.Float64Range(1e6, 400e6).Draw(t, "RAI")
		fp, err := d.FixedPoint()
		if err != nil {
			t.Fatal(err)
		}
		bits := 8 * d.PacketBytes
		r, rt, rai := fp.Rate/bits, fp.Target/bits, d.Additive/bits
		tau, p, f, b, tr := d.CNPInterval, fp.P, d.FastRecovery, d.ByteCounter/d.PacketBytes, d.Timer*fp.Rate/bits
		if b*p > 500 || tr*p > 500 {
			return // powers as the paper writes them have no digits left
		}
		pow := func(x float64) float64 { return math.Exp(x * math.Log1p(-p)) }
		cut := -math.Expm1(tau * r * math.Log1p(-p))
		incr := p/(pow(-b)-1) + p/(pow(-tr)-1)
		add := pow(f*b)*p/(pow(-b)-1) + pow(f*tr)*p/(pow(-tr)-1)
		zero := func(what string, plus, minus float64) {
			if math.Abs(plus-minus) > 1e-6*plus {
				t.Fatalf("%s: %g up, %g down at %+v of %+v", what, plus, minus, fp, d)
			}
		}
		zero("alpha", -math.Expm1(d.AlphaInterval*r*math.Log1p(-p)), fp.Alpha)
		zero("R_T", rai*r*add, (rt-r)/tau*cut)
		zero("R_C", (rt-r)/2*r*incr, r*fp.Alpha/(2*tau)*cut)
	})
}

func TestMark(t *testing.T) {
	d := theory.PaperDCQCN(40e9, 2)
	for _, c := range []struct{ q, p float64 }{{0, 0}, {5e3, 0}, {102.5e3, 0.005}, {200e3, 0.01}, {200.1e3, 1}} {
		near(t, "mark", d.Mark(c.q), c.p, 1e-12)
	}
	near(t, "queue at 0.5 %", d.QueueAt(0.005), 102.5e3, 1e-12)
	near(t, "queue above Pmax", d.QueueAt(0.5), 200e3, 1e-12)
	d.Kmin, d.Kmax, d.Pmax = 8e3, 8e3, 1
	if d.Mark(8e3) != 0 || d.Mark(8001) != 1 {
		t.Error("Kmin = Kmax is a step")
	}
}

func TestDCQCNErrors(t *testing.T) {
	for want, spoil := range map[string]func(*theory.DCQCN){
		"capacity":       func(d *theory.DCQCN) { d.Capacity = 0 },
		"flows":          func(d *theory.DCQCN) { d.Flows = -1 },
		"packet":         func(d *theory.DCQCN) { d.PacketBytes = math.NaN() },
		"CNP interval":   func(d *theory.DCQCN) { d.CNPInterval = math.Inf(1) },
		"alpha interval": func(d *theory.DCQCN) { d.AlphaInterval = 0 },
		"timer":          func(d *theory.DCQCN) { d.Timer = -1 },
		"byte counter":   func(d *theory.DCQCN) { d.ByteCounter = -1 },
		"fast recovery":  func(d *theory.DCQCN) { d.FastRecovery = -1 },
		"additive":       func(d *theory.DCQCN) { d.Additive = 0 },
		"g is":           func(d *theory.DCQCN) { d.G = 0 },
		"Kmin":           func(d *theory.DCQCN) { d.Kmin = -1 },
		"Kmax":           func(d *theory.DCQCN) { d.Kmax = 1 },
		"Pmax":           func(d *theory.DCQCN) { d.Pmax = 1.5 },
	} {
		d := theory.PaperDCQCN(40e9, 2)
		spoil(&d)
		_, e1 := d.FixedPoint()
		_, e2 := d.Fluid(theory.FluidRun{Delay: 4e-6})
		_, e3 := d.PhaseMargin(4e-6)
		_, e4 := d.ConvergenceBound(0.1)
		_, e5 := d.Renewal(theory.Renewal{})
		for i, err := range []error{e1, e2, e3, e4, e5} {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d: %v, want one line with %q", i, err, want)
			}
		}
	}
}
