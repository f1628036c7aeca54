package monitor

import (
	"strconv"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// key names a series: the plot, the device and port, and the line.
type key struct {
	Plot   string `json:"plot"`
	Device string `json:"device"`
	Line   string `json:"line"`
}

// point is the newest value of a series.
type point struct {
	key   key
	value float64
}

// Plots, as web/app.js names them.
const (
	plotThroughput = "throughput" // bit/s
	plotPause      = "pause"      // share of time, 0 to 1
	plotFrames     = "pfc"        // frames/s
	plotECN        = "ecn"        // packets/s
	plotCNP        = "cnp"        // packets/s
	plotRetry      = "retransmit" // events/s
	plotOrder      = "outoforder" // packets/s
)

// lines are the canonical counters and where they are drawn.
var lines = []struct {
	name counter.Name
	plot string
	line string
}{
	{counter.ECNMarkedRx, plotECN, "marked, received"},
	{counter.CNPTx, plotCNP, "sent"},
	{counter.CNPRxHandled, plotCNP, "handled"},
	{counter.CNPRxIgnored, plotCNP, "ignored"},
	{counter.NAKSeqRx, plotRetry, "NAK"},
	{counter.NAKSeqImplied, plotRetry, "implied NAK"},
	{counter.ACKTimeout, plotRetry, "timeout"},
	{counter.OOSRx, plotOrder, "received"},
}

// wordBytes is the unit of the data counters of a port (IBA 16.1.3.5).
const wordBytes = 4

// rates returns what rose between two readings, by second.
func rates(before, after *snapshot.Snapshot, seconds float64) []point {
	var out []point
	add := func(plot, device, line string, b, a snapshot.Value[uint64], factor float64) {
		if a.IsZero() {
			return
		}
		if d, ok := snapshot.Delta(b, a).Get(); ok {
			out = append(out, point{key{plot, device, line}, float64(d) * factor / seconds})
		}
	}
	portWords := func(device, line, name string, b, a snapshot.Counters) {
		if d, ok := counter.PortDelta(name, b.Get(name), a.Get(name)).Get(); ok {
			out = append(out, point{key{plotThroughput, device, line}, float64(d) * wordBytes * 8 / seconds})
		}
	}
	labels := after.Labels()
	for i := range after.Devices {
		d := &after.Devices[i]
		was := before.Same(d)
		if was == nil {
			continue
		}
		f := counter.Of(d)
		for j := range d.Ports {
			p := &d.Ports[j]
			q := portOf(was, p.Number)
			if q == nil {
				continue
			}
			at := labels[i] + "/" + strconv.Itoa(p.Number)
			name := p.Netdev.Or("")
			for _, way := range []struct {
				line, data, stat string
				bytes            counter.Name
			}{{"received", "port_rcv_data", "rx_bytes", counter.RxBytes}, {"sent", "port_xmit_data", "tx_bytes", counter.TxBytes}} {
				switch a := counter.Get(f, p.HWCounters, way.bytes); {
				case p.Counters.Get(way.data).IsKnown():
					portWords(at, way.line, way.data, q.Counters, p.Counters)
				case a.IsKnown():
					add(plotThroughput, at, way.line, counter.Get(f, q.HWCounters, way.bytes), a, 8)
				default:
					// rdma_rxe counts no bytes: its interface's are all there is.
					n, o := after.Netdev(name), before.Netdev(name)
					if n != nil && o != nil {
						add(plotThroughput, at, way.line+" by "+name, o.Statistics.Get(way.stat), n.Statistics.Get(way.stat), 8)
					}
				}
			}
			for _, l := range lines {
				if d, ok := counter.Delta(f, q.HWCounters, p.HWCounters, l.name).Get(); ok {
					out = append(out, point{key{l.plot, at, l.line}, float64(d) / seconds})
				}
			}
		}
	}
	out = append(out, pauses(before, after, seconds)...)
	if len(after.Devices) == 0 {
		out = append(out, switchFrames(before, after, seconds)...)
	}
	return out
}

// switchFrames are the PFC frames of the ports of a switch that is a host of its own;
// that beside a host is not drawn.
func switchFrames(before, after *snapshot.Snapshot, seconds float64) []point {
	if before.Switch == nil || after.Switch == nil {
		return nil
	}
	was := map[string]*snapshot.SwitchPort{}
	for i := range before.Switch.Ports {
		was[before.Switch.Ports[i].Name] = &before.Switch.Ports[i]
	}
	var out []point
	for i := range after.Switch.Ports {
		p := &after.Switch.Ports[i]
		b := was[p.Name]
		if b == nil {
			continue
		}
		for _, side := range []struct {
			line string
			b, a snapshot.Value[[8]uint64]
		}{{"received", b.PFCRx, p.PFCRx}, {"sent", b.PFCTx, p.PFCTx}} {
			first, _ := side.b.Get()
			now, _ := side.a.Get()
			if !side.a.IsKnown() || !side.b.IsKnown() {
				continue
			}
			for prio := range 8 {
				d, ok := snapshot.Delta(snapshot.Known(first[prio]), snapshot.Known(now[prio])).Get()
				if ok && now[prio] != 0 {
					out = append(out, point{key{plotFrames, p.Name, side.line + ", priority " + strconv.Itoa(prio)}, float64(d) / seconds})
				}
			}
		}
	}
	return out
}

// pauses are PFC by port, priority and direction; of interfaces without a port, such as
// those of a bond, by interface. Priorities of which nothing was ever counted have no
// line.
func pauses(before, after *snapshot.Snapshot, seconds float64) []point {
	var out []point
	owner := map[string]string{}
	for i, l := range after.Labels() {
		for _, p := range after.Devices[i].Ports {
			if n := p.Netdev.Or(""); n != "" && owner[n] == "" {
				owner[n] = l + "/" + strconv.Itoa(p.Number)
			}
		}
	}
	for i := range after.Netdevs {
		n := &after.Netdevs[i]
		was := before.Netdev(n.Name)
		if was == nil {
			continue
		}
		a, b := counter.PFCOf(n), counter.PFCOf(was)
		if !a.Any {
			continue
		}
		at := owner[n.Name]
		if at == "" {
			at = n.Name
		}
		dcb := n.DCB.PFC.Or(snapshot.PFC{})
		for prio := range 8 {
			for _, side := range []struct {
				line string
				a, b *counter.Pause
			}{{"received", &a.Rx[prio], &b.Rx[prio]}, {"sent", &a.Tx[prio], &b.Tx[prio]}} {
				line := side.line + ", priority " + strconv.Itoa(prio)
				used := dcb.Enabled[prio] || side.a.Frames.Or(0)|side.a.DurationUS.Or(0) != 0
				if !used {
					continue
				}
				if d, ok := snapshot.Delta(side.b.DurationUS, side.a.DurationUS).Get(); ok {
					out = append(out, point{key{plotPause, at, line}, min(float64(d)/1e6/seconds, 1)})
				}
				if d, ok := snapshot.Delta(side.b.Frames, side.a.Frames).Get(); ok {
					out = append(out, point{key{plotFrames, at, line}, float64(d) / seconds})
				}
			}
		}
	}
	return out
}

func portOf(d *snapshot.Device, number int) *snapshot.Port {
	for i := range d.Ports {
		if d.Ports[i].Number == number {
			return &d.Ports[i]
		}
	}
	return nil
}
