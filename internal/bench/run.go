package bench

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"time"
)

// Config says how to measure. Zero fields take the defaults given.
type Config struct {
	Rounds int            // 7
	Slot   time.Duration  // of each subject in each round, in two halves: 600 ms
	Only   *regexp.Regexp // rows to measure; nil: all
	NoPin  bool           // let the children run on any processor, always
	Seed   uint64         // of the order; 0: of the time
	Port   int            // the first of the UDP and TCP ports used; 0: by the seed
	Out    io.Writer      // the report
	Status io.Writer      // progress; nil: none
}

func (c *Config) setDefaults() {
	if c.Rounds == 0 {
		c.Rounds = 7
	}
	if c.Slot == 0 {
		c.Slot = 600 * time.Millisecond
	}
	if c.Seed == 0 {
		c.Seed = uint64(time.Now().UnixNano())
	}
	if c.Port == 0 {
		c.Port = 20000 + int(c.Seed%1000)*20
	}
	if c.Status == nil {
		c.Status = io.Discard
	}
}

// Spread is the median of some figures and where they lie.
type Spread struct {
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"` // quartiles
	Q3     float64 `json:"q3"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spreadOf returns the spread of v, zeros if it is empty.
func spreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	v = slices.Sorted(slices.Values(v))
	at := func(p float64) float64 {
		x := p * float64(len(v)-1)
		i := int(x)
		if i+1 == len(v) {
			return v[i]
		}
		return v[i] + (v[i+1]-v[i])*(x-float64(i))
	}
	return Spread{Median: at(0.5), Q1: at(0.25), Q3: at(0.75), Min: v[0], Max: v[len(v)-1]}
}

// Result is one row measured.
type Result struct {
	Name    string  `json:"name"`
	Metric  Metric  `json:"metric"`
	Ours    Spread  `json:"a"`
	Theirs  Spread  `json:"b,omitzero"`
	Ratio   Spread  `json:"ratio,omitzero"`
	Goal    float64 `json:"goal,omitempty"`
	Floor   float64 `json:"floor,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`
	Passes  bool    `json:"passes"`
	Resent  uint64  `json:"resent,omitempty"`  // packets that A sent again, over all rounds
	Skipped string  `json:"skipped,omitempty"` // why it was not measured
	Failed  string  `json:"failed,omitempty"`  // what went wrong
}

// Report is what a run found.
type Report struct {
	Machine Machine  `json:"machine"`
	Rounds  int      `json:"rounds"`
	SlotMS  int64    `json:"slot_ms"`
	Seed    uint64   `json:"seed"`
	Rows    []Result `json:"rows"`
}

// Passes reports whether no row that was measured is under its gate.
func (r *Report) Passes() bool {
	for i := range r.Rows {
		if r.Rows[i].Skipped == "" && !r.Rows[i].Passes {
			return false
		}
	}
	return true
}

// runner runs groups.
type runner struct {
	cfg   Config
	rng   *rand.Rand
	pairs map[string]*pair
	ports int
	iperf bool
}

// Run measures and writes the report as it goes. A subject that fails spoils
// its rows, not the run; the error is about the run as a whole.
func Run(cfg Config) (*Report, error) {
	cfg.setDefaults()
	r := &runner{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0)), pairs: map[string]*pair{}}
	rep := &Report{Machine: describe(), Rounds: cfg.Rounds, SlotMS: cfg.Slot.Milliseconds(), Seed: cfg.Seed}
	r.iperf = rep.Machine.Iperf != ""
	groups := Select(Plan(), cfg.Only)
	if len(groups) == 0 {
		return nil, errors.New("no row matches")
	}
	writeHead(cfg.Out, rep)
	for i := range groups {
		g := &groups[i]
		rows := r.group(g, fmt.Sprintf("%d/%d %s", i+1, len(groups), g.Name))
		rep.Rows = append(rep.Rows, rows...)
		writeGroup(cfg.Out, g.Name, rows)
	}
	rep.Machine.LoadAfter = load()
	writeEnd(cfg.Out, rep)
	var err error
	for _, p := range r.pairs {
		if p != nil {
			err = errors.Join(err, p.close())
		}
	}
	return rep, err
}

