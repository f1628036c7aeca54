package truth

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// allSeeds makes every distribution of so many seeds and runs every row: what the
// tables of docs/truth.md are from.
var allSeeds = flag.Int("seeds", 0, "run all rows with so many seeds; 0: a few of them")

// seeds returns how many seeds a distribution has.
func seeds(few int) int {
	if *allSeeds > 0 {
		return *allSeeds
	}
	return few
}

// rig is a scenario with its graph, before traffic is added.
type rig struct {
	sc *scenario.Scenario
	g  *topo.Graph
}

// load reads a scenario of testdata and sets keys over it.
func load(t testing.TB, name string, sets ...string) rig {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, name, string(b), sets...)
}

func parse(t testing.TB, name, text string, sets ...string) rig {
	t.Helper()
	sc, err := scenario.ParseSet(name+".yaml", []byte(text), sets)
	if err != nil {
		t.Fatal(err)
	}
	g, err := sc.Graph(nil)
	if err != nil {
		t.Fatal(err)
	}
	return rig{sc, g}
}

// compose makes a run of the rig with traffic.
func (r rig) compose(t testing.TB, traffic work.Stream) *fabric.Run {
	t.Helper()
	run, err := fabric.New(r.sc, r.g, traffic)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// end runs to the end. Rules that did not hold are errors, unless they are
// expected.
func end(t testing.TB, run *fabric.Run, expected ...string) *result.Run {
	t.Helper()
	if err := run.Finish(); err != nil {
		t.Fatal(err)
	}
	res := run.Result()
	for _, b := range res.Breaches {
		if !slices.Contains(expected, b.Rule) {
			t.Errorf("%v: %s: %s", b.At, b.Rule, b.Detail)
		}
	}
	return res
}

// run runs flows to the end.
func (r rig) run(t testing.TB, flows []work.Flow, expected ...string) *result.Run {
	t.Helper()
	return end(t, r.compose(t, &work.List{Flows: flows}), expected...)
}

// write is a WRITE of so many bytes.
func write(src, dst int32, bytes int64, group string) work.Flow {
	return work.Flow{Src: src, Dst: dst, Bytes: bytes, Prio: -1, DSCP: -1, Group: group}
}

// forever is a flow without end.
func forever(src, dst int32, group string) work.Flow {
	f := write(src, dst, 0, group)
	f.Endless = true
	return f
}

// fcts returns the completion times of a group, sorted. All must have finished.
func fcts(t testing.TB, res *result.Run, group string) []sim.Time {
	t.Helper()
	var all []sim.Time
	for i := range res.Flows {
		f := &res.Flows[i]
		if f.Group != group {
			continue
		}
		if f.State != result.Finished {
			t.Fatalf("flow %d of %s: state %d, %s", i, group, f.State, f.Status)
		}
		all = append(all, f.FCT())
	}
	slices.Sort(all)
	return all
}

// port returns a port of a result by the names of node and port.
func portNamed(t testing.TB, res *result.Run, name string) *result.Port {
	t.Helper()
	node, port, _ := strings.Cut(name, "/")
	for i := range res.Nodes {
		for j := range res.Nodes[i].Ports {
			if res.Nodes[i].Name == node && res.Nodes[i].Ports[j].Name == port {
				return &res.Nodes[i].Ports[j]
			}
		}
	}
	t.Fatalf("there is no port %s", name)
	return nil
}

// drops returns how many packets were lost.
func drops(res *result.Run) int { return len(res.Drops) + int(res.DropsCut) }

// The packets and the acknowledgement of the bases.
var hpccPackets = theory.Packets{Payload: 1000, Header: 48}

const (
	hpccAck = 60
	gap     = 20
)

// path is equal links.
func path(hops int, rate sim.Rate, delay sim.Time) theory.Path {
	var p theory.Path
	for range hops {
		p.Hops = append(p.Hops, theory.Hop{Rate: int64(rate), Delay: int64(delay)})
	}
	return p
}

// off returns how far a value is from what is expected, as a share of it.
func off(got, want float64) float64 { return (got - want) / want }

// near checks a value against an expectation and its tolerance, and puts both
// into the log, which is where the table of docs/truth.md is from.
func near(t testing.TB, row, what string, got, want, within float64) bool {
	t.Helper()
	d := off(got, want)
	verdict := "met"
	if !(math.Abs(d) <= within) {
		verdict = "missed"
		t.Errorf("%s: %s is %.4g, expected %.4g within %g %%: off by %+.1f %%", row, what, got, want, 100*within, 100*d)
	}
	t.Logf("%s | %s | %.5g | %.5g | %+.2f %% | %s", row, what, want, got, 100*d, verdict)
	return verdict == "met"
}

func mean[T ~int64 | ~float64](v []T) float64 {
	s := 0.0
	for _, x := range v {
		s += float64(x)
	}
	return s / float64(len(v))
}

func sets(format string, args ...any) []string {
	return strings.Fields(fmt.Sprintf(format, args...))
}

// glance notes what flows have delivered at the instant it is called.
type glance struct {
	run  *fabric.Run
	seen []int64
}

// Handle implements sim.Handler.
func (g *glance) Handle(sim.Time, uint64) {
	for _, f := range g.run.Result().Flows {
		g.seen = append(g.seen, f.Delivered)
	}
}
