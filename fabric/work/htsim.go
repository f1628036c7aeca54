package work

import (
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo/token"
)

// HTSim reads a connection matrix (.cm) of htsim, whole:
//
//	Nodes 16
//	Connections 2
//	Triggers 1
//	0->13 id 1 start 0 size 2000000 send_done_trigger 1
//	13->2 id 2 trigger 1 size 2000000
//	trigger id 1 oneshot
//
// Starts are in picoseconds; size 0 is an endless flow. Priorities of flows are
// those of a transport that is not modelled here, and are passed over. name is
// the file's, for errors.
//
// A trigger lets its flows start when others are done: oneshot and barrier all
// of them, multishot one for each that is done. A flow here waits for given
// flows, so a oneshot is set off by one flow, and a barrier by as many as it
// counts.
//
// Deviation: the n-th flow of a multishot waits for the n-th in the file that
// sets it off, not for the n-th that is done. Deviation: a flow is done when
// its sender knows, for recv_done_trigger too.
func (r Reader) HTSim(in io.Reader, name string) Stream {
	h := matrix{r: r, in: token.NewReader(in, name), triggers: make(map[int64]int)}
	flows, err := h.read()
	if err != nil {
		return &failed{err}
	}
	return &List{Flows: flows}
}

// failed is a stream of a file that could not be read.
type failed struct{ err error }

func (f *failed) Next() (Flow, bool) { return Flow{}, false }
func (f *failed) Finite() bool       { return false }
func (f *failed) Err() error         { return f.err }

type matrix struct {
	r        Reader
	in       *token.Reader
	nodes    int64 // from the header; 0: none
	conns    int64 // -1: none
	trigs    int64
	flows    []Flow
	list     []trigger
	triggers map[int64]int // place in list, by number
}

type triggerKind uint8

const (
	undefined triggerKind = iota
	oneshot
	multishot
	barrier
)

type trigger struct {
	kind  triggerKind
	count int64       // of a barrier
	at    token.Field // first mention
	by    []int32     // flows that set it off
	flows []int32     // that it lets start
}

func (m *matrix) read() ([]Flow, error) {
	m.conns, m.trigs = -1, 0
	for {
		f, ok := m.in.Next()
		if !ok {
			break
		}
		if err := m.line(f); err != nil {
			return nil, err
		}
	}
	if err := m.in.Err(); err != nil {
		return nil, err
	}
	defined := int64(0)
	for i := range m.list {
		if m.list[i].kind != undefined {
			defined++
		}
	}
	switch {
	case m.nodes == 0:
		return nil, m.in.FailFile("Nodes is missing")
	case m.conns < 0:
		return nil, m.in.FailFile("Connections is missing")
	case m.conns != int64(len(m.flows)):
		return nil, m.in.FailFile("Connections is %d, but there are %d", m.conns, len(m.flows))
	case m.trigs != defined:
		return nil, m.in.FailFile("Triggers is %d, but there are %d", m.trigs, defined)
	}
	for i := range m.list {
		if err := m.chain(&m.list[i]); err != nil {
			return nil, err
		}
	}
	flows, err := Order(m.flows)
	if err != nil {
		return nil, m.in.FailFile("%s", err)
	}
	return flows, nil
}

func (m *matrix) line(f token.Field) error {
	switch {
	case !f.New:
		return m.in.Fail(f, "%.40q does not belong here", f.Text)
	case strings.Contains(f.Text, "->"):
		return m.connection(f)
	case f.Text == "trigger":
		return m.trigger(f)
	}
	switch f.Text {
	case "Nodes":
		return m.head(f, &m.nodes, 0, 1, 1<<31-1)
	case "Connections":
		return m.head(f, &m.conns, -1, 0, MaxFlows)
	case "Triggers":
		return m.head(f, &m.trigs, 0, 0, MaxFlows)
	case "Failures":
		var n int64
		if err := m.head(f, &n, 0, 0, 1<<31-1); err != nil {
			return err
		}
		if n > 0 {
			return m.in.Fail(f, "failures are not read: a scenario has faults of its own")
		}
		return nil
	}
	return m.in.Fail(f, "%.40q is not known: Nodes, Connections, Triggers, a->b and trigger are", f.Text)
}

func (m *matrix) head(f token.Field, to *int64, unset, low, high int64) (err error) {
	if *to != unset {
		return m.in.Fail(f, "%s comes twice", f.Text)
	}
	*to, err = m.value(f, low, high)
	return err
}

// value reads the number behind a key on its line.
func (m *matrix) value(key token.Field, low, high int64) (int64, error) {
	v, err := m.text(key)
	if err != nil {
		return 0, err
	}
	return m.in.Int(v, key.Text, low, high)
}

func (m *matrix) text(key token.Field) (token.Field, error) {
	if !m.in.More() {
		if err := m.in.Err(); err != nil {
			return key, err
		}
		return key, m.in.Fail(key, "%s has no value", key.Text)
	}
	v, _ := m.in.Next()
	return v, nil
}

