package fabric_test

import (
	"fmt"
	"log"
	"os"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// A topology and flows of one's own, made in Go: two senders share the port of a
// receiver. What is not said is the default of a scenario.
func Example() {
	up := func(host string) topo.LinkSpec {
		return topo.LinkSpec{A: host, B: "tor", Rate: 100 * sim.Gbps, Delay: 500 * sim.Nanosecond}
	}
	graph, err := topo.Explicit{
		Nodes: []topo.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "tor", Kind: topo.Switch}},
		Links: []topo.LinkSpec{up("a"), up("b"), up("c")},
	}.Build()
	check(err)
	flow := func(group string, src int32) work.Flow { // endpoints are numbered as the hosts are
		return work.Flow{Group: group, Src: src, Dst: 2, Bytes: 10e6, Prio: -1, DSCP: -1} // -1: the scenario's, which is lossless
	}
	traffic, err := work.Explicit{Flows: []work.Flow{flow("first", 0), flow("second", 1)}}.Stream(nil)
	check(err)

	sc := scenario.Default()
	sc.Name = "two into one"
	check(sc.Check(graph))
	run, err := fabric.New(sc, graph, traffic)
	check(err)
	check(run.Finish()) // or Advance, a few thousand events at a time

	r := run.Result()
	slowest := 0.0
	for i := range r.Flows {
		f := &r.Flows[i]
		fmt.Println(f.Group, f.State) // and f.FCT(), metric.Goodput(r, f), f.Marks, …
		slowest = max(slowest, f.Slowdown())
	}
	fmt.Println("the last one took twice its time alone, or longer:", slowest >= 2)
	lost, err := metric.Of(r, "drops.lossless") // names as in docs/sim.md
	check(err)
	fmt.Println("lost:", lost)
	check(explain.Explain(r).Text(os.Stderr, 100)) // why it went so
	// Output:
	// first finished
	// second finished
	// the last one took twice its time alone, or longer: true
	// lost: 0
}

// A scenario in YAML, from a string or a file, as verbena sim run does it.
func ExampleLoad() {
	sc, err := scenario.Parse("my.yaml", []byte(`
topology: {kind: star, hosts: 4}
workload:
  - {name: in, kind: incast, src: host1..host3, dst: host0, bytes: 1MB}
`))
	check(err)
	run, warnings, err := fabric.Load(sc, nil)
	check(err)
	for _, w := range warnings {
		fmt.Fprintln(os.Stderr, w)
	}
	check(run.Finish())
	done, err := metric.Of(run.Result(), "flow.in.finished")
	check(err)
	drops, err := metric.Of(run.Result(), "drops.lossless")
	check(err)
	fmt.Println("finished:", done, "lost:", drops)
	// Output:
	// finished: 3 lost: 0
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
