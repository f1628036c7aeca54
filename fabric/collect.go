package fabric

import (
	"slices"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/swtch"
)

// Drop implements the log of switches and NICs.
func (r *Run) Drop(d result.Drop) {
	r.dropCount[d.Reason]++
	if len(r.drops) < r.Scenario.Record.MaxDrops {
		r.drops = append(r.drops, d)
	} else {
		r.dropsCut++
	}
	if r.lostLossless(&d) {
		r.breach(d.At, "no drop in a lossless class", d.Node, "%s dropped %d bytes of flow %d in priority %d: %v",
			r.Graph.Nodes[d.Node].Name, d.Bytes, d.Flow, d.Prio, d.Reason)
	}
}

// lostLossless reports whether a drop breaks the promise of a lossless class:
// the switch or NIC that has PFC on for it ran out of room.
func (r *Run) lostLossless(d *result.Drop) bool {
	switch d.Reason {
	case result.DropNoBuffer, result.DropHeadroom, result.DropHostBuffer, result.DropWRED:
		return r.settings[d.Node].lossless&(1<<d.Prio) != 0
	case result.DropWatchdog, result.DropNoRoute, result.DropTTL, result.DropMTU, result.DropError, result.DropDown,
		result.DropV1, result.DropFault, result.NumDropReasons:
	}
	return false
}

// Pause implements the log of switches and NICs.
func (r *Run) Pause(p result.Pause) {
	r.S.Note(uint64(uint32(p.Node))<<16 | uint64(uint32(p.Port))<<4 | uint64(p.Prio))
	if len(r.pauses) < r.Scenario.Record.MaxPauses {
		r.pauses = append(r.pauses, p)
	} else {
		r.pausesCut++
	}
}

// account adds what a lane knows of a flow.
func (r *Run) account(now sim.Time, out *result.Flow, l *lane) {
	n, q := l.c.Sender()
	out.Packets += l.c.Packets
	out.Retransmitted += l.c.Retransmitted
	out.Timeouts += l.c.Timeouts
	if l.shared {
		// The next flow on it starts from nothing.
		l.c.Packets, l.c.Retransmitted, l.c.Timeouts = 0, 0, 0
	}
	st := n.Adapter().QueryRP(now.Clock(), q)
	out.LastRate = sim.Rate(st.Rc)
	out.Cuts += uint64(st.Cuts)
	out.Clamps += uint64(st.Clamps)
	out.Recoveries += uint64(st.Recoveries)
	out.Additive += uint64(st.Additive)
	out.Hyper += uint64(st.Hyper)
}

// Result returns what is known of the run now. It may be called while the run
// goes on (an interrupted one); the slices are given.
func (r *Run) Result() *result.Run {
	now := r.S.Now()
	sc := r.Scenario
	out := &result.Run{
		Name: sc.Name, Title: sc.Title, Teaches: sc.Teaches, Seed: sc.Seed,
		Digest: r.S.Digest(), Events: r.S.Events(), End: now, Interrupted: !r.over || r.unfinished > 0 && r.untilFlows, Why: r.why,
		Flows: append([]result.Flow(nil), r.out...), Pauses: r.pauses, PausesCut: r.pausesCut, Drops: r.drops, DropsCut: r.dropsCut,
		Deadlocks: r.watch.deadlocks, Links: r.links, Series: r.sampler.series(), Warnings: r.warnings, Shape: r.shape,
	}
	for i := range out.Flows {
		if f := &out.Flows[i]; f.State == result.Running {
			for _, l := range r.state[i].lanes {
				r.account(now, f, l)
			}
		}
	}
	for d, n := range r.dropCount {
		if n > 0 {
			out.Lost = append(out.Lost, result.Counter{Name: result.DropReason(d).String(), Value: n})
		}
	}
	r.audit(now)
	out.Storms, out.Reroutes = r.storms(), r.reroutes
	for node := range r.Graph.Nodes {
		out.Nodes = append(out.Nodes, r.nodeResult(now, int32(node), out))
	}
	out.Breaches = append([]result.Breach(nil), r.watch.breaches...)
	return out
}

