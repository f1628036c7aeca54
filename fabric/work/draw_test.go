package work

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

// negLn is -ln within a few of its units of 2^-32, and exact in known cases.
func TestNegLn(t *testing.T) {
	for u, want := range map[uint64]float64{
		0: 64 * math.Ln2, 1: 64 * math.Ln2, 1 << 63: math.Ln2, 1 << 62: 2 * math.Ln2, 1<<64 - 1: 0, 3 << 61: -math.Log(0.375),
	} {
		if got := float64(negLn(u)) / (1 << 32); math.Abs(got-want) > 1e-9 {
			t.Errorf("-ln(%d/2^64) = %v, want %v", u, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		u := max(1, rapid.Uint64().Draw(t, "u"))
		want := 64*math.Ln2 - math.Log(float64(u))
		if got := float64(negLn(u)) / (1 << 32); math.Abs(got-want) > 1e-9 {
			t.Fatalf("-ln(%d/2^64) = %v, want %v", u, got, want)
		}
	})
}

// Of n draws of the exponential distribution, mean and mean square are 1 and 2,
// within 5 standard errors: sqrt(1/n) and sqrt(20/n).
func TestExponential(t *testing.T) {
	const n = 200_000
	r := rnd()
	sum, square := 0.0, 0.0
	for range n {
		x := float64(exponential(r)) / (1 << 32)
		sum += x
		square += x * x
	}
	if d := sum/n - 1; math.Abs(d) > 5*math.Sqrt(1.0/n) {
		t.Errorf("mean is off by %v", d)
	}
	if d := square/n - 2; math.Abs(d) > 5*math.Sqrt(20.0/n) {
		t.Errorf("mean square is off by %v", d)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		mean sim.Time
		e    uint64
		want sim.Time
	}{{1000, 1 << 32, 1000}, {1000, 1 << 31, 500}, {3, 1 << 31, 2}, {1, 0, 1}, {MaxTime, 64 << 32, sim.Never}, {1 << 40, 44 << 32, 44 << 40}} {
		if got := spread(c.mean, c.e); got != c.want {
			t.Errorf("spread(%d, %d) = %d, want %d", c.mean, c.e, got, c.want)
		}
	}
}

// The lists of the distributions as published, and the mean by pieces: the
// middle of each, times its share.
var published = map[string][]float64{
	"WebSearch":      {0, 0, 10e3, 15, 20e3, 20, 30e3, 30, 50e3, 40, 80e3, 53, 200e3, 60, 1e6, 70, 2e6, 80, 5e6, 90, 10e6, 97, 30e6, 100},
	"AliStorage2019": {0, 0, 4e3, 22.93, 8e3, 69.21, 16e3, 80.61, 32e3, 90.47, 64e3, 93.53, 128e3, 96.77, 256e3, 97.53, 2e6, 100},
	"FbHdp": {
		0, 0, 100, 1, 200, 2, 300, 5, 350, 15, 400, 20, 500, 30, 600, 40, 700, 50, 1e3, 60, 2e3, 67, 7e3, 70, 30e3, 72, 50e3, 82, 80e3, 87,
		120e3, 90, 300e3, 95, 1e6, 97.5, 2e6, 99, 10e6, 100,
	},
	// Some of its 843 points.
	"GoogleRPC2008": {
		0, 0, 3, 6.48826, 32, 9.73239, 36, 10.8913, 53, 14.3681, 64, 15.5271, 137, 36.9864, 228, 47.961, 512, 78.4921, 531, 79.0513, 1475, 89.1104,
		4096, 93.4955, 19085, 98.6309, 65536, 99.3256, 98304, 99.5838, 517523, 99.9485, 526844, 99.9501, 1160440, 99.9783,
		13293619, 99.9997, 15158197, 100,
	},
}

func TestNamedCDFs(t *testing.T) {
	for _, name := range CDFNames() {
		c, err := NamedCDF(strings.ToUpper(name))
		if err != nil || c.Name != name {
			t.Fatal(c, err)
		}
		p := published[name]
		at := 0
		for _, q := range c.points {
			if at < len(p) && float64(q.size) == p[at] {
				// The published percentages have six digits.
				if d := float64(q.share)/percent - p[at+1]; math.Abs(d) > 1e-4 {
					t.Errorf("%s: %d B at %v %%, want %v", name, q.size, float64(q.share)/percent, p[at+1])
				}
				at += 2
			}
		}
		if at != len(p) {
			t.Errorf("%s: no point at %v B", name, p[at])
		}
		if name == "GoogleRPC2008" {
			if len(c.points) != 843 {
				t.Errorf("%s: %d points", name, len(c.points))
			}
			continue
		}
		mean := 0.0
		for i := 2; i < len(p); i += 2 {
			mean += (p[i] + p[i-2]) / 2 * (p[i+1] - p[i-1]) / 100
		}
		if got := c.Mean(); math.Abs(got-mean) > 1e-9*mean || 2*len(c.points) != len(p) {
			t.Errorf("%s: mean %v, want %v; %d points", name, got, mean, len(c.points))
		}
	}
	if _, err := NamedCDF("foo"); err == nil || err.Error() != `distribution "foo" is not known: there are WebSearch, FbHdp, AliStorage2019, GoogleRPC2008` {
		t.Error(err)
	}
}

// The mean of 100,000 draws is the exact mean within 5 standard errors; a piece
// from a to b has the mean square (a²+ab+b²)/3. A share of draws equal to a
// point's is at most its size.
func TestCDFDraws(t *testing.T) {
	const n = 100_000
	for _, name := range CDFNames() {
		c, _ := NamedCDF(name)
		r := rnd()
		square := 0.0
		for i, p := range c.points {
			if i > 0 {
				q := c.points[i-1]
				a, b := float64(q.size), float64(p.size)
				square += (a*a + a*b + b*b) / 3 * float64(p.share-q.share) / whole
			}
		}
		mean := c.Mean()
		err := 5 * math.Sqrt((square-mean*mean)/n)
		sum := 0.0
		below := make([]int, len(c.points))
		for range n {
			x := c.Draw(r)
			sum += float64(x)
			for i, p := range c.points {
				if x <= p.size {
					below[i]++
				}
			}
		}
		if d := sum/n - mean; math.Abs(d) > err {
			t.Errorf("%s: mean of draws %v, want %v ± %v", name, sum/n, mean, err)
		}
		for i, p := range c.points {
			q := float64(p.share) / whole
			// Sizes are rounded: half a byte of the next piece may fall on the point.
			slack := 0.0
			if i+1 < len(c.points) {
				next := c.points[i+1]
				slack = float64(next.share-p.share) / whole / 2 / float64(next.size-p.size)
			}
			if d := float64(below[i])/n - q; d > slack+5*math.Sqrt(q*(1-q)/n)+1e-9 || d < -5*math.Sqrt(q*(1-q)/n)-1e-9 {
				t.Errorf("%s: %v of draws are at most %d B, want %v", name, float64(below[i])/n, p.size, q)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	c, _ := NamedCDF("WebSearch")
	for ppm, want := range map[int]int64{-5: 1, 0: 1, 75_000: 5000, 150_000: 10_000, 530_000: 80_000, 985_000: 20_000_000, 1_000_000: 30_000_000, 2_000_000: 30_000_000} {
		if got := c.Quantile(ppm); got != want {
			t.Errorf("quantile %d ppm: %d, want %d", ppm, got, want)
		}
	}
}

func TestReadCDF(t *testing.T) {
	for in, want := range map[string]float64{
		"0 0\n10 100\n":                     5,
		"0 0 # none\n\n10 50\n20 100":       10,
		"8 100":                             8, // all have 8 bytes
		"4 50\n8 100":                       5, // half have 4, half 4 to 8
		"0 0.0\n2000 0.0\n2100 0.5\n3000 1": (2050 + 2550) / 2,
		"0 0\n10 50\n10 60\n20 100":         5*.5 + 10*.1 + 15*.4, // a step at 10
		"1.5 0\n2.5e1 100":                  13.5,
	} {
		c, err := ReadCDF(strings.NewReader(in), "f")
		if err != nil || math.Abs(c.Mean()-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", in, err, want)
			continue
		}
		low, high := c.points[0].size, c.points[len(c.points)-1].size
		r := rnd()
		for range 1000 {
			if x := c.Draw(r); x < max(1, low) || x > high {
				t.Errorf("%q: %d", in, x)
			}
		}
		if got := c.at(whole<<drawBits - 1); got != high {
			t.Errorf("%q: the last is %d", in, got)
		}
	}
	for in, want := range map[string]string{
		"":                                       "f: is empty: lines of size and percent are wanted",
		"x 5":                                    `f:1:1: size "x" is not a number of bytes up to 1099511627776`,
		"5":                                      "f:1:1: size 5 has no percent beside it",
		"5\n6 100":                               "f:1:1: size 5 has no percent beside it",
		"5 x":                                    `f:1:3: percent "x" is not a number from 0 to 100`,
		"5 -1":                                   `f:1:3: percent "-1" is not a number from 0 to 100`,
		"5 101":                                  `f:1:3: percent "101" is not a number from 0 to 100`,
		"5 50\n4 100":                            "f:2:1: size 4 is less than the one above",
		"5 50\n6 40":                             "f:2:3: percent 40 is less than the one above",
		"5 50\n6 99\n":                           "f:3: the last percent is not 100",
		"0 0\n0 100":                             "f:2: all sizes are 0",
		"5 50 6":                                 "f:1:6: size 6 has no percent beside it",
		"99999999999999999 100":                  `f:1:1: size "99999999999999999" is not a number of bytes up to 1099511627776`,
		strings.Repeat("5 5\n", 1<<16) + "5 100": "f:65537:1: more than 65536 points",
	} {
		if _, err := ReadCDF(strings.NewReader(in), "f"); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", in, err, want)
		}
	}
}

func FuzzReadCDF(f *testing.F) {
	f.Add("0 0\n10 50\n10 60\n20 100")
	f.Add("0 0.0\n2000 0.0\n2100 0.5\n3000 1")
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ReadCDF(strings.NewReader(in), "f")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
			return
		}
		if c.Mean() < 0 || c.Quantile(500_000) < 1 {
			t.Error(c.Mean(), c.Quantile(500_000))
		}
	})
}

