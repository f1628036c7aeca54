package work

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

var reader = Reader{Find: byNumber, As: Flow{Prio: -1, DSCP: -1, Service: 1}}

const hpccSample = `3
0 32 3 10000 1000000000000 0.001
1 32 0 100 1 2

2 3
3 200 30000 2.000000000001
4 5 3 100 9 1.0
`

func TestReadHPCC(t *testing.T) {
	flows := takeFrom(t, reader.HPCC(iotest.OneByteReader(strings.NewReader(hpccSample)), "flow.txt"), 99)
	if d := cmp.Diff([]Flow{
		{ID: 0, Src: 0, Dst: 32, Prio: 3, DSCP: -1, Service: 1, Bytes: 1e12, Start: sim.Millisecond},
		{ID: 1, Src: 1, Dst: 32, Prio: 0, DSCP: -1, Service: 1, Bytes: 1, Start: 2 * sim.Second},
		{ID: 2, Src: 2, Dst: 3, Prio: 3, DSCP: -1, Service: 1, Bytes: 30000, Start: 2*sim.Second + 1, Group: "incast"},
	}, flows); d != "" {
		t.Error(d)
	}
	r := reader
	r.As.Group, r.As.Endless = "background", true
	for _, f := range takeFrom(t, r.HPCC(strings.NewReader(hpccSample), ""), 99) {
		if f.Group != "background" || !f.Endless {
			t.Errorf("%+v", f)
		}
	}
}

func TestUnsorted(t *testing.T) {
	const in = "3\n1 2 3 100 5 2\n1 3 3 100 5 1\n1 4 3 100 5 2\n"
	r := reader
	r.Unsorted = true
	want(t, takeFrom(t, r.HPCC(strings.NewReader(in), "f"), 99), "1>3 5B at 1s", "1>2 5B at 2s", "1>4 5B at 2s")
	want(t, takeFrom(t, r.CSV(strings.NewReader("2,1,2,5\n1,1,3,5\n"), "f"), 99), "1>3 5B at 1s", "1>2 5B at 2s")
	for in, want := range map[string]string{
		"2000000000\n":     "f: holds 2000000000 flows, over the limit of 4194304 in memory: sort it by start, so that it can be streamed",
		"2\n1 2 3 100 5 2": "f:2: the file ends after 1 of 2 flows",
	} {
		s := r.HPCC(strings.NewReader(in), "f")
		if f, ok := s.Next(); ok || s.Err() == nil || s.Err().Error() != want || s.Finite() {
			t.Errorf("%q: %v, %v, want %s", in, f, s.Err(), want)
		}
	}
	r.most = 1000
	s := r.CSV(&endless{line: "1,1,2,5\n"}, "f")
	if _, ok := s.Next(); ok || s.Err() == nil || s.Err().Error() != "f: holds more than 1000 flows: sort it by start, so that it can be streamed" {
		t.Error(s.Err())
	}
}

// endless repeats a line for ever and counts what is taken.
type endless struct {
	line string
	at   int
	n    int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.line[e.at]
		e.at = (e.at + 1) % len(e.line)
	}
	e.n += len(p)
	return len(p), nil
}

// A file streams: no more is read than flows are asked for, but for a buffer.
func TestFilesStream(t *testing.T) {
	for name, open := range map[string]func(in io.Reader) Stream{
		"hpcc": func(in io.Reader) Stream {
			return reader.HPCC(io.MultiReader(strings.NewReader("2000000000\n"), in), "f")
		},
		"csv": func(in io.Reader) Stream { return reader.CSV(in, "f") },
	} {
		in := &endless{line: map[string]string{"hpcc": "1 2 3 100 5 7\n", "csv": "7,1,2,5\n"}[name]}
		if n := len(takeFrom(t, open(in), 1000)); n != 1000 || in.n > 1000*len(in.line)+1<<16 {
			t.Errorf("%s: %d flows of %d bytes", name, n, in.n)
		}
	}
}

