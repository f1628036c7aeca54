package perf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/perf/run"
	"github.com/verbena-rdma/verbena/verbs"
)

// Outcome is what a test found. On an error it holds what there was by then.
type Outcome struct {
	Header        report.Header
	Device        string
	Local, Remote ib.GID
	MTU           ib.MTU
	Bandwidth     []report.Bandwidth // one a size
	Latency       []report.Latency   // one a size
	// Verified is nil where data was not compared.
	Verified *bool
	Compared uint64 // bytes, of both ends
	Lost     uint64 // messages, on UC and UD
	CPU      time.Duration
	// Congestion is the end state of each queue pair, with DCQCN on.
	Congestion []verbs.Congestion
	Queues     []verbs.Queue // of this end's device, after the test
}

// cacheLine is what this end tells its peer; a peer with longer lines wins.
const cacheLine = 64

// finishTimeout is how long an end that is through waits for its peer.
const finishTimeout = 2 * time.Second

// Run does a whole test. Errors are one line and match [ErrUsage], [ErrLimit],
// [ErrVerify], the errors of perf/handshake and of verbs where they come from
// there. The outcome is never nil.
func Run(ctx context.Context, cfg Config) (*Outcome, error) {
	o := new(Outcome)
	if err := cfg.Complete(); err != nil {
		return o, err
	}
	cfg.shard()
	if cfg.Clock == nil {
		cfg.Clock = clock.NewReal()
	}
	if _, err := cfg.DCQCN.Params(); err != nil {
		return o, usage("--dcqcn: %v", err)
	}
	if cfg.DCQCN.On() {
		cfg.Open = withDCQCN(cfg.Open, cfg.DCQCN)
	}
	t := &test{cfg: &cfg, out: o, plan: handshake.PlanOf(cfg.Verb, cfg.Latency), op: cfg.operation()}
	err := t.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return o, err
}

// test is one run of Run.
type test struct {
	cfg    *Config
	out    *Outcome
	plan   handshake.Plan
	op     ib.WROp
	server bool
	w      *wire
	s      *handshake.Session
	dev    *verbs.Device
	cm     *cmSide // with -R
	rig    *rig
	verify bool
	theirs bool // the peer is one of ours
	cmp    comparison
	last   run.Result
	gone   int64 // instant at which the peer was first seen gone
}

func (t *test) run(ctx context.Context) error {
	c := t.cfg
	t.server = c.Peer == ""
	meet := t.meet
	if c.CM {
		meet = t.meetCM
	}
	if err := meet(ctx); err != nil {
		return err
	}
	defer t.w.Close()
	defer t.dev.Close()
	defer t.closeCM()
	stop := context.AfterFunc(ctx, func() { t.w.Conn.Close() })
	defer stop()
	gid, err := t.address()
	if err != nil {
		return err
	}
	agreed, err := t.open()
	if err != nil {
		return err
	}
	if err := t.fitUD(agreed.MTU); err != nil {
		return err
	}
	if t.rig, err = newRig(c, t.dev, gid, agreed, c.Size); err != nil {
		return err
	}
	defer t.rig.close()
	t.rig.layout(c.Size)
	if t.verify && c.Verb != handshake.Send { // before the peer knows where it is
		t.rig.prepare(c.Size)
	}
	t.out.MTU = agreed.MTU
	t.out.Header = t.header()
	c.print(t.out.Header.Append(nil))
	if err := t.connect(ctx); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu := cpuTime()
	if err := t.measure(ctx); err != nil {
		return explain(err, c.Timeout)
	}
	t.out.CPU = cpuTime() - cpu
	t.congestion()
	t.out.Queues = t.dev.Queues()
	if err := t.end(); err != nil {
		return err
	}
	return t.judge()
}

