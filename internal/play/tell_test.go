package play

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/metric"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
)

// A line over time has the height of its values, and blanks where the flow was
// not alive.
func TestSpark(t *testing.T) {
	s := &result.Series{Start: 10, Step: 10}
	for i := range 4 * sparkWidth { // four samples a mark: up in eight steps
		s.Values = append(s.Values, int64(i*8/(4*sparkWidth)))
	}
	end := sim.Time(10 * len(s.Values))
	want := ""
	for _, m := range marks {
		want += strings.Repeat(string(m), sparkWidth/8)
	}
	if got := spark(s, end, 0, end, 8, true); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	half := []rune(spark(s, end, end/4, end/2, 8, false))
	for i, r := range half {
		if alive := i >= sparkWidth/4 && i < sparkWidth/2; (r != ' ') != alive {
			t.Errorf("mark %d is %q", i, r)
		}
	}
	for _, s := range []*result.Series{{Step: 10}, {Values: []int64{1}}, {Step: -1, Values: []int64{1}}} {
		if got := spark(s, end, 0, end, 8, false); got != "" {
			t.Errorf("%+v: %q", s, got)
		}
	}
}

// over is the mean, or the largest, of the samples whose instants are within.
func TestOverAgainstAllSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &result.Series{
			Start: sim.Time(rapid.IntRange(0, 50).Draw(t, "start")), Step: sim.Time(rapid.IntRange(1, 9).Draw(t, "step")),
			Values: rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 30).Draw(t, "values"),
		}
		a := sim.Time(rapid.IntRange(0, 200).Draw(t, "a"))
		b := a + sim.Time(rapid.IntRange(1, 100).Draw(t, "len"))
		var in []int64
		for i, v := range s.Values {
			if at := s.Start + sim.Time(i)*s.Step; at >= a && at <= b {
				in = append(in, v)
			}
		}
		if len(in) == 0 {
			return // a stretch between two samples has the next one
		}
		if v, ok := over(s, a, b, true); !ok || v != slices.Max(in) {
			t.Fatalf("largest %d %v, of %v", v, ok, in)
		}
		sum := int64(0)
		for _, x := range in {
			sum += x
		}
		v, ok := over(s, a, b, false)
		if mean := sum / int64(len(in)); !ok || v > mean || v < mean-int64(len(in)) {
			t.Fatalf("mean %d %v, of %v", v, ok, in)
		}
	})
}

func TestGridStandsInColumns(t *testing.T) {
	g := NewGrid("<name", "value")
	g.Row("a", "1")
	g.Row("längste\x1b[31m", "12345")
	g.Row(strings.Repeat("x", 200), "2")
	lines := g.Lines()
	if len(lines) != 4 || g.Len() != 3 {
		t.Fatalf("%q", lines)
	}
	for _, l := range lines {
		if n := len([]rune(l)); n != len([]rune(lines[0])) || strings.ContainsRune(l, '\x1b') {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}

func TestParagraphsEndInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "text")
		var b bytes.Buffer
		Paragraph(&b, "  ", in)
		if got, want := strings.Fields(b.String()), strings.Fields(clean(in)); !slices.Equal(got, want) {
			t.Fatalf("%q became %q", in, b.String())
		}
		for l := range strings.Lines(b.String()) {
			if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > width && len(strings.Fields(l)) > 1 {
				t.Fatalf("%d columns: %q", n, l)
			}
		}
	})
}

