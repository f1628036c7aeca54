package report_test

import (
	"bytes"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/report"
	"github.com/verbena-rdma/verbena/fabric/report/plot"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func chart(t *testing.T, r *result.Run, name string) (*plot.Drawing, string) {
	t.Helper()
	for _, c := range report.Charts(r) {
		if c.Name == name {
			return c.Drawing, string(written(t, c.Drawing.WriteSVG))
		}
	}
	t.Fatalf("no chart %s", name)
	return nil, ""
}

func has(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("no %q", w)
		}
	}
}

func TestChartsOfSample(t *testing.T) {
	var got []string
	for _, c := range report.Charts(sample()) {
		got = append(got, c.Name)
		if c.Drawing.Title == "" || c.Drawing.Desc == "" {
			t.Errorf("%s has no title or description", c.Name)
		}
	}
	want := []string{"topology", "queues", "rates", "rc", "alpha", "marks", "pauses", "paused", "ports", "buffers", "receivers", "fct", "ecmp"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// All thresholds are in the picture, with their numbers and units.
func TestQueueChart(t *testing.T) {
	d, svg := chart(t, sample(), "queues")
	has(t, svg, "Kmin 100 KB", "Kmax 400 KB", "XOFF 80.0 KB", "(KB)", "time (us)", "leaf0:Ethernet0 p3", "spine0:Ethernet0 p3", "instants")
	has(t, d.Desc, "leaf0:Ethernet0 p3 reaches 804 KB at 250 us") // 812345·50·2/101
	r := sample()
	r.Nodes[leaf0].Ports[0].Prio[3].KMin = 256e3
	r.Nodes[leaf0].Ports[0].Prio[3].KMax = 256e3
	r.Shape.KMax = 100e3
	_, svg = chart(t, r, "queues")
	has(t, svg, "Kmin = Kmax 256 KB", "Kmin = Kmax 100 KB")
	r = sample()
	for i := range r.Series {
		if r.Series[i].Kind == result.QueueBytes {
			r.Series[i].Values = []int64{0, 20e3, 0}
		}
	}
	_, svg = chart(t, r, "queues")
	has(t, svg, "Kmax 400 KB is above the chart.")
}

// The root is framed, the descriptions name it.
func TestTopology(t *testing.T) {
	d, svg := chart(t, sample(), "topology")
	has(t, d.Desc, "6 hosts, 4 switches in 2 tiers", "5 egresses were stopped", "most on account of leaf0:Ethernet0")
	has(t, svg, "spine0:Ethernet0 stopped by leaf0 for 30.0% of the time, 1 from the root",
		"leaf1:Ethernet12 stopped by spine0 for 12.0% of the time, 2 from the root",
		"host5:eth0 stopped by leaf1 for 4.0% of the time, 3 from the root", "Framed red: root.", "deadlock: leaf0:Ethernet12 waits for spine0")
	r := sample()
	r.Pauses = nil
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			r.Nodes[i].Ports[j].Prio = [8]result.PortPrio{}
		}
	}
	d, svg = chart(t, r, "topology")
	has(t, d.Desc, "Nobody was stopped.")
	has(t, svg, "Nobody was stopped.")
}

func TestPauseChart(t *testing.T) {
	d, svg := chart(t, sample(), "pauses")
	has(t, d.Desc, "5 egresses were stopped. spine0:Ethernet0 was the first, at 20.0 us; leaf0:Ethernet16 was stopped longest, for 310 us.")
	has(t, svg, "spine0:Ethernet0 p3 by leaf0", "leaf0:Ethernet16 all priorities by spine1", "slow receiver", "802.3x PAUSE", "20.0 us to 170 us, 150 us")
}

