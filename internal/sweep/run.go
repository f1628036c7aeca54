package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/verbena-rdma/verbena/internal/play"
)

// Config says what is swept.
type Config struct {
	Source  *play.Source
	Change  play.Change // holds at every point
	Axes    []Axis
	Seeds   int      // runs of each point, with seeds one after the other; 0: 1
	Metrics []string // none: Defaults
	Jobs    int      // runs at a time; 0: as many as cores
	Dir     string   // for the file of runs; "": none is kept
	Fresh   bool     // runs that are in the file are run again
	Version string   // of the program: other versions' runs do not count
	Status  io.Writer
	Note    func(text string) // is told what the reader should know; may be nil
}

// Result is what a sweep has shown.
type Result struct {
	Name    string // of the scenario
	Axes    []Axis
	Fixed   []string // overrides of all points
	Metrics []string
	Seeds   int
	Points  []*Point
	Total   int  // runs that are possible
	Ran     int  // of them now
	Stored  int  // of them earlier
	Stopped bool // by the context: some were not run
}

// MaxSeeds is how many runs a point may have.
const MaxSeeds = 1000

// job is a run that is to be made.
type job struct {
	point *Point
	seed  int
	key   string
}

// Run runs the grid. Where the context ends the result has what was finished;
// the runs under way are lost. The error is one of the whole: every point is
// impossible, or the file cannot be written.
func Run(ctx context.Context, c Config) (*Result, error) {
	c.Seeds, c.Jobs = max(1, c.Seeds), max(c.Jobs, 0)
	if c.Jobs == 0 {
		c.Jobs = runtime.GOMAXPROCS(0)
	}
	if c.Seeds > MaxSeeds {
		return nil, fmt.Errorf("%d runs a point: at most %d", c.Seeds, MaxSeeds)
	}
	r := &Result{Axes: c.Axes, Fixed: c.Change.Sets, Seeds: c.Seeds, Points: grid(c.Axes, c.Seeds)}
	st, err := openStore(c.Dir)
	if err != nil {
		return nil, err
	}
	jobs, err := c.plan(r, st)
	if err == nil {
		err = c.all(ctx, r, st, jobs)
	}
	return r, errors.Join(err, st.close())
}

// plan reads the scenario of every run and finds those that were run already.
func (c *Config) plan(r *Result, st *store) ([]job, error) {
	var jobs []job
	var first error
	for _, p := range r.Points {
		for seed := range c.Seeds {
			sc, err := c.reading(p, seed)
			if err != nil {
				p.Impossible = err.Error()
				if first == nil {
					first = err
				}
				break
			}
			if len(jobs)+r.Stored == 0 {
				if err := c.begin(r, sc); err != nil {
					return nil, err
				}
			}
			key := c.key(sc)
			if m := st.find(key, r.Metrics); m != nil && !c.Fresh {
				p.Runs[seed] = m
				r.Stored++
				continue
			}
			// What a scenario holds is much for many points: it is read again.
			jobs = append(jobs, job{point: p, seed: seed, key: key})
		}
	}
	if len(jobs)+r.Stored == 0 {
		return nil, first
	}
	r.Total = len(jobs) + r.Stored
	return jobs, nil
}

// begin looks at the first point that is possible.
func (c *Config) begin(r *Result, sc *play.Reading) error {
	r.Name, r.Metrics = sc.Name, c.Metrics
	if c.Note != nil {
		for _, n := range sc.Notes {
			c.Note(n)
		}
	}
	if len(r.Metrics) == 0 {
		r.Metrics = Defaults(sc.Scenario)
		return nil
	}
	files := c.Source.Files()
	defer files.Close()
	return checkMetrics(sc, files, r.Metrics)
}

// all runs the jobs, several at a time.
func (c *Config) all(ctx context.Context, r *Result, st *store, jobs []job) error {
	bar := newBar(c.Status, r.Name, r.Total, r.Stored)
	defer bar.end()
	queue := make(chan *job)
	var wg sync.WaitGroup
	var mu sync.Mutex // over the result
	var failed error
	var failing atomic.Bool // nothing more is begun
	for range min(c.Jobs, len(jobs)) {
		wg.Go(func() {
			for j := range queue {
				m, impossible, err := c.one(ctx, r, j, bar)
				if m != nil && err == nil {
					err = st.add(m, c.Version, append(append([]string{}, c.Change.Sets...), j.point.sets(c.Axes)...))
				}
				mu.Lock()
				switch {
				case err != nil:
					failed = errors.Join(failed, err)
					failing.Store(true)
				case impossible != nil:
					j.point.Impossible = impossible.Error()
					r.Total--
				case m != nil:
					j.point.Runs[j.seed] = m
					r.Ran++
				}
				mu.Unlock()
			}
		})
	}
	for i := range jobs {
		if failing.Load() || ctx.Err() != nil {
			break
		}
		select {
		case queue <- &jobs[i]:
		case <-ctx.Done():
		}
	}
	close(queue)
	wg.Wait()
	for _, p := range r.Points {
		for _, m := range p.Runs {
			r.Stopped = r.Stopped || m == nil && p.Impossible == ""
		}
	}
	return failed
}

// one makes a run; a run that was stopped is nothing. An error of the scenario
// is about its point alone, any other about the whole.
func (c *Config) one(ctx context.Context, r *Result, j *job, bar *bar) (m *Measure, impossible, err error) {
	at := bar.start()
	defer at.done()
	sc, err := c.reading(j.point, j.seed)
	if err != nil {
		return nil, nil, err
	}
	files := c.Source.Files()
	defer files.Close()
	run, warnings, err := sc.Load(files)
	if err != nil {
		return nil, err, nil
	}
	out, err := sc.Play(ctx, run, warnings, play.Options{Share: at.share})
	if err != nil || out.Stopped {
		return nil, nil, err
	}
	res := out.Result
	names := append(usual(), r.Metrics...)
	return &Measure{Key: j.key, Seed: sc.Seed, Digest: res.Digest, Why: res.Why, Cells: measure(res, names)}, nil, nil
}
