package simhost

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// sw is a switch.
func (v *view) sw(node int32) snapshot.Switch {
	n := &v.r.Nodes[node]
	s := v.sc.SwitchFor(n.Name)
	out := snapshot.Switch{Name: n.Name}
	xoff := uint64(s.Buffer.XOFF) // 0: it depends on what is free
	seen := map[snapshot.ECNProfile]bool{}
	var pfc [8]bool
	for q := range pfc {
		pfc[q] = s.PFC.Priorities.Has(uint8(q))
	}
	dscp := map[int]int{}
	for code, prio := range s.DSCPMap {
		dscp[code] = int(prio)
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		var rx, tx [8]uint64
		sp := snapshot.SwitchPort{
			Name: p.Name, PFC: snapshot.Known(pfc), DSCP: dscp, Trust: snapshot.Known(fmt.Sprint(s.Trust)), RateBps: snapshot.Known(uint64(p.Rate)),
		}
		if xoff > 0 {
			sp.XOFF = snapshot.Known(xoff)
		}
		for q := range p.Prio {
			c := &p.Prio[q]
			if v.end {
				rx[q], tx[q] = c.PauseRx+c.ResumeRx, c.PauseTx+c.ResumeTx
			}
			if s.PFC.Watchdog.On && pfc[q] {
				sp.Queues = append(sp.Queues, v.watchdog(q, c))
			}
			if c.KMax == 0 || c.TxPackets == 0 {
				continue
			}
			e := snapshot.ECNProfile{Name: fmt.Sprintf("priority %d at %v", q, p.Rate), Kmin: uint64(c.KMin), Kmax: uint64(c.KMax), XOFF: xoff, Queue: q}
			if m, ok := s.ECN.For(uint8(q), p.Rate); ok {
				e.Pmax = m.PMax.Float()
			}
			if !seen[e] {
				seen[e] = true
				out.Profiles = append(out.Profiles, e)
			}
		}
		sp.PFCRx, sp.PFCTx = snapshot.Known(rx), snapshot.Known(tx)
		out.Ports = append(out.Ports, sp)
	}
	return out
}

func (v *view) watchdog(q int, c *result.PortPrio) snapshot.WatchdogQueue {
	w := snapshot.WatchdogQueue{Queue: q, Status: "operational"}
	if !v.end {
		return w
	}
	if c.WatchdogDetected > c.WatchdogRestored {
		w.Status = "stormed"
	}
	w.Detected, w.Restored, w.TxOK, w.TxDrop = c.WatchdogDetected, c.WatchdogRestored, c.TxPackets, c.WatchdogDropped
	return w
}
