package interop

import (
	"math/rand/v2"
	"testing"
)

// product returns every row of a matrix that is valid: row[i] is in [0, counts[i]).
func product(counts []int, valid func(row []int) bool) [][]int {
	var rows [][]int
	row := make([]int, len(counts))
	for {
		if valid == nil || valid(row) {
			rows = append(rows, append([]int(nil), row...))
		}
		i := len(row) - 1
		for ; i >= 0; i-- {
			if row[i]++; row[i] < counts[i] {
				break
			}
			row[i] = 0
		}
		if i < 0 {
			return rows
		}
	}
}

// pairOf is a value of one factor beside a value of a later one.
type pairOf struct{ i, a, j, b int }

func pairsOf(row []int) []pairOf {
	var ps []pairOf
	for i := range row {
		for j := i + 1; j < len(row); j++ {
			ps = append(ps, pairOf{i, row[i], j, row[j]})
		}
	}
	return ps
}

// pairwise picks rows so that every pair of values that some row has is in one of those picked. It is greedy: each
// pick is the best of a sample of the rows that have the first pair still missing. The same seed gives the same rows.
func pairwise(rows [][]int, seed uint64) [][]int {
	const sample = 60
	rng := rand.New(rand.NewPCG(seed, 0))
	missing := map[pairOf]bool{}
	var order []pairOf // of missing: a map has none
	with := map[pairOf][]int{}
	for k, row := range rows {
		for _, p := range pairsOf(row) {
			if !missing[p] {
				missing[p] = true
				order = append(order, p)
			}
			with[p] = append(with[p], k)
		}
	}
	var picked [][]int
	for _, p := range order {
		if !missing[p] {
			continue
		}
		best, most := -1, 0
		for range sample {
			k := with[p][rng.IntN(len(with[p]))]
			n := 0
			for _, q := range pairsOf(rows[k]) {
				if missing[q] {
					n++
				}
			}
			if n > most {
				best, most = k, n
			}
		}
		picked = append(picked, rows[best])
		for _, q := range pairsOf(rows[best]) {
			delete(missing, q)
		}
	}
	return picked
}

func TestPairwiseCoversEveryPairOnce(t *testing.T) {
	counts := []int{7, 5, 4, 2, 2}
	valid := func(row []int) bool { return row[0] != 3 || row[1] < 2 }
	rows := product(counts, valid)
	if want := 6*5*4*2*2 + 2*4*2*2; len(rows) != want {
		t.Errorf("the matrix has %d rows, want %d", len(rows), want)
	}
	picked := pairwise(rows, 1)
	have := map[pairOf]bool{}
	for _, row := range picked {
		if !valid(row) {
			t.Errorf("row %v is not valid", row)
		}
		for _, p := range pairsOf(row) {
			have[p] = true
		}
	}
	for _, row := range rows {
		for _, p := range pairsOf(row) {
			if !have[p] {
				t.Fatalf("no row has %+v", p)
			}
		}
	}
	if len(picked) > 60 {
		t.Errorf("%d rows of %d, far more than the 35 that any set needs", len(picked), len(rows))
	}
}