// meet finds the peer and opens the device.
func (t *test) meet(ctx context.Context) (err error) {
	c := t.cfg
	wantIndex := c.GIDIndex >= 0 || c.IPv6
	if c.Device != "" { // fail before waiting, and before the peer begins
		if t.dev, err = openDevice(c.Open, c.Device, wantIndex, netip.Addr{}, netip.Addr{}, t.server); err != nil {
			return err
		}
		if wantIndex {
			if _, err = chooseGID(t.dev, c.GIDIndex, c.IPv6, netip.Addr{}); err != nil {
				t.dev.Close()
				return err
			}
		}
	}
	if t.server {
		t.w, err = listen(ctx, c.Source, c.Port, func() { c.print([]byte(report.Waiting)) })
	} else {
		t.w, err = dial(ctx, c.Peer, c.Port, c.Source)
	}
	if err == nil && t.dev == nil {
		local, remote := t.w.addrs()
		if t.dev, err = openDevice(c.Open, c.Device, wantIndex, local, remote, t.server); err != nil {
			t.w.Close()
		}
	}
	if err != nil {
		if t.dev != nil {
			t.dev.Close()
		}
		return err
	}
	role := handshake.Client
	if t.server {
		role = handshake.Server
	}
	t.s = handshake.NewSession(t.w, role)
	return nil
}

// address chooses the GID.
func (t *test) address() (verbs.GIDEntry, error) {
	c := t.cfg
	_, remote := t.w.addrs()
	gid, err := chooseGID(t.dev, c.GIDIndex, c.IPv6, remote)
	t.out.Device, t.out.Local = t.dev.Name(), gid.GID
	return gid, err
}

// open exchanges versions and settles the MTU.
func (t *test) open() (handshake.Agreed, error) {
	c := t.cfg
	mtu := t.dev.Port().ActiveMTU
	for m := ib.MTU256; m <= ib.MTU4096 && c.MTU > 0; m++ {
		if m.Bytes() != c.MTU {
			continue
		}
		if m > mtu {
			c.note("-m %d: the active MTU of %s is %d, which is used", c.MTU, t.dev.Name(), mtu.Bytes())
		} else {
			mtu = m
		}
		break
	}
	t.w.within(openTimeout)
	defer t.w.within(0)
	a, err := t.s.Open(handshake.Hello{MTU: mtu, CycleBuffer: os.Getpagesize(), CacheLine: cacheLine, Extension: c.extension()})
	if err != nil {
		return a, err
	}
	t.theirs = a.Extension != nil
	t.verify = t.theirs && !c.NoVerify && a.Extension.Verify
	return a, nil
}

// fitUD cuts messages to one packet on UD.
func (t *test) fitUD(mtu ib.MTU) error {
	c := t.cfg
	if most := uint64(mtu.Bytes()); c.Conn == ib.UD && c.Size > most {
		if c.SizeSet && !c.All {
			return fmt.Errorf("-s %d: on UD a message is one packet, at most the path MTU of %d bytes", c.Size, most)
		}
		c.note("messages are cut to the path MTU of %d bytes, the most on UD", most)
		c.Size = most
	}
	return nil
}

func (t *test) header() report.Header {
	c := t.cfg
	names := map[handshake.Verb]string{handshake.Write: "RDMA_Write", handshake.Read: "RDMA_Read", handshake.Send: "Send", handshake.Atomic: "Atomic " + c.atomic()}
	h := report.Header{
		Title: report.Title(names[c.Verb], c.Latency, c.Both, c.PostList), Device: t.dev.Name(), QPs: c.QPs,
		Connection: c.Conn.String(), PostList: c.PostList, MTU: t.out.MTU.Bytes(), GIDIndex: t.rig.gid.Index, Inline: t.rig.inline,
		CM: c.CM, SRQ: c.SRQ,
	}
	if c.Events {
		h.Events = t.dev.Name() + "_comp0"
	}
	if !t.server || c.Both {
		h.TxDepth = c.TxDepth
	}
	if c.Verb == handshake.Send && (t.server || c.Both) {
		h.RxDepth = c.RxDepth
	}
	if !c.Latency {
		h.CQMod = c.CQMod
	}
	if c.Verb == handshake.Read || c.Verb == handshake.Atomic {
		h.OutReads = t.rig.outReads
	}
	return h
}

