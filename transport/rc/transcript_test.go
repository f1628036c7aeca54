package rc_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// A transcript (testdata/*.txt) is a protocol rule as a conversation. Its first
// line is a comment that says the rule; lines "# rule: name" name the rules that
// it shows (see rules_test.go). Lines that begin with ">" are commands, the lines
// below one are what it makes happen. go test -run Transcripts -update rewrites
// those.
//
//	> connect mtu=1024 psna=fffffe rd=1 timeout=14 retry=7 access=read,write
//	      two ends A and B in RTS. Also psnb, rnr, rnrtimer, mtub, rdb (B's own),
//	      sigall=no, credits, window, mem
//	> post A write id=1 len=600 [at=0 to=0 imm=7 fence solicited unsignaled inline
//	      lkey=bad rkey=bad sges=3 cmp=1 add=2]
//	> recv B id=1 len=600 [at=0 lkey=bad]
//	> send A [n]         A sends what it has to, or at most n packets; they wait
//	> deliver [1 3]      deliver waiting packets, all or by number, in that order
//	> drop 2             lose them
//	> dup 2              deliver a copy
//	> flow               both send and deliver until neither has anything
//	> flow drop=3,5      the same, with the packets of those numbers lost
//	> advance 10us       time passes; timers fire
//	> advance A          … up to the next instant of A
//	> timers             when something happens next
//	> modify A state=ERR [access=read …]
//	> state              the state of both
//	> bytes A at=0 to=0 len=600    compare A's bytes with B's
//	> word B at=0        the 64-bit number there; word B at=0 set=7
//	> unregister B       B's region goes; register B access=remote-read: another
//	> query A            the PSNs
//	> inject B op=0x07 psn=5 [len=256 va=+0 rkey=bad dlen=600 ack sol syn=0x60 …]
//	      a packet made by hand arrives at B
var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

func TestTranscripts(t *testing.T) {
	for _, file := range transcripts(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newPlay(t).run(string(old))
			if got == string(old) {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s (go test -run Transcripts -update rewrites it):\n%s", file, diff(string(old), got))
		})
	}
}

func transcripts(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "rules.txt" })
}

// diff shows where two texts part.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			end := func(l []string) string { return strings.Join(l[i:min(len(l), i+12)], "\n    ") }
			return fmt.Sprintf("line %d\n  want\n    %s\n  got\n    %s", i+1, end(w), end(g))
		}
	}
	return "one is longer"
}

// play is a transcript under way.
type play struct {
	t     *testing.T
	a, b  *node
	now   clock.Time
	num   int
	air   []airborne
	out   []string
	seen  map[string]bool // what the transcript showed: "status/…", "nak/…", "state/…"
	state [2]ib.QPState
}

type airborne struct {
	num int
	to  *node
	p   packet
}

func newPlay(t *testing.T) *play { return &play{t: t, seen: map[string]bool{}} }

// run plays the text and returns it with what really happened.
func (pl *play) run(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			b.WriteString(line + "\n")
		case strings.HasPrefix(line, ">"):
			b.WriteString(line + "\n")
			pl.out = nil
			pl.do(strings.Fields(line[1:]))
			pl.watch()
			for _, l := range pl.out {
				b.WriteString("  " + l + "\n")
			}
		}
	}
	return b.String()
}

func (pl *play) say(format string, args ...any) {
	pl.out = append(pl.out, fmt.Sprintf(format, args...))
}

// watch reports states that have changed.
func (pl *play) watch() {
	for i, n := range []*node{pl.a, pl.b} {
		if n == nil {
			continue
		}
		if s := n.eng.State(); s != pl.state[i] {
			pl.seen["state/"+pl.state[i].String()+"-"+s.String()] = true
			pl.say("%s is in %v", n.name, s)
			pl.state[i] = s
		}
	}
}

// args are the words of a command: bare flags and key=value.
type args map[string]string

