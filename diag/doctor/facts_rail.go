package doctor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// railFacts are those of counters that cannot be trusted, and of ports that share
// the work of a host.
var railFacts = map[string]fact{
	"port.lifespan_ms":     portFact("milliseconds in which the driver does not read its counters anew", func(p *snapshot.Port) snapshot.Value[int] { return p.LifespanMs }, "hw_counters/lifespan"),
	"port.counters_fell":   {doc: "counters of the port that are lower than in the snapshot before, and did not wrap at 32 bits", each: ofPort, get: countersFell},
	"port.counters_still":  {doc: "whether none of its counters has moved between the snapshots", each: ofPort, get: countersStill},
	"device.qps_moved":     {doc: "queue pairs whose sequence numbers moved between the snapshots: they have sent or received", each: ofDevice, get: once("device.qps_moved", qpsMoved)},
	"device.app_cpus_near": {doc: "CPUs that the program may use and that are near the device, where it uses the device", each: ofDevice, get: appCPUsNear},
	"host.rail_ratio":      {doc: "bytes sent by the busiest active port over those of the idlest, of ports of one board, 1000 at most", get: once("host.rail_ratio", railRatio)},
	"host.rails_alike":     {doc: "whether these ports have as many connected queue pairs each", get: once("host.rails_alike", railsAlike)},
}

// bothSets calls f for each counter of a port that both snapshots have; pma says that it
// is of counters/ and not of hw_counters/.
func bothSets(s *scope, f func(name string, pma bool, was, now snapshot.Value[uint64])) reading {
	switch {
	case s.now.port == nil:
		return none("", "no RDMA port on it")
	case s.before == nil || s.before.port == nil:
		return none(portPath(s, "counters"), "it takes two snapshots to see it")
	}
	n := 0
	for i, set := range []struct{ was, now snapshot.Counters }{
		{s.before.port.Counters, s.now.port.Counters}, {s.before.port.HWCounters, s.now.port.HWCounters},
	} {
		for k := range set.now {
			c := &set.now[k]
			was := set.was.Get(c.Name)
			if c.Value.IsKnown() && was.IsKnown() {
				n++
				f(c.Name, i == 0, was, c.Value)
			}
		}
	}
	if n == 0 {
		return none(portPath(s, "counters"), "no counters were recorded at both instants")
	}
	return reading{place: portPath(s, "counters")}
}

func countersFell(s *scope) reading {
	out := []string{}
	r := bothSets(s, func(name string, pma bool, was, now snapshot.Value[uint64]) {
		fell := now.Or(0) < was.Or(0)
		if pma && fell || !pma && !counter.IsLevel(name) && !snapshot.Delta(was, now).IsKnown() {
			out = append(out, name)
		}
	})
	if r.why != "" {
		return r
	}
	return is(out, r.place)
}

func countersStill(s *scope) reading {
	still := true
	r := bothSets(s, func(_ string, _ bool, was, now snapshot.Value[uint64]) { still = still && was == now })
	if r.why != "" {
		return r
	}
	return is(still, r.place)
}

func qpsMoved(s *scope) reading {
	if s.now.dev == nil {
		return none("", "no RDMA device on it")
	}
	place := "rdma res show qp dev " + s.now.dev.Name
	if s.before == nil || s.before.dev == nil {
		return none(place, "it takes two snapshots")
	}
	now, ok := s.now.dev.QPs.Get()
	before, ok2 := s.before.dev.QPs.Get()
	if !ok || !ok2 {
		return none(place, "queue pairs of %s: %s", s.now.dev.Name, s.now.dev.QPs.Why())
	}
	was := map[uint32]*snapshot.QP{}
	for i := range before {
		was[before[i].LQPN] = &before[i]
	}
	n, seen := 0, false
	for i := range now {
		q, old := &now[i], was[now[i].LQPN]
		if old == nil || !q.SQPSN.IsKnown() || !old.SQPSN.IsKnown() {
			continue
		}
		seen = true
		if q.SQPSN != old.SQPSN || q.RQPSN != old.RQPSN {
			n++
		}
	}
	if !seen {
		return none(place, "sequence numbers of the queue pairs are not recorded")
	}
	return is(n, place)
}

