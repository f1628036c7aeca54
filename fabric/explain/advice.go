package explain

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// Advice is a change that a finding asks for.
type Advice struct {
	Do      string // the change, with the scenario's key where there is one
	Because string // the finding
	Costs   string // what it costs; empty: nothing that is known
}

// advice derives what to change first: what the main cause asks for, then what
// the next finding does.
func (s *Story) advice(n *net) []Advice {
	a := &adviser{s: s, n: n}
	a.deadlock()
	a.storm()
	a.loss()
	a.headroom()
	if s.Verdict.Main == AllWell {
		return a.out[:min(maxAdvice, len(a.out))]
	}
	if s.Verdict.Main == MainECMP {
		a.ecmp()
	}
	a.receivers()
	a.links()
	a.marks()
	a.spread()
	a.senders()
	if s.Verdict.Main != MainECMP {
		a.ecmp()
	}
	a.fair()
	return a.out[:min(maxAdvice, len(a.out))]
}

type adviser struct {
	s   *Story
	n   *net
	out []Advice
	rp  bool // DCQCN is to be turned on, said already
}

func (a *adviser) say(because, costs, do string, args ...any) {
	a.out = append(a.out, Advice{fmt.Sprintf(do, args...), because, costs})
}

func (a *adviser) deadlock() {
	if len(a.s.Deadlocks) == 0 {
		return
	}
	d := &a.s.Deadlocks[0]
	if len(d.Turns) > 0 {
		a.say("they close the cycle of stops", "", "route so that no packet goes up after it came down: %s at %s do",
			plural(d.Turns[0].Flows, "flow"), d.Turns[0].Node)
	} else {
		a.say("the cycle of stops follows them", "", "break the cycle of routes (up-down routing, or another priority after the turn)")
	}
	if d.Opened != OpenedByWatchdog {
		a.say("nothing else opens a deadlock that stands", "it drops what waits, and go-back-N sends it again",
			"turn the PFC watchdog on (switch.pfc.watchdog.enable)")
	}
}

func (a *adviser) storm() {
	w := a.s.stormRoot()
	if w == nil {
		if t := a.s.stormTree(); t != nil {
			a.say(t.Root.Name+" says stop without end", "it drops what waits for that port", "turn the PFC watchdog on (switch.pfc.watchdog.enable)")
			a.say("its NIC is the root", "", "take %s out of the network and reset its NIC", t.Root)
		}
		return
	}
	if !w.Watchdog {
		a.say(w.By.Name+" says stop without end", "it drops what waits for that port", "turn the PFC watchdog on (switch.pfc.watchdog.enable)")
	}
	if w.Host {
		a.say("its NIC is the root", "", "take %s out of the network and reset its NIC", w.By)
	}
}

