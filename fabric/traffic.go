package fabric

import (
	"fmt"
	"io"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// traffic turns workloads into streams of flows.
type traffic struct {
	sc    *scenario.Scenario
	g     *topo.Graph
	files Files
}

// Traffic makes the flows of a scenario over its graph.
func Traffic(sc *scenario.Scenario, g *topo.Graph, files Files) (work.Stream, error) {
	t := &traffic{sc: sc, g: g, files: files}
	made := make([]work.Stream, len(sc.Workload))
	chained := make([]bool, len(sc.Workload))
	for i := range sc.Workload {
		w := &sc.Workload[i]
		s, err := t.stream(i, w)
		if err != nil {
			return nil, sc.Fail(fmt.Sprintf("workload[%d]", i), "%v", err)
		}
		if w.OneQP {
			s = &sharing{s}
		}
		if w.After == "" {
			made[i] = s
			continue
		}
		// A workload behind another is held as a whole, and so is that.
		j := t.named(w.After)
		if j < 0 || j >= i || made[j] == nil {
			return nil, sc.Fail(fmt.Sprintf("workload[%d].after", i), "no workload above it is called %q, or another follows it already", w.After)
		}
		first, err := work.Collect(made[j], work.MaxFlows)
		if err != nil {
			return nil, err
		}
		second, err := work.Collect(s, work.MaxFlows)
		if err != nil {
			return nil, err
		}
		made[i] = &work.List{Flows: work.Then(first, second)}
		made[j], chained[j] = nil, true
	}
	var streams []work.Stream
	for i, s := range made {
		if s != nil && !chained[i] {
			streams = append(streams, s)
		}
	}
	return work.Merge(streams...), nil
}

// named returns the number of the workload of a name, or -1.
func (t *traffic) named(name string) int {
	for i := range t.sc.Workload {
		if t.group(&t.sc.Workload[i]) == name {
			return i
		}
	}
	return -1
}

func (t *traffic) group(w *scenario.Workload) string {
	if w.Name != "" {
		return w.Name
	}
	return string(w.Kind)
}

// sharing gives all flows of a stream between two endpoints one queue pair.
type sharing struct{ work.Stream }

// Next implements work.Stream.
func (s *sharing) Next() (work.Flow, bool) {
	f, ok := s.Stream.Next()
	f.QP = 1
	return f, ok
}

// flow has the properties that a workload gives its flows.
func (t *traffic) flow(w *scenario.Workload) work.Flow {
	h := &t.sc.Host.RDMA
	f := work.Flow{
		Prio: w.Priority, DSCP: w.DSCP, QPs: int16(w.QPs), SrcPort: w.SrcPort, Group: t.group(w),
		Message: int64(w.Message), Rate: w.Rate, Endless: w.Endless,
	}
	if f.QPs == 0 {
		f.QPs = int16(h.QPs)
	}
	op, service := w.Op, w.Service
	if op == "" {
		op = h.Op
	}
	f.Op, _ = work.ParseOp(op)
	if service == "" {
		service = h.Service
	}
	switch service {
	case "uc":
		f.Service = 1
	case "ud":
		f.Service = 2
	}
	if f.Service == 2 && f.Op == work.Write {
		f.Op = work.Send // a datagram is nothing else
	}
	return f
}

func (t *traffic) rand(i int, w *scenario.Workload) *sim.Rand {
	seed := w.Seed
	if seed == 0 {
		seed = t.sc.Seed
	}
	return sim.NewRand(seed, fmt.Sprintf("workload %d %s", i, t.group(w)))
}

// stream makes the flows of one workload.
func (t *traffic) stream(i int, w *scenario.Workload) (work.Stream, error) {
	rnd, as := t.rand(i, w), t.flow(w)
	switch w.Kind {
	case scenario.Bursts, scenario.Long, scenario.Incast:
		return t.between(w, as, rnd)
	case scenario.Flows:
		return t.list(w, as, rnd)
	case scenario.Trace:
		return t.trace(w, as)
	case scenario.Permutation, scenario.AllToAll, scenario.AllReduceRing, scenario.AllReduceTree, scenario.Poisson:
	}
	hosts := w.Hosts
	if len(hosts) == 0 {
		hosts = scenario.Select{"all"}
	}
	all, err := hosts.Endpoints(t.g, true)
	if err != nil {
		return nil, err
	}
	apart := func(e int32) int32 { return t.g.Endpoints[e].Node }
	if w.CrossLeaf {
		apart = func(e int32) int32 { return t.g.Endpoints[e].Leaf }
	}
	rounds := int(w.Count)
	var g work.Workload
	switch w.Kind {
	case scenario.Permutation:
		g = work.Permutation{Endpoints: all, Bytes: int64(w.Bytes), Rounds: rounds, Start: w.Start, Every: w.Every, Jitter: w.Jitter, Apart: apart, As: as}
	case scenario.AllToAll:
		g = work.AllToAll{Endpoints: all, Bytes: int64(w.Bytes), Rounds: rounds, Start: w.Start, Gap: w.Every, Jitter: w.Jitter, Apart: apart, As: as}
	case scenario.AllReduceRing:
		g = work.AllReduceRing{Ranks: all, Bytes: int64(w.Bytes), Chunks: w.Chunks, Rounds: rounds, Start: w.Start, Gap: w.Every, Jitter: w.Jitter, As: as}
	case scenario.AllReduceTree:
		g = work.AllReduceTree{Ranks: all, Bytes: int64(w.Bytes), Chunks: w.Chunks, Rounds: rounds, Start: w.Start, Gap: w.Every, Jitter: w.Jitter, As: as}
	case scenario.Poisson:
		cdf, err := t.cdf(w.CDF)
		if err != nil {
			return nil, err
		}
		end := w.End
		if end == 0 && w.Count == 0 {
			end = t.sc.Duration
		}
		e := &t.g.Endpoints[all[0]]
		g = work.Poisson{
			Sources: all, CDF: cdf, Rate: t.g.Link(e.Node, e.Port).Rate, LoadPPM: int64(uint64(w.Load) * 1_000_000 >> 32),
			Start: w.Start, Until: end, Count: w.Count, Apart: apart, As: as,
		}
	case scenario.Bursts, scenario.Long, scenario.Incast, scenario.Flows, scenario.Trace:
	}
	return g.Stream(rnd)
}

// between makes flows from sources to receivers: pair by pair where there are
// as many of both, else from each to each.
func (t *traffic) between(w *scenario.Workload, as work.Flow, rnd *sim.Rand) (work.Stream, error) {
	src, err := w.Src.Endpoints(t.g, false)
	if err != nil {
		return nil, err
	}
	dst, err := w.Dst.Endpoints(t.g, false)
	if err != nil {
		return nil, err
	}
	var parts []work.Stream
	add := func(g work.Workload) error {
		s, err := g.Stream(rnd)
		parts = append(parts, s)
		return err
	}
	if w.Kind == scenario.Incast {
		for _, d := range dst {
			if err := add(work.Incast{Senders: without(src, d), Receiver: d, Bytes: int64(w.Bytes), Start: w.Start, Every: w.Every, Jitter: w.Jitter, As: as}); err != nil {
				return nil, err
			}
		}
		return work.Merge(parts...), nil
	}
	var from, to []int32
	for i, s := range src {
		if len(src) == len(dst) {
			from, to = append(from, s), append(to, dst[i])
			continue
		}
		for _, d := range dst {
			if s != d {
				from, to = append(from, s), append(to, d)
			}
		}
	}
	for i := range from {
		if w.Kind == scenario.Long {
			one := as
			one.Src, one.Dst, one.Bytes, one.Endless = from[i], to[i], int64(w.Bytes), as.Endless || w.Bytes == 0
			one.Start = w.Start.Add(sim.Time(i) * w.Every)
			if w.Jitter > 0 {
				one.Start = one.Start.Add(sim.Time(rnd.N(uint64(w.Jitter))))
			}
			if err := add(work.Explicit{Flows: []work.Flow{one}}); err != nil {
				return nil, err
			}
			continue
		}
		g := work.Bursts{Src: from[i], Dst: to[i], Bytes: int64(w.Bytes), Start: w.Start, Every: w.Every, Jitter: w.Jitter, Count: w.Count, Until: w.End, As: as}
		if err := add(g); err != nil {
			return nil, err
		}
	}
	return work.Merge(parts...), nil
}

func without(list []int32, x int32) []int32 {
	var out []int32
	for _, e := range list {
		if e != x {
			out = append(out, e)
		}
	}
	return out
}

// list makes the flows that a workload names one by one.
func (t *traffic) list(w *scenario.Workload, as work.Flow, rnd *sim.Rand) (work.Stream, error) {
	var flows []work.Flow
	for i := range w.List {
		l := &w.List[i]
		f := as
		src, err := scenario.Select{l.Src}.Endpoints(t.g, false)
		if err != nil {
			return nil, err
		}
		dst, err := scenario.Select{l.Dst}.Endpoints(t.g, false)
		if err != nil {
			return nil, err
		}
		f.Src, f.Dst, f.Bytes, f.Start = src[0], dst[0], int64(l.Bytes), w.Start.Add(l.Start)
		if f.Bytes == 0 {
			f.Bytes = int64(w.Bytes)
		}
		f.Endless = f.Endless || f.Bytes == 0
		if l.SrcPort != 0 {
			f.SrcPort = l.SrcPort
		}
		flows = append(flows, f)
	}
	return work.Explicit{Flows: flows}.Stream(rnd)
}

// trace reads a file of flows as they are needed.
func (t *traffic) trace(w *scenario.Workload, as work.Flow) (work.Stream, error) {
	in, err := t.open(w.File)
	if err != nil {
		return nil, err
	}
	routes, err := t.g.Routes()
	if err != nil {
		return nil, err
	}
	names := topo.NewResolver(routes)
	format := w.Format
	if format == "auto" {
		switch {
		case strings.HasSuffix(w.File, ".cm"):
			format = "htsim"
		case strings.HasSuffix(w.File, ".csv"):
			format = "csv"
		default:
			format = "hpcc"
		}
	}
	switch format {
	case "htsim":
		return work.Reader{Find: names.ByHost, As: as}.HTSim(in, w.File), nil
	case "csv":
		return work.Reader{Find: names.ByName, As: as}.CSV(in, w.File), nil
	}
	return work.Reader{Find: names.ByNode, As: as}.HPCC(in, w.File), nil
}

func (t *traffic) cdf(name string) (*work.CDF, error) {
	if c, err := work.NamedCDF(name); err == nil || t.files == nil {
		return c, err
	}
	in, err := t.open(name)
	if err != nil {
		return nil, err
	}
	return work.ReadCDF(in, name)
}

func (t *traffic) open(name string) (io.Reader, error) {
	if t.files == nil {
		return nil, fmt.Errorf("%s: files cannot be read here", name)
	}
	return t.files(name)
}
