package report_test

import (
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// columns is what a terminal of East Asian width rules gives a line.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r):
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
			n += 2
		default:
			n++
		}
	}
	return n
}

// Tables fit, whatever is in them.
func TestTextFits(t *testing.T) {
	long := sample()
	for i := range long.Nodes {
		long.Nodes[i].Name = "a-rather-long-name-of-a-node-in-漢字漢字漢字-row-17-" + long.Nodes[i].Name
	}
	for i := range long.Flows {
		f := &long.Flows[i]
		f.Group, f.Bytes, f.Packets, f.Marks, f.CNPs, f.Retransmitted = "all-reduce-of-a-very-large-model-"+f.Group, 1<<62, 1<<63, 1<<63, 1<<63, 1<<63
	}
	for i := range long.Nodes {
		for j := range long.Nodes[i].Ports {
			q := &long.Nodes[i].Ports[j].Prio[7]
			q.TxBytes, q.Marked, q.PauseRx, q.PauseTx, q.PeakQueue, q.MeanQueue, q.PausedFor, q.PeakHeadroom = 1<<63, 1<<62, 1<<52, 1<<52, 1<<52, 1<<62, long.End/3, 1<<62
		}
	}
	spoiled := sample()
	spoil(spoiled)
	for name, r := range map[string]*result.Run{"sample": sample(), "long": long, "spoiled": spoiled} {
		text := string(written(t, writeWith(r, report.WriteText)))
		for l := range strings.Lines(text) {
			l = strings.TrimSuffix(l, "\n")
			if strings.HasSuffix(l, "NIC statistics:") || strings.HasPrefix(l, "     ") {
				continue // a name and a number
			}
			if n := columns(l); n > report.TextWidth {
				t.Errorf("%s: %d columns: %q", name, n, l)
			}
			if strings.HasSuffix(l, " ") {
				t.Errorf("%s: blanks at the end of %q", name, l)
			}
		}
	}
}

// Columns stand below each other.
func TestTextAligns(t *testing.T) {
	lines := strings.Split(string(written(t, writeWith(sample(), report.WriteFlows))), "\n")
	head, rule := lines[1], lines[2]
	if len(head) != len(rule) {
		t.Errorf("%q\n%q", head, rule)
	}
	for _, l := range lines[3:7] {
		if len(l) != len(rule) {
			t.Errorf("%q is not as wide as %q", l, rule)
		}
		for i, c := range rule {
			if c == ' ' && l[i] != ' ' {
				t.Errorf("column %d of %q is crossed", i, l)
			}
		}
	}
}

// What an operator knows: SONiC's layout with thousands, mlx5's names.
func TestOperatorsCounters(t *testing.T) {
	r := sample()
	got := string(written(t, writeWith(r, report.WritePFCCounters)))
	want := "   Port Tx  PFC0  PFC1  PFC2   PFC3  PFC4  PFC5  PFC6  PFC7\n" +
		"----------  ----  ----  ----  -----  ----  ----  ----  ----\n" +
		"Ethernet12     0     0     0  1,234     0     0     0     0\n"
	if !strings.Contains(got, want) {
		t.Errorf("no\n%s in\n%s", want, got)
	}
	got = string(written(t, func(w io.Writer) error { return report.WriteNIC(w, r, host5) }))
	for _, want := range []string{"NIC statistics:\n", "     rx_prio3_pause: 3\n", "     rx_prio3_pause_duration: 20\n", "     rx_prio3_pause_transition: 2\n", "     tx_prio3_pause: 0\n", "     tx_prio3_packets: 3000\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, node := range []int{-1, leaf0, 99} {
		if err := report.WriteNIC(io.Discard, r, node); err == nil || !strings.Contains(err.Error(), "it is no host") {
			t.Errorf("node %d: %v", node, err)
		}
	}
}

