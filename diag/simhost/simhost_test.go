package simhost_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/simhost"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/internal/play"
)

func run(t *testing.T, name string, sets ...string) *play.Outcome {
	t.Helper()
	src, err := play.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := src.Scenario(play.Change{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	out, err := sc.Run(t.Context(), &play.Files{}, play.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func node(t *testing.T, o *play.Outcome, name string) int32 {
	t.Helper()
	for i := range o.Result.Nodes {
		if o.Result.Nodes[i].Name == name {
			return int32(i)
		}
	}
	t.Fatalf("no node %s", name)
	return 0
}

// The doctor finds what a scenario of the library was set up to show, at the host or
// switch where an operator would see it, and not where it is not.
func TestDoctorOnSimulatedHosts(t *testing.T) {
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scenario   string
		sets       []string
		host, peer string
		find       string   // a rule that must find something
		not        []string // rules that must not
	}{
		{"pfc-storm", []string{"duration=3ms"}, "host4", "", "C03", []string{"C01", "C10"}},
		{"pfc-storm", []string{"duration=3ms"}, "host0", "", "C01", []string{"C02", "C03"}},
		{"pfc-storm", []string{"duration=5ms", "switch.pfc.watchdog.enable=true"}, "leaf1", "", "C03", nil},
		{"ecn-too-low", []string{"duration=5ms"}, "host0", "host8", "C10", []string{"C01", "C03", "L03"}},
		{"pfc-off-one-hop", nil, "host0", "", "C13", []string{"C03", "C10", "C02"}},
		{"slow-receiver", nil, "host0", "", "C02", []string{"C10", "L03"}},
	} {
		o := run(t, c.scenario, c.sets...)
		in := doctor.Input{Host: simhost.Window(o.Reading.Scenario, o.Graph, o.Result, node(t, o, c.host)), Prio: -1}
		if c.peer != "" {
			peer := simhost.Window(o.Reading.Scenario, o.Graph, o.Result, node(t, o, c.peer))
			in.Peer = &peer
		}
		var found []string
		for _, f := range doctor.Examine(in, rules).Findings {
			found = append(found, f.Rule)
		}
		if c.find != "" && !slices.Contains(found, c.find) {
			t.Errorf("%s, %s: found %v, want %s", c.scenario, c.host, found, c.find)
		}
		for _, id := range c.not {
			if slices.Contains(found, id) {
				t.Errorf("%s, %s: found %v, must not have %s", c.scenario, c.host, found, id)
			}
		}
	}
}

// Two hosts with PFC on different priorities.
func TestPFCMismatch(t *testing.T) {
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	o := run(t, "pfc-storm", "duration=200us", `hosts=[{match: host5, nic: {pfc: [4]}}]`)
	w := func(name string) snapshot.Window {
		return simhost.Window(o.Reading.Scenario, o.Graph, o.Result, node(t, o, name))
	}
	peer := w("host5")
	report := doctor.Examine(doctor.Input{Host: w("host0"), Peer: &peer, Prio: -1}, rules)
	if !slices.ContainsFunc(report.Findings, func(f doctor.Finding) bool { return f.Rule == "L03" }) {
		t.Errorf("no L03: %+v", report.Findings)
	}
}

// A recording reads back as what it was made of, counters as in the result.
func TestRecordingReadsBack(t *testing.T) {
	o := run(t, "pfc-storm", "duration=1ms")
	dir := t.TempDir()
	n, err := simhost.Record(dir, o.Reading.Scenario, o.Graph, o.Result)
	if err != nil || n != len(o.Result.Nodes) {
		t.Fatalf("%d recordings of %d: %v", n, len(o.Result.Nodes), err)
	}
	for i := range o.Result.Nodes {
		rn := &o.Result.Nodes[i]
		rec, err := source.OpenDir(filepath.Join(dir, rn.Name))
		if err != nil {
			t.Fatal(err)
		}
		w, err := read.Window(rec, read.Options{})
		rec.Close()
		if err != nil || w.Before == nil {
			t.Fatalf("%s: %v, %+v", rn.Name, err, w)
		}
		if len(w.After.Problems) > 0 {
			t.Errorf("%s: %v", rn.Name, w.After.Problems)
		}
		if got, want := w.Length().Nanoseconds(), int64(o.Result.End/1000); got != want {
			t.Errorf("%s: the window is %d ns long, the run %d", rn.Name, got, want)
		}
		direct := simhost.Window(o.Reading.Scenario, o.Graph, o.Result, int32(i))
		if !reflect.DeepEqual(w.After.Devices, direct.After.Devices) || !reflect.DeepEqual(w.After.Switch, direct.After.Switch) {
			t.Errorf("%s: the recording differs from the host", rn.Name)
		}
		if rn.Switch {
			continue
		}
		q := &rn.Ports[0].Prio[3]
		eth := w.After.Netdev("eth0").Ethtool
		for name, want := range map[string]uint64{"tx_prio3_bytes": q.TxBytes, "rx_prio3_pause": q.PauseRx + q.ResumeRx, "tx_prio3_pause": q.PauseTx + q.ResumeTx} {
			if got, ok := eth.Get(name).Get(); !ok || got != want {
				t.Errorf("%s: %s is %v, want %d", rn.Name, name, eth.Get(name), want)
			}
		}
	}
}

// A host of two NICs has the counters of each at its own device and interface.
func TestCountersOfEachPort(t *testing.T) {
	o := run(t, "pfc-storm", "duration=300us", "topology.nics=2", `workload=[{name: victim, kind: long, src: host0, dst: host5, bytes: 50MB}, {name: doomed, kind: long, src: host1, dst: host4, bytes: 10MB}, {name: second, kind: long, src: host1/eth1, dst: host6/eth1, bytes: 1MB}]`)
	busy := [2]int{}
	for i := range o.Result.Nodes {
		n := &o.Result.Nodes[i]
		if n.Switch {
			continue
		}
		if len(n.Ports) != 2 {
			t.Fatalf("%s has %d ports", n.Name, len(n.Ports))
		}
		w := simhost.Window(o.Reading.Scenario, o.Graph, o.Result, int32(i))
		if len(w.After.Devices) != 2 {
			t.Fatalf("%s has %d devices", n.Name, len(w.After.Devices))
		}
		discards, all := uint64(0), uint64(0)
		for _, c := range n.NIC {
			if c.Name == "rx_discards_phy" {
				all += c.Value
			}
		}
		for j := range n.Ports {
			frames := uint64(0)
			for q := range n.Ports[j].Prio {
				frames += n.Ports[j].Prio[q].TxPackets
			}
			d := w.After.Device("sim_" + n.Ports[j].Name)
			sent := d.Ports[0].HWCounters.Get("sent_pkts").Or(0)
			if sent > frames || (sent > 0) != (frames > 0) {
				t.Errorf("%s %s: the device sent %d packets, its port %d frames", n.Name, n.Ports[j].Name, sent, frames)
			}
			if sent > 0 {
				busy[j]++
			}
			discards += w.After.Netdev(n.Ports[j].Name).Ethtool.Get("rx_discards_phy").Or(0)
		}
		if discards != all {
			t.Errorf("%s: its interfaces discarded %d frames, its NICs %d", n.Name, discards, all)
		}
	}
	if busy[0] == 0 || busy[1] == 0 {
		t.Errorf("NICs with traffic: %d first ones, %d second ones", busy[0], busy[1])
	}
}
