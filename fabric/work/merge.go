package work

// Merge makes one stream of several. IDs, After and names of queue pairs are
// those of each stream on its own, and are made unique: IDs count from 0. Flows
// of one instant come in the order of the streams. A flow with After is due
// when the one before it in its stream is.
func Merge(streams ...Stream) Stream {
	m := &merged{in: make([]source, len(streams))}
	for i, s := range streams {
		m.in[i].Stream = s
		if c, ok := s.(chained); ok {
			m.in[i].forgets = !c.Chained()
		}
		m.pull(i)
	}
	return m
}

type merged struct {
	in    []source
	ready timeline // sources that have a flow
	id    int32
	qp    int32
	err   error
}

type source struct {
	Stream
	ahead   Flow
	ids     []int32         // new ID by old, while it can be needed
	qps     map[int32]int32 // new name by old
	forgets bool            // its flows wait for nothing
}

// chained streams know whether any of their flows waits for another.
type chained interface{ Chained() bool }

// pull looks for the next flow of a source.
func (m *merged) pull(i int) {
	s := &m.in[i]
	due := m.ready.last // of the flow before it
	f, ok := s.Next()
	if !ok {
		if err := s.Err(); err != nil && m.err == nil {
			m.err = err
		}
		return
	}
	if len(f.After) == 0 {
		due = f.Start
	}
	s.ahead = f
	m.ready.push(due, int32(i))
}

// Next implements [Stream].
func (m *merged) Next() (Flow, bool) {
	if m.err != nil {
		return Flow{}, false
	}
	i, ok := m.ready.pop()
	if !ok {
		return Flow{}, false
	}
	s := &m.in[i]
	f := s.ahead
	if len(f.After) > 0 {
		after := make([]int32, len(f.After))
		for k, old := range f.After {
			after[k] = s.ids[old]
		}
		f.After = after
	}
	f.ID = m.id
	m.id++
	if !s.forgets {
		s.ids = append(s.ids, f.ID)
	}
	if f.QP != 0 {
		if s.qps == nil {
			s.qps = make(map[int32]int32)
		}
		name := s.qps[f.QP]
		if name == 0 {
			m.qp++
			name = m.qp
			s.qps[f.QP] = name
		}
		f.QP = name
	}
	m.pull(int(i))
	return f, true
}

// Finite implements [Stream].
func (m *merged) Finite() bool {
	if m.err != nil {
		return false
	}
	for i := range m.ready.who {
		s := &m.in[m.ready.who[i]]
		if !s.ahead.Endless || s.Finite() {
			return true
		}
	}
	return false
}

// Err implements [Stream].
func (m *merged) Err() error { return m.err }

// Chained reports whether a flow may wait for another.
func (m *merged) Chained() bool {
	for i := range m.in {
		if !m.in[i].forgets {
			return true
		}
	}
	return false
}