func parseArgs(words []string) args {
	m := args{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			v = "yes"
		}
		m[k] = v
	}
	return m
}

func (m args) int(t *testing.T, k string, def, base int) int {
	v, ok := m[k]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, base, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", k, v, err)
	}
	return int(n)
}

func (m args) has(k string) bool { return m[k] != "" && m[k] != "no" }

func access(s string) ib.Access {
	a := ib.Access(0)
	for _, w := range strings.Split(s, ",") {
		switch w {
		case "local":
			a |= ib.LocalWrite
		case "write":
			a |= ib.RemoteWrite
		case "read":
			a |= ib.RemoteRead
		case "atomic":
			a |= ib.RemoteAtomic
		case "all":
			a |= ib.AccessAll
		}
	}
	return a
}

func (pl *play) node(name string) *node {
	switch name {
	case "A":
		return pl.a
	case "B":
		return pl.b
	}
	pl.t.Fatalf("no node %q", name)
	return nil
}

func (pl *play) do(words []string) {
	t := pl.t
	cmd, rest := words[0], words[1:]
	first := ""
	if len(rest) > 0 {
		first = rest[0]
	}
	switch cmd {
	case "connect":
		pl.connect(parseArgs(rest))
	case "post":
		pl.post(pl.node(first), rest[1], parseArgs(rest[2:]))
	case "recv":
		pl.recv(pl.node(first), parseArgs(rest[1:]))
	case "send":
		limit := 1000
		if len(rest) > 1 {
			limit, _ = strconv.Atoi(rest[1])
		}
		pl.send(pl.node(first), limit)
	case "deliver", "drop", "dup":
		pl.move(cmd, rest)
	case "flow":
		pl.flow(parseArgs(rest))
	case "advance":
		pl.advance(first)
	case "timers":
		for _, n := range []*node{pl.a, pl.b} {
			pl.say("%s deadline %s, sends %s", n.name, pl.when(n.eng.Deadline()), pl.when(n.eng.SendAt()))
		}
	case "modify":
		pl.modify(pl.node(first), parseArgs(rest[1:]))
	case "state":
		pl.say("A %v, B %v", pl.a.eng.State(), pl.b.eng.State())
	case "bytes":
		pl.compare(parseArgs(rest[1:]))
	case "word":
		pl.word(pl.node(first), parseArgs(rest[1:]))
	case "unregister":
		n := pl.node(first)
		n.mem.Deregister(n.mr)
	case "register":
		n := pl.node(first)
		var err error
		n.mr, err = n.mem.Register(pd, n.buf, n.mr.Base, access(parseArgs(rest[1:])["access"]))
		if err != nil {
			t.Fatal(err)
		}
	case "query":
		var q ib.QPAttr
		pl.node(first).eng.Query(&q)
		pl.say("%v, next to send %v, expected %v", q.State, q.SQPSN, q.RQPSN)
	case "window":
		pl.say("A %d bytes in flight of %d", pl.a.win.InFlight(), pl.a.win.Limit())
	case "inject":
		pl.inject(pl.node(first), parseArgs(rest[1:]))
	default:
		t.Fatalf("unknown command %q", cmd)
	}
}