func TestOtherCharts(t *testing.T) {
	r := sample()
	d, svg := chart(t, r, "ecmp")
	has(t, d.Desc, "Most uneven is leaf1: its busiest uplink sent 1.50 times the mean.") // 3144 of (3144+1048)/2
	has(t, svg, "leaf1:Ethernet12 to spine0: 3.14 MB, 4 flows", "leaf1:Ethernet16 to spine1: 1.05 MB, 0 flows")
	d, _ = chart(t, r, "fct")
	has(t, d.Desc, "incast: half within 343 us, 99 % within 345 us; victim: half within 470 us")
	d, _ = chart(t, r, "marks")
	sum := int64(0)
	for _, s := range r.Series {
		if s.Kind == result.CNPRate {
			for _, v := range s.Values {
				sum += v
			}
		}
	}
	if !strings.Contains(d.Desc, strings.TrimSpace(cmpCount(sum)+" CNPs")) {
		t.Errorf("%q does not say %d CNPs", d.Desc, sum)
	}
	d, _ = chart(t, r, "paused")
	has(t, d.Desc, "spine0:Ethernet0 p3 up to 99.0%") // 5 us·50·2/101 of 5 us
	_, svg = chart(t, r, "buffers")
	has(t, svg, "size 12.0 MB is above the chart.")
}

func cmpCount(n int64) string {
	if n < 1000 {
		return strings.TrimLeft(string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)}), "0")
	}
	return ""
}

// Many flows: every group is in the picture, whatever its size.
func TestEveryGroupIsDrawn(t *testing.T) {
	r := &result.Run{End: 100 * us}
	for i := range 40 {
		g := "large"
		if i >= 38 {
			g = "small"
		}
		r.Flows = append(r.Flows, result.Flow{ID: int32(i), Group: g, Bytes: int64(1000 - i)})
		r.Series = append(r.Series, result.Series{Kind: result.FlowRate, Node: -1, Flow: int32(i), Step: us, Values: []int64{1e9, 2e9}})
	}
	_, svg := chart(t, r, "rates")
	has(t, svg, "large 0 ", "small 38 ", "small 39 ", "32 more flows are not drawn")
	if strings.Contains(svg, "large 6 ") {
		t.Error("more than eight lines")
	}
}

func TestChartPNGs(t *testing.T) {
	for _, f := range report.Files(sample(), page()) {
		if f.Name != "topology.png" && f.Name != "pauses.png" {
			continue
		}
		img, err := png.Decode(bytes.NewReader(written(t, f.Write)))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if img.Bounds().Dx() != 2*860 {
			t.Errorf("%s is %d wide", f.Name, img.Bounds().Dx())
		}
	}
}

