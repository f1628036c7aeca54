package faultplan_test

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
	"github.com/verbena-rdma/verbena/wire"
)

var update = flag.Bool("update", false, "rewrite docs/fault-plan.schema.json")

const everything = `# all keys
seed: 7
rules:
  - name: one
    inject: lose
    direction: out
    opcode: [write, read-response, 0x0d]
    position: [first, last]
    qpn: [0x11, 18]
    psn: 0x10..0x20
    peer: [10.0.0.2, "fd00::/64"]
    every: 10
    after: 100
    for: 50ms
    count: 3
  - {inject: delay, delay: 1ms, qp: 2, probability: 1%, after: 1s, for: 20}
  - {inject: reorder, distance: 5, nth: 3, direction: both}
  - {inject: partition, peer: 10.0.0.0/24, after: 1s, for: 500ms}
  - {inject: fail, call: reg_mr, error: ENOMEM, nth: 2, device: vrb_eth0}
  - {inject: fail, call: poll, status: RNR_RETRY_EXC_ERR, keep_qp: true, opcode: [send, recv]}
  - {inject: kill, after: 2s, qp: 1}
  - {inject: kill, call: post_send, nth: 9}
  - {inject: delay, call: modify_qp, delay: 10ms, probability: 0.5}
`

func TestParse(t *testing.T) {
	got, err := faultplan.Parse("plan.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	want := &faultplan.Plan{Name: "plan.yaml", Seed: 7, Rules: []faultplan.Rule{
		{
			Name: "one", Action: faultplan.Lose, Direction: faultplan.Out, Kinds: fault.Write | fault.ReadResponse, Opcodes: []wire.Opcode{0x0d},
			Pos: fault.First | fault.Last, QPNs: []ib.QPN{0x11, 18}, PSNs: &fault.PSNRange{From: 0x10, To: 0x20},
			Peers: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("fd00::/64")},
			Every: 10, AfterCount: 100, ForTime: 50 * time.Millisecond, Count: 3,
		},
		{Action: faultplan.Delay, Delay: time.Millisecond, QP: 2, Probability: 0.01, AfterTime: time.Second, ForCount: 20},
		{Action: faultplan.Reorder, Distance: 5, Nth: 3, Direction: faultplan.Both},
		{Action: faultplan.Partition, Peers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, AfterTime: time.Second, ForTime: 500 * time.Millisecond},
		{Action: faultplan.Fail, Call: faultplan.RegMR, Errno: syscall.ENOMEM, Nth: 2, Device: "vrb_eth0"},
		{Action: faultplan.Fail, Call: faultplan.Poll, Status: ib.RNRRetryExcErr, KeepQP: true, Kinds: fault.Send, Recv: true},
		{Action: faultplan.Kill, AfterTime: 2 * time.Second, QP: 1},
		{Action: faultplan.Kill, Call: faultplan.PostSend, Nth: 9},
		{Action: faultplan.Delay, Call: faultplan.ModifyQP, Delay: 10 * time.Millisecond, Probability: 0.5},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}
}

