package probe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/verbena-rdma/verbena/wire/ip"
)

const (
	smallSize = 128
	codeTries = 4
	codeAgain = 36  // tries more for a code point of which nothing arrived
	pathTries = 200 // of a path of which nothing arrives where others lose most
	// patientTries of each path are sent over patience where nothing arrives at all.
	patientTries = 5
	patience     = 2 * time.Second
	// Where fewer than fewLost are lost, up to enoughForLoss are sent, for moreTime at
	// most.
	fewLost       = 5
	enoughForLoss = 1000
	moreTime      = 5 * time.Second
	trains        = 3
	maxTrains     = 8 // where the sender was too slow for some of them
	trainSize     = 1024
	clockAsks     = 5
	batchTime     = 10 * time.Second
	batchBytes    = 900_000
	ctlTime       = 30 * time.Second // above what all requests may take by themselves
)

// trial is one probe with what became of it; seen is nil if it did not arrive.
type trial struct {
	probe Probe
	sent  Sent
	seen  *Sighting
}

func (t *trial) passed() bool { return t.seen != nil && t.seen.From == "" }

// left reports whether the packet left its sender, or was lost in its queue.
func (t *trial) left() bool { return t.sent.Err == "" || t.sent.Err == localQueue }

// out reports whether any small packet left the sender: then those that did not are
// lost like others, at its own firewall, queue or routes.
func (r *record) out() bool {
	return slices.ContainsFunc(r.reach, func(t trial) bool { return t.sent.Err == "" })
}

// whole reports whether the packet arrived in one piece: RNICs put no fragments
// together.
func (t *trial) whole() bool { return t.passed() && t.seen.Cut == 0 }

// record is everything measured in one direction.
type record struct {
	reverse      bool // from the listener to the prober
	reach, class []trial
	trains       [][]trial
	mtus         []pathMTU
	sized        []trial // of the search for the size
	notices      []Notice
	strangers    int
	overrun      int
	cut          int // packets of the search for the size that came in fragments
	next         uint32
}

// way is one direction: how to send and how to learn what arrived.
type way struct {
	rec      *record
	interval time.Duration
	timeout  time.Duration
	send     func(context.Context, []Probe, time.Duration) ([]Sent, error)
	seen     func(ctx context.Context, first uint32, n, want int) ([]Sighting, error)
}

// run sends probes, in batches, and waits for them.
func (w *way) run(ctx context.Context, probes []Probe, interval time.Duration) ([]trial, error) {
	var out []trial
	for len(probes) > 0 {
		n, bytes := 0, 0
		for n < len(probes) && n < maxBatch && bytes < batchBytes && time.Duration(n)*interval < batchTime {
			bytes += probes[n].Size
			n++
		}
		batch := probes[:n]
		probes = probes[n:]
		first := w.rec.next
		w.rec.next += uint32(n)
		for i := range batch {
			batch[i].Seq = first + uint32(i)
		}
		sent, err := w.send(ctx, batch, interval)
		if err != nil {
			return out, err
		}
		if len(sent) != n {
			if ctx.Err() != nil {
				return out, ctx.Err()
			}
			return out, fmt.Errorf("control response: %d of %d packets sent", len(sent), n)
		}
		want := 0
		for i, s := range sent {
			if s.Seq != batch[i].Seq {
				return out, fmt.Errorf("control response: packet %d instead of %d was sent", s.Seq, batch[i].Seq)
			}
			if s.Err == "" {
				want++
			}
		}
		seen, err := w.seen(ctx, first, n, want)
		if err != nil {
			return out, err
		}
		at := len(out)
		for i := range batch {
			out = append(out, trial{probe: batch[i], sent: sent[i]})
		}
		for i := range seen {
			if k := seen[i].Seq - first; k < uint32(n) {
				out[at+int(k)].seen = &seen[i]
			}
		}
	}
	return out, nil
}

