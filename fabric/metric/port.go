package metric

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// port reads queue.NODE.PORT.pQ.OF and port.NODE.PORT[.pQ].WHAT. Over several
// ports peaks and shares are maxima, the others sums.
func port(r *result.Run, parts []string) (Value, error) {
	prio, n := -1, len(parts)
	if n == 5 && len(parts[3]) == 2 && parts[3][0] == 'p' && parts[3][1] >= '0' && parts[3][1] <= '7' {
		prio = int(parts[3][1] - '0')
	} else if n != 4 || parts[0] == "queue" {
		return Value{}, fmt.Errorf("give a node, a port and a priority, as in %s.leaf0.Ethernet3.p3.%s", parts[0], map[bool]string{true: "max", false: "pause_rx"}[parts[0] == "queue"])
	}
	what := parts[n-1]
	var out Value
	found := false
	for i := range r.Nodes {
		if !matches(parts[1], r.Nodes[i].Name) {
			continue
		}
		for j := range r.Nodes[i].Ports {
			p := &r.Nodes[i].Ports[j]
			if !matches(parts[2], p.Name) {
				continue
			}
			found = true
			var v Value
			var most, ok bool
			if parts[0] == "queue" {
				v, ok = queue(&p.Prio[prio], what)
				most = true
			} else {
				v, most, ok = counterOf(r, p, prio, what)
			}
			if !ok {
				return Value{}, fmt.Errorf("unknown quantity %q", what)
			}
			out.Unit = v.Unit
			if most {
				out.V = max(out.V, v.V)
			} else {
				out.V += v.V
			}
		}
	}
	if !found {
		return Value{}, fmt.Errorf("there is no port %s of %s", parts[2], parts[1])
	}
	return out, nil
}

func matches(pattern, name string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, p)
	}
	return pattern == name
}

func queue(p *result.PortPrio, of string) (Value, bool) {
	switch of {
	case "max":
		return Value{float64(p.PeakQueue), Bytes}, true
	case "mean":
		return Value{p.MeanQueue, Bytes}, true
	}
	return Value{}, false
}

// counterOf reads a number of a port; most says that of several the largest
// counts.
func counterOf(r *result.Run, p *result.Port, prio int, what string) (v Value, most, ok bool) {
	if prio < 0 {
		share := 0.0
		if r.End > 0 {
			share = float64(p.TxBusy) / float64(r.End)
		}
		switch what {
		case "utilisation":
			return Value{V: share}, true, true
		case "rate":
			n := uint64(0)
			for q := range p.Prio {
				n += p.Prio[q].TxBytes
			}
			return Value{float64(sim.RateOf(int64(n), r.End)), Bits}, false, true
		case "errors":
			return count(p.LinkErrors), false, true
		}
		return Value{}, false, false
	}
	q := &p.Prio[prio]
	switch what {
	case "tx_bytes":
		return Value{float64(q.TxBytes), Bytes}, false, true
	case "rx_bytes":
		return Value{float64(q.RxBytes), Bytes}, false, true
	case "drops":
		return count(q.RxDrops + q.TxDrops), false, true
	case "marks":
		return count(q.Marked), false, true
	case "pause_tx":
		return count(q.PauseTx), false, true
	case "pause_rx":
		return count(q.PauseRx), false, true
	case "wd_detected":
		return count(q.WatchdogDetected), false, true
	case "wd_restored":
		return count(q.WatchdogRestored), false, true
	case "wd_dropped":
		return count(q.WatchdogDropped), false, true
	case "paused":
		return Value{float64(q.PausedFor), Time}, true, true
	case "headroom":
		return Value{float64(q.PeakHeadroom), Bytes}, true, true
	case "ingress":
		return Value{float64(q.PeakIngress), Bytes}, true, true
	case "share":
		if r.End == 0 {
			return Value{}, true, true
		}
		return Value{V: float64(q.PausedFor) / float64(r.End)}, true, true
	}
	return Value{}, false, false
}

func buffer(r *result.Run, rest []string) (Value, error) {
	if len(rest) != 2 {
		return Value{}, fmt.Errorf("give a switch and shared or headroom")
	}
	v, found := int64(0), false
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if !n.Switch || !matches(rest[0], n.Name) {
			continue
		}
		found = true
		switch rest[1] {
		case "shared":
			v = max(v, n.Buffer.PeakShared)
		case "headroom":
			v = max(v, n.Buffer.PeakHeadroom)
		default:
			return Value{}, fmt.Errorf("unknown part %q: give shared or headroom", rest[1])
		}
	}
	if !found {
		return Value{}, fmt.Errorf("there is no switch %q", rest[0])
	}
	return Value{float64(v), Bytes}, nil
}

func nic(r *result.Run, rest []string) (Value, error) {
	if len(rest) != 2 {
		return Value{}, fmt.Errorf("give a host and a counter")
	}
	v, found := uint64(0), false
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Switch || !matches(rest[0], n.Name) {
			continue
		}
		found = true
		for _, c := range n.NIC {
			if c.Name == rest[1] {
				v += c.Value
			}
		}
	}
	if !found {
		return Value{}, fmt.Errorf("there is no host %q", rest[0])
	}
	return count(v), nil
}