// A section is cut behind a whole paragraph.
func TestShorter(t *testing.T) {
	lines := []string{"One.", "- two", "  goes on", "- three", "  goes on", "  and on", "- four"}
	for most, want := range map[int]int{1: 1, 2: 1, 3: 3, 4: 3, 5: 3, 6: 7, 7: 7, 99: 7} {
		if got := shorter(lines, most); got != want {
			t.Errorf("at most %d: %d lines, want %d", most, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		timeText(0): "0", timeText(999): "999 ps", timeText(1500): "1.50 ns", timeText(20 * sim.Microsecond): "20.0 us",
		timeText(20 * sim.Millisecond): "20.0 ms", timeText(sim.Never): "-", timeText(3 * sim.Second): "3.00 s",
		rateText(0): "0", rateText(7.7e9): "7.70 Gb/s", rateText(400e9): "400 Gb/s", rateText(5): "5.00 b/s",
		bytesText(0): "0 B", bytesText(999): "999 B", bytesText(256e3): "256 KB", bytesText(-5): "-5 B",
		countText(1234567): "1,234,567", countText(12e6): "12.0 M", countText(7): "7",
		factorText(2, 1): "÷ 2.00", factorText(1, 11): "x 11.0", factorText(1, 1.001): "=", factorText(0, 1): "", factorText(1, 1e7): "x >1000000", factorText(1e7, 1): "÷ >1000000",
		ValueText(metric.Value{V: 0.25}): "0.250", ValueText(metric.Value{V: 12000}): "12,000", ValueText(metric.Value{V: -1}): "-1.00",
		shareText(1, 2000): "<0.1 %", shareText(1, 2): "50.0 %", shareText(1, 0): "0", plural(1, "host"): "1 host", plural(2, "switch"): "2 switches",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func flows(group string, fct ...sim.Time) []result.Flow {
	var out []result.Flow
	for _, d := range fct {
		out = append(out, result.Flow{Group: group, Bytes: 1e6, Delivered: 1e6, State: result.Finished, Finish: d, Received: d, Base: sim.Microsecond})
	}
	return out
}

// What is gained and what it costs: rates up and times down are a gain, losses
// are a price, counts of marks are neither.
func TestBalance(t *testing.T) {
	node := func(marked uint64) []result.Node {
		return []result.Node{{Name: "sw0", Switch: true, Ports: []result.Port{{Peer: -1, Prio: [8]result.PortPrio{3: {Marked: marked, PeakQueue: 5000}}}}}}
	}
	a := &result.Run{End: sim.Millisecond, Nodes: node(1000), Flows: append(flows("long", 800*sim.Microsecond), flows("short", 10*sim.Microsecond, 12*sim.Microsecond)...)}
	b := &result.Run{
		End: sim.Millisecond, Nodes: node(10), Drops: []result.Drop{{}},
		Flows: append(flows("long", 100*sim.Microsecond), flows("short", 20*sim.Microsecond, 10*sim.Microsecond)...),
	}
	rows := Rows([]Side{{"A", a}, {"B", b}}, []string{"hops"})
	gain, cost := Balance(rows)
	if gain != "long goodput 10.0 Gb/s → 80.0 Gb/s (x 8.00)" {
		t.Errorf("gain %q", gain)
	}
	for _, want := range []string{"short FCT, p99 12.0 us → 20.0 us (x 1.67)", "packets lost 0 → 1"} {
		if !strings.Contains(cost, want) {
			t.Errorf("cost %q lacks %q", cost, want)
		}
	}
	if strings.Contains(gain+cost, "mark") || strings.Contains(cost, "median") {
		t.Errorf("%q, %q", gain, cost)
	}
	same, none := Balance(Rows([]Side{{"A", a}, {"A", a}}, nil))
	if same+none != "" {
		t.Errorf("%q, %q", same, none)
	}
	// A group that one side alone has, and a run without anything.
	for _, pair := range [][2]*result.Run{{a, {}}, {{}, a}, {{}, {}}} {
		var w bytes.Buffer
		TellBeside(&w, "X", []Side{{"A", pair[0]}, {"B", pair[1]}, {"C", pair[0]}}, []string{"flow.long.goodput"})
	}
}

// Headroom by kind of link is 802.1Qbb's arithmetic, and what is short comes
// first.
func TestClasses(t *testing.T) {
	r := read(t, `topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 3, delay: 1us, uplink_delay: 5us}
switch: {buffer: {headroom: auto}}
switches: [{match: spine0, buffer: {headroom: 1KB}}]
workload: [{kind: long, src: host0, dst: host5, bytes: 1MB}]
`)
	g, warnings, err := r.Examine(&Files{})
	if err != nil {
		t.Fatal(err)
	}
	list := Classes(r.Scenario, g)
	want := func(delay sim.Time) int64 {
		return theory.IdealHeadroom(100e9, int64(delay), r.MaxFrame(), 64, 0)
	}
	var got []Class
	for _, c := range list {
		c.Rate = 0
		got = append(got, c)
	}
	near, far := want(sim.Microsecond), want(5*sim.Microsecond)
	expected := []Class{
		{"spine", "leaf", 0, 5 * sim.Microsecond, far, 1000, 2},
		{"leaf", "host", 0, sim.Microsecond, near, near, 6},
		{"leaf", "spine", 0, 5 * sim.Microsecond, far, far, 4},
		{"spine", "leaf", 0, 5 * sim.Microsecond, far, far, 2},
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%+v\nwant %+v", got, expected)
	}
	var b bytes.Buffer
	TellClasses(&b, list)
	if !strings.Contains(b.String(), "short") || len(warnings) == 0 {
		t.Errorf("%s\n%q", &b, warnings)
	}
}