func (pl *play) connect(m args) {
	t := pl.t
	mtu := func(k string, def int) ib.MTU { return ib.MTUFor(m.int(t, k, def, 10)) }
	o := options{
		mtu: mtu("mtu", 256), psnA: ib.PSN(m.int(t, "psna", 0xFFFFFE, 16)), psnB: ib.PSN(m.int(t, "psnb", 0x100, 16)),
		rd: uint8(m.int(t, "rd", 4, 10)), timeout: uint8(m.int(t, "timeout", 14, 10)), retry: uint8(m.int(t, "retry", 7, 10)),
		rnrRetry: uint8(m.int(t, "rnr", 7, 10)), rnrTimer: uint8(m.int(t, "rnrtimer", 1, 10)), access: ib.RemoteAll,
		sigAll: m["sigall"] != "no", noCredits: !m.has("credits"), window: m.has("window"), mem: m.int(t, "mem", 0, 10),
	}
	if s, ok := m["access"]; ok {
		o.access = access(s)
	}
	o.defaults()
	pl.a, pl.b = newNode(t, "A", qpnA, baseA, o), newNode(t, "B", qpnB, baseB, o)
	for _, n := range []*node{pl.a, pl.b} {
		n.note = func(format string, args ...any) {
			line := fmt.Sprintf(format, args...)
			pl.say("%s %s", n.name, line)
			for s := ib.WCStatus(0); s < 22; s++ {
				if strings.HasSuffix(line, " "+s.String()) || strings.Contains(line, " "+s.String()+" ") {
					pl.seen["status/"+s.String()] = true
				}
			}
			if ev, ok := strings.CutPrefix(line, "event "); ok {
				pl.seen["event/"+ev] = true
			}
			if d, ok := strings.CutPrefix(line, "drop "); ok {
				pl.seen["drop/"+d] = true
			}
		}
		pattern(n.buf, n.name[0])
	}
	ob := o
	ob.mtu, ob.rd = mtu("mtub", o.mtu.Bytes()), uint8(m.int(t, "rdb", int(o.rd), 10))
	pl.state = [2]ib.QPState{ib.Reset, ib.Reset}
	if m["state"] == "reset" {
		return
	}
	pl.a.ready(qpnB, o.psnA, o.psnB, o)
	pl.b.ready(qpnA, o.psnB, o.psnA, ob)
	pl.state = [2]ib.QPState{ib.RTS, ib.RTS}
}

var ops = map[string]ib.WROp{
	"write": ib.Write, "write-imm": ib.WriteImm, "send": ib.Send, "send-imm": ib.SendImm, "send-inv": ib.SendInv,
	"read": ib.Read, "cas": ib.CompareSwap, "faa": ib.FetchAdd, "bind": ib.BindMW,
}

func (pl *play) post(n *node, name string, m args) {
	t := pl.t
	op, ok := ops[name]
	if !ok {
		t.Fatalf("no operation %q", name)
	}
	peer := pl.a
	if n == pl.a {
		peer = pl.b
	}
	size := m.int(t, "len", 8, 0)
	wr := ib.SendWR{
		ID: uint64(m.int(t, "id", 1, 10)), Op: op, Imm: uint32(m.int(t, "imm", 0, 0)), Flags: ib.Signaled,
		Remote:  ib.Remote{Addr: peer.mr.Base + uint64(m.int(t, "to", 0, 0)), RKey: peer.mr.RKey},
		Compare: uint64(m.int(t, "cmp", 0, 0)), SwapAdd: uint64(m.int(t, "add", 0, 0)),
	}
	if m["rkey"] == "bad" {
		wr.Remote.RKey ^= 0x5A5A5A5A
	}
	if m.has("unsignaled") {
		wr.Flags = 0
	}
	if m.has("fence") {
		wr.Flags |= ib.Fence
	}
	if m.has("solicited") {
		wr.Flags |= ib.Solicited
	}
	at := m.int(t, "at", 0, 0)
	if m.has("inline") {
		wr.Flags |= ib.Inline
		wr.InlineData = n.buf[at : at+size]
	} else {
		k := m.int(t, "sges", 1, 10)
		for i := range k {
			part := size / k
			if i == k-1 {
				part = size - i*(size/k)
			}
			wr.SGL = append(wr.SGL, n.sge(at, part))
			at += part
		}
		if m["lkey"] == "bad" {
			wr.SGL[len(wr.SGL)-1].LKey ^= 0x5A5A5A5A
		}
	}
	n.wr(pl.now, wr)
}

