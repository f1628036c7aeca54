package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// judge turns what was measured into the result. It is a pure function of the
// prober's records.
func (p *prober) judge() {
	r := &p.r
	r.Findings = []Finding{}
	if r.Error != "" {
		r.Status = Unknown
		r.Forward.Verdict, r.Reverse.Verdict = CannotTell, CannotTell
		r.Findings = append(r.Findings, Finding{
			ID: "no-control", Status: Unknown, What: "nothing could be measured: " + r.Error, Confidence: "high",
			Effect: Effect{What: "nothing is known about queue pairs to this host: the control channel is TCP and says nothing of UDP 4791"},
			Fix:    []string{fmt.Sprintf("on %s: verbena probe --listen", shown(r.Host))},
		})
		switch {
		case p.self:
			r.Findings[0].Fix = []string{"probe from here another host that runs it, or this host from another one"}
		case !r.Address.IsValid():
			r.Findings[0].Fix = []string{"look at the name (getent ahosts), or give the address"}
		}
		return
	}
	p.judgeTimes()
	r.Forward = p.direction(&p.fwd, r.Here, r.There)
	r.Reverse = p.direction(&p.rev, r.There, r.Here)
	p.judgeClock()
	if f, v := r.Forward.MTU.RoCE, r.Reverse.MTU.RoCE; f > 0 && v > 0 {
		r.RoCEMTU = min(f, v)
	}
	p.find()
	for i := range r.Findings {
		r.Status = max(r.Status, r.Findings[i].Status)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(b.Status, a.Status) })
}

// judgeTimes takes the difference of the clocks and the round-trip times from
// the echoes.
func (p *prober) judgeTimes() {
	r := &p.r
	by := make([][]time.Duration, p.cfg.Paths)
	if p.s == nil {
		return
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for i := range p.fwd.reach {
		t := &p.fwd.reach[i]
		x, ok := p.s.echoes[t.probe.Seq]
		if !ok {
			continue
		}
		r.Clock.better(x, "echo")
		if rtt, sane := x.rtt(); sane {
			by[t.probe.Path] = append(by[t.probe.Path], rtt)
		}
	}
	for _, d := range by {
		r.RTT = append(r.RTT, timesOf(d))
	}
}

// Bounds of a one-way time: less can only be where the clocks moved against
// each other, or more than a packet is waited for.
const (
	clockSlack = 100 * time.Microsecond
	mostOneWay = 2 * maxWait
)

// judgeClock takes the one-way times back if they cannot be: one of the clocks
// was set during the probe, or runs at another rate, or the other end does not
// tell the truth.
func (p *prober) judgeClock() {
	r := &p.r
	for _, d := range []*Direction{&r.Forward, &r.Reverse} {
		if d.OneWay.N > 0 && (d.OneWay.Min < -r.Clock.Error-clockSlack || d.OneWay.Max > mostOneWay) {
			r.Clock.Unsteady = true
		}
	}
	if !r.Clock.Unsteady {
		return
	}
	for _, d := range []*Direction{&r.Forward, &r.Reverse} {
		d.OneWay = Times{}
		for i := range d.Paths {
			d.Paths[i].OneWay = Times{}
		}
	}
	r.Notes = append(r.Notes, "the clocks of the two hosts moved against each other during the probe (one was set, or NTP steers it hard): there are no one-way times; round trips need no clock")
}

func timesOf(d []time.Duration) Times {
	if len(d) == 0 {
		return Times{}
	}
	slices.Sort(d)
	return Times{N: len(d), Min: d[0], Median: d[len(d)/2], Max: d[len(d)-1]}
}

// direction judges one way: from a sender to a receiver.
func (p *prober) direction(rec *record, from, to Host) Direction {
	d := Direction{ICMP: rec.notices, Strangers: rec.strangers, Overrun: rec.overrun}
	for i := range p.cfg.Paths {
		d.Paths = append(d.Paths, p.path(rec, i, to))
	}
	errs := map[string]int{}
	var oneWay []time.Duration
	last := make([]uint32, p.cfg.Paths)
	out := rec.out()
	for i := range rec.reach {
		t := &rec.reach[i]
		if t.sent.Err != "" {
			errs[t.sent.Err]++
			if !t.left() && !out {
				continue
			}
		}
		d.Sent++
		if !p.heard(t, to) {
			continue
		}
		d.Seen++
		oneWay = append(oneWay, p.oneWay(rec, t))
		if t.seen.Order < last[t.probe.Path] {
			d.Reordered++
		}
		last[t.probe.Path] = max(last[t.probe.Path], t.seen.Order)
		d.Duplicated += max(t.seen.Socket, t.seen.Capture, 1) - 1
	}
	for what, n := range errs {
		d.Errors = append(d.Errors, Count{what, n})
	}
	slices.SortFunc(d.Errors, func(a, b Count) int { return cmp.Compare(a.What, b.What) })
	d.OneWay = timesOf(oneWay)
	d.Cut = rec.cut
	for _, t := range rec.all() {
		if !t.passed() {
			continue
		}
		if t.seen.Cut > 0 {
			d.Cut++
		}
		if t.seen.ICRC == 0 {
			d.BadICRC++
		}
		if t.seen.DF == 0 && p.r.Address.Is4() {
			d.ClearedDF++
		}
	}
	p.verdict(&d, rec, to)
	p.classes(&d, rec, to)
	p.mtu(&d, rec, from)
	d.burst(rec, p.cfg.Burst, func(t *trial) bool { return p.heard(t, to) })
	return d
}

// localQueue is the errno of a packet that the sender's own queue dropped: it
// is lost like others.
const localQueue = "ENOBUFS"

// all returns every trial.
func (r *record) all() []*trial {
	var out []*trial
	for _, list := range append([][]trial{r.reach, r.class}, r.trains...) {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// heard reports whether a queue pair of the receiver would have had the packet,
// as far as can be heard: by the socket where there is one, which is behind the
// host's firewall, else by the packet socket.
func (p *prober) heard(t *trial, to Host) bool {
	return t.passed() && (t.seen.Socket > 0 || !to.Socket)
}

// oneWay is the time of a packet with the difference of the clocks taken out.
func (p *prober) oneWay(rec *record, t *trial) time.Duration {
	d := time.Duration(t.seen.At - t.sent.At)
	if rec.reverse {
		return d + p.r.Clock.Offset
	}
	return d - p.r.Clock.Offset
}

func (p *prober) path(rec *record, i int, to Host) Path {
	x, out := Path{}, rec.out()
	var oneWay []time.Duration
	for k := range rec.reach {
		t := &rec.reach[k]
		if int(t.probe.Path) != i {
			continue
		}
		x.Port = t.sent.Port
		if !t.left() && !out {
			continue
		}
		x.Sent++
		if p.heard(t, to) {
			x.Seen++
			x.TTL, x.Arrived = t.seen.TTL, t.seen.Port
			oneWay = append(oneWay, p.oneWay(rec, t))
		}
	}
	x.OneWay = timesOf(oneWay)
	if i < len(rec.mtus) {
		x.MTU = rec.mtus[i].lo
	}
	return x
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
}