// Load: n arrivals of one source last n mean gaps within 5 standard errors, the
// bytes in that time are load × rate; the gap is mean size · 8 / (rate · load).
func TestPoissonLoad(t *testing.T) {
	for _, name := range []string{"WebSearch", "AliStorage2019"} {
		for _, ppm := range []int64{300_000, 800_000} {
			c, _ := NamedCDF(name)
			w := Poisson{Sources: []int32{0, 1, 2, 3}, CDF: c, Rate: gig100, LoadPPM: ppm, Count: 40_000, Start: us}
			gap := c.Mean() * 8 / (100e9 * float64(ppm) / 1e6) // seconds
			if got := w.meanGap().Seconds(); math.Abs(got-gap) > 1e-12 {
				t.Errorf("%s: mean gap %v, want %v", name, got, gap)
			}
			flows := take(t, w, 1<<20)
			if len(flows) != 40_000 {
				t.Fatal(len(flows))
			}
			last := flows[len(flows)-1].Start - us
			if d := last.Seconds()/(gap*10_000) - 1; math.Abs(d) > 5/math.Sqrt(40_000) {
				t.Errorf("%s at %d ppm: 10,000 gaps last %s, off by %v", name, ppm, last, d)
			}
			bytes := 0.0
			count := map[[2]int32]int{}
			for _, f := range flows {
				bytes += float64(f.Bytes)
				count[[2]int32{f.Src, f.Dst}]++
			}
			// Of the sizes, the coefficient of variation is below 3.
			load := bytes * 8 / last.Seconds() / 400e9
			if d := load/(float64(ppm)/1e6) - 1; math.Abs(d) > 5*math.Sqrt((1+9)/40_000.0) {
				t.Errorf("%s at %d ppm: load %v", name, ppm, load)
			}
			for p, n := range count { // each of 12 pairs in 1/12: 3,333 ± 5·55
				if len(count) != 12 || p[0] == p[1] || math.Abs(float64(n)-40_000/12.0) > 280 {
					t.Errorf("%d pairs, %v has %d", len(count), p, n)
				}
			}
		}
	}
}