func lastErr(s Stream) error {
	for {
		if _, ok := s.Next(); !ok {
			return s.Err()
		}
	}
}

func TestHPCCErrors(t *testing.T) {
	line := func(s string) string { return "1\n" + s }
	for in, want := range map[string]string{
		"":                                    "f:1: number of flows is missing: the file ends here",
		"x":                                   `f:1:1: number of flows "x" is not a whole number`,
		"-1":                                  "f:1:1: number of flows -1 is less than 0",
		"99999999999":                         "f:1:1: number of flows 99999999999 is over the limit of 2147483647",
		"2\n1 2 3 100 5 1\n":                  "f:3: the file ends after 1 of 2 flows",
		line("1"):                             "f:2: destination is missing: the file ends here",
		line("1 2"):                           "f:2: priority is missing: the file ends here",
		line("1 2 3 100"):                     "f:2: bytes is missing: the file ends here",
		line("1 2 3 100 5"):                   "f:2: start is missing: the file ends here",
		line("1 1 3 100 5 1"):                 "f:2:1: host 1 sends to itself",
		line("a 1 3 100 5 1"):                 `f:2:1: "a" is no host`,
		line("1 2 8 100 5 1"):                 "f:2:5: priority 8 is over the limit of 7",
		line("1 2 3 65536 5 1"):               "f:2:7: port 65536 is over the limit of 65535",
		line("1 2 3 100 0 1"):                 "f:2:11: bytes 0 is less than 1",
		line("1 2 3 100 1e9 1"):               `f:2:11: bytes "1e9" is not a whole number`,
		line("1 2 3 100 5 soon"):              `f:2:13: start "soon" is not a time such as 1us`,
		line("1 2 3 100 5 -1"):                `f:2:13: start "-1" is not a time such as 1us`,
		line("1 2 3 100 5 99999999"):          "f:2:13: start 99999999 is over the limit of 8.64e+06s",
		"2\n1 2 3 100 5 2\n1 2 3 100 5 1.5\n": "f:3:1: flow starts at 1.5s, before the one above it at 2s: sort the file",
	} {
		if err := lastErr(reader.HPCC(strings.NewReader(in), "f")); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	broken := errors.New("disk gone")
	for at := range len(hpccSample) - 20 {
		in := io.MultiReader(strings.NewReader(hpccSample[:at]), iotest.ErrReader(broken))
		if err := lastErr(reader.HPCC(in, "f")); !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
	}
}

// What is written reads the same.
func TestWriteHPCC(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var flows []Flow
		for i := range rapid.IntRange(0, 20).Draw(rt, "n") {
			f := Flow{
				ID: int32(i), Src: 1, Dst: int32(rapid.IntRange(2, 9).Draw(rt, "dst")), Service: 1, DSCP: -1,
				Bytes: rapid.Int64Range(1, MaxBytes).Draw(rt, "bytes"), Prio: int8(rapid.IntRange(0, 7).Draw(rt, "prio")),
				Group: rapid.SampledFrom([]string{"", "incast"}).Draw(rt, "group"),
			}
			if i > 0 {
				f.Start = flows[i-1].Start
			}
			f.Start = min(MaxTime, f.Start+sim.Time(rapid.Int64Range(0, int64(10*sim.Second)).Draw(rt, "start")))
			flows = append(flows, f)
		}
		var b bytes.Buffer
		if err := WriteHPCC(&b, flows, func(e int32) int32 { return e }, 3); err != nil {
			rt.Fatal(err)
		}
		back, err := Collect(reader.HPCC(&b, "f"), MaxFlows)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(flows, back); d != "" {
			rt.Fatal(d)
		}
	})
	var b bytes.Buffer
	flows := []Flow{{Src: 0, Dst: 1, Prio: -1, Bytes: 5, Start: 2*sim.Second + 500*sim.Millisecond}}
	if err := WriteHPCC(&b, flows, func(e int32) int32 { return e + 10 }, 3); err != nil || b.String() != "1\n10 11 3 100 5 2.5\n" {
		t.Error(b.String(), err)
	}
	for _, f := range []Flow{{After: []int32{0}}, {Endless: true}} {
		if err := WriteHPCC(io.Discard, []Flow{f}, nil, 3); err == nil ||
			err.Error() != "flow 0 cannot be written: flow.txt has neither flows that wait for others nor endless ones" {
			t.Error(err)
		}
	}
	many := make([]Flow, 10_000)
	broken := errors.New("disk full")
	if err := WriteHPCC(brokenWriter{broken}, many, func(e int32) int32 { return e }, 3); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestReadCSV(t *testing.T) {
	for _, in := range []string{
		"0.5ms,1,2,1000,3,read\n1ms, 1 ,3,2000\n1ms,2,3,5,,\n",
		"start,src,dst,bytes,prio,op\r\n0.0005,1,2,1000,3,READ\r\n# later\r\n1000us,1,3,2000,,\r\n0.001,2,3,5,,\r\n",
		"Op, bytes,dst,src,Start,prio\nread,1000,2,1,500us,3\n,2000,3,1,1ms\n,5,3,2,1ms,\n",
	} {
		flows := takeFrom(t, reader.CSV(strings.NewReader(in), "f"), 99)
		if d := cmp.Diff([]Flow{
			{ID: 0, Src: 1, Dst: 2, Bytes: 1000, Start: 500 * us, Prio: 3, DSCP: -1, Service: 1, Op: Read},
			{ID: 1, Src: 1, Dst: 3, Bytes: 2000, Start: 1000 * us, Prio: -1, DSCP: -1, Service: 1},
			{ID: 2, Src: 2, Dst: 3, Bytes: 5, Start: 1000 * us, Prio: -1, DSCP: -1, Service: 1},
		}, flows); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
	if f := takeFrom(t, reader.CSV(strings.NewReader("\n# nothing\n"), "f"), 9); len(f) != 0 {
		t.Error(f)
	}
}

func TestCSVErrors(t *testing.T) {
	for in, want := range map[string]string{
		"start,src,dst\n":             "f:1:1: column bytes is missing",
		"start,src,dst,bytes,color\n": `f:1:21: column "color" is not known: there are start, src, dst, bytes, prio, op`,
		"start,start\n":               "f:1:7: column start comes twice",
		"1,1,2\n":                     "f:1:1: column bytes is missing",
		"1,1,,5\n":                    "f:1:5: dst is empty",
		"1,1,2,5,3,write,7\n":         "f:1:17: more than 6 columns",
		"1 day,1,2,5\n":               `f:1:1: start "1 day" is not a time such as 1us`,
		"1,1,1,5\n":                   "f:1:3: host 1 sends to itself",
		"1,1,2,0\n":                   "f:1:7: bytes 0 is less than 1",
		"1,1,2,5KB\n":                 `f:1:7: bytes "5KB" is not a whole number`,
		"1,1,2,5,8\n":                 "f:1:9: priority 8 is over the limit of 7",
		"1,1,2,5,3,push\n":            `f:1:11: operation "push" is not write, send, read or tcp`,
		"1,1,2,5\n0.5,1,2,5\n":        "f:2:1: flow starts at 500ms, before the one above it at 1s: sort the file",
		"bytes,start,src,dst\n5,1,2":  "f:2:1: column dst is missing",
	} {
		if err := lastErr(reader.CSV(strings.NewReader(in), "f")); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	const sample = "start,src,dst,bytes,prio\n1,1,2,5,3\n"
	broken := errors.New("disk gone")
	for at := range len(sample) {
		in := io.MultiReader(strings.NewReader(sample[:at]), iotest.ErrReader(broken))
		if err := lastErr(reader.CSV(in, "f")); !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
	}
}

const htsimSample = `# two chains, a barrier and a multishot
Nodes 16
Connections 8
Triggers 3
Failures 0
0->13 id 1 start 2000 size 2000000 send_done_trigger 1
13->2 id 2 trigger 1 size 2000000 prio 3 send_done_trigger 2
13->3 id 3 trigger 1 size 2000000 recv_done_trigger 2
4->5 id 4 start 0.000000 size 0
6->7 id 5 start 1 size 5 send_done_trigger 3
6->8 id 6 start 1 size 6 send_done_trigger 3
9->6 id 7 trigger 3 size 7
1->2 id 8 trigger 2 size 8
trigger id 1 oneshot
trigger id 2 barrier count 2
trigger id 3 multishot
`

func TestReadHTSim(t *testing.T) {
	want(t, takeFrom(t, reader.HTSim(iotest.OneByteReader(strings.NewReader(htsimSample)), "f"), 99),
		"4>5 0B at 0ps endless",
		"6>7 5B at 1ps", "6>8 6B at 1ps", "9>6 7B at 0ps after [1]",
		"0>13 2000000B at 2ns", "13>2 2000000B at 0ps after [4]", "13>3 2000000B at 0ps after [4]",
		"1>2 8B at 0ps after [5 6]",
	)
}

func TestHTSimErrors(t *testing.T) {
	file := func(conns, trigs int, lines string) string {
		return fmt.Sprintf("Nodes 9\nConnections %d\nTriggers %d\n%s", conns, trigs, lines)
	}
	one := func(line string) string { return file(1, 0, line) }
	for in, want := range map[string]string{
		"":                 "f: Nodes is missing",
		"Nodes 0":          "f:1:7: Nodes 0 is less than 1",
		"Nodes":            "f:1:1: Nodes has no value",
		"Nodes 4 5":        `f:1:9: "5" does not belong here`,
		"Nodes 4\nNodes 4": "f:2:1: Nodes comes twice",
		"Nodes 4":          "f: Connections is missing",
		"Nodes 4\nConnections 2\n0->1 start 0 size 5":             "f: Connections is 2, but there are 1",
		"Nodes 4\nConnections 9999999":                            "f:2:13: Connections 9999999 is over the limit of 4194304",
		"Nodes 4\nConnections 0\nTriggers 1":                      "f: Triggers is 1, but there are 0",
		"Nodes 4\nFailures 1":                                     "f:2:1: failures are not read: a scenario has faults of its own",
		"Nodes 4\nGrp 0 1":                                        `f:2:1: "Grp" is not known: Nodes, Connections, Triggers, a->b and trigger are`,
		"0->1 start 0 size 5":                                     "f:1:1: a connection comes before Nodes",
		one("0->9 start 0 size 5"):                                "f:4:4: node 9 is over the limit of 8",
		one("x->1 start 0 size 5"):                                `f:4:1: node "x" is not a whole number`,
		one("->1 start 0 size 5"):                                 `f:4:1: node "" is not a whole number`,
		one("1->1 start 0 size 5"):                                "f:4:1: host 1 sends to itself",
		one("0->1 size 5"):                                        "f:4:1: the connection has neither start nor trigger",
		one("0->1 start 0"):                                       "f:4:1: the connection has no size",
		one("0->1 start 0 size"):                                  "f:4:14: size has no value",
		one("0->1 start x size 5"):                                `f:4:12: start "x" is not a number of picoseconds up to 8640000000000000000`,
		one("0->1 start 0 size -5"):                               "f:4:19: size -5 is less than 0",
		one("0->1 start 0 size 5 color 3"):                        `f:4:21: "color" is not known: id, start, size, trigger, send_done_trigger, recv_done_trigger and prio are`,
		one("0->1 start 0 trigger 1 size 5"):                      "f:4:1: the connection has both start and trigger",
		one("0->1 trigger 1 trigger 2 size 5"):                    "f:4:16: a second trigger",
		one("0->1 trigger 0 size 5"):                              "f:4:14: trigger 0 is less than 1",
		one("0->1 trigger 1 size 5"):                              "f:4:6: the trigger is not defined",
		file(1, 1, "0->1 trigger 1 size 5\ntrigger id 1 oneshot"): "f:5:1: nothing sets the trigger off",
		file(0, 1, "trigger oneshot"):                             "f:4:1: the trigger has no id",
		file(0, 1, "trigger id 1"):                                "f:4:1: the trigger is neither oneshot, multishot nor barrier",
		file(0, 1, "trigger id 1 barrier"):                        "f:4:1: the barrier has no count",
		file(0, 1, "trigger id 1 oneshot barrier"):                "f:4:22: a second kind of trigger",
		file(0, 1, "trigger id 1 twice"):                          `f:4:14: "twice" is not known: id, count, oneshot, multishot and barrier are`,
		file(0, 2, "trigger id 1 oneshot\ntrigger id 1 oneshot"):  "f:5:1: the trigger is defined twice",
		file(1, 1, "0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot"):                                                                       "f: flow 0 waits for itself, over flow 0",
		file(2, 1, "0->1 start 0 size 0 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 oneshot"):                                                  "f:6:1: the trigger waits for 0->1, which is endless",
		file(3, 1, "0->1 start 0 size 1 send_done_trigger 1\n0->2 start 0 size 1 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 oneshot"):         "f:7:1: 2 flows set the oneshot off: which one is first is not known, one is possible",
		file(3, 1, "0->1 start 0 size 1 send_done_trigger 1\n0->2 start 0 size 1 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 barrier count 1"): "f:7:1: 2 flows set the barrier off that counts 1: as many are possible",
		file(3, 1, "0->1 start 0 size 1 send_done_trigger 1\n0->2 trigger 1 size 1\n1->2 trigger 1 size 5\ntrigger id 1 multishot"):                         "f:7:1: the multishot has 2 flows, but 1 set it off: the others would never start",
	} {
		s := reader.HTSim(strings.NewReader(in), "f")
		err := lastErr(s)
		if err == nil || err.Error() != want || s.Finite() {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
	broken := errors.New("disk gone")
	for at := range len(htsimSample) {
		in := io.MultiReader(strings.NewReader(htsimSample[:at]), iotest.ErrReader(broken))
		if err := lastErr(reader.HTSim(in, "f")); !errors.Is(err, broken) {
			t.Fatalf("broken at %d: %v", at, err)
		}
	}
}

func fuzz(f *testing.F, open func(r Reader, in io.Reader) Stream) {
	f.Fuzz(func(t *testing.T, in string, unsorted bool) {
		r := reader
		r.Unsorted = unsorted
		s := open(r, strings.NewReader(in))
		for n := 0; ; n++ {
			fl, ok := s.Next()
			if !ok {
				break
			}
			if fl.Src < 0 && fl.Dst < 0 && fl.Bytes < 0 || int(fl.ID) != n || fl.Start < 0 {
				t.Fatalf("%+v", fl)
			}
		}
		if err := s.Err(); err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "f:")) {
			t.Errorf("not one line with its place: %q", err)
		}
	})
}

func FuzzHPCC(f *testing.F) {
	f.Add(hpccSample, false)
	fuzz(f, func(r Reader, in io.Reader) Stream { return r.HPCC(in, "f") })
}

func FuzzCSV(f *testing.F) {
	f.Add("start,src,dst,bytes,prio,op\r\n0.0005,1,2,1000,3,READ\r\n1000us,1,3,2000,,\r\n", true)
	fuzz(f, func(r Reader, in io.Reader) Stream { return r.CSV(in, "f") })
}

func FuzzHTSim(f *testing.F) {
	f.Add(htsimSample, false)
	fuzz(f, func(r Reader, in io.Reader) Stream { return r.HTSim(in, "f") })
}
