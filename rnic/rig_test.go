package rnic

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// The doubles of this package's tests: adapters with addresses, a cable between
// two of them, and an engine that does as the test says.

var (
	addrA  = netip.MustParseAddr("10.0.0.1")
	addrB  = netip.MustParseAddr("10.0.0.2")
	addrA6 = netip.MustParseAddr("fd00::1")
	addrB6 = netip.MustParseAddr("fd00::2")
)

func seeded(seed uint64) func() uint32 {
	r := rand.New(rand.NewPCG(seed, seed))
	return r.Uint32
}

// wireCaps are those of a UDP link on an interface that carries 4 KiB packets.
func wireCaps() WireCaps {
	return WireCaps{MTU: 9000, Segments: 64, RunBytes: 65000, Idents: true}
}

func gidRows(addrs ...netip.Addr) []GIDEntry {
	var rows []GIDEntry
	for _, a := range addrs {
		rows = append(rows, GIDEntry{GID: ib.GIDFromAddr(a), Type: ib.GIDTypeRoCEv2, Netdev: "eth0"})
	}
	return rows
}

// newAdapter makes an adapter with an IPv4 row 0 and an IPv6 row 1. edit may be
// nil.
func newAdapter(t testing.TB, v4, v6 netip.Addr, edit func(*Config)) *Adapter {
	t.Helper()
	cfg := Config{Name: "vrb_" + v4.String(), GIDs: gidRows(v4, v6), Wire: wireCaps(), Rand: seeded(uint64(v4.As4()[3]))}
	if edit != nil {
		edit(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// host is an adapter with the usual objects.
type host struct {
	*Adapter
	t  testing.TB
	pd mem.PD
	cq *CQ
}

func newHost(t testing.TB, v4, v6 netip.Addr, edit func(*Config)) *host {
	t.Helper()
	h := &host{Adapter: newAdapter(t, v4, v6, edit), t: t}
	var err error
	if h.pd, err = h.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if h.cq, err = h.CreateCQ(4096); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) qp(typ ib.QPType, edit func(*QPConfig)) *QP {
	h.t.Helper()
	cfg := QPConfig{Type: typ, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq}
	if edit != nil {
		edit(&cfg)
	}
	q, err := h.CreateQP(0, cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	return q
}

func (h *host) mr(n int) (*mem.Region, []byte) {
	h.t.Helper()
	buf := make([]byte, n)
	r, err := h.RegisterMR(h.pd, buf, 1<<20, ib.LocalWrite|ib.RemoteAll)
	if err != nil {
		h.t.Fatal(err)
	}
	return r, buf
}

func (h *host) modify(q *QP, attr ib.QPAttr) {
	h.t.Helper()
	if err := h.ModifyQP(0, q, &attr); err != nil {
		h.t.Fatal(err)
	}
}

const (
	testQKey = 0x1234
	testPSN  = 100
)

func initAttr(typ ib.QPType) ib.QPAttr {
	if typ == ib.UD {
		return ib.QPAttr{Mask: ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrQKey, State: ib.Init, Port: 1, QKey: testQKey}
	}
	return ib.QPAttr{Mask: ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess, State: ib.Init, Port: 1, Access: ib.RemoteAll}
}

func rtrAttr(typ ib.QPType, dgid ib.GID, row int, dest ib.QPN, mtu ib.MTU) ib.QPAttr {
	a := ib.QPAttr{
		Mask: ib.AttrState, State: ib.RTR, AV: ib.AV{DGID: dgid, SGIDIndex: row}, PathMTU: mtu, DestQPN: dest,
		RQPSN: testPSN, MaxDestRdAtomic: 16, MinRNRTimer: 1,
	}
	switch typ {
	case ib.RC:
		a.Mask |= rtrRC
	case ib.UC:
		a.Mask |= rtrUC
	case ib.UD:
	}
	return a
}

func rtsAttr(typ ib.QPType) ib.QPAttr {
	a := ib.QPAttr{
		Mask: ib.AttrState | ib.AttrSQPSN, State: ib.RTS, SQPSN: testPSN,
		TimeoutExp: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 16,
	}
	if typ == ib.RC {
		a.Mask |= rtsRC
	}
	return a
}

func (h *host) connect(q *QP, dgid ib.GID, row int, dest ib.QPN, mtu ib.MTU) {
	h.t.Helper()
	h.modify(q, initAttr(q.typ))
	h.modify(q, rtrAttr(q.typ, dgid, row, dest, mtu))
	h.modify(q, rtsAttr(q.typ))
}

// poll returns all completions that wait.
func (h *host) poll() []ib.WC {
	var all []ib.WC
	var wcs [16]ib.WC
	for {
		n := h.cq.Poll(wcs[:])
		if n == 0 {
			return all
		}
		all = append(all, wcs[:n]...)
	}
}

// cable joins two adapters. It moves runs as they are, or as the mode says.
type cable struct {
	t    testing.TB
	ends [2]*Adapter
	mode cableMode
	// tap sees each packet, from end 0 or 1; false drops it. It may be nil.
	tap func(from int, packet []byte) bool
	run frame.Run
	now clock.Time
}

type cableMode int

const (
	asRuns    cableMode = iota // a run arrives as one merged buffer
	asPackets                  // each segment arrives alone, as through a middleware
	copied                     // merged, but in a buffer of its own that is destroyed afterwards
)

func newCable(t testing.TB, a, b *Adapter, mode cableMode) *cable {
	return &cable{t: t, ends: [2]*Adapter{a, b}, mode: mode, run: frame.Run{Buf: make([]byte, 1<<16)}}
}

// settle moves packets until nothing moves at the present instant.
func (c *cable) settle() {
	for c.step(0) || c.step(1) {
	}
	for _, a := range c.ends {
		allSilentWithCause(c.t, a, c.now)
	}
}

// step lets one end send one run.
func (c *cable) step(from int) bool {
	a := c.ends[from]
	a.Advance(c.now)
	c.run.Reset()
	if !a.Egress(c.now, &c.run) {
		return false
	}
	c.check(&c.run)
	c.deliver(from, &c.run)
	return true
}

// allSilentWithCause asks every queue pair of an adapter why it sends nothing:
// there is a cause, and where something shall end it, somebody is called then.
func allSilentWithCause(t testing.TB, a *Adapter, now clock.Time) {
	t.Helper()
	for _, q := range a.qps.slots {
		if q == nil {
			continue
		}
		s := a.Why(q)
		switch s.Cause {
		case CauseUnknown:
			t.Fatalf("at %d QP %v is silent without a cause: %v, timer %+v, list %p", now, q.qpn, s, q.timer, q.sched.list)
		case CausePaced, CauseRNR, CauseAck:
			if s.Until == clock.Never || a.Deadline() > s.Until {
				t.Fatalf("at %d QP %v is silent: %v, and the next deadline is %d", now, q.qpn, s, a.Deadline())
			}
		case CauseIdle, CauseReady, CausePaused, CauseWindow, CauseCredits, CauseReads, CauseState, NumCauses:
		}
	}
}

// check holds every run against the shape that a link may rely on.
func (c *cable) check(r *frame.Run) {
	if r.N <= 0 || r.Segs <= 0 || r.Seg <= 0 || r.N > len(r.Buf) || r.Segs > frame.MaxSegments ||
		r.N > r.Segs*r.Seg || r.N <= (r.Segs-1)*r.Seg {
		c.t.Fatalf("run of %d bytes in %d segments of %d", r.N, r.Segs, r.Seg)
	}
	if !r.Src.IsValid() || !r.Dst.IsValid() || r.SrcPort < 0xC000 || r.TTL == 0 {
		c.t.Fatalf("run from %v port %d to %v, TTL %d", r.Src, r.SrcPort, r.Dst, r.TTL)
	}
	var dest [3]byte
	for i := range r.Segs {
		seg := r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]
		h, ok := wire.BTHOf(seg)
		if !ok || len(seg)&3 != 0 {
			c.t.Fatalf("segment of %d bytes", len(seg))
		}
		if i > 0 && [3]byte(h[5:8]) != dest {
			c.t.Fatal("a run with two destination QPNs")
		}
		dest = [3]byte(h[5:8])
	}
}

func (c *cable) deliver(from int, r *frame.Run) {
	to := c.ends[1-from]
	if slices.ContainsFunc(c.ends[from].cfg.GIDs, func(g GIDEntry) bool { return g.GID.Addr() == r.Dst.WithZone("") }) {
		to = c.ends[from] // to itself
	}
	rx := frame.Rx{Src: r.Src, Dst: r.Dst.WithZone(""), SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL, Phantom: r.Phantom}
	if c.tap == nil && c.mode != asPackets {
		rx.Data, rx.Seg = r.Buf[:r.N], r.Seg
		if c.mode == copied {
			rx.Data = slices.Clone(rx.Data)
		}
		to.Ingress(c.now, &rx)
		if c.mode == copied {
			clear(rx.Data)
		}
		return
	}
	for i := range r.Segs {
		seg := r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]
		if c.tap != nil && !c.tap(from, seg) {
			continue
		}
		rx.Data, rx.Seg = seg, 0
		to.Ingress(c.now, &rx)
	}
}

// fake is an engine that emits what the test puts in its list and remembers
// what it receives.
type fake struct {
	cfg      transport.Config
	state    ib.QPState
	out      []fakePacket
	got      []wire.Packet
	in       []transport.In
	grh      [][40]byte
	posts    int
	advanced []clock.Time
	deadline clock.Time
	sendAt   clock.Time
	modified []ib.QPAttr
	window   *transport.Window
	blocked  bool // has something, but Next refuses
	onNext   func(*fake)
	urgent   bool
	why      transport.Wait
}

type fakePacket struct {
	op   wire.Opcode
	data []byte
	ah   ib.AH
	dest ib.QPN
	ect  bool
	psn  ib.PSN
}

func (f *fake) Modify(_ clock.Time, a *ib.QPAttr) {
	f.modified = append(f.modified, *a)
	if a.Mask&ib.AttrState != 0 {
		f.state = a.State
	}
}
func (f *fake) State() ib.QPState    { return f.state }
func (f *fake) Query(*ib.QPAttr)     {}
func (f *fake) Post(clock.Time)      { f.posts++ }
func (f *fake) Deadline() clock.Time { return f.deadline }

func (f *fake) Receive(_ clock.Time, p *wire.Packet, in *transport.In) {
	c := *p
	c.Payload = slices.Clone(p.Payload)
	f.got = append(f.got, c)
	f.in = append(f.in, *in)
	if in.GRH != nil {
		f.grh = append(f.grh, *in.GRH)
	}
}

func (f *fake) Advance(now clock.Time) {
	f.advanced = append(f.advanced, now)
	if f.deadline <= now {
		f.deadline = clock.Never
	}
}

func (f *fake) SendAt() clock.Time {
	if len(f.out) == 0 {
		return clock.Never
	}
	return f.sendAt
}

func (f *fake) Next(clock.Time) (transport.Head, bool) {
	if f.onNext != nil {
		f.onNext(f)
	}
	if len(f.out) == 0 || f.blocked {
		return transport.Head{}, false
	}
	p := f.out[0]
	return transport.Head{WireLen: p.op.Info().Len + (len(p.data)+3)&^3 + wire.ICRCLen, AH: p.ah, DestQPN: p.dest}, true
}

func (f *fake) Emit(_ clock.Time, out *transport.Out) {
	p := f.out[0]
	f.out = f.out[1:]
	out.SetOp(p.op)
	out.DestQPN, out.PSN, out.ECT, out.Len = p.dest, p.psn, p.ect, len(p.data)
	if len(p.data) > 0 {
		out.Frags = append(out.Frags, mem.Frag{Data: p.data})
	}
}

func (f *fake) Urgent() bool        { return f.urgent }
func (f *fake) Why() transport.Wait { return f.why }

func (f *fake) SetWindow(w *transport.Window) { f.window = w }

// fakes replaces the engines of an adapter.
func fakes(a *Adapter) {
	a.newEngine = func(_ ib.QPType, cfg transport.Config) transport.Engine {
		return &fake{cfg: cfg, deadline: clock.Never}
	}
}

func fakeOf(q *QP) *fake { return q.eng.(*fake) }

// fakeHost is a host whose engines are fakes.
func fakeHost(t testing.TB, v4, v6 netip.Addr, edit func(*Config)) *host {
	h := newHost(t, v4, v6, edit)
	fakes(h.Adapter)
	return h
}

func newRun() *frame.Run { return &frame.Run{Buf: make([]byte, 1<<16)} }

// rxOf returns a run as a link would receive it.
func rxOf(r *frame.Run) *frame.Rx {
	return &frame.Rx{Data: slices.Clone(r.Buf[:r.N]), Seg: r.Seg, Src: r.Src, Dst: r.Dst.WithZone(""), SrcPort: r.SrcPort, TOS: r.TOS, TTL: r.TTL, Phantom: r.Phantom}
}