func (pl *play) recv(n *node, m args) {
	s := n.sge(m.int(pl.t, "at", 0, 0), m.int(pl.t, "len", 0, 0))
	if m["lkey"] == "bad" {
		s.LKey ^= 0x5A5A5A5A
	}
	for i := range m.int(pl.t, "n", 1, 10) {
		n.recv(pl.now, ib.RecvWR{ID: uint64(m.int(pl.t, "id", 1, 10) + i), SGL: []ib.SGE{s}})
	}
}

// send pulls packets of n into the air.
func (pl *play) send(n *node, limit int) {
	to := pl.a
	if n == pl.a {
		to = pl.b
	}
	for range limit {
		p, ok := n.pull(pl.now)
		if !ok {
			return
		}
		pl.num++
		pl.say("%d %s→%s %s", pl.num, n.name, to.name, describe(p, to))
		pl.air = append(pl.air, airborne{pl.num, to, p})
		if k := nakKind(p); k != "" {
			pl.seen[k] = true
		}
	}
}

func (pl *play) move(cmd string, words []string) {
	var nums []int
	for _, w := range words {
		k, err := strconv.Atoi(w)
		if err != nil {
			pl.t.Fatal(err)
		}
		nums = append(nums, k)
	}
	if len(words) == 0 {
		for _, f := range pl.air {
			nums = append(nums, f.num)
		}
	}
	for _, k := range nums {
		i := slices.IndexFunc(pl.air, func(f airborne) bool { return f.num == k })
		if i < 0 {
			pl.t.Fatalf("packet %d is not in the air", k)
		}
		f := pl.air[i]
		if cmd != "dup" {
			pl.air = slices.Delete(pl.air, i, i+1)
		}
		if cmd != "drop" {
			f.to.give(pl.now, f.p)
			pl.watch()
		}
	}
}

func (pl *play) flow(m args) {
	lost := map[int]bool{}
	for _, w := range strings.Split(m["drop"], ",") {
		if k, err := strconv.Atoi(w); err == nil {
			lost[k] = true
		}
	}
	pl.move("deliver", nil)
	for range 100_000 {
		before := pl.num
		pl.send(pl.a, 1000)
		pl.send(pl.b, 1000)
		if pl.num == before {
			return
		}
		for _, f := range slices.Clone(pl.air) {
			cmd := "deliver"
			if lost[f.num] {
				pl.say("%d is lost", f.num)
				cmd = "drop"
			}
			pl.move(cmd, []string{strconv.Itoa(f.num)})
		}
	}
	pl.t.Fatal("flow: never quiet")
}

func (pl *play) advance(word string) {
	switch word {
	case "A", "B":
		n := pl.node(word)
		at := n.eng.Deadline()
		if s := n.eng.SendAt(); s > pl.now {
			at = clock.Min(at, s)
		}
		if at == clock.Never {
			pl.t.Fatal("nothing will happen")
		}
		pl.now = max(pl.now, at)
	default:
		d, err := time.ParseDuration(word)
		if err != nil {
			pl.t.Fatal(err)
		}
		pl.now = pl.now.Add(d)
	}
	pl.say("it is %v", time.Duration(pl.now))
	pl.a.eng.Advance(pl.now)
	pl.b.eng.Advance(pl.now)
}

func (pl *play) when(at clock.Time) string {
	switch {
	case at == clock.Never:
		return "never"
	case at <= pl.now:
		return "now"
	}
	return "at " + time.Duration(at).String()
}

var states = map[string]ib.QPState{
	"RESET": ib.Reset, "INIT": ib.Init, "RTR": ib.RTR, "RTS": ib.RTS, "SQD": ib.SQD, "ERR": ib.Error,
}

