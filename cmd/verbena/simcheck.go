package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/internal/play"
)

// checkFlags is what sim check is told.
type checkFlags struct {
	simChange
	on             string
	asJSON, strict bool
}

func (a app) simCheckCommand() *cobra.Command {
	var s checkFlags
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is impossible or unwise in a scenario, without running it",
		Long: "Reads a scenario, config.txt of HPCC's simulator, or the tables of a SONiC switch (config_db.json),\n" +
			"with the files that it names. What is impossible is one line with its place and exit status 2; what\n" +
			"is unwise is a warning that says what will happen. It ends with the headroom of each kind of link.\n\n" +
			"Tables of a switch are looked at on a star of four hosts, or with --on over the switches of a scenario.",
		Args: cobra.ExactArgs(1),
		RunE: a.simRunE(func(_ *cobra.Command, args []string) error { return a.simCheck(args[0], &s) }),
	}
	s.flags(c)
	f := c.Flags()
	f.StringVar(&s.on, "on", "", "of a switch's tables: the `scenario` whose switches have them")
	f.BoolVar(&s.strict, "strict", false, "exit with 1 if there is a warning, or a link without enough headroom")
	f.BoolVar(&s.asJSON, "json", false, "print JSON")
	return c
}

// checked is the JSON document of sim check.
type checked struct {
	File     string     `json:"file"`
	OK       bool       `json:"ok"`
	Hosts    int        `json:"hosts"`
	Switches int        `json:"switches"`
	Links    int        `json:"links"`
	Warnings []string   `json:"warnings"`
	Headroom []headroom `json:"headroom"`
}

type headroom struct {
	From      string `json:"from"`
	To        string `json:"to"`
	RateBPS   int64  `json:"rate_bps"`
	DelayPS   int64  `json:"delay_ps"`
	Ports     int    `json:"ports"`
	NeedBytes int64  `json:"need_bytes"`
	HaveBytes int64  `json:"have_bytes"`
	Enough    bool   `json:"enough"`
}

func (a app) simCheck(name string, s *checkFlags) error {
	src, err := play.Find(name)
	if err != nil {
		return err
	}
	change, err := s.change()
	if err != nil {
		return err
	}
	var tables *play.Source
	if src.Kind == play.Tables {
		tables = src
		change.Tables = src
		if s.on != "" {
			src, err = play.Find(s.on)
		} else {
			src, err = play.TableScenario(tables)
		}
		if err != nil {
			return err
		}
	} else if s.on != "" {
		return fmt.Errorf("--on: belongs to the tables of a switch, and %s is none", name)
	}
	sc, err := src.Scenario(change)
	if err != nil {
		return err
	}
	files := src.Files()
	defer files.Close()
	g, warnings, err := sc.Examine(files)
	warnings = append(sc.Notes, warnings...)
	if err != nil {
		if !s.asJSON {
			for _, w := range warnings {
				fmt.Fprintln(a.out, w)
			}
		}
		return err
	}
	classes := play.Classes(sc.Scenario, g)
	short := 0
	d := checked{File: name, OK: true, Hosts: g.Hosts(), Switches: len(g.Nodes) - g.Hosts(), Links: len(g.Links), Warnings: []string{}, Headroom: []headroom{}}
	if tables != nil && s.on == "" {
		d.Hosts, d.Switches, d.Links = 0, 1, 0 // there is no network
		if classes, err = play.TableClasses(tables, sc.Scenario); err != nil {
			return err
		}
	}
	d.Warnings = append(d.Warnings, warnings...)
	for i := range classes {
		c := &classes[i]
		d.Headroom = append(d.Headroom, headroom{c.Peer, c.Switch, int64(c.Rate), int64(c.Delay), c.Ports, c.Need, c.Have, c.Enough()})
		if !c.Enough() {
			short++
		}
	}
	if s.asJSON {
		err = writeJSON(a.out, &d)
	} else {
		err = a.tellCheck(&d, classes, short)
	}
	if err == nil && s.strict && len(warnings)+short > 0 {
		return &quietError{simFailed}
	}
	return err
}

func (a app) tellCheck(d *checked, classes []play.Class, short int) error {
	var b bytes.Buffer
	for _, w := range d.Warnings {
		fmt.Fprintln(&b, oneLine(w))
	}
	if len(d.Warnings) > 0 {
		fmt.Fprintln(&b)
	}
	play.TellClasses(&b, classes)
	fmt.Fprintf(&b, "%s: ", d.File)
	if d.Hosts == 0 {
		fmt.Fprint(&b, "understood")
	} else {
		fmt.Fprintf(&b, "can run; %d hosts, %d switches, %d links", d.Hosts, d.Switches, d.Links)
	}
	switch n := len(d.Warnings); n {
	case 0:
		fmt.Fprint(&b, "; no warning")
	case 1:
		fmt.Fprint(&b, "; 1 warning")
	default:
		fmt.Fprintf(&b, "; %d warnings", n)
	}
	if short > 0 {
		fmt.Fprintf(&b, "; %d kinds of links without enough headroom", short)
	}
	fmt.Fprintln(&b)
	_, err := a.out.Write(b.Bytes())
	return err
}
