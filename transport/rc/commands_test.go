package rc_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// The commands of transcripts; transcript_test.go describes them.

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
		case "zero":
			a |= ib.ZeroBased
		case "flush":
			a |= ib.RemoteFlush
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
	case "mw":
		m := parseArgs(rest[1:])
		n := pl.node(first)
		kinds := map[string]mem.WindowKind{"1": mem.Window1, "2A": mem.Window2A, "2B": mem.Window2B}
		n.mw = n.mem.AllocWindow(mem.PD(m.int(t, "pd", int(pd), 10)), kinds[m["type"]])
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
		sigAll: m["sigall"] != "no", noCredits: !m.has("credits"), lateAck: m.has("lateack"), window: m.has("window"), mem: m.int(t, "mem", 0, 10),
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
	"read": ib.Read, "cas": ib.CompareSwap, "faa": ib.FetchAdd, "bind": ib.BindMW, "local-inv": ib.LocalInv,
	"flush": ib.Flush, "atomic-write": ib.AtomicWrite,
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
	if m.has("tag") && op != ib.BindMW && op != ib.LocalInv {
		wr.Remote.RKey = pl.windowKey(peer, m)
	}
	if m.has("va") {
		wr.Remote.Addr = uint64(m.int(t, "va", 0, 0))
	}
	if m.has("inv") {
		k := peer
		if op == ib.LocalInv {
			k = n
		}
		switch m["inv"] {
		case "mr":
			wr.Imm = uint32(k.mr.RKey)
		default:
			wr.Imm = uint32(pl.windowKey(k, args{"tag": m["inv"]}))
		}
	}
	if op == ib.BindMW {
		wr.Bind = &ib.Bind{
			RKey: pl.windowKey(n, m), LKey: n.mr.LKey, Addr: n.mr.Base + uint64(m.int(t, "at", 0, 0)),
			Len: uint64(size), Access: access(m["access"]),
		}
		if m["lkey"] == "bad" {
			wr.Bind.LKey ^= 0x5A5A5A5A
		}
	}
	if op == ib.Flush {
		wr.Flush = ib.FlushRange{
			Len: uint32(size), Placement: ib.FlushPlacement(m.int(t, "place", 1, 0)), Level: ib.FlushLevel(m.int(t, "level", 0, 0)),
		}
		size, m = 0, args{"sges": "0", "fence": m["fence"]}
	}
	if op.IsLocal() {
		size, m = 0, args{"unsignaled": m["unsignaled"], "fence": m["fence"], "sges": "0"}
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

// windowKey returns the key of a node's window with the tag that is asked for.
func (pl *play) windowKey(n *node, m args) ib.RKey {
	if n.mw == nil {
		return 0
	}
	return n.mw.RKey()&^0xFF | ib.RKey(m.int(pl.t, "tag", 0, 0))
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
	p.FETH = wire.FETH{Placement: uint8(m.int(t, "place", 0, 0)), Level: uint8(m.int(t, "level", 0, 0))}
	p.Imm, p.AtomicAck = uint32(m.int(t, "imm", 0, 0)), uint64(m.int(t, "result", 0, 0))
	p.Payload = bytes.Repeat([]byte{0x77}, m.int(t, "len", 0, 0))
	n.eng.Receive(pl.now, &p, &transport.In{})
	pl.watch()
}
