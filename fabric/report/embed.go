package report

import (
	"bytes"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// embedded returns the run as JSON of at most limit bytes, and what had to be
// left out for that: first the density of series, then events, then flows and
// everything that refers to them, then all but the head.
func embedded(r *result.Run, limit int) (data []byte, reduced []string, err error) {
	for step := range 5 {
		d := document{Format: jsonFormat, Version: JSONVersion, Run: *r}
		if step > 0 {
			d.Reduced = reduce(&d.Run, step)
		}
		if estimate(&d.Run) > 4*limit && step < 4 {
			continue // no need to write it to know
		}
		var b bytes.Buffer
		if err := writeDocument(&b, &d); err != nil {
			return nil, nil, err
		}
		if b.Len() <= limit {
			return b.Bytes(), d.Reduced, nil
		}
	}
	return []byte("null"), []string{"everything"}, nil
}

// estimate returns about how many bytes a run takes at least.
func estimate(r *result.Run) int {
	n := 60*len(r.Pauses) + 60*len(r.Drops) + 300*len(r.Flows) + len(r.Source)
	for i := range r.Series {
		n += 2 * len(r.Series[i].Values)
	}
	return n
}

// The sizes to which lists are cut.
const (
	embedSamples = 200
	embedEvents  = 1000
	embedFlows   = 500
)

// reduce leaves things out of a copy of a run, the more the higher the step.
func reduce(r *result.Run, step int) (what []string) {
	if step >= 1 {
		thinned := false
		series := make([]result.Series, len(r.Series))
		for i := range r.Series {
			series[i] = coarse(r.Series[i], embedSamples)
			thinned = thinned || len(series[i].Values) < len(r.Series[i].Values)
		}
		if r.Series = series; thinned {
			what = append(what, "samples of series (each is the highest of several)")
		}
	}
	if step >= 2 {
		if n := len(r.Pauses); n > embedEvents {
			r.Pauses, r.PausesCut = r.Pauses[:embedEvents], r.PausesCut+uint64(n-embedEvents)
			what = append(what, "later pauses")
		}
		if n := len(r.Drops); n > embedEvents {
			r.Drops, r.DropsCut = r.Drops[:embedEvents], r.DropsCut+uint64(n-embedEvents)
			what = append(what, "later drops")
		}
		if len(r.Source) > sourceLimit {
			r.Source = ""
			what = append(what, "the scenario")
		}
	}
	if step >= 3 {
		what = append(what, cutFlows(r)...)
	}
	if step >= 4 {
		*r = result.Run{
			Name: r.Name, Title: r.Title, Seed: r.Seed, Digest: r.Digest, Events: r.Events, DataHops: r.DataHops, AckHops: r.AckHops,
			End: r.End, Interrupted: r.Interrupted, Why: r.Why, Shape: r.Shape,
		}
		what = []string{"all but the head of the run"}
	}
	return what
}

// coarse returns a series of at most n samples, each the highest of as many as
// it stands for.
func coarse(s result.Series, n int) result.Series {
	if len(s.Values) <= n {
		return s
	}
	per := (len(s.Values) + n - 1) / n
	var vs []int64
	for i := 0; i < len(s.Values); i += per {
		v := s.Values[i]
		for _, x := range s.Values[i:min(i+per, len(s.Values))] {
			v = max(v, x)
		}
		vs = append(vs, v)
	}
	s.Values, s.Step = vs, s.Step*sim.Time(per)
	return s
}

// cutFlows keeps the first flows, and of the rest what does not name others.
func cutFlows(r *result.Run) []string {
	var what []string
	if len(r.Series) > 0 {
		r.Series = nil
		what = append(what, "series")
	}
	if len(r.Lossless) > embedEvents {
		r.Lossless = r.Lossless[:embedEvents]
		what = append(what, "verdicts on headroom")
	}
	if len(r.Flows) <= embedFlows {
		return what
	}
	r.Flows = r.Flows[:embedFlows]
	var drops []result.Drop
	for _, d := range r.Drops {
		if int(d.Flow) < embedFlows {
			drops = append(drops, d)
		}
	}
	r.DropsCut += uint64(len(r.Drops) - len(drops))
	r.Drops = drops
	return append(what, "flows but the first 500")
}