// appCPUsNear counts CPUs that the program and the device share.
func appCPUsNear(s *scope) reading {
	a := s.app()
	switch {
	case s.now.dev == nil:
		return none("", "no RDMA device on it")
	case a == nil:
		return noApp()
	case s.now.dev.PCI == nil:
		return none("", "no PCI device behind it, or not recorded")
	}
	if name, ok := a.Device.Get(); ok && name != s.now.dev.Name {
		return none("", "the program uses %s", name)
	} else if !ok && !usesDevice(a, s.now.dev) {
		return none("", "whether the program uses %s is not known", s.now.dev.Name)
	}
	own, ok := cpuList(a.CPUs)
	if !ok {
		return none("/proc/PID/status", "CPUs of the program: %s", a.CPUs.Why())
	}
	near, ok := cpuList(s.now.dev.PCI.LocalCPUs)
	if !ok {
		return none(devicePath(s.now.dev, "device/local_cpulist"), "CPUs near the device: %s", s.now.dev.PCI.LocalCPUs.Why())
	}
	n := 0
	for cpu := range own {
		if near[cpu] {
			n++
		}
	}
	return is(n, "/proc/PID/status: CPUs "+a.CPUs.Or("")+"; near the device: "+s.now.dev.PCI.LocalCPUs.Or(""))
}

func usesDevice(a *snapshot.App, d *snapshot.Device) bool {
	pid, ok := a.PID.Get()
	qps, _ := d.QPs.Get()
	return ok && slices.ContainsFunc(qps, func(q snapshot.QP) bool { return q.PID.Or(0) == pid })
}

// maxCPU bounds lists of CPUs.
const maxCPU = 1 << 16

// cpuList reads "0-3,8".
func cpuList(v snapshot.Value[string]) (map[int]bool, bool) {
	text, ok := v.Get()
	if !ok || text == "" {
		return nil, false
	}
	all := map[int]bool{}
	for _, part := range strings.Split(text, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(lo)
		b := a
		if err == nil && ranged {
			b, err = strconv.Atoi(hi)
		}
		if err != nil || a < 0 || b < a || b >= maxCPU {
			return nil, false
		}
		for ; a <= b; a++ {
			all[a] = true
		}
	}
	return all, true
}

// rails are the active ports of hardware of one board, the board with most of them.
func rails(s *scope) ([]*scope, reading) {
	by := map[string][]*scope{}
	best := ""
	for _, p := range s.work.scopes(s.in, s.window, EachPort) {
		if p.kind().Software() {
			continue
		}
		state, ok := p.now.port.State.Get()
		board, ok2 := p.now.dev.BoardID.Get()
		if !ok || !ok2 {
			return nil, none(p.name(), "state or board of %s are not recorded", p.name())
		}
		if state != 4 {
			continue
		}
		by[board] = append(by[board], p)
		if best == "" || len(by[board]) > len(by[best]) {
			best = board
		}
	}
	if len(by[best]) < 2 {
		return nil, none("", "no two active ports of one board")
	}
	return by[best], reading{}
}

// busyRail is how many bytes a second of the busiest port are worth a judgement.
const busyRail = 1e9 / 8

// maxRatio stands for a port that is idle beside one that is not.
const maxRatio = 1000.0

func railRatio(s *scope) reading {
	all, r := rails(s)
	if r.why != "" {
		return r
	}
	most, least := 0.0, 0.0
	for i, p := range all {
		v, err := p.counter("port_xmit_data", nil, modeRate, &trace{})
		if err != nil {
			return none(p.name(), "bytes of %s: %s", p.name(), err)
		}
		rate := v.(float64) * 4
		most = max(most, rate)
		if i == 0 || rate < least {
			least = rate
		}
	}
	if most < busyRail {
		return none("counters/port_xmit_data", "no port sends more than 1 Gb/s: too little to compare")
	}
	return is(min(most/max(least, 1), maxRatio), "counters/port_xmit_data of "+places(all))
}

func railsAlike(s *scope) reading {
	all, r := rails(s)
	if r.why != "" {
		return r
	}
	count := -1
	for _, p := range all {
		qps, ok := p.now.dev.QPs.Get()
		if !ok {
			return none(p.name(), "queue pairs of %s: %s", p.now.dev.Name, p.now.dev.QPs.Why())
		}
		n := 0
		for i := range qps {
			if qps[i].State == "RTS" && qps[i].Type != "GSI" && qps[i].Type != "SMI" {
				n++
			}
		}
		if count >= 0 && n != count || n == 0 {
			return is(false, "rdma res show qp")
		}
		count = n
	}
	return is(true, "rdma res show qp")
}

func places(all []*scope) string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.name()
	}
	return names(out)
}