// group measures the rows of one group.
func (r *runner) group(g *Group, title string) []Result {
	rows := make([]Result, len(g.Rows))
	for i, row := range g.Rows {
		rows[i] = Result{Name: row.Name, Metric: row.Metric, Goal: row.Goal, Floor: row.Floor, Passes: true}
	}
	p, why, err := r.pair(g.Network)
	if why != "" || err != nil {
		for i := range rows {
			rows[i].Skipped = why
			if err != nil {
				rows[i].Failed, rows[i].Passes = err.Error(), false
			}
		}
		return rows
	}
	samples, wrong := r.rounds(p, g, title)
	for i, row := range g.Rows {
		r.evaluate(&rows[i], &row, samples, wrong)
	}
	if p.near.dead != nil || p.far.dead != nil {
		// The next group gets new children.
		_ = p.close()
		delete(r.pairs, g.Network)
	}
	return rows
}

// pin keeps the two children on different processors, and exchanges them in
// the second half of a round: the processors of a shared machine differ in
// speed. A group that is about waking up is left alone: a sleeping processor
// takes longer to wake than a thread to move.
func (r *runner) pin(p *pair, g *Group, half int) error {
	cpus := [2]int{0, runtime.NumCPU() - 1}
	if g.Unpinned || r.cfg.NoPin || cpus[1] == 0 {
		cpus = [2]int{-1, -1}
	}
	_, nearErr := p.near.ask(request{Do: "pin", Subject: cpus[half]})
	_, farErr := p.far.ask(request{Do: "pin", Subject: cpus[1-half]})
	return errors.Join(nearErr, farErr)
}

// pair returns the children of a network, or why there cannot be any.
func (r *runner) pair(network string) (p *pair, why string, err error) {
	if p := r.pairs[network]; p != nil {
		return p, "", nil
	}
	port := r.cfg.Port + r.ports*20
	r.ports++
	if network == "veth" {
		if why := mayMakeNetworks(); why != "" {
			return nil, why, nil
		}
		p, err = openVeth(port)
	} else {
		p, err = openLo(port)
	}
	if err == nil {
		r.pairs[network] = p
	}
	return p, "", err
}

// skipped marks a subject that cannot be measured here.
type skipped string

func (s skipped) Error() string { return string(s) }

// rounds lets the subjects take turns. It returns a sample of each for each
// round, and what went wrong with those that have none.
func (r *runner) rounds(p *pair, g *Group, title string) (map[string][]Sample, map[string]error) {
	samples, wrong := map[string][]Sample{}, map[string]error{}
	subjects := map[string]*subject{}
	names := slices.Sorted(maps.Keys(g.Subjects))
	for _, name := range names {
		spec := g.Subjects[name]
		if spec.Kind == KindIperf && !r.iperf {
			wrong[name] = skipped("iperf3 is not installed")
			continue
		}
		s, err := p.join(&spec)
		if err != nil {
			wrong[name] = fmt.Errorf("%s: %w", name, err)
			continue
		}
		defer s.close()
		subjects[name] = s
	}
	for round := range r.cfg.Rounds {
		fmt.Fprintf(r.cfg.Status, "\r\033[K%s: round %d of %d ", title, round+1, r.cfg.Rounds)
		for half := range 2 {
			if err := r.pin(p, g, half); err != nil {
				fmt.Fprintf(r.cfg.Out, "\nnot pinned: %v\n", err)
			}
			r.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for _, name := range names {
				s := subjects[name]
				if s == nil || wrong[name] != nil {
					continue
				}
				sample, err := s.slot(r.cfg.Slot / 2)
				if err != nil {
					wrong[name] = fmt.Errorf("%s: %w", name, err)
					continue
				}
				if half == 0 {
					samples[name] = append(samples[name], sample)
				} else {
					samples[name][round].add(&sample)
				}
			}
		}
	}
	fmt.Fprint(r.cfg.Status, "\r\033[K")
	return samples, wrong
}

// evaluate fills in a row.
func (r *runner) evaluate(res *Result, row *Row, samples map[string][]Sample, wrong map[string]error) {
	for _, name := range []string{row.A, row.B} {
		err := wrong[name]
		var skip skipped
		switch {
		case errors.As(err, &skip):
			res.Skipped = string(skip)
			return
		case err != nil:
			res.Failed, res.Passes = err.Error(), false
			return
		}
	}
	a, b := samples[row.A], samples[row.B]
	var as, bs, ratios []float64
	for i := range a {
		x := row.Metric.Of(&a[i])
		as = append(as, x)
		res.Resent += a[i].Resent
		if row.B == "" {
			continue
		}
		y := row.Metric.Of(&b[i])
		bs = append(bs, y)
		if q := x / y; !math.IsNaN(q) && !math.IsInf(q, 0) {
			ratios = append(ratios, q)
		}
	}
	res.Ours, res.Theirs, res.Ratio = spreadOf(as), spreadOf(bs), spreadOf(ratios)
	if row.B != "" {
		res.Verdict, res.Passes = row.Judge(res.Ratio.Median)
	}
}