// What is wrong is told in one line, with the place, the key, the value and what
// it may be.
func TestBadPlans(t *testing.T) {
	rule := func(s string) string { return "rules:\n  - {" + s + "}\n" }
	for _, c := range []struct {
		text, at string
		says     []string
	}{
		{"", "1:1", []string{"empty", "rules"}},
		{"seed: 5\n", "1:", []string{"no rules"}},
		{"seed: x\nrules: []\n", "1:7", []string{"seed", `"x"`}},
		{"seed: 0\nrules: []\n", "1:7", []string{"seed", `"0"`, "by chance"}},
		{"rule: []\n", "1:1", []string{"rule: unknown key", "seed, rules"}},
		{"rules: 5\n", "1:8", []string{"a list of rules"}},
		{"- lose\n", "1:1", []string{"a plan must be a map"}},
		{"rules: [lose]\n", "1:9", []string{"rules[0]", "must be a map"}},
		{"rules: []\nrules: []\n", "2:1", []string{""}},
		{"rules: [\n", "", nil},
		{"a: b: c\n", "", nil},
		{"rules: []\n---\nrules: []\n", "3:", []string{"second document"}},
		{"rules: \x00\n", "1:8", []string{"zero byte"}},
		{"rules: \xff\n", "1:1", []string{"UTF-8"}},
		{strings.Repeat("[", 1000), "1:21", []string{"nested"}},
		{strings.Repeat("- ", 1000), "1:", []string{"nested"}},
		{strings.Repeat("#\n", 30000), "20001:", []string{"lines"}},
		{rule("direction: in"), "2:", []string{"rules[0].inject: missing", "lose, delay"}},
		{rule("inject: explode"), "2:14", []string{"rules[0].inject", `"explode"`, "partition, kill, fail"}},
		{rule("inject: lose, oppcode: write"), "2:20", []string{"rules[0].oppcode: unknown key", "opcode", "probability"}},
		{rule("inject: lose, opcode: red"), "2:28", []string{"rules[0].opcode", `"red"`, "rnr-nak", "0xff"}},
		{rule("inject: lose, opcode: 256"), "2:28", []string{`"256"`}},
		{rule("inject: lose, opcode: []"), "2:28", []string{"0 values"}},
		{rule("inject: lose, opcode: {a: b}"), "2:", []string{"a value or a list"}},
		{rule("inject: lose, opcode: recv"), "2:28", []string{"completion"}},
		{rule("inject: lose, position: front"), "2:30", []string{`"front"`, "first, middle"}},
		{rule("inject: lose, direction: up"), "2:31", []string{`"up"`, "in, out, both"}},
		{rule("inject: lose, qp: 0"), "2:24", []string{`"0"`, "from 1"}},
		{rule("inject: lose, qpn: 0x1000000"), "2:25", []string{"16777215"}},
		{rule("inject: lose, psn: 5.."), "2:25", []string{"range of PSNs"}},
		{rule("inject: lose, peer: nobody"), "2:26", []string{`"nobody"`, "10.0.0.0/24"}},
		{rule("inject: lose, nth: 0"), "2:25", []string{"from 1"}},
		{rule("inject: lose, nth: 3, every: 2"), "2:25", []string{"does not go with every"}},
		{rule("inject: lose, nth: 3, probability: 2%"), "2:25", []string{"does not go with probability"}},
		{rule("inject: lose, nth: 3, nth: 4"), "2:", nil},
		{rule("inject: lose, probability: 101%"), "2:33", []string{"at most 1"}},
		{rule("inject: lose, probability: 0"), "2:33", []string{"more than 0"}},
		{rule("inject: lose, probability: .nan"), "2:33", []string{"more than 0"}},
		{rule("inject: lose, after: soon"), "2:27", []string{"number from 1, or a duration"}},
		{rule("inject: lose, for: -1s"), "2:25", []string{"duration"}},
		{rule("inject: lose, delay: 1ms"), "2:27", []string{"inject: delay only"}},
		{rule("inject: delay"), "2:", []string{"rules[0].delay", "more than 0"}},
		{rule("inject: delay, delay: 2m"), "2:28", []string{"at most 1m"}},
		{rule("inject: delay, delay: 5"), "2:28", []string{"unit"}},
		{rule("inject: lose, distance: 2"), "2:30", []string{"reorder only"}},
		{rule("inject: reorder, distance: 1000"), "2:33", []string{"256"}},
		{rule("inject: partition, every: 2"), "2:", []string{"use lose"}},
		{rule("inject: lose, call: open"), "2:26", []string{"about packets"}},
		{rule("inject: lose, error: ENOMEM"), "2:", []string{"inject: fail only"}},
		{rule("inject: fail"), "2:", []string{"rules[0].call: missing", "post_send", "poll"}},
		{rule("inject: fail, call: dance"), "2:26", []string{`"dance"`, "modify_qp"}},
		{rule("inject: fail, call: open"), "2:", []string{"rules[0].error", "ENOMEM"}},
		{rule("inject: fail, call: open, error: EWHAT"), "2:39", []string{`"EWHAT"`, "EINVAL"}},
		{rule("inject: fail, call: open, error: EIO, status: WR_FLUSH_ERR"), "2:", []string{"call: poll only"}},
		{rule("inject: fail, call: poll, error: EIO"), "2:", []string{"rules[0].status"}},
		{rule("inject: fail, call: poll, status: SUCCESS"), "2:40", []string{`"SUCCESS"`, "LOC_LEN_ERR"}},
		{rule("inject: fail, call: poll, status: GENERAL_ERR, keep_qp: maybe"), "2:62", []string{`"maybe"`, "true, false"}},
		{rule("inject: fail, call: open, error: EIO, direction: out"), "2:55", []string{"packets"}},
		{rule("inject: fail, call: open, error: EIO, psn: 5"), "2:49", []string{"packets"}},
		{rule("inject: fail, call: open, error: EIO, qp: 1"), "2:48", []string{"no queue pair"}},
		{rule("inject: fail, call: post_send, error: EIO, opcode: ack"), "2:57", []string{"send, write, read, atomic"}},
		{rule("inject: fail, call: post_send, error: EIO, opcode: recv"), "2:57", []string{"poll"}},
		{rule("inject: kill"), "2:", []string{"rules[0].after", "2s"}},
		{rule("inject: kill, nth: 2, after: 1s"), "2:", []string{"without a call"}},
		{rule("inject: kill, call: open"), "2:26", []string{"no queue pair"}},
		{rule("inject: lose, name: [a]"), "2:", []string{"a value"}},
		{rule("inject: lose, name: *a"), "", nil},
	} {
		_, err := faultplan.Parse("p.yaml", []byte(c.text))
		var e *faultplan.Error
		if !errors.As(err, &e) || !errors.Is(err, faultplan.ErrPlan) {
			t.Errorf("%.60q: error %v", c.text, err)
			continue
		}
		text := err.Error()
		if !strings.HasPrefix(text, "p.yaml:"+c.at) || strings.ContainsAny(text, "\n\r") {
			t.Errorf("%.60q: %q is not at %s", c.text, text, c.at)
		}
		for _, s := range c.says {
			if !strings.Contains(text, s) {
				t.Errorf("%.60q: %q does not say %q", c.text, text, s)
			}
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := faultplan.Load(filepath.Join(dir, "none")); !errors.Is(err, faultplan.ErrPlan) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, faultplan.MaxFile+2), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := faultplan.Load(long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long file: %v", err)
	}
	if _, err := faultplan.Load(dir); err == nil {
		t.Error("a directory: no error")
	}
}

// Plans that programs make are checked, too.
func TestPlansOfProgramsAreChecked(t *testing.T) {
	for _, r := range []faultplan.Rule{
		{},
		{Action: 99},
		{Action: faultplan.Lose, Direction: 9},
		{Action: faultplan.Lose, Probability: 2},
		{Action: faultplan.Lose, QP: -1},
		{Action: faultplan.Fail, Call: 99},
		{Action: faultplan.Fail, Call: faultplan.Poll, Status: 200},
		{Action: faultplan.Lose, ForTime: -1},
		{Action: faultplan.Lose, Peers: make([]netip.Prefix, 1)},
		{Action: faultplan.Reorder, Distance: 9999},
	} {
		p := &faultplan.Plan{Rules: []faultplan.Rule{{Action: faultplan.Lose}, r}}
		if _, err := faultplan.Attach(p, "dev", netip.Addr{}); !errors.Is(err, faultplan.ErrPlan) || !strings.Contains(err.Error(), "rule 2") {
			t.Errorf("%+v: error %v", r, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	f.Add("rules: [{inject: lose}]")
	f.Add("seed: 0x7\nrules:\n- inject: &a fail\n  call: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := faultplan.Parse("f", []byte(text))
		if err != nil {
			var e *faultplan.Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, err := faultplan.Attach(p, "dev", netip.Addr{}); err != nil {
			t.Fatalf("%q was read and cannot be followed: %v", text, err)
		}
	})
}

// The same plan, seed and calls give the same faults; another seed, others.
func TestSameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) string {
		in, err := faultplan.Attach(&faultplan.Plan{Seed: seed, Rules: []faultplan.Rule{
			{Action: faultplan.Fail, Call: faultplan.PostSend, Errno: syscall.EIO, Probability: 0.2},
			{Action: faultplan.Kill, Call: faultplan.PostSend, Probability: 0.1},
		}}, "dev", netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		var w strings.Builder
		for range 200 {
			h := in.Call(faultplan.PostSend, 0x11, faultplan.Op{Kind: fault.Send})
			fmt.Fprint(&w, h.Err != nil, h.Kill, " ")
		}
		return w.String()
	}
	first, again := run(1), run(1)
	if first != again {
		t.Error("one seed, two results")
	}
	if first == run(2) {
		t.Error("two seeds, one result")
	}
}

// Selectors of calls choose what they say.
func TestSelectorsOfCalls(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"nth: 3", "2"},
		{"every: 3", "2 5"},
		{"every: 3, count: 1", "2"},
		{"after: 5", "5 6 7"},
		{"after: 5, for: 2", "5 6"},
		{"after: 5, nth: 2", "6"},
		{"qp: 1", "0 2 4 6"},
		{"qp: 2, nth: 2", "3"},
		{"qp: 3", ""},
		{"qpn: 0x12", "1 3 5 7"},
		{"opcode: write", "0 1 2 3"},
		{"opcode: [send, write]", "0 1 2 3 4 5 6 7"},
		{"opcode: read", ""},
		{"after: 1h", ""},
		{"for: 1h, nth: 1", "0"},
		{"device: other", ""},
		{"device: dev, nth: 1", "0"},
		{"device: 10.0.0.1, nth: 1", "0"},
	} {
		p, err := faultplan.Parse("p", []byte("rules: [{inject: fail, call: post_send, error: EIO, name: x, "+c.rule+"}]"))
		if err != nil {
			t.Error(err)
			continue
		}
		in, err := faultplan.Attach(p, "dev", netip.MustParseAddr("10.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		in.Created(0x11)
		in.Created(0x12)
		var got []string
		for i := range 8 {
			kind := fault.Write
			if i >= 4 {
				kind = fault.Send
			}
			if h := in.Call(faultplan.PostSend, ib.QPN(0x11+i%2), faultplan.Op{Kind: kind}); h.Err != nil {
				if !errors.Is(h.Err, syscall.EIO) || !errors.Is(h.Err, faultplan.ErrInjected) {
					t.Errorf("%s: %v", c.rule, h.Err)
				}
				got = append(got, fmt.Sprint(i))
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: failed %q, want %q", c.rule, s, c.want)
		}
		r := in.Report()
		if n := r.Hits("x"); n != uint64(len(got)) {
			t.Errorf("%s: the report says %d, %d failed", c.rule, n, len(got))
		}
	}
}

func TestSchemaOfTheDocument(t *testing.T) {
	const path = "../../docs/fault-plan.schema.json"
	want := faultplan.Schema()
	got, err := os.ReadFile(path)
	if string(got) == string(want) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the program (%v): run go test ./verbs/faultplan -update", path, err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}