// connect swaps keys and takes the queue pairs to RTS on both ends.
func (t *test) connect(ctx context.Context) error {
	t.w.within(openTimeout)
	defer t.w.within(0)
	keys := t.rig.keys
	if t.cm != nil {
		if err := t.connectCM(ctx); err != nil {
			return err
		}
	}
	if t.plan.FirstSync {
		if err := t.s.Sync(keys[0]); err != nil {
			return err
		}
	}
	theirs, err := t.s.Keys(keys)
	if err != nil {
		return err
	}
	t.out.Remote = theirs[0].GID
	if t.cm != nil {
		if err := t.remotes(theirs); err != nil {
			return err
		}
	} else if err := t.rig.connect(theirs, t.theirs); err != nil {
		return err
	}
	t.printKeys("local", keys)
	if t.plan.EarlySync {
		if err := t.s.Sync(keys[0]); err != nil {
			return err
		}
	}
	if _, err := t.s.Keys(keys); err != nil {
		return err
	}
	t.printKeys("remote", theirs)
	if !t.plan.EarlySync {
		return t.s.Sync(keys[0])
	}
	return nil
}

func (t *test) printKeys(side string, keys []handshake.Key) {
	v := t.cfg.Verb
	var b []byte
	for _, k := range keys {
		b = report.Endpoint{
			Side: side, LID: k.LID, QPN: k.QPN, PSN: k.PSN, OutReads: int(k.OutReads), RKey: k.RKey, Addr: k.Addr, GID: k.GID,
			ShowOut: v == handshake.Read, ShowRKey: v == handshake.Read || v == handshake.Write,
		}.Append(b)
	}
	t.cfg.print(b)
}

// active reports whether this end takes part in the run.
func (t *test) active() bool {
	return !t.server || t.cfg.Both || t.cfg.Verb == handshake.Send || (t.cfg.Latency && t.cfg.Verb == handshake.Write)
}

func (t *test) measure(ctx context.Context) error {
	c := t.cfg
	c.print([]byte(report.Line))
	if c.Latency {
		if t.active() {
			c.print([]byte(report.LatencyHead(c.Duration > 0)))
		}
	} else {
		c.print([]byte(report.BandwidthHead(c.Gbits)))
	}
	if t.active() {
		for _, size := range c.sizes() {
			if err := t.size(ctx, size); err != nil {
				return err
			}
		}
	}
	if t.plan.Reports && c.Verb != handshake.Send && !c.Both {
		if err := t.oneWayReports(); err != nil {
			return err
		}
	}
	c.print([]byte(report.Line))
	return nil
}

// oneWayReports tells the waiting server what the client measured.
func (t *test) oneWayReports() error {
	if err := t.s.Sync(t.rig.keys[0]); err != nil {
		return err
	}
	var mine report.Bandwidth
	if !t.server {
		mine = t.out.Bandwidth[len(t.out.Bandwidth)-1]
	}
	theirs, err := t.s.Reports(t.toReport(mine))
	if err != nil || !t.server {
		return err
	}
	b := fromReport(theirs)
	t.out.Bandwidth = append(t.out.Bandwidth, b)
	t.cfg.print(b.Append(nil, t.cfg.Gbits))
	return nil
}

func (t *test) toReport(b report.Bandwidth) handshake.Report {
	unit := report.MiBps
	if t.cfg.Gbits {
		unit = report.Gbps
	}
	return handshake.Report{Size: b.Bytes, Iters: b.Iters, Peak: unit(b.PeakBytesPerSec), Average: unit(b.BytesPerSec), MsgRate: b.MsgPerSec / 1e6}
}

