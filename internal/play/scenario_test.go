package play

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// small is a scenario that runs in no time: three senders of 50 KB each.
const small = `title: three into one
topology: {kind: star, hosts: 4}
switch: {ecn: {kmin: 30KB, kmax: 30KB, pmax: 100%}}
workload: [{name: in, kind: incast, src: host1..host3, dst: host0, bytes: 50KB}]
expect:
  - {what: flow.in.finished, min: 3, source: all of them}
`

func text(name, s string) *Source { return &Source{Name: name, File: name, Text: []byte(s)} }

func TestOneThresholdMovesAsOne(t *testing.T) {
	for _, c := range []struct {
		sets       []string
		kmin, kmax scenario.Bytes
		notes      int
	}{
		{nil, 30e3, 30e3, 0},
		{[]string{"ecn.kmin=8KB"}, 8e3, 8e3, 1},
		{[]string{"switch.ecn.kmin=64KB"}, 64e3, 64e3, 1},
		{[]string{"kmax=64KB"}, 64e3, 64e3, 1},
		{[]string{"kmin=1KB", "ecn.kmax=64KB"}, 1e3, 64e3, 0},
		{[]string{"seed=3"}, 30e3, 30e3, 0},
	} {
		r, err := text("small.yaml", small).Scenario(Change{Sets: c.sets})
		if err != nil || r.Switch.ECN.KMin != c.kmin || r.Switch.ECN.KMax != c.kmax || len(r.Notes) != c.notes {
			t.Errorf("%q: %v, %v %v, notes %q", c.sets, err, r.Switch.ECN.KMin, r.Switch.ECN.KMax, r.Notes)
		}
	}
	// Where the scenario has two thresholds each is for itself.
	two := strings.Replace(small, "kmax: 30KB", "kmax: 90KB", 1)
	if r, err := text("two.yaml", two).Scenario(Change{Sets: []string{"kmin=40KB"}}); err != nil || r.Switch.ECN.KMax != 90e3 {
		t.Error(r, err)
	}
}

const tables = `{
  "PORT": {"Ethernet0": {"speed": "400000", "mtu": "9100"}, "Ethernet4": {"speed": "100000"}},
  "CABLE_LENGTH": {"AZURE": {"Ethernet0": "40m", "Ethernet4": "5m"}},
  "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3", "dscp_to_tc_map": "AZURE"}},
  "DSCP_TO_TC_MAP": {"AZURE": {"26": "3"}},
  "BUFFER_PG": {"Ethernet0|3": {"profile": "p4"}, "Ethernet4|3": {"profile": "p1"}},
  "BUFFER_PROFILE": {
    "p4": {"xoff": "200000", "xon": "1000", "size": "1000", "dynamic_th": "-1"},
    "p1": {"xoff": "10000", "xon": "1000", "size": "1000", "dynamic_th": "-1"}
  },
  "QUEUE": {"Ethernet0|3": {"wred_profile": "W"}},
  "WRED_PROFILE": {"W": {"ecn": "ecn_all", "wred_green_enable": "true", "green_min_threshold": "111000", "green_max_threshold": "222000", "green_drop_probability": "5"}}
}`

func TestTablesOfASwitch(t *testing.T) {
	db := text("config_db.json", tables)
	db.Kind = Tables
	r, err := text("small.yaml", small).Scenario(Change{Tables: db})
	if err != nil || r.Switch.ECN.KMin != 111e3 || r.Switch.ECN.KMax != 222e3 || r.Switch.Buffer.Alpha != scenario.One/2 {
		t.Fatalf("%v %+v", err, r)
	}
	// A key on the command line comes last.
	if r, err = text("small.yaml", small).Scenario(Change{Tables: db, Sets: []string{"kmin=5KB"}}); err != nil || r.Switch.ECN.KMin != 5e3 || r.Switch.ECN.KMax != 222e3 {
		t.Fatalf("%v %+v", err, r)
	}
	on, err := TableScenario(db)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = on.Scenario(Change{Tables: db}); err != nil || r.Topology.Rate != 400*sim.Gbps || r.Topology.LinkDelay() != 200*sim.Nanosecond {
		t.Fatalf("%v %+v", err, r)
	}
	// Classes are those of the table: 10,000 B of headroom are too few at 100
	// Gb/s, as frames of two ends alone are 2 × (9100 + 22).
	list, err := TableClasses(db, r.Scenario)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %+v", err, list)
	}
	if c := list[0]; c.Rate != 100*sim.Gbps || c.Delay != 25*sim.Nanosecond || c.Have != 10000 || c.Enough() {
		t.Errorf("the short one is not first: %+v", c)
	}
	if c := list[1]; c.Rate != 400*sim.Gbps || c.Have != 200000 || !c.Enough() {
		t.Errorf("%+v", c)
	}
}

const hpccConfig = `TOPOLOGY_FILE topo.txt
FLOW_FILE flow.txt
CC_MODE 1
KMIN_MAP 1 100000000000 100
KMAX_MAP 1 100000000000 400
PMAX_MAP 1 100000000000 0.2
NO_SUCH_THING 1
`

func TestHPCCConfig(t *testing.T) {
	src := text("config.txt", hpccConfig)
	src.Kind = HPCC
	r, err := src.Scenario(Change{Sets: []string{"duration=3s"}})
	if err != nil || r.Duration != 3*sim.Second || r.Host.DCQCN.Preset != "hpcc" {
		t.Fatalf("%v %+v", err, r)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "config.txt:7:1: warning: NO_SUCH_THING") }) {
		t.Errorf("notes %q", r.Notes)
	}
}

// An error names a line only of a file that somebody has written.
func TestPlacesOfErrors(t *testing.T) {
	db := text("config_db.json", tables)
	db.Kind = Tables
	for _, c := range []struct {
		src    *Source
		change Change
		want   string
	}{
		{text("a.yaml", "topology:\n  kind: sun\n"), Change{}, "a.yaml:2:9: topology.kind"},
		{text("small.yaml", small), Change{Sets: []string{"kmin=8"}}, "--set kmin=8: switch.ecn.kmin"},
		{text("small.yaml", small), Change{Sets: []string{"kmni=8KB"}}, "did you mean"},
		{text("small.yaml", small), Change{Tables: db, Sets: []string{"kmin=9MB"}}, "--set kmin=9MB: switch.ecn.kmin"},
		{text("small.yaml", small), Change{Tables: text("other.yaml", small)}, "other.yaml has none of the tables"},
		{&Source{Name: "run.json", Kind: Saved}, Change{}, "run.json is the result of a run"},
		{db, Change{}, "--tables config_db.json"},
	} {
		_, err := c.src.Scenario(c.change)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: %v; want %q", c.src.Name, c.change.Sets, err, c.want)
		}
	}
	// What is found out while building has no place in a text that was made.
	src := text("config.txt", hpccConfig)
	src.Kind = HPCC
	r, err := src.Scenario(Change{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Load(&Files{beside: "config.txt"})
	var e *scenario.Error
	if !errors.As(err, &e) || e.Line != 0 || !strings.Contains(err.Error(), "topo.txt") {
		t.Errorf("%v", err)
	}
}