func (m *matrix) connection(at token.Field) error {
	if len(m.flows) == MaxFlows {
		return m.in.Fail(at, "more than %d connections", MaxFlows)
	}
	i := int32(len(m.flows))
	src, dst, _ := strings.Cut(at.Text, "->")
	a, b := at, at
	a.Text, b.Text = src, dst
	b.Col += len(src) + 2
	for _, n := range [...]token.Field{a, b} {
		if m.nodes == 0 {
			return m.in.Fail(at, "a connection comes before Nodes")
		}
		if _, err := m.in.Int(n, "node", 0, m.nodes-1); err != nil {
			return err
		}
	}
	from, to, err := m.r.ends(m.in, a, b)
	if err != nil {
		return err
	}
	f := flow(&m.r.As, from, to, 0, -1)
	f.Bytes = -1
	triggered := false
	for m.in.More() {
		key, _ := m.in.Next()
		switch key.Text {
		case "start":
			v, err := m.text(key)
			if err != nil {
				return err
			}
			ps, ok := token.Decimal(v.Text, 0, uint64(MaxTime))
			if !ok {
				return m.in.Fail(v, "start %.40q is not a number of picoseconds up to %d", v.Text, int64(MaxTime))
			}
			f.Start = sim.Time(ps)
		case "size":
			if f.Bytes, err = m.value(key, 0, MaxBytes); err != nil {
				return err
			}
		case "id", "prio":
			if _, err := m.value(key, 0, 1<<32-1); err != nil {
				return err
			}
		case "trigger":
			t, err := m.mention(key)
			if err != nil {
				return err
			}
			if triggered {
				return m.in.Fail(key, "a second trigger")
			}
			triggered = true
			t.flows = append(t.flows, i)
		case "send_done_trigger", "recv_done_trigger":
			t, err := m.mention(key)
			if err != nil {
				return err
			}
			t.by = append(t.by, i)
		default:
			return m.in.Fail(key, "%.40q is not known: id, start, size, trigger, send_done_trigger, recv_done_trigger and prio are", key.Text)
		}
	}
	switch {
	case m.in.Err() != nil:
		return m.in.Err()
	case f.Start < 0 && !triggered:
		return m.in.Fail(at, "the connection has neither start nor trigger")
	case f.Start >= 0 && triggered:
		return m.in.Fail(at, "the connection has both start and trigger")
	case f.Bytes < 0:
		return m.in.Fail(at, "the connection has no size")
	}
	f.Endless = f.Endless || f.Bytes == 0
	f.Start = max(0, f.Start)
	m.flows = append(m.flows, f)
	return nil
}

// mention reads the number of a trigger and returns it.
func (m *matrix) mention(key token.Field) (*trigger, error) {
	n, err := m.value(key, 1, 1<<32-1)
	if err != nil {
		return nil, err
	}
	i, ok := m.triggers[n]
	if !ok {
		i = len(m.list)
		m.triggers[n] = i
		m.list = append(m.list, trigger{at: key})
	}
	return &m.list[i], nil
}

// trigger reads a line that defines one.
func (m *matrix) trigger(at token.Field) error {
	var t *trigger
	kind, count := undefined, int64(0)
	for m.in.More() {
		key, _ := m.in.Next()
		var err error
		switch key.Text {
		case "id":
			t, err = m.mention(key)
		case "count":
			count, err = m.value(key, 1, MaxFlows)
		case "oneshot", "multishot", "barrier":
			if kind != undefined {
				err = m.in.Fail(key, "a second kind of trigger")
			}
			kind = map[string]triggerKind{"oneshot": oneshot, "multishot": multishot, "barrier": barrier}[key.Text]
		default:
			err = m.in.Fail(key, "%.40q is not known: id, count, oneshot, multishot and barrier are", key.Text)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case m.in.Err() != nil:
		return m.in.Err()
	case t == nil:
		return m.in.Fail(at, "the trigger has no id")
	case kind == undefined:
		return m.in.Fail(at, "the trigger is neither oneshot, multishot nor barrier")
	case t.kind != undefined:
		return m.in.Fail(at, "the trigger is defined twice")
	case kind == barrier && count == 0:
		return m.in.Fail(at, "the barrier has no count")
	}
	t.kind, t.count, t.at = kind, count, at
	return nil
}

// chain turns a trigger into what its flows wait for.
func (m *matrix) chain(t *trigger) error {
	switch {
	case t.kind == undefined:
		return m.in.Fail(t.at, "the trigger is not defined")
	case len(t.flows) == 0:
		return nil
	case len(t.by) == 0:
		return m.in.Fail(t.at, "nothing sets the trigger off")
	case t.kind == oneshot && len(t.by) != 1:
		return m.in.Fail(t.at, "%d flows set the oneshot off: which one is first is not known, one is possible", len(t.by))
	case t.kind == barrier && t.count != int64(len(t.by)):
		return m.in.Fail(t.at, "%d flows set the barrier off that counts %d: as many are possible", len(t.by), t.count)
	case t.kind == multishot && len(t.flows) > len(t.by):
		return m.in.Fail(t.at, "the multishot has %d flows, but %d set it off: the others would never start", len(t.flows), len(t.by))
	}
	for _, i := range t.by {
		if m.flows[i].never() {
			return m.in.Fail(t.at, "the trigger waits for %d->%d, which is endless", m.flows[i].Src, m.flows[i].Dst)
		}
	}
	for k, i := range t.flows {
		m.flows[i].After = t.by
		if t.kind == multishot {
			m.flows[i].After = t.by[k : k+1 : k+1]
		}
	}
	return nil
}