// fromReport takes the peer's numbers. Their unit is the peer's choice, so
// the bandwidth is computed from the message rate, which has only one.
func fromReport(r handshake.Report) report.Bandwidth {
	b := report.Bandwidth{Bytes: r.Size, Iters: r.Iters, MsgPerSec: r.MsgRate * 1e6}
	b.BytesPerSec = b.MsgPerSec * float64(r.Size)
	if r.Average > 0 {
		b.PeakBytesPerSec = b.BytesPerSec * r.Peak / r.Average
	}
	return b
}

func (t *test) common(size uint64) run.Common {
	c := t.cfg
	k := run.Common{
		Op: t.op, Size: size, Iters: c.Iters, Lanes: t.rig.lanes, SRQ: t.rig.srq, CQ: t.rig.cq, Device: t.dev, Events: t.rig.ch,
		InlineMax: t.rig.inline, SwapAdd: 1, Clock: c.Clock, Watch: nil,
	}
	if c.CompareSwap {
		k.SwapAdd = 0
	}
	if c.Duration > 0 {
		k.Phases = &run.Phases{Duration: c.Duration, Margin: c.Margin}
	}
	return k
}

// goneMost is how long, in nanoseconds, a loop goes on after its peer has
// closed the connection.
const goneMost = 3e9

// watch is what loops ask when nothing moves.
func (t *test) watch(ctx context.Context) func() (bool, error) {
	t.gone = 0
	return func() (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if !t.w.gone() {
			return t.w.waiting(), nil
		}
		now := int64(t.cfg.Clock.Now())
		if t.gone == 0 {
			t.gone = max(now, 1)
		} else if now-t.gone > goneMost {
			return false, &handshake.Error{Step: "measuring", Err: handshake.ErrPeerClosed, Hint: "see its output"}
		}
		return true, nil
	}
}

// size measures one message size, with the steps of the handshake around it.
func (t *test) size(ctx context.Context, size uint64) error {
	t.rig.layout(size)
	if t.cfg.Verb == handshake.Send && t.verify {
		t.rig.prepare(size)
	}
	if t.cfg.Latency {
		return t.latency(ctx, size)
	}
	return t.bandwidth(ctx, size)
}

func (t *test) bandwidth(ctx context.Context, size uint64) error {
	c := t.cfg
	b := &run.Bandwidth{
		Common: t.common(size), Send: !t.server || c.Both, Recv: c.Verb == handshake.Send && (t.server || c.Both),
		AfterFirst: c.Verb == handshake.Send && t.server && c.Both,
		Depth:      c.TxDepth, RecvDepth: c.RxDepth, RecvBytes: t.recvBytes(size), CQMod: c.CQMod, List: c.PostList, Peak: t.peak(),
	}
	b.Watch = t.watch(ctx)
	if b.Recv {
		if err := b.PostRecvs(); err != nil {
			return err
		}
	}
	if t.plan.SizeSync || c.Both {
		if err := t.s.Sync(t.rig.keys[0]); err != nil {
			return err
		}
	}
	r, err := b.Run(ctx)
	if err != nil {
		return err
	}
	if err := t.account(r, size, b.Recv); err != nil {
		return err
	}
	reports := c.Both && t.plan.Reports && (c.Verb != handshake.Send || c.Duration == 0)
	if c.Both && c.All && c.Verb != handshake.Send {
		if err := t.s.Sync(t.rig.keys[0]); err != nil {
			return err
		}
	}
	row := r.Bandwidth
	if reports {
		theirs, err := t.s.Reports(t.toReport(r.Bandwidth))
		if err != nil {
			return err
		}
		row = row.Add(fromReport(theirs))
		if c.BothParts {
			defer t.printParts(r.Bandwidth, fromReport(theirs))
		}
	}
	t.out.Bandwidth = append(t.out.Bandwidth, row)
	c.print(row.Append(nil, c.Gbits))
	if c.Verb == handshake.Send && c.All {
		return t.s.Sync(t.rig.keys[0])
	}
	return nil
}