// ways makes the two directions.
func (p *prober) ways() (fwd, rev *way) {
	fwd = &way{rec: &p.fwd, interval: p.cfg.Interval, timeout: p.cfg.Timeout}
	fwd.send = func(ctx context.Context, probes []Probe, interval time.Duration) ([]Sent, error) {
		return p.v.send(ctx, p.s.token, probes, interval), nil
	}
	fwd.seen = func(ctx context.Context, first uint32, n, want int) ([]Sighting, error) {
		r, err := p.ctl.ask(ctx, &request{Op: "report", First: first, N: n, Want: want, WaitNs: int64(p.cfg.Timeout)}, 0, p.cfg.Timeout)
		if err != nil {
			return nil, err
		}
		p.fwd.strangers, p.fwd.overrun = r.Strangers, r.Overrun
		p.rev.notices = r.Notices
		p.wits.there = p.wits.there || r.Witnesses > 0
		p.v.collect()
		p.fwd.notices = p.s.said()
		return r.Sightings, nil
	}
	rev = &way{rec: &p.rev, interval: p.cfg.Interval, timeout: p.cfg.Timeout}
	rev.send = func(ctx context.Context, probes []Probe, interval time.Duration) ([]Sent, error) {
		total := 0
		for _, x := range probes {
			total += x.Size
		}
		r, err := p.ctl.ask(ctx, &request{Op: "send", Probes: probes, Ports: p.ports(), IntervalNs: int64(interval)}, total, time.Duration(len(probes))*interval)
		if err != nil {
			return nil, err
		}
		p.rev.notices = r.Notices
		return r.Sent, nil
	}
	rev.seen = func(ctx context.Context, first uint32, n, want int) ([]Sighting, error) {
		out := p.s.report(ctx, first, n, want, p.r.Here.Socket, p.cfg.Timeout, func(ctx context.Context) { p.e.drain(ctx, p.r.Local) })
		p.s.mu.Lock()
		p.rev.strangers = p.s.strangers
		p.s.mu.Unlock()
		p.rev.overrun = max(p.e.dropped(p.r.Local)-p.overrun, 0)
		return out, ctx.Err()
	}
	return fwd, rev
}

// measure does all phases. What a phase needs of an earlier one that failed is
// left out.
func (p *prober) measure(ctx context.Context) error {
	if err := p.clock(ctx); err != nil {
		return err
	}
	fwd, rev := p.ways()
	// The listener opens its mouths before it is asked to echo.
	if _, err := rev.send(ctx, nil, 0); err != nil {
		return err
	}
	for _, w := range []*way{fwd, rev} {
		to := p.r.There
		if w == rev {
			to = p.r.Here
		}
		if err := p.tryPaths(ctx, w, to, w == fwd); err != nil {
			return err
		}
	}
	for _, w := range []*way{fwd, rev} {
		from, to := p.r.Here, p.r.There
		if w == rev {
			from, to = to, from
		}
		if len(p.live(w.rec, to)) == 0 {
			if err := p.askWitness(ctx, fwd); err != nil {
				return err
			}
		}
		if err := p.tryRest(ctx, w, from, to); err != nil {
			return err
		}
	}
	// Echoes of the first phase came long ago, if they come.
	p.v.collect()
	p.fwd.notices = p.s.said()
	return nil
}

func (p *prober) tos(dscp uint8, e ip.ECN) uint8 { return uint8(ip.TOS(0).WithDSCP(dscp).WithECN(e)) }

// reachPlan goes round paths.
func (p *prober) reachPlan(paths []uint8, rounds int, echo bool) []Probe {
	var out []Probe
	for range rounds {
		for _, path := range paths {
			out = append(out, Probe{Path: path, TOS: p.tos(p.cfg.DSCP, ip.ECT0), Size: smallSize, Echo: echo})
		}
		p.mix(out[len(out)-len(paths):])
	}
	return out
}

// mix puts probes into an order by chance: what drops every nth packet would
// always meet the same ones.
func (p *prober) mix(probes []Probe) {
	shuffle := rand.Shuffle
	if p.chance != nil {
		shuffle = p.chance.Shuffle
	}
	shuffle(len(probes), func(i, k int) { probes[i], probes[k] = probes[k], probes[i] })
}