// nodeResult collects the counters of a node.
func (r *Run) nodeResult(now sim.Time, node int32, out *result.Run) result.Node {
	g := r.Graph
	n := result.Node{Name: g.Nodes[node].Name, Switch: r.Switches[node] != nil, Tier: g.Nodes[node].Tier}
	sw := r.Switches[node]
	for i, p := range r.Ports[node] {
		at := g.Nodes[node].Ports[i]
		rp := result.Port{
			Name: g.PortName(node, int32(i)), Peer: at.Peer, PeerPort: at.PeerPort, Rate: p.Rate(), Delay: p.Delay(),
			TxBusy: p.Sending(), LinkErrors: p.Stats.Errors, Down: p.DownFor(now), GlobalPauses: p.Stats.PauseRx,
		}
		out.DataHops += p.DataTx()
		out.AckHops += p.Stats.AckTx
		for q := range uint8(8) {
			s, d := p.Prio(q), &rp.Prio[q]
			d.TxBytes, d.RxBytes, d.TxPackets, d.RxPackets = s.TxBytes, s.RxBytes, s.TxPackets, s.RxPackets
			d.PauseTx, d.PauseRx, d.ResumeTx, d.ResumeRx = s.StopTx, s.StopRx, s.ResumeTx, s.ResumeRx
			d.PausedFor = p.PausedFor(now, q)
			if sw != nil {
				sw.Count(now, i, q, d)
				d.KMin, d.KMax = sw.Thresholds(i, q)
				d.XOFF, d.XOFFAlpha = sw.XOFF(i, q)
			}
		}
		n.Ports = append(n.Ports, rp)
	}
	if sw != nil {
		n.Buffer = sw.Buffer()
		out.Lossless = append(out.Lossless, r.verdicts(now, node, sw)...)
		return n
	}
	for i := range r.Ports[node] {
		nic := r.NICs[g.Nodes[node].Endpoint+int32(i)]
		c := nic.Config()
		for _, s := range nic.Adapter().Stats() {
			if s.Value != 0 {
				n.NIC = append(n.NIC, result.Counter{Name: s.Name, Value: s.Value})
			}
		}
		n.NIC = append(n.NIC, result.Counter{Name: "rx_discards_phy", Value: nic.Stats.RxDiscards}) // ends the port's, see result.Node.PortNIC
		h := &n.Host
		h.RxQueueRate, h.QPRate, h.PacketRate, h.DrainRate = c.RxRate, c.QPRate, uint64(c.PacketRate), c.DrainRate
		h.RxBuffer, h.PeakRx = c.RxBuffer, max(h.PeakRx, nic.Stats.RxPeak)
		if len(nic.Stats.Queues) == 0 {
			continue
		}
		for k := range c.RxQueues {
			var q host.RxQueueStats
			if k < len(nic.Stats.Queues) {
				q = nic.Stats.Queues[k]
			}
			h.RxQueues = append(h.RxQueues, result.RxQueue{Packets: q.Packets, Bytes: q.Bytes, Busy: q.Busy})
		}
	}
	return n
}

// audit checks what must hold at any moment.
func (r *Run) audit(now sim.Time) {
	held := int64(0)
	for node, sw := range r.Switches {
		if sw != nil {
			held += int64(sw.Packets())
			if err := sw.Audit(); err != nil {
				r.breach(now, "buffer accounting is exact", int32(node), "%s: %v", r.Graph.Nodes[node].Name, err)
			}
		}
		for _, p := range r.Ports[node] {
			held += int64(p.InAir())
		}
	}
	for _, n := range r.NICs {
		held += n.HeldPackets()
	}
	if live := r.S.Pool.Live(); live != held {
		r.breach(now, "packets are conserved", -1, "%d packets exist, %d are somewhere", live, held)
	}
	for i := range r.out {
		f := &r.out[i]
		if f.State == result.Finished && f.Service == "RC" && f.Delivered != f.Bytes {
			r.breach(now, "bytes are conserved", f.DstNode, "flow %d of %d bytes is finished and %d bytes were delivered in order", i, f.Bytes, f.Delivered)
		}
		if f.Delivered > f.Bytes && f.Bytes > 0 && f.Service == "RC" && !r.flows[i].Endless {
			r.breach(now, "every byte is delivered once", f.DstNode, "flow %d of %d bytes has got %d", i, f.Bytes, f.Delivered)
		}
	}
}

// storms lists what the watch and the watchdogs have found. A storm that both saw
// is the watchdog's, which knows what it has dropped.
func (r *Run) storms() []result.Storm {
	var all []result.Storm
	for _, s := range r.watch.storms {
		if !slices.ContainsFunc(r.watchdogs, func(w result.Storm) bool {
			return w.Node == s.Node && w.Port == s.Port && w.Prio == s.Prio && s.From <= w.To && w.From <= s.To
		}) {
			all = append(all, s)
		}
	}
	return append(all, r.watchdogs...)
}

// Storm implements swtch.Log.
func (r *Run) Storm(s result.Storm) {
	for i := range r.watchdogs {
		w := &r.watchdogs[i]
		if w.From == s.From && w.Node == s.Node && w.Port == s.Port && w.Prio == s.Prio {
			*w = s
			return
		}
	}
	r.watchdogs = append(r.watchdogs, s)
}

// verdicts says of each lossless ingress of a switch that was in use whether it
// has, and had, room for what its neighbour sends after XOFF.
func (r *Run) verdicts(now sim.Time, node int32, sw *swtch.Switch) []result.Lossless {
	st := &r.settings[node]
	var all []result.Lossless
	for i := range r.Ports[node] {
		for q := range uint8(8) {
			if st.lossless&(1<<q) == 0 {
				continue
			}
			var c result.PortPrio
			sw.Count(now, i, q, &c)
			if r.Ports[node][i].Prio(q).RxBytes == 0 && c.RxDrops == 0 {
				continue
			}
			all = append(all, result.Lossless{
				Node: node, Port: int32(i), Prio: q, Need: st.need[i], Have: st.headroom[i], Peak: c.PeakHeadroom, Dropped: c.RxDrops,
			})
		}
	}
	return all
}