func (t *test) printParts(mine, theirs report.Bandwidth) {
	for _, p := range []struct {
		name string
		r    report.Bandwidth
	}{{"Local", mine}, {"Remote", theirs}} {
		t.cfg.print([]byte(report.Line))
		t.cfg.print(fmt.Appendf(nil, "\n %s results: \n", p.name))
		t.cfg.print([]byte(report.Line + report.BandwidthHead(t.cfg.Gbits)))
		t.cfg.print(p.r.Append(nil, t.cfg.Gbits))
	}
}

// peak says which peak this end measures: perftest's for runs of a length
// where perftest measures it, windows for longer ones and for tests over a
// time, where perftest prints 0.
func (t *test) peak() run.PeakMode {
	c := t.cfg
	switch {
	case c.NoPeak, c.Verb == handshake.Send && t.server && !c.Both:
		return run.PeakNone
	case c.Duration > 0 || c.Iters > peakMostIters:
		return run.PeakWindows
	}
	return run.PeakExact
}

func (t *test) recvBytes(size uint64) int {
	if t.cfg.Conn == ib.UD {
		size += grhLen
	}
	return int(size)
}

func (t *test) latency(ctx context.Context, size uint64) error {
	c := t.cfg
	l := &run.Latency{
		Common: t.common(size), Client: !t.server, RecvDepth: c.RxDepth, RecvBytes: t.recvBytes(size), CQMod: c.CQMod,
		Out: t.rig.out(0), In: t.rig.in(0), Gap: c.Gap,
	}
	l.Watch = t.watch(ctx)
	if c.Verb == handshake.Send {
		if err := l.PostRecvs(); err != nil {
			return err
		}
	}
	if t.plan.SizeSync {
		if err := t.s.Sync(t.rig.keys[0]); err != nil {
			return err
		}
	}
	r, err := l.Run(ctx)
	if err != nil {
		return err
	}
	if t.verify && c.Verb == handshake.Write { // the counter has been there
		off := (size - 1) &^ 7
		fill(t.rig.out(0)[off:off+8], 0, off)
	}
	if err := t.account(r, size, c.Verb == handshake.Send); err != nil {
		return err
	}
	t.out.Latency = append(t.out.Latency, r.Latency)
	over := c.Duration > 0
	var b []byte
	if c.Unsorted {
		b = r.Latency.AppendSamples(b, false)
	}
	if c.Histogram {
		b = r.Latency.AppendSamples(b, true)
	}
	if c.Unsorted || c.Histogram {
		b = append(append(b, report.Line...), report.LatencyHead(over)...)
	}
	b = r.Latency.Append(b, over)
	if c.Plot {
		b = r.Latency.AppendPlot(b)
	}
	c.print(b)
	return nil
}

// account keeps what the end of the test needs, and compares what was received.
func (t *test) account(r run.Result, size uint64, received bool) error {
	c := t.cfg
	sent := t.last.Sent
	t.last = r
	if c.Verb == handshake.Atomic { // counters add up over the sizes
		for i := range sent {
			t.last.Sent[i] += sent[i]
		}
	}
	if received && t.verify {
		t.rig.compareSends(&t.cmp, size, r.Received)
	}
	if r.Lost == 0 {
		return nil
	}
	t.out.Lost += r.Lost
	if c.Conn == ib.RC {
		return fmt.Errorf("the peer has finished and %d messages have not come: compare -n, -s and -q of both ends", r.Lost)
	}
	c.note("%d of %d messages were lost: %v does not repeat them", r.Lost, c.Iters*uint64(c.QPs), c.Conn)
	return nil
}

