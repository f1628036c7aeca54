package work

import (
	"slices"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// Resolve turns what a file calls source and destination into endpoints. Its
// errors say what is wrong without saying where. The methods of topo.Resolver
// are such.
type Resolve func(src, dst string) (from, to int32, err error)

// Reader reads traffic files.
type Reader struct {
	// Find turns the file's names into endpoints: by number of node for HPCC's
	// flow.txt, by number of host for htsim's matrices, by name for CSV.
	Find Resolve
	// As has the properties that the file does not give.
	As Flow
	// Unsorted files are taken into memory (MaxFlows at most) and sorted by
	// start; otherwise a flow that starts before the one above it is an error,
	// and the file is read as flows are needed.
	Unsorted bool

	most int // flows in memory; 0: MaxFlows
}

func (r *Reader) limit() int {
	if r.most > 0 {
		return r.most
	}
	return MaxFlows
}

// record is a format of one flow after the other.
type record interface {
	// next reads the next flow; false at the end. at is its place.
	next(in *token.Reader) (f Flow, at token.Field, ok bool, err error)
}

// fileStream reads flows as they are asked for.
type fileStream struct {
	in   *token.Reader
	rec  record
	last sim.Time
	id   int32
	err  error

	done, sort, endless bool
}

// stream returns the flows of a file.
func (r *Reader) stream(in *token.Reader, rec record) Stream {
	s := &fileStream{in: in, rec: rec, sort: r.Unsorted, endless: r.As.Endless}
	if !r.Unsorted {
		return s
	}
	flows, err := Collect(s, r.limit())
	if err != nil {
		if s.err == nil { // it is the limit
			err = in.FailFile("holds more than %d flows: sort it by start, so that it can be streamed", r.limit())
		}
		s.done, s.err = true, err
		return s
	}
	slices.SortStableFunc(flows, func(a, b Flow) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	for i := range flows {
		flows[i].ID = int32(i)
	}
	return &List{Flows: flows}
}

// Next implements [Stream].
func (s *fileStream) Next() (Flow, bool) {
	if s.done {
		return Flow{}, false
	}
	f, at, ok, err := s.rec.next(s.in)
	if err == nil && ok && f.Start < s.last && !s.sort {
		err = s.in.Fail(at, "flow starts at %s, before the one above it at %s: sort the file", f.Start, s.last)
	}
	if err != nil || !ok {
		s.done, s.err = true, err
		return Flow{}, false
	}
	s.last = f.Start
	f.ID = s.id
	s.id++
	return f, true
}

// Finite implements [Stream].
func (s *fileStream) Finite() bool { return !s.done && !s.endless }

// Err implements [Stream].
func (s *fileStream) Err() error { return s.err }

// Chained reports that no flow waits for another.
func (s *fileStream) Chained() bool { return false }

// ends finds the endpoints of a flow.
func (r *Reader) ends(in *token.Reader, src, dst token.Field) (from, to int32, err error) {
	from, to, err = r.Find(src.Text, dst.Text)
	if err != nil {
		return 0, 0, in.Fail(src, "%s", err)
	}
	return from, to, nil
}

// nextTime reads a time without a unit of its own as seconds.
func nextTime(in *token.Reader, what string, most sim.Time) (sim.Time, error) {
	f, ok := in.Next()
	if !ok {
		return 0, missing(in, what)
	}
	return in.Time(f, what, most)
}

func missing(in *token.Reader, what string) error {
	if err := in.Err(); err != nil {
		return err
	}
	return in.FailEnd("%s is missing: the file ends here", what)
}
