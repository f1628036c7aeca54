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
			Fix:    []string{fmt.Sprintf("on %s: verbena probe --listen", r.Host)},
		})
		return
	}
	p.judgeTimes()
	r.Forward = p.direction(&p.fwd, r.Here, r.There)
	r.Reverse = p.direction(&p.rev, r.There, r.Here)
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
		by[t.probe.Path] = append(by[t.probe.Path], time.Duration((x.back-x.sent)-(x.echoed-x.heard)))
	}
	for _, d := range by {
		r.RTT = append(r.RTT, timesOf(d))
	}
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
	d := Direction{ICMP: rec.notices, Strangers: rec.strangers}
	for i := range p.cfg.Paths {
		d.Paths = append(d.Paths, p.path(rec, i, to))
	}
	errs := map[string]int{}
	var oneWay []time.Duration
	last := make([]uint32, p.cfg.Paths)
	for i := range rec.reach {
		t := &rec.reach[i]
		if t.sent.Err != "" {
			errs[t.sent.Err]++
			if t.sent.Err != localQueue {
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
	for _, t := range rec.all() {
		if !t.passed() {
			continue
		}
		if t.seen.ICRC == 0 {
			d.BadICRC++
		}
		if t.seen.DF == 0 && p.r.Address.Is4() {
			d.ClearedDF++
		}
	}
	p.verdict(&d, rec, to)
	p.classes(&d, rec)
	p.mtu(&d, rec, from)
	d.burst(rec, p.cfg.Burst)
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
	x := Path{}
	var oneWay []time.Duration
	for k := range rec.reach {
		t := &rec.reach[k]
		if int(t.probe.Path) != i {
			continue
		}
		x.Port = t.sent.Port
		if t.sent.Err != "" && t.sent.Err != localQueue {
			continue
		}
		x.Sent++
		if p.heard(t, to) {
			x.Seen++
			x.TTL = t.seen.TTL
			oneWay = append(oneWay, p.oneWay(rec, t))
		}
	}
	x.OneWay = timesOf(oneWay)
	if i < len(rec.mtus) {
		x.MTU = rec.mtus[i].lo
	}
	return x
}

// minForDead is how many packets of a path must be missing, all of them, for
// the path to count as closed and not as lossy.
const minForDead = 5

// verdict says whether the port is open.
func (p *prober) verdict(d *Direction, rec *record, to Host) {
	var socket, capture, left int
	for i := range rec.reach {
		t := &rec.reach[i]
		if t.sent.Err == "" || t.sent.Err == localQueue {
			left++
		}
		if t.passed() {
			socket += min(t.seen.Socket, 1)
			capture += min(t.seen.Capture, 1)
		}
	}
	var refused []string
	for _, n := range rec.notices {
		if n.What != tooBig {
			refused = append(refused, fmt.Sprintf("%s (ICMP from %v)", n.What, n.From))
			d.Where = "network"
			if a := p.r.Address; n.From == a.WithZone("") || n.From == p.r.Local.WithZone("") {
				d.Where = "receiver"
			}
		}
	}
	hardware := hardwareOf(to)
	switch {
	case d.Seen > 0:
		d.HeardBy = "capture"
		if socket > 0 {
			d.HeardBy = "socket"
		}
		d.Verdict = Open
		for _, x := range d.Paths {
			if x.Seen == 0 && x.Sent >= minForDead {
				d.Verdict = Partly
			}
		}
		if d.Verdict == Open {
			d.Where = ""
			return
		}
		d.Why = "no packet of some source ports arrives"
		if len(refused) > 0 {
			d.Why = strings.Join(refused, ", ")
		}
	case left == 0 && len(d.Errors) > 0 && d.Errors[0].What == "EPERM":
		d.Verdict, d.Where, d.Why = Blocked, "sender", "the sender's own firewall does not let the packets out (EPERM)"
	case left == 0 && len(d.Errors) > 0:
		d.Verdict, d.Where, d.Why = Blocked, "sender", "the packets do not leave the sender: "+d.Errors[0].What
	case socket == 0 && capture > 0:
		d.Verdict, d.Where = Blocked, "receiver"
		d.Why = "the packets arrive at the receiver's interface and not at its socket: its own firewall, or its reverse-path filter, drops them"
	case d.Strangers > 0:
		d.Verdict, d.Where = Blocked, "network"
		d.Why = "the packets arrive from another address: it is translated on the way, and the ICRC covers it"
	case len(refused) > 0:
		d.Verdict, d.Why = Blocked, "refused: "+strings.Join(refused, ", ")
	case !to.Socket && !to.Capture:
		d.Verdict = CannotTell
		d.Why = fmt.Sprintf("nobody could listen at the receiver: UDP %d: %s; packet socket: %s", p.cfg.RoCEPort, to.SocketWhy, to.CaptureWhy)
	case hardware != "":
		d.Verdict = CannotTell
		d.Why = fmt.Sprintf("nothing arrives, but the receiver's RNIC %s may take UDP %d before its kernel sees it; %s", hardware, p.cfg.RoCEPort, p.otherUDP())
	default:
		d.Verdict, d.Where = Blocked, "network"
		d.Why = "nothing arrives at the receiver's interface"
		if !to.Capture {
			d.Where, d.Why = "network or receiver", "nothing arrives at the receiver's socket (without a packet socket there, the network and the receiver's own firewall cannot be told apart)"
		}
		d.Why += "; " + p.otherUDP()
	}
}

// otherUDP says what became of UDP on another port.
func (p *prober) otherUDP() string {
	switch {
	case !p.wits.tried:
		return "other UDP ports were not tried"
	case p.wits.back:
		return fmt.Sprintf("UDP %d passes both ways", p.cfg.Port)
	case p.wits.there:
		return fmt.Sprintf("UDP %d passes from here to there", p.cfg.Port)
	}
	return fmt.Sprintf("UDP %d does not pass either", p.cfg.Port)
}

// hardwareOf names the hardware RDMA devices of a host.
func hardwareOf(h Host) string {
	var names []string
	for _, d := range h.Devices {
		if d.Hardware {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

// softwareOf names the kernel's software RDMA devices of a host.
func softwareOf(h Host) string {
	var names []string
	for _, d := range h.Devices {
		if !d.Hardware {
			names = append(names, d.Name)
		}
	}
	return strings.Join(names, ", ")
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
}
