package work

// Stream gives flows in the order of their starts, so that a trace of any
// length is never in memory as a whole. Flows with After come behind those that
// they wait for; IDs are given by who takes them.
type Stream interface {
	// Next returns the next flow; false when there is none, or none any more
	// because of Err.
	Next() (Flow, bool)
	// Finite reports whether flows that a run waits for may still come.
	Finite() bool
	// Err returns why the stream has ended before its time, or nil.
	Err() error
}

// List is a stream of flows that exist already.
type List struct {
	Flows []Flow
	next  int
}

// Next implements [Stream].
func (l *List) Next() (Flow, bool) {
	if l.next == len(l.Flows) {
		return Flow{}, false
	}
	l.next++
	return l.Flows[l.next-1], true
}

// Finite implements [Stream].
func (l *List) Finite() bool {
	for i := l.next; i < len(l.Flows); i++ {
		if !l.Flows[i].Endless {
			return true
		}
	}
	return false
}

// Err implements [Stream].
func (l *List) Err() error { return nil }

// Chained reports whether a flow waits for another.
func (l *List) Chained() bool {
	for i := range l.Flows {
		if len(l.Flows[i].After) > 0 {
			return true
		}
	}
	return false
}
