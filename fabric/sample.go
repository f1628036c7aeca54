package fabric

import (
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// sampler keeps quantities over time at equal intervals. When a series has
// twice the values that were asked for, neighbours are joined and the interval
// doubles, so that a run of any length has about as many.
type sampler struct {
	on     bool
	fixed  bool // the scenario gives the interval
	step   sim.Time
	most   int
	n      int // values so far
	limit  int // of flows that are followed
	seen   int // flows that have been looked at
	probes []probe
	flows  []flowProbe
}

// probe is one quantity of a port.
type probe struct {
	kind result.SeriesKind
	node int32
	port int32
	prio uint8
	last uint64
	vals []int64
}

// flowProbe is the quantities of one flow.
type flowProbe struct {
	flow  int32
	start int // index of its first value
	last  int64
	marks uint64
	cnps  uint64
	rate  []int64
	rc    []int64
	alpha []int64
	mark  []int64
	cnp   []int64
}

const (
	sampleStart = sim.Microsecond
	sampleMost  = 1000
)

// joins says how two neighbouring values of a kind become one: gauges keep the
// larger, so that peaks stay, the others their mean.
func joins(k result.SeriesKind, a, b int64) int64 {
	switch k {
	case result.QueueBytes, result.BufferShared, result.HostQueue:
		return max(a, b)
	case result.MarkRate, result.CNPRate:
		return a + b
	case result.PausedShare:
		return a + b
	case result.PortRate, result.FlowRate, result.FlowRC, result.FlowAlpha, result.SeriesKinds:
	}
	return (a + b) / 2
}

// setSampler decides what is sampled.
func (r *Run) setSampler() {
	rec := &r.Scenario.Record
	s := &r.sampler
	want := func(name string) bool {
		for _, x := range rec.Series {
			if x == name || x == "all" {
				return true
			}
		}
		return false
	}
	if len(rec.Series) == 0 || len(rec.Series) == 1 && rec.Series[0] == "none" {
		return
	}
	s.on, s.step, s.most = true, sampleStart, sampleMost
	if rec.Interval > 0 {
		s.step, s.fixed, s.most = rec.Interval, true, rec.MaxSamples
	}
	add := func(kind result.SeriesKind, node, port int, prio uint8) {
		s.probes = append(s.probes, probe{kind: kind, node: int32(node), port: int32(port), prio: prio})
	}
	all := r.countPorts() <= maxSampledPorts
	for node := range r.Graph.Nodes {
		sw := r.Switches[node]
		for p := range r.Ports[node] {
			named := r.portNamed(rec.Ports, int32(node), int32(p))
			if !named && (len(rec.Ports) > 0 || !all) {
				continue
			}
			if want("port-rate") {
				add(result.PortRate, node, p, 0)
			}
			for q := range uint8(8) {
				if r.settings[node].used&(1<<q) == 0 {
					continue
				}
				if sw != nil && want("queue") {
					add(result.QueueBytes, node, p, q)
				}
				if sw != nil && want("marks") && r.settings[node].marks&(1<<q) != 0 {
					add(result.MarkRate, node, p, q)
				}
				if want("paused") && r.settings[node].lossless&(1<<q) != 0 {
					add(result.PausedShare, node, p, q)
				}
			}
			if sw == nil && want("host-queue") {
				add(result.HostQueue, node, p, 0)
			}
		}
		if sw != nil && want("buffer") {
			add(result.BufferShared, node, -1, 0)
		}
	}
	if want("flow-rate") || want("rc") || want("alpha") || want("cnps") {
		s.limit = maxSampledFlows
	}
	r.S.At(s.step, r, evSample)
}

const (
	maxSampledPorts = 512
	maxSampledFlows = 64
	// sampleFew is how long a series is that grows as slices do.
	sampleFew = 256
)

func (r *Run) countPorts() int {
	n := 0
	for i := range r.Ports {
		n += len(r.Ports[i])
	}
	return n
}

// sample takes one value of everything.
func (r *Run) sample(now sim.Time) {
	s := &r.sampler
	for i := range s.probes {
		p := &s.probes[i]
		p.vals = s.push(p.vals, r.value(now, p))
	}
	for ; s.seen < len(r.out) && len(s.flows) < s.limit; s.seen++ {
		if want := r.Scenario.Record.Flows; len(want) == 0 || want.Matches(r.out[s.seen].Group) {
			s.flows = append(s.flows, flowProbe{flow: int32(s.seen), start: s.n})
		}
	}
	for i := range s.flows {
		r.sampleFlow(now, &s.flows[i])
	}
	if s.n++; s.n >= 2*s.most {
		if s.fixed {
			return
		}
		s.halve()
	}
	if !r.again(now, s.step, evSample) {
		return
	}
}

// value reads a probe: a level, or what has been added since the last time.
func (r *Run) value(now sim.Time, p *probe) int64 {
	since := func(v uint64) int64 {
		d := int64(v - p.last)
		p.last = v
		return d
	}
	switch p.kind {
	case result.QueueBytes:
		return r.Switches[p.node].QueueBytes(int(p.port), p.prio)
	case result.BufferShared:
		return r.Switches[p.node].SharedUsed()
	case result.HostQueue:
		return r.NICs[r.Graph.Nodes[p.node].Endpoint+p.port].Held()
	case result.PortRate:
		return int64(sim.RateOf(since(r.Ports[p.node][p.port].TxBytes()), r.sampler.step))
	case result.MarkRate:
		return since(r.Switches[p.node].Marked(int(p.port), p.prio))
	case result.PausedShare:
		return since(uint64(r.Ports[p.node][p.port].PausedFor(now, p.prio)))
	case result.FlowRate, result.FlowRC, result.FlowAlpha, result.CNPRate, result.SeriesKinds:
	}
	return 0
}

// sampleFlow takes one value of everything of a flow.
func (r *Run) sampleFlow(now sim.Time, p *flowProbe) {
	out := &r.out[p.flow]
	s := &r.sampler
	p.rate = s.push(p.rate, int64(sim.RateOf(out.Delivered-p.last, s.step)))
	p.mark = s.push(p.mark, int64(out.Marks-p.marks))
	p.cnp = s.push(p.cnp, int64(out.CNPs-p.cnps))
	p.last, p.marks, p.cnps = out.Delivered, out.Marks, out.CNPs
	rc, alpha := int64(0), int64(0)
	if l := r.state[p.flow].lanes; len(l) > 0 {
		n, q := l[0].c.Sender()
		st := n.Adapter().QueryRP(now.Clock(), q)
		rc, alpha = int64(st.Rc), int64(st.Alpha)
		if c := sim.Rate(rc); c > 0 && (out.MinRate == 0 || c < out.MinRate) {
			out.MinRate = c
		}
	}
	p.rc, p.alpha = s.push(p.rc, rc), s.push(p.alpha, alpha)
}

// push appends a value. A series that has become long gets all the room that one
// usually needs at once: to grow by and by would copy it a dozen times over.
func (s *sampler) push(v []int64, x int64) []int64 {
	const room = 2 * sampleMost
	if n := len(v); n == cap(v) && n >= sampleFew && n < room {
		v = append(make([]int64, 0, room), v...)
	}
	return append(v, x)
}

// halve joins neighbouring values.
func (s *sampler) halve() {
	half := func(kind result.SeriesKind, v []int64) []int64 {
		for i := 0; i+1 < len(v); i += 2 {
			v[i/2] = joins(kind, v[i], v[i+1])
		}
		return v[:len(v)/2]
	}
	for i := range s.probes {
		p := &s.probes[i]
		p.vals = half(p.kind, p.vals)
	}
	for i := range s.flows {
		p := &s.flows[i]
		if p.start%2 == 1 {
			// Its values keep step with the others'.
			p.rate, p.rc, p.alpha = p.rate[1:], p.rc[1:], p.alpha[1:]
			p.mark, p.cnp = p.mark[1:], p.cnp[1:]
			p.start++
		}
		p.rate, p.rc, p.alpha = half(result.FlowRate, p.rate), half(result.FlowRC, p.rc), half(result.FlowAlpha, p.alpha)
		p.mark, p.cnp = half(result.MarkRate, p.mark), half(result.CNPRate, p.cnp)
		p.start /= 2
	}
	s.n /= 2
	s.step *= 2
}

// series returns what was sampled, without series in which nothing happened.
func (s *sampler) series() []result.Series {
	var all []result.Series
	add := func(v result.Series) {
		for _, x := range v.Values {
			if x != 0 {
				all = append(all, v)
				return
			}
		}
	}
	for i := range s.probes {
		p := &s.probes[i]
		add(result.Series{Kind: p.kind, Node: p.node, Port: p.port, Prio: p.prio, Flow: -1, Start: s.step, Step: s.step, Values: p.vals})
	}
	for i := range s.flows {
		p := &s.flows[i]
		at := s.step * sim.Time(p.start+1)
		for _, k := range [...]struct {
			kind result.SeriesKind
			vals []int64
		}{
			{result.FlowRate, p.rate}, {result.FlowRC, p.rc}, {result.FlowAlpha, p.alpha}, {result.MarkRate, p.mark}, {result.CNPRate, p.cnp},
		} {
			add(result.Series{Kind: k.kind, Node: -1, Port: -1, Flow: p.flow, Start: at, Step: s.step, Values: k.vals})
		}
	}
	return all
}
