package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/docs"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/internal/play"
)

// showFlags is what sim show prints in place of the source.
type showFlags struct {
	simChange
	full, schema, verbose bool
	sonic, graph          string
}

func (a app) simShowCommand() *cobra.Command {
	var s showFlags
	c := &cobra.Command{
		Use:   "show SCENARIO",
		Short: "Print a scenario: its source, all that holds, its graph, the tables of its switches",
		Long: "Prints a scenario of the library or a file as it is written; with --full every key with the value\n" +
			"that holds. A result that was saved with sim run --json is told again.",
		Args: func(cmd *cobra.Command, args []string) error {
			if s.schema {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: a.simRunE(func(_ *cobra.Command, args []string) error {
			if s.schema {
				_, err := a.out.Write(docs.ScenarioSchema())
				return err
			}
			return a.simShow(args[0], &s)
		}),
	}
	s.flags(c)
	f := c.Flags()
	f.BoolVar(&s.full, "full", false, "every key with its value, defaults included; it reads back as the same scenario")
	f.BoolVar(&s.schema, "schema", false, "the JSON schema of scenarios, for editors")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "of a saved result: everything")
	f.StringVar(&s.sonic, "sonic", "", "SONiC's tables (BUFFER_PROFILE, WRED_PROFILE, …) of a `switch`; without a name the first")
	f.StringVar(&s.graph, "graph", "", "nodes and links, as `text` or as hpcc's topology.txt")
	f.Lookup("sonic").NoOptDefVal = firstSwitch
	f.Lookup("graph").NoOptDefVal = "text"
	return c
}

// firstSwitch stands for the first switch of the graph: no switch has that name.
const firstSwitch = "*"

func (a app) simShow(name string, s *showFlags) error {
	src, err := play.Find(name)
	if err != nil {
		return err
	}
	change, err := s.change()
	if err != nil {
		return err
	}
	if src.Kind == play.Saved {
		return a.showSaved(src.Run, s)
	}
	changed := len(change.Sets) > 0 || change.Tables != nil
	if !s.full && s.sonic == "" && s.graph == "" && !changed {
		_, err = a.out.Write(src.Text)
		return err
	}
	sc, err := src.Scenario(change)
	if err != nil {
		return err
	}
	a.notes(sc.Notes)
	if s.sonic == "" && s.graph == "" {
		_, err = a.out.Write(sc.YAML())
		return err
	}
	files := src.Files()
	defer files.Close()
	g, err := sc.Graph(files.Open)
	if err != nil {
		return err
	}
	if err := sc.Check(g); err != nil {
		return err
	}
	switch {
	case s.sonic != "" && s.graph != "":
		return errors.New("--sonic and --graph: one at a time")
	case s.sonic != "":
		return a.showTables(sc.Scenario, g, s.sonic)
	case s.graph == "hpcc":
		return topo.WriteHPCC(a.out, g)
	case s.graph == "text":
		return a.showGraph(g)
	}
	return fmt.Errorf("--graph %q: text or hpcc", s.graph)
}

// showSaved tells a saved result.
func (a app) showSaved(r *result.Run, s *showFlags) error {
	if s.full || s.sonic != "" || s.graph != "" || len(s.words()) > 0 {
		return errors.New("a saved result can be shown only as it is; its scenario is under \"source\" in it")
	}
	long := play.Short
	if s.verbose {
		long = play.Long
	}
	return (&play.Outcome{Result: r}).Tell(a.out, long)
}

// showTables writes the tables of a switch.
func (a app) showTables(sc *scenario.Scenario, g *topo.Graph, name string) error {
	node := int32(-1)
	for i := range g.Nodes {
		if g.Nodes[i].Kind == topo.Switch && (name == firstSwitch || g.Nodes[i].Name == name) {
			node = int32(i)
			break
		}
	}
	if node < 0 {
		return fmt.Errorf("--sonic %s: there is no such switch; verbena sim show --graph lists them", name)
	}
	sw := sc.SwitchFor(g.Nodes[node].Name)
	var ports []scenario.SONiCPort
	have := map[string]scenario.Bytes{}
	links := play.LinksOf(sc, g)
	for p := range g.Nodes[node].Ports {
		l, port := links.At(node, int32(p)), g.PortName(node, int32(p))
		ports = append(ports, scenario.SONiCPort{Name: port, Rate: l.Rate, Delay: l.Delay})
		have[port] = scenario.Bytes(sw.Buffer.HaveHeadroom(l))
	}
	db, warnings := scenario.NewSONiC(&sw, ports, func(p scenario.SONiCPort) scenario.Bytes { return have[p.Name] })
	for _, w := range warnings {
		a.note(w.String())
	}
	return db.Write(a.out)
}

// showGraph writes nodes and what hangs at their ports.
func (a app) showGraph(g *topo.Graph) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d nodes, %d links\n", g.Name, len(g.Nodes), len(g.Links))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "%s %s", n.Kind, n.Name)
		if n.Kind == topo.Switch {
			fmt.Fprintf(&b, ", tier %d", n.Tier)
		}
		b.WriteByte('\n')
		for p := range n.Ports {
			at, l := &n.Ports[p], g.Link(int32(i), int32(p))
			fmt.Fprintf(&b, "  %-12s %s:%s  %s %s", g.PortName(int32(i), int32(p)), g.Nodes[at.Peer].Name, g.PortName(at.Peer, at.PeerPort),
				scenario.RateText(l.Rate), scenario.TimeText(l.Delay))
			if n.Kind == topo.Host {
				e := &g.Endpoints[n.Endpoint+int32(p)]
				fmt.Fprintf(&b, "  %s, subnet %d", e.Addr, e.Subnet)
			}
			b.WriteByte('\n')
		}
		if b.Len() > 1<<16 {
			if _, err := a.out.Write([]byte(b.String())); err != nil {
				return err
			}
			b.Reset()
		}
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}