func (a *adviser) loss() {
	l := a.s.Loss
	if l == nil {
		return
	}
	if len(l.Misfits) > 0 {
		m := &l.Misfits[0]
		if m.Everywhere {
			a.say("RDMA travels there and is dropped", "", "turn PFC on for priority %d (switch.pfc.priorities), or move RDMA to one that has it", m.Want)
		} else {
			a.say(fmt.Sprintf("it puts them into priority %d", m.Got), "", "map the flows' DSCP to priority %d at %s (switch.dscp_map), as its neighbours do", m.Want, m.At)
		}
	}
	if i := slices.IndexFunc(l.Deaf, func(d Deaf) bool { return d.Drops > 0 }); i >= 0 {
		d := &l.Deaf[i]
		a.say("it does not obey "+d.At.Name, "", "turn PFC on for priority %d at %s", d.Prio, d.Peer)
	}
	if len(l.Mute) > 0 {
		a.say("it drops and never says stop", "", "turn PFC on for priority %d at %s (switch.pfc.priorities)", l.Mute[0].Prio, l.Mute[0].At)
	}
	if a.s.Verdict.Main == MainLinkDown {
		a.say("its packets had nowhere to go", "", "mend the link at %s, or give its traffic another way", a.s.Verdict.At)
		return
	}
	if l.Drops == 0 && l.Cut == 0 && l.Timeouts > 0 && l.Again > 0 {
		a.say(fmt.Sprintf("%s with nothing lost: packets wait longer than the timer, and are sent again for nothing", plural(int(l.Timeouts), "timeout")),
			"a lost last packet is missed later", "raise the ACK timeout (host.rdma.timeout_exp)")
	}
	for i := range l.Places {
		p := &l.Places[i]
		switch p.Reason {
		case result.DropMTU:
			a.say("packets are larger than it takes", "", "raise the MTU at %s (switch.mtu), or lower the path MTU (packet.mtu)", p.At)
			return
		case result.DropV1:
			a.say("RoCEv1 has no IP header, so routers drop it", "", "use RoCEv2 (host.roce: v2) between subnets")
			return
		case result.DropNoRoute, result.DropTTL:
			a.say("packets end there", "", "mend the routes at %s", p.At)
			return
		case result.DropError, result.DropDown:
			a.say(verb(int(p.Count), "packet was lost there", "packets were lost there"), "", "mend the link at %s", p.At)
			return
		case result.DropHostBuffer:
			a.say("the NIC dropped what the host did not take", "it spreads the host's slowness into the network",
				"turn PFC on at %s (host.nic.pfc)", p.At)
			return
		case result.DropNoBuffer, result.DropHeadroom, result.DropWRED, result.DropWatchdog, result.DropFault, result.NumDropReasons:
		}
	}
}

func (a *adviser) headroom() {
	const cost = "it is taken from the shared buffer: XOFF comes earlier"
	l := &a.s.Lossless
	switch {
	case l.Verdict == Violated && l.Tightest != nil && l.Tightest.Over() > 0 && (a.s.Loss == nil || len(a.s.Loss.Deaf)+len(a.s.Loss.Mute) == 0):
		t := l.Tightest
		a.say(fmt.Sprintf("its %s were exceeded by %s", size(t.Have), size(t.Over())), cost,
			"give %s priority %d %s of headroom (switch.buffer.headroom)", t.At, t.Prio, size(max(t.Need, t.Peak)))
	case l.Verdict == HeldOnly:
		t := l.Shortest
		a.say(fmt.Sprintf("it has %s less than its cable and frames ask for, and other traffic may need them", size(t.Need-t.Have)), cost,
			"give %s priority %d %s of headroom (switch.buffer.headroom)", t.At, t.Prio, size(t.Need))
	}
}

func (a *adviser) receivers() {
	for i := range a.s.Hosts {
		l := &a.s.Hosts[i]
		switch l.Kind {
		case OneRxQueue:
			a.say(fmt.Sprintf("one of %d receive queues is busy %s of the time", l.Queues, percent(l.Busy)), "",
				"spread flows over %s's receive queues: RSS over the UDP ports (host.nic.rss: udp), and several queue pairs or source ports", l.Host)
		case RxQueues, Drain:
			a.say("it takes in less than arrives", "", "make %s take in more (host.nic.pcie_rate, rx_queues), or send it less", l.Host)
		case QPEngine, PacketRate:
			continue
		}
		return
	}
}

func (a *adviser) links() {
	if len(a.s.Trees) == 0 {
		return
	}
	c := &a.s.Trees[0].Cause
	switch c.Kind {
	case LinkDown:
		a.say("what waits for it fills the buffer", "", "mend the link at %s, or let routes leave it", c.DownAt)
	case GlobalPause:
		a.say("it stops all priorities, CNPs too", "", "turn 802.3x PAUSE off and PFC on at %s (switch.pfc.global_pause)", a.s.Trees[0].Root)
	case Starved:
		a.say(fmt.Sprintf("other priorities took %s of %s", percent(c.OtherPrio), a.s.Trees[0].Root), "",
			"give priority %d a weight there (switch.scheduler.weights)", a.s.Trees[0].Prio)
	case Unknown, Incast, Collision, StepDown, SlowReceiver, StormHost, Cycle:
	}
}