// live lists the paths on which packets arrive.
func (p *prober) live(rec *record, to Host) []uint8 {
	var out []uint8
	for i := range rec.reach {
		if t := &rec.reach[i]; p.heard(t, to) && !slices.Contains(out, t.probe.Path) {
			out = append(out, t.probe.Path)
		}
	}
	slices.Sort(out)
	return out
}

// classPlan tries each code point of DSCP with ECT(0), and the other values of
// ECN in the RoCE class.
func (p *prober) classPlan(live []uint8) []Probe {
	var out []Probe
	for i := range codeTries {
		path, round := live[i%len(live)], len(out)
		for _, d := range p.cfg.DSCPs {
			out = append(out, Probe{Path: path, TOS: p.tos(d, ip.ECT0), Size: smallSize})
		}
		for _, e := range []ip.ECN{ip.NotECT, ip.ECT1, ip.CE} {
			out = append(out, Probe{Path: path, TOS: p.tos(p.cfg.DSCP, e), Size: smallSize})
		}
		p.mix(out[round:])
	}
	return out
}

// trainPlan is a run of packets of path MTU 1,024, or of what passes, on one
// path.
func (p *prober) trainPlan(path uint8) []Probe {
	size := packetFor(trainSize, p.r.Address)
	for _, m := range append(p.fwd.mtus, p.rev.mtus...) {
		if m.lo > 0 {
			size = min(size, m.lo)
		}
	}
	var out []Probe
	for range p.cfg.Burst {
		out = append(out, Probe{Path: path, TOS: p.tos(p.cfg.DSCP, ip.ECT0), Size: size})
	}
	return out
}

// clock asks for the other end's time over the control channel.
func (p *prober) clock(ctx context.Context) error {
	for range clockAsks {
		sent := time.Now().UnixNano()
		r, err := p.ctl.ask(ctx, &request{Op: "clock"}, 0, 0)
		if err != nil {
			return err
		}
		p.r.Clock.better(echo{sent, r.HeardNs, r.AnsweredNs, time.Now().UnixNano()}, "control")
	}
	return nil
}

// better takes an exchange if it bounds the difference more closely than those
// before.
func (c *Clock) better(x echo, source string) {
	rtt, ok := x.rtt()
	if !ok || c.Source != "" && rtt/2 >= c.Error {
		return
	}
	c.Offset, c.Error, c.Source = time.Duration(x.heard-x.sent+(x.echoed-x.heard-(x.back-x.sent))/2), rtt/2, source
}

// rtt is the time of an exchange without that at the other end; false where the
// other end's clock says what cannot be.
func (x echo) rtt() (time.Duration, bool) {
	here, there := x.back-x.sent, x.echoed-x.heard
	sane := x.heard >= 0 && x.echoed >= x.heard && x.echoed <= maxInstant && there <= here
	return time.Duration(here - there), sane
}

// askWitness sees whether UDP passes on the control channel's port.
func (p *prober) askWitness(ctx context.Context, fwd *way) error {
	if p.wits.tried {
		return nil
	}
	p.wits.tried = true
	c, err := openSocket(netip.AddrPortFrom(p.r.Local, 0))
	if err != nil {
		return nil
	}
	p.e.wg.Go(func() { c.serve(func(a *arrival, b []byte) { p.e.arrive(a, b, c) }) })
	defer c.Close()
	to := netip.AddrPortFrom(p.r.Address, p.cfg.Port)
	for i := range uint32(5) {
		b := make([]byte, smallSize-udpLen-ipHeader(p.r.Address))
		d := datagram{kind: kindWitness, echo: true, seq: i, token: p.s.token, sentAt: time.Now().UnixNano()}
		if d.encode(b) {
			seal(b, c.local(), to)
			_ = c.send(b, to, 0)
		}
	}
	p.s.await(ctx, p.cfg.Timeout, func() bool { return p.s.witnesses != 0 })
	p.s.mu.Lock()
	p.wits.back = p.s.witnesses != 0
	p.s.mu.Unlock()
	if p.wits.back {
		p.wits.there = true
		return nil
	}
	_, err = fwd.seen(ctx, 0, 0, 0) // tells of witnesses there
	return err
}