// large is a leaf-spine of 1024 hosts in which very much happened.
func large() *result.Run {
	const leaves, per, spines = 32, 32, 16
	r := &result.Run{Name: "large", End: 10 * sim.Millisecond, Source: strings.Repeat("# a long scenario\n", 20000)}
	r.Nodes = make([]result.Node, leaves*per+leaves+spines)
	join := func(a, b int) {
		x, y := &r.Nodes[a], &r.Nodes[b]
		x.Ports = append(x.Ports, result.Port{Name: "Ethernet" + string(rune('a'+len(x.Ports)%26)), Peer: int32(b), PeerPort: int32(len(y.Ports)), Rate: 100 * sim.Gbps})
		y.Ports = append(y.Ports, result.Port{Name: "eth0", Peer: int32(a), PeerPort: int32(len(x.Ports) - 1), Rate: 100 * sim.Gbps})
	}
	for i := range r.Nodes {
		r.Nodes[i].Name = "node-" + string(rune('a'+i%26))
		if i >= leaves*per {
			r.Nodes[i].Switch, r.Nodes[i].Tier = true, 1
		}
		if i >= leaves*per+leaves {
			r.Nodes[i].Tier = 2
		}
	}
	for l := range leaves {
		leaf := leaves*per + l
		for h := range per {
			join(leaf, l*per+h)
		}
		for s := range spines {
			join(leaf, leaves*per+leaves+s)
		}
	}
	for i := range r.Nodes {
		for j := range r.Nodes[i].Ports {
			r.Nodes[i].Ports[j].Prio[3] = result.PortPrio{
				TxBytes: 1e9, RxBytes: 1e9, TxPackets: 1e6, RxPackets: 1e6, Marked: uint64(i * j), PauseRx: uint64(i), PauseTx: uint64(j), PausedFor: sim.Time(i) * us, PeakQueue: 1e6, MeanQueue: 1234.5,
			}
		}
	}
	for i := range 5000 {
		src := int32(i % 1024)
		r.Flows = append(r.Flows, result.Flow{
			ID: int32(i), Group: "permutation", SrcNode: src, DstNode: 1023 - src, Bytes: int64(1+i) * 1000, State: result.Finished, Base: us,
			Finish: sim.Time(1+i%997) * us, Delivered: 1000, Path: []result.Hop{{Node: src}, {Node: 1024 + src/32, Port: 32}, {Node: 1056, Port: 1}, {Node: 1025}},
		})
	}
	for i := range 40000 {
		r.Pauses = append(r.Pauses, result.Pause{At: sim.Time(i) * us / 4, Node: int32(1024 + i%48), Port: int32(i / 48 % 30), Egress: int32(i % 7), Prio: 3, On: i/1440%2 == 0, Limit: 90e3, EgressStopped: i%3 == 0})
		r.Drops = append(r.Drops, result.Drop{At: sim.Time(i) * us / 4, Node: int32(i % 1000), Port: -1, Flow: int32(i % 5000)})
	}
	for i := range 40 {
		v := make([]int64, 20000)
		x := uint64(i + 1)
		for j := range v {
			x = sim.Mix(x)
			v[j] = int64(x % 1e6)
		}
		kind := []result.SeriesKind{result.QueueBytes, result.FlowRate, result.FlowRC, result.MarkRate, result.PortRate, result.BufferShared, result.HostQueue, result.FlowAlpha}[i%8]
		r.Series = append(r.Series, result.Series{Kind: kind, Node: int32(i), Flow: int32(i), Step: us / 2, Values: v})
	}
	return r
}

// However much happened, a page stays below 2 MiB, and the data in it are a file
// of a run that says what it lacks.
func TestPageStaysSmall(t *testing.T) {
	r := large()
	b := written(t, func(w io.Writer) error { return report.WriteHTML(w, r, page()) })
	if len(b) > 2<<20 {
		t.Errorf("%d bytes", len(b))
	}
	_, data, _ := strings.Cut(string(b), `id="run">`)
	data, _, _ = strings.Cut(data, "</script>")
	got, err := report.ReadJSON(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "large" || !strings.Contains(data, `"reduced"`) || !strings.Contains(string(b), "Left out there") {
		t.Error("the data do not say what they lack")
	}
	for _, c := range report.Charts(r) {
		if n := len(written(t, c.Drawing.WriteSVG)); n > 400<<10 {
			t.Errorf("%s.svg has %d bytes", c.Name, n)
		}
	}
	text := written(t, writeWith(r, report.WriteText))
	if n := bytes.Count(text, []byte("\n")); n > 600 {
		t.Errorf("the text has %d lines", n)
	}
}

// A page of a run of tens of thousands of hosts still fits: its data are then
// the head alone.
func TestPageOfVeryManyNodes(t *testing.T) {
	r := &result.Run{Name: "huge", End: us, Nodes: make([]result.Node, 30000)}
	for i := range r.Nodes {
		r.Nodes[i] = result.Node{Name: "host", Ports: []result.Port{{Peer: int32(i ^ 1), Rate: sim.Gbps}}}
	}
	b := written(t, func(w io.Writer) error { return report.WriteHTML(w, r, page()) })
	if len(b) > 2<<20 || !bytes.Contains(b, []byte("all but the head of the run")) {
		t.Errorf("%d bytes", len(b))
	}
	if !slices.ContainsFunc(report.Charts(r), func(c report.Chart) bool { return c.Name == "topology" }) {
		t.Error("no topology")
	}
}