// Gaps of one source are exponential: the share longer than k means is e^-k.
func TestPoissonGaps(t *testing.T) {
	c, _ := NamedCDF("AliStorage2019")
	w := Poisson{Sources: []int32{0}, Dests: []int32{1, 0, 2}, CDF: c, Rate: gig100, LoadPPM: 500_000, Count: 50_000}
	mean, last := w.meanGap(), sim.Time(0)
	var longer [5]int
	for _, f := range take(t, w, 1<<20) {
		for k := range longer {
			if f.Start-last > mean*sim.Time(k) {
				longer[k]++
			}
		}
		last = f.Start
		if f.Dst == 0 {
			t.Fatal("to itself")
		}
	}
	for k, n := range longer {
		q := math.Exp(-float64(k))
		if d := float64(n)/50_000 - q; math.Abs(d) > 5*math.Sqrt(q*(1-q)/50_000)+1e-9 {
			t.Errorf("longer than %d means: %v, want %v", k, float64(n)/50_000, q)
		}
	}
}

func TestPoissonEnds(t *testing.T) {
	c, _ := NamedCDF("AliStorage2019")
	w := Poisson{Sources: []int32{0, 1}, CDF: c, Rate: gig100, LoadPPM: 500_000}
	if f := take(t, w, 1000); len(f) != 1000 || !f[0].Endless {
		t.Error("without end: ", len(f))
	}
	w.Until = sim.Millisecond
	f := take(t, w, 1<<20)
	if n := len(f); n < 100 || f[n-1].Start > w.Until || f[0].Endless {
		t.Errorf("%d flows", n)
	}
	// The same seed, the same flows; another, others.
	g := take(t, w, 1<<20)
	if fmt.Sprint(show(f)) != fmt.Sprint(show(g)) {
		t.Error("not repeatable")
	}
	s, _ := w.Stream(sim.NewRand(2, "test"))
	if h, _ := Collect(s, MaxFlows); fmt.Sprint(show(f)) == fmt.Sprint(show(h)) {
		t.Error("the seed does not matter")
	}
	// Rare partners are found: one of 4,000 is on another host.
	w = Poisson{Sources: []int32{0}, CDF: c, Rate: gig100, LoadPPM: 500_000, Count: 10, Apart: func(e int32) int32 { return e / 4000 }}
	for i := range int32(4001) {
		w.Dests = append(w.Dests, i)
	}
	for _, f := range take(t, w, 99) {
		if f.Dst != 4000 {
			t.Errorf("%+v", f)
		}
	}
}

// The mean is exact: the same as by rational numbers.
func TestMeanIsExact(t *testing.T) {
	c, _ := NamedCDF("GoogleRPC2008")
	sum := new(big.Rat)
	for i := 1; i < len(c.points); i++ {
		p, q := c.points[i-1], c.points[i]
		x := big.NewRat(p.size+q.size, 2)
		sum.Add(sum, x.Mul(x, big.NewRat(int64(q.share-p.share), whole)))
	}
	if got := new(big.Rat).SetFrac(c.mean(), big.NewInt(2*whole)); got.Cmp(sum) != 0 {
		t.Errorf("%v, want %v", got, sum)
	}
}

func BenchmarkPoisson(b *testing.B) {
	c, _ := NamedCDF("WebSearch")
	w := Poisson{CDF: c, Rate: gig100, LoadPPM: 500_000}
	for i := range int32(1024) {
		w.Sources = append(w.Sources, i)
	}
	s, err := w.Stream(rnd())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Next()
	}
}