func (a *adviser) marks() {
	r := a.s.Rates
	if r == nil {
		return
	}
	if h := a.s.falseMarks(); h != nil {
		a.raise(h)
	}
	if q := r.Silent; q != nil && (q.Limit > 0 || q.KMin > 0) {
		a.say("PFC acted and ECN did not", "", "bring Kmin (%s) below XOFF (%s at the lowest) of priority %d (switch.ecn.kmin)%s", size(q.KMin), size(q.Limit), q.Prio, a.n.atMost(q.Root, q.Prio))
	}
	if r.InData && r.Lost*1000 <= r.CNPs*cnpLossPermille {
		a.say("they wait in the queues that they tell of", "", "give CNPs a strict priority of their own (host.cnp.priority, switch.scheduler.strict)")
	}
	if r.Lost*1000 > r.CNPs*cnpLossPermille {
		a.say(fmt.Sprintf("%s of %s did not arrive", count(r.Lost), plural(r.CNPs, "CNP")), "",
			"give CNPs a strict priority of their own (host.cnp.priority, switch.scheduler.strict)")
	}
	if h := a.s.falseMarks(); h == nil && len(r.Held) > 0 && r.Held[0].Recovery > 0 {
		h := &r.Held[0]
		a.say(fmt.Sprintf("from %s to %s takes %s", speed(h.From), speed(h.Target), when(h.Recovery)), "queues and marks rise with it",
			"recover faster: rpg_ai_rate above %s, or rpg_time_reset below %s", speed(h.AI), when(h.IncreaseEvery))
	}
}

// raise proposes a Kmin above the largest benign burst, as long as PFC does not
// come first.
func (a *adviser) raise(h *Held) {
	wire := a.n.onWire(h.Burst.Bytes)
	k := above(wire)
	e := a.n.egress(h.At.Port.Node, h.At.Port.Port)
	if e == none {
		a.say(fmt.Sprintf("the largest benign burst is %s", size(h.Burst.Bytes)), "", "raise Kmin of priority %d at %s from %s to %s (switch.ecn.kmin)",
			h.At.Prio, h.At.Port, size(h.At.KMin), size(k))
		return
	}
	if most, by, ok := a.n.mostKMin(e, h.At.Prio); ok && k > most {
		if k = most; wire >= most {
			may := fmt.Sprintf("Kmin of priority %d there may be %s at most (switch.ecn.kmin), now %s", h.At.Prio, size(most), size(h.At.KMin))
			if most == 0 {
				may = fmt.Sprintf("no Kmin of priority %d there (switch.ecn.kmin), now %s, is small enough as it is", h.At.Prio, size(h.At.KMin))
			}
			a.say(fmt.Sprintf("no Kmin is above the largest benign burst, %s, and lets ECN act before PFC: %s is stopped before the queue is at %s", size(h.Burst.Bytes), a.n.neighbour(by), size(wire)),
				"senders wait for each other, or others have less of the buffer",
				"make the bursts at %s smaller (shorter messages, or fewer senders at once), or XOFF larger (switch.buffer.alpha, switch.buffer.xoff); %s", h.At.Port, may)
			return
		}
	}
	rate := a.n.port(e).Rate
	a.say(fmt.Sprintf("the largest benign burst is %s", size(h.Burst.Bytes)),
		fmt.Sprintf("short messages may wait %s behind such a queue instead of %s", when(rate.For(int(k))), when(rate.For(int(h.At.KMin)))),
		"raise Kmin of priority %d at %s from %s to %s (switch.ecn.kmin)", h.At.Prio, h.At.Port, size(h.At.KMin), size(k))
}

// neighbour names who is stopped when an ingress is full.
func (n *net) neighbour(by Place) string {
	if e := n.egress(by.Node, by.Port); e != none {
		if p := n.peer(e); p != none {
			return n.place(p).Name
		}
	}
	return "the neighbour at " + by.Name
}

// above returns the power of two above the frames of a burst: 256 KiB for
// 128 KB or 128 KiB of data.
func above(n int64) int64 { return 1 << bits.Len64(uint64(max(1, n))) }