// A counter that the adapter has already is not made up a second time; those of
// several NICs are told apart.
func TestNICCountersOnce(t *testing.T) {
	r := sample()
	r.Nodes[host5].NIC = []result.Counter{{Name: "rx_prio3_pause", Value: 77}}
	got := string(written(t, func(w io.Writer) error { return report.WriteNIC(w, r, host5) }))
	if strings.Count(got, "rx_prio3_pause:") != 1 || !strings.Contains(got, "rx_prio3_pause: 77") {
		t.Error(got)
	}
	r.Nodes[host0].Ports = append(r.Nodes[host0].Ports, result.Port{Name: "eth1", Peer: -1})
	got = string(written(t, func(w io.Writer) error { return report.WriteNIC(w, r, host0) }))
	if !strings.Contains(got, "     eth0 rx_prio3_bytes: 4192000\n") || !strings.Contains(got, "     eth1 rx_prio3_bytes: 0\n") {
		t.Error(got)
	}
}

// The duration of pauses that a host sent is the time that its peer was stopped.
func TestPauseDurationOfTheSender(t *testing.T) {
	r := sample()
	r.Nodes[leaf1].Ports[1].Prio[3].PausedFor = 5*us + 999999
	r.Nodes[host4].Ports[0].Prio[3].PauseTx = 1
	got := string(written(t, func(w io.Writer) error { return report.WriteNIC(w, r, host4) }))
	if !strings.Contains(got, "tx_prio3_pause_duration: 5\n") {
		t.Error(got)
	}
}

// Runs in which nothing happened, and those that were broken off, are reported,
// and say so.
func TestEmptyAndInterrupted(t *testing.T) {
	for name, r := range map[string]*result.Run{
		"zero":       {},
		"no traffic": {Name: "idle", Nodes: fabric(), End: us, Why: "duration"},
		"only hosts": {Nodes: []result.Node{{Name: "a", Ports: []result.Port{{Peer: 1, Rate: sim.Gbps}}}, {Name: "b", Ports: []result.Port{{Peer: 0}}}}},
		"waiting":    {Flows: []result.Flow{{Received: sim.Never, Finish: sim.Never}}},
		"wrong numbers": {
			End: us, Flows: []result.Flow{{SrcNode: 9, DstNode: -4, State: 77, Path: []result.Hop{{Node: 5}}}},
			Pauses: []result.Pause{{Node: 3, On: true}}, Drops: []result.Drop{{Node: -1, Port: -1, Reason: 99}},
			Series:   []result.Series{{Kind: result.FlowRate, Flow: 3, Values: []int64{1}}, {Kind: result.QueueBytes, Node: 7, Values: []int64{1}}},
			Storms:   []result.Storm{{Node: 8}},
			Lossless: []result.Lossless{{Node: 4}},
			Nodes:    []result.Node{{Switch: true, Tier: -3, Ports: []result.Port{{Peer: 0}, {Peer: 7}, {Peer: -1}}}},
		},
	} {
		for _, f := range report.Files(r, report.Page{}) {
			t.Run(name+" "+f.Name, func(t *testing.T) { written(t, f.Write) })
		}
	}
	r := sample()
	r.Interrupted, r.Why = true, "interrupted"
	for _, f := range report.Files(r, report.Page{}) {
		if f.Name == "report.txt" || f.Name == "report.html" {
			if b := string(written(t, f.Write)); !strings.Contains(b, "INTERRUPTED at 500 us") {
				t.Errorf("%s does not say that the run was broken off", f.Name)
			}
		}
	}
}

// The verdict on headroom in words.
func TestLosslessVerdicts(t *testing.T) {
	r := &result.Run{Nodes: fabric()}
	r.Lossless = []result.Lossless{{Node: leaf0, Prio: 3, Need: 10, Have: 20, Peak: 5}}
	for _, c := range []struct {
		change func(*result.Lossless)
		want   string
	}{
		{func(*result.Lossless) {}, "All 1 ingresses have the headroom that the worst case needs"},
		{func(l *result.Lossless) { l.Have = 8 }, "too small by 2 B"},
		{func(l *result.Lossless) { l.Dropped = 1 }, "VIOLATED at 1 of 1"},
	} {
		c.change(&r.Lossless[0])
		if got := string(written(t, writeWith(r, report.WriteText))); !strings.Contains(got, c.want) {
			t.Errorf("no %q in\n%s", c.want, got)
		}
	}
}