func (pl *play) modify(n *node, m args) {
	t := pl.t
	a := ib.QPAttr{}
	set := func(k string, bit ib.AttrMask) (string, bool) {
		v, ok := m[k]
		if ok {
			a.Mask |= bit
		}
		return v, ok
	}
	if v, ok := set("state", ib.AttrState); ok {
		if a.State, ok = states[v]; !ok {
			t.Fatalf("no state %q", v)
		}
	}
	if v, ok := set("access", ib.AttrAccess); ok {
		a.Access = access(v)
	}
	if _, ok := set("mtu", ib.AttrPathMTU); ok {
		a.PathMTU = ib.MTUFor(m.int(t, "mtu", 0, 10))
	}
	if _, ok := set("rqpsn", ib.AttrRQPSN); ok {
		a.RQPSN = ib.PSN(m.int(t, "rqpsn", 0, 16))
	}
	if _, ok := set("sqpsn", ib.AttrSQPSN); ok {
		a.SQPSN = ib.PSN(m.int(t, "sqpsn", 0, 16))
	}
	if _, ok := set("dest", ib.AttrDestQPN); ok {
		a.DestQPN = ib.QPN(m.int(t, "dest", 0, 0))
	}
	if _, ok := set("rd", ib.AttrMaxRdAtomic|ib.AttrMaxDestRdAtomic); ok {
		a.MaxRdAtomic = uint8(m.int(t, "rd", 0, 10))
		a.MaxDestRdAtomic = a.MaxRdAtomic
	}
	if _, ok := set("timeout", ib.AttrTimeout|ib.AttrRetryCnt|ib.AttrRNRRetry); ok {
		a.TimeoutExp, a.RetryCnt, a.RNRRetry = uint8(m.int(t, "timeout", 0, 10)), 7, 7
	}
	if _, ok := set("notify", ib.AttrEnSQDAsyncNotify); ok {
		a.SQDAsyncNotify = true
	}
	n.eng.Modify(pl.now, &a)
}

func (pl *play) compare(m args) {
	t := pl.t
	at, to, n := m.int(t, "at", 0, 0), m.int(t, "to", 0, 0), m.int(t, "len", 0, 0)
	same := 0
	for same < n && pl.a.buf[at+same] == pl.b.buf[to+same] {
		same++
	}
	if same == n {
		pl.say("equal")
		return
	}
	pl.say("the first %d are equal", same)
}

func (pl *play) word(n *node, m args) {
	at := m.int(pl.t, "at", 0, 0)
	if _, ok := m["set"]; ok {
		putWord(n.buf[at:], uint64(m.int(pl.t, "set", 0, 0)))
		return
	}
	pl.say("%d", getWord(n.buf[at:]))
}

func (pl *play) inject(n *node, m args) {
	t := pl.t
	var p wire.Packet
	p.SetOp(wire.Opcode(m.int(t, "op", 0, 0)))
	p.PSN, p.PKey, p.DestQPN = ib.PSN(m.int(t, "psn", 0, 16)), ib.DefaultPKey, n.qpn()
	if m.has("pkey") {
		p.PKey = ib.PKey(m.int(t, "pkey", 0, 0))
	}
	p.AckReq, p.Solicited = m.has("ack"), m.has("sol")
	p.RETH = wire.RETH{VA: n.mr.Base + uint64(m.int(t, "va", 0, 0)), RKey: n.mr.RKey, Len: uint32(m.int(t, "dlen", 0, 0))}
	p.Atomic = wire.AtomicETH{VA: p.RETH.VA, RKey: n.mr.RKey, SwapAdd: uint64(m.int(t, "add", 0, 0)), Compare: uint64(m.int(t, "cmp", 0, 0))}
	if m["rkey"] == "bad" {
		p.RETH.RKey ^= 0x5A5A5A5A
		p.Atomic.RKey ^= 0x5A5A5A5A
	}
	p.AETH = wire.AETH{Syndrome: wire.AETHSyndrome(m.int(t, "syn", 0x1F, 0)), MSN: ib.MSN(m.int(t, "msn", 0, 0))}
	p.Imm, p.AtomicAck = uint32(m.int(t, "imm", 0, 0)), uint64(m.int(t, "result", 0, 0))
	p.Payload = bytes.Repeat([]byte{0x77}, m.int(t, "len", 0, 0))
	n.eng.Receive(pl.now, &p, &transport.In{})
	pl.watch()
}
