package theory_test

import (
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// The shipped R_AI of a ConnectX and HPCC's: a target clamped from 100 to 10 Gb/s needs
// 18,000 steps of 5 Mb/s in 300 us, 5.4 s; with HAI 50 Mb/s 0.54 s; with HPCC's 20
// and 200 Mb/s 1.35 and 0.135 s.
func TestTargetSteps(t *testing.T) {
	for _, c := range []struct {
		step  float64
		steps int64
		s     string
	}{{5e6, 18000, "5.4"}, {50e6, 1800, "0.54"}, {20e6, 4500, "1.35"}, {200e6, 450, "0.135"}} {
		n := theory.TargetSteps(10e9, 100e9, c.step)
		equal(t, "steps", int64(n), c.steps)
		printed(t, "s", float64(n)*300e-6, c.s)
	}
	equal(t, "nothing to do", int64(theory.TargetSteps(5, 5, 1)), 0)
	equal(t, "rounded up", int64(theory.TargetSteps(0, 11, 5)), 3)
}

// By hand, 40 Gb/s line, paper's steps: after a first cut to 20 with target 40,
// fast recovery goes 30, 35, 37.5, 38.75, 39.375; then AI would lift the target.
func TestRecoveryByHand(t *testing.T) {
	r := theory.Recovery{Timer: 55e-6, FastRecovery: 5, Additive: -1, AI: 40e6, Line: 40e9}
	for n, want := range []float64{20, 30, 35, 37.5, 38.75, 39.375} {
		rc, rt := r.After(20e9, 40e9, n)
		near(t, "R_C", rc, want*1e9, 1e-12)
		near(t, "R_T", rt, 40e9, 1e-12)
	}
	// Clamped at 10: five events change nothing, the sixth adds 40 Mb/s to R_T and
	// half of that to R_C, the seventh 40 and 30, and so on: R_T - R_C goes to AI.
	for n, want := range map[int][2]float64{5: {10e9, 10e9}, 6: {10.02e9, 10.04e9}, 7: {10.05e9, 10.08e9}, 8: {10.085e9, 10.12e9}} {
		rc, rt := r.After(10e9, 10e9, n)
		near(t, "R_C", rc, want[0], 1e-12)
		near(t, "R_T", rt, want[1], 1e-12)
	}
	// HPCC's preset, timer only: FR, AI, then HAI: 10.01, 10.11 + …
	h := theory.Recovery{Timer: 300e-6, FastRecovery: 1, Additive: 1, AI: 20e6, HAI: 200e6, Line: 100e9}
	for n, want := range map[int]float64{1: 10e9, 2: 10.02e9, 3: 10.22e9, 4: 10.42e9} {
		_, rt := h.After(10e9, 10e9, n)
		near(t, "R_T", rt, want, 1e-12)
	}
	h.Growing = true
	for n, want := range map[int]float64{3: 10.22e9, 4: 10.62e9, 5: 11.22e9} {
		_, rt := h.After(10e9, 10e9, n)
		near(t, "R_T, growing", rt, want, 1e-12)
	}
}

// In additive increase R_C follows R_T at a distance of AI, so it needs one step
// more than the target: closed form against steps.
func TestRecoverySteps(t *testing.T) {
	for _, ai := range []float64{5e6, 20e6, 40e6} {
		r := theory.Recovery{Timer: 300e-6, FastRecovery: 1, Additive: -1, AI: ai, Line: 100e9}
		for _, to := range []float64{20e9, 50e9, 90e9} {
			n, ok := r.Steps(10e9, 10e9, to)
			if want := theory.TargetSteps(10e9, to, ai) + 1 + r.FastRecovery; !ok || n < want-1 || n > want+1 {
				t.Errorf("AI %g to %g: %d %v, want %d or so", ai, to, n, ok, want)
			}
		}
		s, ok := r.Seconds(10e9, 10e9, 100e9)
		if !ok {
			t.Error("the line is not reached")
		}
		near(t, "to the line", s, (90e9/ai+35)*300e-6, 0.02)
	}
	for _, c := range []struct {
		name string
		r    theory.Recovery
		to   float64
	}{
		{"beyond the line", theory.Recovery{Line: 1e9, AI: 1e6, Additive: -1}, 2e9},
		{"no increase", theory.Recovery{Line: 100e9, FastRecovery: 5, Additive: -1}, 20e9},
		{"no hyper increase", theory.Recovery{Line: 100e9, Additive: 3, AI: 1e6}, 20e9},
	} {
		if _, ok := c.r.Steps(10e9, 10e9, c.to); ok {
			t.Errorf("%s: reached", c.name)
		}
	}
	if n, ok := (theory.Recovery{Line: 100e9}).Steps(10e9, 10e9, 9e9); n != 0 || !ok {
		t.Errorf("already there: %d %v", n, ok)
	}
}

// SIGCOMM'15 §3.2: with alpha 1 the first cut halves the rate; alpha decays by
// 1-g an interval: from 1 to 1 % with g = 1/256 in ln(0.01)/ln(255/256) = 1177.
func TestCutAndAlpha(t *testing.T) {
	near(t, "first cut", theory.Cut(100e9, 1, 1), 50e9, 1e-12)
	near(t, "three at 0.5", theory.Cut(100e9, 0.5, 3), 100e9*0.75*0.75*0.75, 1e-12)
	n := theory.AlphaIntervals(1, 0.01, 1./256)
	equal(t, "intervals", int64(n), 1177)
	if a := theory.AlphaAfter(1, 1./256, n); a > 0.01 {
		t.Errorf("alpha %g after them", a)
	}
	if a := theory.AlphaAfter(1, 1./256, n-1); a <= 0.01 {
		t.Errorf("alpha %g one before", a)
	}
	equal(t, "upwards", int64(theory.AlphaIntervals(0.1, 0.5, 0.1)), 0)
	equal(t, "no decay", int64(theory.AlphaIntervals(1, 0.5, 0)), 0)
	equal(t, "to nothing", int64(theory.AlphaIntervals(1, 0, 0.5)), 0)
	if math.IsNaN(theory.Cut(1, 0, 1)) {
		t.Error("NaN")
	}
}
