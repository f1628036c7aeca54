package benchsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Config says how to measure. Zero fields take the defaults given.
type Config struct {
	Rounds int            // of every case; 0: each case's own
	Only   *regexp.Regexp // cases to measure; nil: all
	Out    io.Writer      // the report
	Status io.Writer      // progress; nil: none
}

// Result is one case measured.
type Result struct {
	Title string `json:"title"`
	// Best is the run with the least processor time: what disturbs a run can only
	// lengthen it.
	Best   Figures   `json:"best"`
	All    []float64 `json:"all_cpu_s"` // processor times of all runs
	Peak   uint64    `json:"peak_rss_bytes"`
	Failed string    `json:"failed,omitempty"`
}

// Judged is one row with its figure.
type Judged struct {
	Row
	Value   float64 `json:"value"`
	Verdict Verdict `json:"verdict"`
	Passes  bool    `json:"passes"`
}

// Machine is where the figures are from. Empty fields could not be found out.
type Machine struct {
	Time string `json:"time"`
	OS   string `json:"os"`
	CPU  string `json:"cpu,omitempty"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	Load string `json:"load_before,omitempty"` // averages over 1, 5 and 15 minutes
}

// Report is what a run of the benchmark found.
type Report struct {
	Machine Machine  `json:"machine"`
	Cases   []Result `json:"cases"`
	Rows    []Judged `json:"rows"`
	Rivals  []Rival  `json:"rivals"`
}

// Passes reports whether every case has finished and no row is under its gate.
func (r *Report) Passes() bool {
	return !slices.ContainsFunc(r.Cases, func(c Result) bool { return c.Failed != "" }) &&
		!slices.ContainsFunc(r.Rows, func(j Judged) bool { return !j.Passes })
}

// Run measures, and writes the report. A case that fails is in it; the error is
// about the run as a whole.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Status == nil {
		cfg.Status = io.Discard
	}
	cases := slices.DeleteFunc(Cases(), func(c Case) bool { return cfg.Only != nil && !cfg.Only.MatchString(c.Name) })
	if len(cases) == 0 {
		return nil, errors.New("no case matches")
	}
	rep := &Report{Machine: describe(), Cases: make([]Result, len(cases)), Rivals: Rivals()}
	rounds := func(c *Case) int {
		if cfg.Rounds > 0 {
			return cfg.Rounds
		}
		return c.Rounds
	}
	most := 0
	for i := range cases {
		rep.Cases[i].Title, rep.Cases[i].Best.Case = cases[i].Title, cases[i].Name
		most = max(most, rounds(&cases[i]))
	}
	// Cases take turns, so that a busy minute spoils a round of each and not all of one.
	for round := range most {
		for i := range cases {
			r := &rep.Cases[i]
			if round >= rounds(&cases[i]) || r.Failed != "" {
				continue
			}
			fmt.Fprintf(cfg.Status, "\r\033[K%s: round %d of %d ", cases[i].Name, round+1, rounds(&cases[i]))
			f, err := spawn(ctx, cases[i].Name)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				r.Failed = err.Error()
				continue
			}
			r.add(f)
		}
	}
	fmt.Fprint(cfg.Status, "\r\033[K")
	rep.judge()
	write(cfg.Out, rep)
	return rep, nil
}

// add takes the figures of one more run.
func (r *Result) add(f *Figures) {
	if len(r.All) > 0 && (f.Digest != r.Best.Digest || f.Events != r.Best.Events) {
		r.Failed = fmt.Sprintf("%s: two runs differ: digests %s and %s", f.Case, r.Best.Digest, f.Digest)
		return
	}
	if len(r.All) == 0 || f.CPUSeconds < r.Best.CPUSeconds {
		r.Best = *f
	}
	r.All = append(r.All, f.CPUSeconds)
	r.Peak = max(r.Peak, f.PeakBytes)
	r.Best.PeakBytes = r.Peak // of memory the worst counts
}

func (r *Report) find(name string) *Figures {
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Best.Case == name && c.Failed == "" {
			return &c.Best
		}
	}
	return nil
}

func (r *Report) judge() {
	for _, row := range Rows() {
		f := r.find(row.Case)
		if f == nil || row.Than != "" && r.find(row.Than) == nil {
			continue
		}
		j := Judged{Row: row, Value: row.Metric.of(f, r.find(row.Than))}
		j.Verdict, j.Passes = row.Judge(j.Value)
		r.Rows = append(r.Rows, j)
	}
}

// JSON returns the report for other programs.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", " ")
	return append(b, '\n'), err
}

func describe() Machine {
	m := Machine{
		Time: time.Now().UTC().Format(time.RFC3339), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Go: runtime.Version(),
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 2 {
			m.Load = strings.Join(f[:3], " ")
		}
	}
	return m
}
