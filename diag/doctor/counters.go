package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Counters of conditions: delta(name), rate(name), total(name), seen(name).
//
//	canonical names of package counter      hw_counters of the port, whoever the driver
//	link_downed, symbol_error, port_…, …    counters/ of the port
//	pause_rx, pause_tx                      PFC frames of a priority (the lossless one, or the second argument; -1 for all)
//	pause_rx_us, pause_tx_us                microseconds of pause
//	discards_prio                           received frames of the priority that were dropped
//	ethtool:NAME                            statistics of the interface under the driver's name
type mode uint8

const (
	modeTotal mode = iota // value now
	modeDelta             // between the snapshots
	modeRate              // the same a second
	modeSeen              // between the snapshots, or in all where there is one
)

// pmaNames are the counters of IBA 16.1.4 as sysfs names them.
var pmaNames = map[string]bool{
	"symbol_error": true, "link_error_recovery": true, "link_downed": true, "port_rcv_errors": true, "port_rcv_remote_physical_errors": true,
	"port_rcv_switch_relay_errors": true, "port_xmit_discards": true, "port_xmit_constraint_errors": true, "port_rcv_constraint_errors": true,
	"local_link_integrity_errors": true, "excessive_buffer_overrun_errors": true, "VL15_dropped": true, "port_xmit_data": true,
	"port_rcv_data": true, "port_xmit_packets": true, "port_rcv_packets": true, "port_xmit_wait": true,
}

var pauseNames = map[string]bool{"pause_rx": true, "pause_tx": true, "pause_rx_us": true, "pause_tx_us": true, "discards_prio": true}

// canonicalNames are those that rules may use.
var canonicalNames = map[counter.Name]bool{
	counter.ECNMarkedRx: true, counter.CNPTx: true, counter.CNPRxHandled: true, counter.CNPRxIgnored: true, counter.OOSRx: true, counter.NAKSeqRx: true,
	counter.NAKSeqImplied: true, counter.ACKTimeout: true, counter.RetryExceeded: true, counter.RNRNAKRx: true, counter.RNRTx: true,
	counter.RNRRetryExceeded: true, counter.DuplicateRx: true, counter.ICRCErr: true, counter.AdaptiveRetrans: true, counter.SlowRestart: true,
	counter.RemoteAccessErr: true, counter.RemoteInvalidReqErr: true, counter.RemoteOpErr: true, counter.LocalLengthErr: true, counter.ReqCQEErr: true,
	counter.ReqCQEFlush: true, counter.RespCQEErr: true, counter.RespCQEFlush: true, counter.RespAccessErr: true, counter.TxPackets: true,
	counter.RxPackets: true, counter.TxBytes: true, counter.RxBytes: true, counter.RxDiscards: true, counter.RxErrors: true,
}

func isCounter(name string) bool {
	return pmaNames[name] || pauseNames[name] || canonicalNames[counter.Name(name)] || strings.HasPrefix(name, "ethtool:")
}

// counter reads a counter for a condition.
func (s *scope) counter(name string, prio []int, m mode, t *trace) (any, error) {
	now, place := counterAt(s, &s.now, name, prio)
	v, ok := now.Get()
	if !ok {
		return nil, &unknown{name, now.Why()}
	}
	ev := Evidence{What: name, Place: place, Unit: unitOf(name)}
	if m == modeTotal || m == modeSeen && s.window.Before == nil {
		ev.Value = format(float64(v))
		if m == modeSeen {
			ev.What += " since it was reset"
		}
		t.add(ev)
		return float64(v), nil
	}
	if s.before == nil {
		return nil, &unknown{name, "it takes two snapshots to see it rise"}
	}
	was, _ := counterAt(s, s.before, name, prio)
	rise := s.rise(name, prio, was, now)
	d, ok := rise.Get()
	if !ok {
		return nil, &unknown{name, rise.Why()}
	}
	ev.Value, ev.Before = format(float64(v)), format(float64(was.Or(0)))
	if m != modeRate {
		t.add(ev)
		return float64(d), nil
	}
	sec := s.window.Length().Seconds()
	switch {
	case sec <= 0:
		return nil, &unknown{name, "the snapshots do not say how far they are apart"}
	case sec < minRateSeconds && !simulated(s.window.After):
		return nil, &unknown{name, fmt.Sprintf("the snapshots are %.2g s apart: a rate takes %v s at least", sec, minRateSeconds)}
	}
	ev.Rate = format(float64(d) / sec)
	t.add(ev)
	return float64(d) / sec, nil
}

