package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// fact is a word of the vocabulary.
type fact struct {
	doc  string // what it is, with its unit
	each []Each // where it can be had; nil for everywhere
	get  func(*scope) reading
}

func (f *fact) available(each Each) bool { return f.each == nil || slices.Contains(f.each, each) }

// reading is the value of a fact, or why there is none.
type reading struct {
	value any
	why   string
	place string // where it was read
}

// vocabulary are all facts by name. It is a constant: nothing adds to it.
var vocabulary = words(portFacts, railFacts, netdevFacts, pathFacts, hostFacts, appFacts, switchFacts)

func words(groups ...map[string]fact) map[string]fact {
	out := map[string]fact{}
	for _, g := range groups {
		for name, f := range g {
			if _, ok := out[name]; ok {
				panic("doctor: the fact " + name + " is there twice") // a mistake in this package, met by every test
			}
			out[name] = f
		}
	}
	return out
}

// Where facts of a device, a port and an interface can be had.
var (
	ofDevice = []Each{EachDevice, EachPort, EachQP, EachNetdev}
	ofPort   = []Each{EachPort, EachQP, EachNetdev}
	ofNetdev = []Each{EachNetdev, EachPort, EachQP, EachDevice}
)

// val makes a reading of a value.
func val[T any](v snapshot.Value[T], place string) reading {
	x, ok := v.Get()
	if !ok {
		return reading{why: v.Why(), place: place}
	}
	return reading{value: plain(x), place: place}
}

// plain makes numbers int or float64, as expressions have them.
func plain(v any) any {
	switch x := v.(type) {
	case int64:
		return int(x)
	case uint64:
		return float64(x)
	case uint32:
		return int(x)
	case snapshot.Hash:
		return int(x)
	}
	return v
}

func none(place, format string, args ...any) reading {
	return reading{place: place, why: fmt.Sprintf(format, args...)}
}

func is(v any, place string) reading { return reading{value: plain(v), place: place} }

// Evidence is a value that a finding rests on.
type Evidence struct {
	What   string `json:"what"`             // the fact or counter
	Value  string `json:"value"`            // for people; a counter's is its value now
	Before string `json:"before,omitempty"` // of a counter: its value at the first of two instants
	Place  string `json:"place,omitempty"`  // the file or command that has it
	// Rate is what a counter rose a second, where that was asked; Unit is that of the value.
	Rate string `json:"rate,omitempty"`
	Unit string `json:"unit,omitempty"`
	// Where is the thing it is about, in a finding of several.
	Where string `json:"where,omitempty"`
}

// trace collects what a condition reads, each thing once.
type trace struct{ seen []Evidence }

func (t *trace) add(e Evidence) {
	for i := range t.seen {
		if t.seen[i].What == e.What {
			return
		}
	}
	t.seen = append(t.seen, e)
}

// environment makes the env of an expression over a scope, recording what is read.
func environment(r *Rule, s *scope, t *trace) *env {
	e := &env{Limit: r.Limits, Quotient: quotient}
	e.Fact = func(name string) (any, error) { return readFact(s, name, t) }
	e.Known = func(name string) bool {
		_, err := readFact(s, name, &trace{})
		return err == nil
	}
	e.Delta = func(c string, prio ...int) (any, error) { return s.counter(c, prio, modeDelta, t) }
	e.Rate = func(c string, prio ...int) (any, error) { return s.counter(c, prio, modeRate, t) }
	e.Total = func(c string, prio ...int) (any, error) { return s.counter(c, prio, modeTotal, t) }
	e.Seen = func(c string, prio ...int) (any, error) { return s.counter(c, prio, modeSeen, t) }
	e.Has = func(c string, prio ...int) bool {
		_, err := s.counter(c, prio, modeTotal, &trace{})
		return err == nil
	}
	e.Peer = func(c string, prio ...int) (any, error) {
		if s.peer == nil {
			return nil, &unknown{"peer", "no snapshot of the other end was given"}
		}
		far := &trace{}
		v, err := s.peer.counter(c, prio, modeSeen, far)
		for _, ev := range far.seen {
			ev.What, ev.Place = "peer "+ev.What, "peer: "+ev.Place
			t.add(ev)
		}
		return v, err
	}
	e.Name = func(c string) string { return counterName(s.now.dev, c) }
	e.Event = func(kind string, codes ...int) (bool, error) { return s.event(kind, codes, t) }
	e.Logged = func(pattern string) (bool, error) { return s.logged(pattern, t) }
	lets := map[string]letValue{}
	e.Let = func(name string) (any, error) {
		if v, ok := lets[name]; ok {
			return v.value, v.err
		}
		v := letValue{err: &unknown{name, "no such name"}}
		for i := range r.Let {
			if r.Let[i].Name == name {
				v.value, v.err = evaluate(r.prog.let[i], e)
			}
		}
		if text, ok := v.value.(string); ok && len(text) > maxLetText {
			v = letValue{err: &unknown{name, fmt.Sprintf("a text of %d bytes, must be at most %d", len(text), maxLetText)}}
		}
		lets[name] = v
		return v.value, v.err
	}
	return e
}

// maxLetText bounds what a rule may build of texts by names that use each other.
const maxLetText = 1 << 20

// letValue is what a name of a rule has come to: each is evaluated once, for names may
// use each other.
type letValue struct {
	value any
	err   error
}

// readFact reads a fact by name and notes it.
func readFact(s *scope, name string, t *trace) (any, error) {
	rest, isPeer := strings.CutPrefix(name, "peer.")
	if isPeer {
		if s.peer == nil {
			return nil, &unknown{name, "no snapshot of the other end was given"}
		}
		s = s.peer
	}
	f, ok := vocabulary[rest]
	if !ok {
		return nil, &unknown{name, "no such fact"}
	}
	r := f.get(s)
	if r.value == nil {
		return nil, &unknown{name, r.why}
	}
	place := r.place
	if isPeer {
		place = "peer: " + place
	}
	t.add(Evidence{What: name, Value: format(r.value), Unit: unitOf(name), Place: place})
	return r.value, nil
}

// format writes a value for people.
func format(v any) string {
	switch x := v.(type) {
	case float64:
		if x == float64(int64(x)) {
			return strconv.FormatInt(int64(x), 10)
		}
		if x >= 1000 || x <= -1000 {
			return strconv.FormatFloat(x, 'f', 0, 64)
		}
		return strconv.FormatFloat(x, 'g', 4, 64)
	case []string:
		if len(x) == 0 {
			return "none"
		}
		return strings.Join(x, ", ")
	case []any:
		parts := make([]string, len(x))
		for i := range x {
			parts[i] = format(x[i])
		}
		return strings.Join(parts, ", ")
	case nil:
		return "unknown"
	}
	return fmt.Sprint(v)
}
