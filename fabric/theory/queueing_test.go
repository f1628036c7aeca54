package theory_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// M/D/1 waits 0.5, 2.0, 4.5 and 9.5 service times at .5, .8, .9 and .95.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		rho  float64
		want string
	}{{.5, "0.5"}, {.8, "2.0"}, {.9, "4.5"}, {.95, "9.5"}, {0, "0"}} {
		printed(t, "M/D/1", theory.MD1Wait(c.rho), c.want)
		near(t, "M/M/1 is twice that", theory.MM1Wait(c.rho), 2*theory.MD1Wait(c.rho), 1e-12)
		// Pollaczek and Khinchine with service 1: E[S^2] is 1 and 2.
		near(t, "M/G/1, D", theory.MG1Wait(c.rho, 1, 1), theory.MD1Wait(c.rho), 1e-12)
		near(t, "M/G/1, M", theory.MG1Wait(c.rho, 1, 2), theory.MM1Wait(c.rho), 1e-12)
	}
	if !math.IsInf(theory.MD1Wait(1), 1) || !math.IsInf(theory.MG1Wait(2, 1, 1), 1) {
		t.Error("an overloaded queue has no mean wait")
	}
	equal(t, "N*D/D/1", int64(theory.NDD1Bound(10)), 9)
	equal(t, "N*D/D/1", int64(theory.NDD1Bound(0)), 0)
}

// Critical values from printed tables.
func TestCriticalValues(t *testing.T) {
	for _, c := range []struct {
		df   int
		conf float64
		want string
	}{
		{1, .95, "12.706"},
		{2, .95, "4.303"},
		{9, .95, "2.262"},
		{9, .99, "3.250"},
		{19, .99, "2.861"},
		{29, .95, "2.045"},
		{29, .99, "2.756"},
		{100, .95, "1.984"},
		{1000, .99, "2.581"},
	} {
		printed(t, "Student", theory.StudentT(c.df, c.conf), c.want)
	}
	for _, c := range []struct {
		df   int
		conf float64
		want string
	}{
		{1, .95, "3.841"},
		{1, .99, "6.635"},
		{3, .95, "7.815"},
		{7, .95, "14.067"},
		{7, .99, "18.475"},
		{7, .999, "24.322"},
		{15, .95, "24.996"},
		{31, .95, "44.985"},
		{63, .99, "92.010"},
		{100, .95, "124.342"},
		{10, .05, "3.940"},
	} {
		printed(t, "chi-square", theory.ChiSquareCritical(c.df, c.conf), c.want)
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		if !math.IsNaN(theory.StudentT(3, bad)) || !math.IsNaN(theory.ChiSquareCritical(3, bad)) {
			t.Errorf("confidence %g has a critical value", bad)
		}
	}
	if !math.IsNaN(theory.StudentT(0, .9)) || !math.IsNaN(theory.ChiSquareCritical(0, .9)) {
		t.Error("no degree of freedom has a critical value")
	}
	// With two degrees chi-square is exponential with mean 2.
	near(t, "exponential", theory.ChiSquareCritical(2, .9), -2*math.Log(.1), 1e-10)
	// With one degree Student is Cauchy.
	near(t, "Cauchy", theory.StudentT(1, .5), 1, 1e-10)
}

func TestChiSquare(t *testing.T) {
	stat, df := theory.ChiSquare([]int64{10, 20, 30, 40}) // (15^2+5^2+5^2+15^2)/25
	if stat != 20 || df != 3 {
		t.Errorf("%g with %d degrees, want 20 with 3", stat, df)
	}
	if stat, df := theory.ChiSquare([]int64{0, 0}); stat != 0 || df != 0 {
		t.Errorf("nothing counted: %g %d", stat, df)
	}
}

// The helper and the formula meet: Lindley's recurrence of an M/D/1 queue at load
// 0.8 waits 2.0 service times within its own 99.9 % interval; the same series is
// not taken for one of load 0.82.
func TestBatchMeansOfMD1(t *testing.T) {
	const rho, seed = 0.8, 1
	rng := rand.New(rand.NewPCG(seed, seed))
	series := make([]float64, 0, 1_000_000)
	for wait := 0.0; len(series) < cap(series); {
		series = append(series, wait)
		wait = max(0, wait+1-rng.ExpFloat64()/rho)
	}
	i, err := theory.BatchMeans(series, 20, .999)
	if err != nil {
		t.Fatal(err)
	}
	if !i.Contains(theory.MD1Wait(rho)) || i.Half > 0.1 {
		t.Errorf("seed %d: %v does not contain 2.0, or is wide", seed, i)
	}
	if i.Contains(theory.MD1Wait(0.82)) {
		t.Errorf("%v contains the wait of another load", i)
	}
}

func TestBatchMeans(t *testing.T) {
	// The first value is left over. Batches of 1,3 5,7 9,11: means 2, 6, 10, sd 4,
	// t(2, .95) = 4.303.
	i, err := theory.BatchMeans([]float64{99, 1, 3, 5, 7, 9, 11}, 3, .95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean", i.Mean, 6, 1e-12)
	near(t, "half", i.Half, 4.3027*4/math.Sqrt(3), 1e-4)
	if got := i.String(); got != "6 ± 9.9" {
		t.Error(got)
	}
	for _, bad := range []struct {
		n, batches int
		conf       float64
	}{{10, 1, .95}, {2, 3, .95}, {10, 2, 1}, {10, 2, 0}, {0, 0, .9}} {
		if _, err := theory.BatchMeans(make([]float64, bad.n), bad.batches, bad.conf); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