// minRateSeconds is the shortest window whose rates are judged: in a shorter one a
// single event is hundreds a second, and some drivers read their counters once a second.
// Simulated hosts live for milliseconds, and count exactly.
const minRateSeconds = 1

// simulated reports whether a host is one of the simulator, recorded or not.
func simulated(h *snapshot.Snapshot) bool {
	return h.Origin == snapshot.Simulated || slices.ContainsFunc(h.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Sim })
}

// rise is how much a counter rose between the snapshots, from one value to another.
func (s *scope) rise(name string, prio []int, was, now snapshot.Value[uint64]) snapshot.Value[uint64] {
	switch {
	case pauseNames[name]:
		return pauseRise(s, name, prio)
	case pmaNames[name]:
		return counter.PortDelta(name, was, now)
	case strings.HasPrefix(name, "ethtool:"):
		return snapshot.Delta(was, now)
	}
	return counter.Delta(counter.Of(s.now.dev), s.before.port.HWCounters, s.now.port.HWCounters, counter.Name(name))
}

// counterAt reads a counter at one instant.
func counterAt(s *scope, m *moment, name string, prio []int) (snapshot.Value[uint64], string) {
	if raw, ok := strings.CutPrefix(name, "ethtool:"); ok {
		if m.net == nil {
			return snapshot.Unreadable[uint64](noNetdev().why), ""
		}
		return m.net.Ethtool.Get(raw), "ethtool -S " + m.net.Name + ": " + raw
	}
	if pauseNames[name] {
		return pauseAt(s, m, name, prio)
	}
	if m.port == nil {
		return snapshot.Unreadable[uint64]("no RDMA port on it"), ""
	}
	base := fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/", m.dev.Name, m.port.Number)
	if pmaNames[name] {
		return m.port.Counters.Get(name), base + "counters/" + name
	}
	f := counter.Of(m.dev)
	raw := counter.Raw(f, m.port.HWCounters, counter.Name(name))
	if len(raw) == 0 {
		return snapshot.Unreadable[uint64](fmt.Sprintf("%s does not count it, or it was not recorded", m.dev.Name)), base + "hw_counters"
	}
	return counter.Get(f, m.port.HWCounters, counter.Name(name)), base + "hw_counters/" + strings.Join(raw, "+")
}

// pfcAt finds the PFC counters of a port: nil where there are none.
func pfcAt(s *scope, m *moment) (pfc *counter.PFC, who, place string) {
	switch {
	case m.dev != nil && m.port != nil && m.dev.Kind == snapshot.Verbena && (m.net == nil || !s.work.pfc(m.net).Any): // an Ethernet port of its own
		own := counter.PFCOfPort(m.port)
		pfc, who = &own, m.dev.Name
		place = who + " counters"
	case m.net == nil:
		return nil, "", ""
	default:
		pfc, who = s.work.pfc(m.net), m.net.Name
		place = "ethtool -S " + who
	}
	return pfc, who, place
}

// prioRange says of which priorities a condition speaks: of the lossless one if it is
// known; else of all of them, for a frame of any is one too many.
func prioRange(s *scope, prio []int) (from, to int) {
	switch {
	case len(prio) > 0 && prio[0] >= 0:
		return prio[0], min(prio[0]+1, 8)
	case len(prio) == 0:
		if r, ok := losslessPrio(s).value.(int); ok {
			return r, r + 1
		}
	}
	return 0, 8
}