func (a *adviser) spread() {
	if a.s.Spreading.Count == 0 {
		return
	}
	why := fmt.Sprintf("%s for %s", verb(a.s.Spreading.Count, "flow elsewhere waits", "flows elsewhere wait"), a.s.Spreading.Victims[0].Root)
	switch {
	case a.s.Rates == nil:
		a.rp = true
		a.say(why, "the congested flows themselves end later", "turn DCQCN on (host.dcqcn.preset) with Kmin below XOFF, so that senders slow down before PFC stops everybody")
	case a.s.Rates.Silent == nil:
		a.say(why, "the congested flows themselves end later", "mark earlier at %s: %s", a.s.Spreading.Victims[0].Root, a.earlier())
	}
}

// earlier says how to mark before PFC acts at the root of the worst victim.
func (a *adviser) earlier() string {
	v := &a.s.Spreading.Victims[0]
	for i := range a.s.Trees {
		t := &a.s.Trees[i]
		if t.root != v.rootKey || t.Prio != v.Prio || t.root < 0 {
			continue
		}
		k, xoff := a.n.kmin(t.root, t.Prio), t.lowestLimit()
		if k > 0 && xoff > 0 && k >= xoff {
			return fmt.Sprintf("bring Kmin (%s) below XOFF (%s at the lowest) (switch.ecn.kmin)%s", size(k), size(xoff), a.n.atMost(t.Root, t.Prio))
		}
		if k > 0 {
			return fmt.Sprintf("lower Kmin (%s) and Kmax, or raise Pmax (switch.ecn)", size(k))
		}
	}
	return "lower Kmin and Kmax, or raise Pmax (switch.ecn)"
}

func (a *adviser) senders() {
	for i := range a.s.Hosts {
		l := &a.s.Hosts[i]
		switch l.Kind {
		case QPEngine:
			a.say(fmt.Sprintf("the NIC gives one queue pair %s of %s", speed(l.Max), speed(l.Line)), "", "use more queue pairs (host.rdma.qps)")
		case PacketRate:
			do := "use larger packets (packet.mtu)"
			if a.n.partFull(l.Host.Node) {
				do = "send larger messages (workload.message), or several in one"
			}
			a.say(fmt.Sprintf("%s reaches %s packets a second", l.Host, count(l.Packets)), "", "%s", do)
		case OneRxQueue, RxQueues, Drain:
			continue
		}
		return
	}
}

// partFull reports whether most packets of a host are not full: its messages are
// shorter than a packet may be.
func (n *net) partFull(host int32) bool {
	var bytes, packets int64
	for i := range n.flows {
		if d := &n.flows[i]; d.from == host && d.f.Bytes > 0 && d.f.Packets > 0 {
			packets = min(mostBytes, packets+int64(min(d.f.Packets, mostBytes)))
			bytes = min(mostBytes, bytes+max(0, min(d.f.Bytes, mostBytes)))
		}
	}
	return packets > 0 && bytes/packets < int64(n.r.Shape.Payload)*3/4
}

func (a *adviser) ecmp() {
	for i := range a.s.Tiers {
		t := &a.s.Tiers[i]
		if t.Polarised && t.Crowded > 0 {
			a.say(fmt.Sprintf("%d of %d equal links carry everything", t.Used, t.Links), "",
				"give each switch its own hash seed (switch.ecmp.seed: per-switch), and hash the UDP ports (switch.ecmp.fields: 5-tuple)")
			return
		}
		if t.Costs() {
			a.say(fmt.Sprintf("%s share %s", plural(t.SlowestWith, "flow"), t.SlowestAt), "more queue pairs for the NICs to keep",
				"spread each flow over several queue pairs, and so source ports (host.rdma.qps)")
			return
		}
	}
}

func (a *adviser) fair() {
	for i := range a.s.Fairness.Groups {
		if g := &a.s.Fairness.Groups[i]; g.PortFair && a.s.Rates == nil && !a.rp {
			a.say("PFC shares "+g.At.Name+" by ingress port", "the flows end later than with PFC alone while rates recover", "turn DCQCN on (host.dcqcn.preset): it shares by flow")
			return
		}
	}
}
