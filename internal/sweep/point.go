package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/internal/play"
)

// Point is one combination of values.
type Point struct {
	Values []string // of each axis
	// Impossible says why there is no such run; "" if there is.
	Impossible string
	Runs       []*Measure // one for each seed; nil: not run yet
}

// Measure is what one run has shown.
type Measure struct {
	Key    string // of the run, see key
	Seed   uint64
	Digest uint64
	Why    string // it ended
	Cells  map[string]Cell
	Stored bool // it was in the file
}

// Cell is a number, or why there is none.
type Cell struct {
	metric.Value
	Err string
}

// grid returns the points in order, the last axis fastest.
func grid(axes []Axis, seeds int) []*Point {
	points := []*Point{{}}
	for i := range axes {
		var next []*Point
		for _, p := range points {
			for _, v := range axes[i].Values {
				next = append(next, &Point{Values: append(append([]string(nil), p.Values...), v)})
			}
		}
		points = next
	}
	for _, p := range points {
		p.Runs = make([]*Measure, seeds)
	}
	return points
}

// sets returns the overrides of a point.
func (p *Point) sets(axes []Axis) []string {
	var out []string
	for i := range axes {
		for _, k := range axes[i].Keys {
			out = append(out, k+"="+p.Values[i])
		}
	}
	return out
}

// Cell returns the median of a metric over the runs of a point by nearest rank,
// and the least and the greatest; Err is set if no run has it.
func (p *Point) Cell(name string) (mid, low, high Cell) {
	var all []Cell
	err := "not run"
	for _, m := range p.Runs {
		if m == nil {
			continue
		}
		if c, ok := m.Cells[name]; ok && c.Err == "" {
			all = append(all, c)
		} else {
			err = c.Err
		}
	}
	if p.Impossible != "" {
		err = p.Impossible
	}
	if len(all) == 0 {
		none := Cell{Err: err}
		return none, none, none
	}
	sortCells(all)
	return all[(len(all)-1)/2], all[0], all[len(all)-1]
}

// reading reads the scenario of a point for one seed.
func (c *Config) reading(p *Point, seed int) (*play.Reading, error) {
	change := c.Change
	change.Sets = append(append([]string(nil), change.Sets...), p.sets(c.Axes)...)
	sc, err := c.Source.Scenario(change)
	if err != nil || seed == 0 {
		return sc, err
	}
	change.Sets = append(change.Sets, "seed="+strconv.FormatUint(sc.Seed+uint64(seed), 10))
	return c.Source.Scenario(change)
}

// key names a run by all that decides it: the version of the program, the
// scenario with its settings, and size and time of the files that it names.
func (c *Config) key(sc *play.Reading) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n", storeFormat, c.Version, sc.YAML())
	names := []string{sc.Topology.File}
	for i := range sc.Workload {
		names = append(names, sc.Workload[i].File, sc.Workload[i].CDF)
	}
	for _, n := range names {
		if n == "" || c.Source.Library() {
			continue
		}
		if !filepath.IsAbs(n) {
			n = filepath.Join(filepath.Dir(c.Source.File), n)
		}
		if st, err := os.Stat(n); err == nil {
			fmt.Fprintf(h, "%s %d %d\n", n, st.Size(), st.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