// pauseAt reads PFC counters of the interface: of one priority, or of all with -1.
func pauseAt(s *scope, m *moment, name string, prio []int) (snapshot.Value[uint64], string) {
	pfc, who, place := pfcAt(s, m)
	switch {
	case pfc == nil:
		return snapshot.Unreadable[uint64](noNetdev().why), ""
	case !pfc.Any:
		return snapshot.Unreadable[uint64]("no PFC counters of " + who), place
	}
	from, to := prioRange(s, prio)
	var sum snapshot.Value[uint64]
	for p := from; p < to; p++ {
		v := pauseField(pfc, name, p)
		if x, ok := v.Get(); ok {
			sum = snapshot.Known(sum.Or(0) + x)
		}
	}
	if !sum.IsKnown() {
		return snapshot.Unreadable[uint64](who + " does not count it"), place
	}
	if to-from == 1 {
		place += fmt.Sprintf(", priority %d", from)
	}
	return sum, place
}

// pauseRise is how much PFC counters rose, each priority by itself: one that only one
// snapshot has says nothing.
func pauseRise(s *scope, name string, prio []int) snapshot.Value[uint64] {
	now, who, _ := pfcAt(s, &s.now)
	was, _, _ := pfcAt(s, s.before)
	if now == nil || was == nil {
		return snapshot.Unreadable[uint64](noNetdev().why)
	}
	from, to := prioRange(s, prio)
	var sum snapshot.Value[uint64]
	why := snapshot.Unreadable[uint64](who + " does not count it at both instants")
	for p := from; p < to; p++ {
		b, a := pauseField(was, name, p), pauseField(now, name, p)
		if b.IsZero() && a.IsKnown() && now.Kernel[p] && s.before.net != nil && s.before.net.DCB.PFC.IsKnown() {
			b = snapshot.Known(uint64(0))
		}
		d := snapshot.Delta(b, a)
		switch x, ok := d.Get(); {
		case ok:
			sum = snapshot.Known(sum.Or(0) + x)
		case a.IsKnown() && b.IsKnown():
			return d // it fell: what the others did is not the whole
		}
	}
	if !sum.IsKnown() {
		return why
	}
	return sum
}

func pauseField(p *counter.PFC, name string, prio int) snapshot.Value[uint64] {
	switch name {
	case "pause_rx":
		return p.Rx[prio].Frames
	case "pause_tx":
		return p.Tx[prio].Frames
	case "pause_rx_us":
		return p.Rx[prio].DurationUS
	case "pause_tx_us":
		return p.Tx[prio].DurationUS
	}
	return p.Rx[prio].Discards
}

// errorNames are what must be 0 where nobody complains.
var errorNames = []counter.Name{
	counter.OOSRx, counter.NAKSeqRx, counter.NAKSeqImplied, counter.ACKTimeout, counter.RetryExceeded, counter.RNRNAKRx, counter.RNRTx, counter.RNRRetryExceeded,
	counter.RemoteAccessErr, counter.RemoteInvalidReqErr, counter.RemoteOpErr, counter.LocalLengthErr, counter.ReqCQEErr, counter.RespCQEErr, counter.RespAccessErr,
}

// allZero reports whether no error counter of the host rose, or is above 0 where
// there is one snapshot.
func allZero(s *scope) reading {
	n := 0
	for _, p := range s.work.scopes(s.in, s.window, EachPort) {
		for _, name := range errorNames {
			v, err := p.counter(string(name), nil, modeSeen, &trace{})
			if err != nil {
				continue
			}
			n++
			if v.(float64) > 0 {
				return is(false, "hw_counters")
			}
		}
	}
	if n == 0 {
		return none("hw_counters", "no error counters were recorded")
	}
	return is(true, "hw_counters")
}