// end compares data and takes leave.
func (t *test) end() error {
	c := t.cfg
	if c.spoil != nil {
		c.spoil(t.rig.mem.Bytes())
	}
	if t.theirs {
		mine := func(theirs handshake.Verdict) handshake.Verdict { return t.verdict(theirs) }
		theirs, err := t.s.Verdicts(mine)
		if err != nil {
			return err
		}
		if t.verify {
			ok := t.cmp.bad == 0 && theirs.Bad == 0
			t.out.Verified = &ok
			t.out.Compared = t.cmp.compared + theirs.Compared
			if !ok {
				d, where := t.cmp.detail, "here"
				if d == "" {
					d, where = theirs.Detail, "at the peer"
				}
				return fmt.Errorf("%w: %d of %d bytes compared, first %s: %s", ErrVerify, t.cmp.bad+theirs.Bad, t.out.Compared, where, d)
			}
			c.print(fmt.Appendf(nil, " Data verified   : %d bytes of both ends equal their pattern\n", t.out.Compared))
		}
	}
	if t.plan.Done {
		if err := t.s.Done(t.rig.keys[0]); err != nil {
			return err
		}
	}
	if t.cm != nil {
		t.finishCM(finishTimeout)
		return nil
	}
	t.w.finish(finishTimeout)
	return nil
}

// verdict checks what needs the whole test to be over. The server knows by then
// what the client has sent; in bidirectional tests the client does not know of
// the server, and checks as much as it sent itself.
func (t *test) verdict(theirs handshake.Verdict) handshake.Verdict {
	c := t.cfg
	if !t.verify {
		return handshake.Verdict{}
	}
	peerSent := theirs.Sent
	if !t.server && (c.Latency || c.Both && c.Duration == 0) {
		peerSent = t.last.Sent
	}
	switch c.Verb {
	case handshake.Write:
		t.rig.comparePlaces(&t.cmp, t.rig.in, c.Size, peerSent)
	case handshake.Read:
		t.rig.comparePlaces(&t.cmp, t.rig.out, c.Size, t.last.Sent)
	case handshake.Atomic:
		if t.server {
			t.rig.compareCounters(&t.cmp, peerSent)
		}
	case handshake.Send: // compared as it arrived
	}
	return handshake.Verdict{Sent: t.last.Sent, Compared: t.cmp.compared, Bad: t.cmp.bad, Detail: t.cmp.detail}
}

// judge compares the results with the limits.
func (t *test) judge() error {
	c := t.cfg
	var errs []error
	for _, r := range t.out.Bandwidth {
		avg, unit := report.MiBps(r.BytesPerSec), "MB/sec"
		if c.Gbits {
			avg, unit = report.Gbps(r.BytesPerSec), "Gb/sec"
		}
		switch {
		case c.LimitBW > 0 && avg < c.LimitBW:
			errs = append(errs, fmt.Errorf("%w: %d bytes: %.2f %s is below -w %g", ErrLimit, r.Bytes, avg, unit, c.LimitBW))
		case c.MinGbps > 0 && report.Gbps(r.BytesPerSec) < c.MinGbps:
			errs = append(errs, fmt.Errorf("%w: %d bytes: %.3f Gb/s is below --min-bw %g", ErrLimit, r.Bytes, report.Gbps(r.BytesPerSec), c.MinGbps))
		case c.LimitRate > 0 && r.MsgPerSec/1e6 < c.LimitRate:
			errs = append(errs, fmt.Errorf("%w: %d bytes: %.6f Mpps is below -y %g", ErrLimit, r.Bytes, r.MsgPerSec/1e6, c.LimitRate))
		}
	}
	for _, r := range t.out.Latency {
		if c.MaxLat > 0 && r.Average > c.MaxLat {
			errs = append(errs, fmt.Errorf("%w: %d bytes: average of %.2f us is above --max-lat %g", ErrLimit, r.Bytes, report.Usec(r.Average), report.Usec(c.MaxLat)))
		}
	}
	if len(errs) > 1 {
		return fmt.Errorf("%w (and %d more sizes)", errs[0], len(errs)-1)
	}
	return errors.Join(errs...)
}
