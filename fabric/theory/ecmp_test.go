package theory_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// 8 flows on 8 spines: no collision 0.24 %, E[max] 2.6 flows, and one by
// that is 38 %. The mean of the slowest flow's share itself is 41 % (Jensen).
func TestEightOnEight(t *testing.T) {
	printed(t, "no collision, %", 100*theory.NoCollision(8, 8), "0.24")
	printed(t, "E[max]", theory.ExpectedMaxLoad(8, 8), "2.6")
	near(t, "1/E[max]", 1/theory.ExpectedMaxLoad(8, 8), 0.38, 0.02)
	printed(t, "E[1/max]", theory.ExpectedSlowest(8, 8), "0.41")
	dist := theory.MaxLoad(8, 8)
	near(t, "P(max = 1)", dist[1], theory.NoCollision(8, 8), 1e-9)
	near(t, "P(max = 8)", dist[8], 1/8.0/8/8/8/8/8/8, 1e-6)
}

// All s^m throws, counted.
func TestMaxLoadEqualsCounting(t *testing.T) {
	for paths := 1; paths <= 5; paths++ {
		for flows := 0; flows <= 6; flows++ {
			counts, total := make([]float64, flows+1), 1
			for range flows {
				total *= paths
			}
			for throw := range total {
				bins, busiest := make([]int, paths), 0
				for range flows {
					bins[throw%paths]++
					busiest = max(busiest, bins[throw%paths])
					throw /= paths
				}
				counts[busiest]++
			}
			sum := 0.0
			for j, p := range theory.MaxLoad(flows, paths) {
				want := counts[j] / float64(total)
				if diff := p - want; diff > 1e-12 || diff < -1e-12 {
					t.Errorf("%d on %d: P(max = %d) = %g, counted %g", flows, paths, j, p, want)
				}
				sum += p
			}
			near(t, "sum", sum, 1, 1e-12)
		}
	}
}

func TestECMPEdges(t *testing.T) {
	if p := theory.NoCollision(9, 8); p != 0 {
		t.Errorf("9 flows on 8 paths are alone with probability %g", p)
	}
	if theory.MaxLoad(1, 0) != nil || theory.MaxLoad(-1, 1) != nil {
		t.Error("no path has a distribution")
	}
	near(t, "one path", theory.ExpectedMaxLoad(17, 1), 17, 1e-12)
	near(t, "one flow", theory.ExpectedSlowest(1, 64), 1, 1e-12)
	// Birthdays: 23 people, 365 days.
	printed(t, "birthdays", theory.NoCollision(23, 365), "0.493")
	// Many: the busiest of 64 paths with 256 flows has between 4 and 13 or so.
	if m := theory.ExpectedMaxLoad(256, 64); m < 8 || m > 11 {
		t.Errorf("256 on 64: %g", m)
	}
}
