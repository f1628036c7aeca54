package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/fabric/lab"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/internal/play"
)

func (a app) simListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the library of scenarios: what each teaches, and its size", Args: cobra.NoArgs,
		RunE: a.simRunE(func(*cobra.Command, []string) error { return a.simList(asJSON) }),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// listed is a scenario in the JSON document of sim list.
type listed struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Teaches    string   `json:"teaches"`
	Hosts      int      `json:"hosts"`
	Switches   int      `json:"switches"`
	Links      int      `json:"links"`
	RateBPS    int64    `json:"rate_bps"`
	DurationPS int64    `json:"duration_ps"`
	Workloads  []string `json:"workloads"`
	Expected   int      `json:"expected"`
	Variants   []string `json:"variants"`
}

func (a app) simList(asJSON bool) error {
	docs := []listed{}
	for _, name := range lab.Names() {
		src, err := play.Find(name)
		if err != nil {
			return err
		}
		sc, err := src.Scenario(play.Change{})
		if err != nil {
			return err
		}
		g, err := sc.Graph(nil)
		if err != nil {
			return err
		}
		docs = append(docs, listedOf(name, sc.Scenario, g))
	}
	if asJSON {
		return writeJSON(a.out, docs)
	}
	for i := range docs {
		d := &docs[i]
		if _, err := fmt.Fprintf(a.out, "%-22s %4d hosts %3d switches  %s\n", d.Name, d.Hosts, d.Switches, d.Title); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(a.out, "\nverbena sim run NAME runs one and explains it, sim show NAME prints it, docs/sim.md is the tour.\n")
	return err
}

func listedOf(name string, sc *scenario.Scenario, g *topo.Graph) listed {
	d := listed{
		Name: name, Title: sc.Title, Teaches: sc.Teaches, Hosts: g.Hosts(), Switches: len(g.Nodes) - g.Hosts(), Links: len(g.Links),
		RateBPS: int64(sc.Topology.Rate), DurationPS: int64(sc.Duration), Workloads: []string{}, Expected: len(sc.Expect), Variants: []string{},
	}
	for i := range sc.Workload {
		n := sc.Workload[i].Name
		if n == "" {
			n = string(sc.Workload[i].Kind)
		}
		d.Workloads = append(d.Workloads, n)
	}
	for _, v := range lab.Variants(name) {
		d.Variants = append(d.Variants, v.Name)
	}
	return d
}
