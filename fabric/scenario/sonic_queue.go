package scenario

import (
	"slices"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// queues reads WRED, schedulers and egress thresholds of queues. A queue here is
// that of a priority; TC_TO_QUEUE_MAP says which queue of the switch that is.
func (r *sonicReader) queues() {
	r.foldQueues()
	seenWRED, seenSched := false, false
	for _, row := range r.c.table("QUEUE") {
		_, from, to, ok := portRows(row.key)
		if !ok {
			r.fail(row.val, sonicPath("QUEUE", row.key, ""), "the key is not PORT|QUEUE or PORT|FROM-TO")
			return
		}
		prios := r.prios(from, to)
		if ref := row.val.fieldText("wred_profile"); ref != "" {
			if !seenWRED {
				seenWRED = true
				r.sw.ECN.Priorities, r.sw.ECN.ByRate, r.sw.ECN.ByPriority = 0, nil, nil
			}
			r.wred(row, ref, prios)
		}
		if ref := row.val.fieldText("scheduler"); ref != "" {
			if !seenSched {
				seenSched = true
				r.sw.Scheduler.Strict = 0
			}
			r.scheduler(row, ref, prios)
		}
		if r.err != nil {
			return
		}
	}
	if !seenWRED {
		r.loneWRED()
	}
	for _, row := range r.c.table("BUFFER_QUEUE") {
		r.egress(row)
	}
}

// foldQueues warns where priorities share a queue.
func (r *sonicReader) foldQueues() {
	for p := range r.queueMap {
		if i := slices.Index(r.queueMap[:p], r.queueMap[p]); i >= 0 {
			t := r.c.root.get("TC_TO_QUEUE_MAP")
			r.warn(t, "TC_TO_QUEUE_MAP", "traffic classes %d and %d share queue %d; here each has its own", i, p, r.queueMap[p])
			return
		}
	}
}

// prios returns the priorities whose queues are in a range.
func (r *sonicReader) prios(from, to int) Prios {
	var set Prios
	for p, q := range r.queueMap {
		if int(q) >= from && int(q) <= to {
			set |= 1 << p
		}
	}
	return set
}

func (r *sonicReader) wred(row entry, ref string, prios Prios) {
	name := sonicName(ref)
	p := r.c.row("WRED_PROFILE", ref)
	if p == nil {
		r.fail(row.val, sonicPath("QUEUE", row.key, "wred_profile"), "there is no WRED_PROFILE %q", clip(name))
		return
	}
	m, marks, ok := r.mark(p, name)
	if !ok || !marks {
		return
	}
	e := &r.sw.ECN
	if e.Priorities == 0 {
		e.KMin, e.KMax, e.PMax = m.KMin, m.KMax, m.PMax
	}
	base := Mark{e.KMin, e.KMax, e.PMax}
	for prio := range uint8(8) {
		if !prios.Has(prio) {
			continue
		}
		old, had := e.For(prio, 0)
		switch {
		case had && old != m:
			r.warn(row.val, sonicPath("QUEUE", row.key, "wred_profile"), "%s is not what other ports have for priority %d; the first is used", clip(name), prio)
		case !had && m != base:
			e.ByPriority = append(e.ByPriority, PrioMark{prio, m.KMin, m.KMax, m.PMax})
		}
		e.Priorities |= 1 << prio
	}
}

// loneWRED takes the only profile where no queue names one: thresholds to try.
func (r *sonicReader) loneWRED() {
	for _, row := range r.c.table("WRED_PROFILE") {
		m, marks, ok := r.mark(row.val, row.key)
		if !ok {
			return
		}
		if marks {
			r.sw.ECN.KMin, r.sw.ECN.KMax, r.sw.ECN.PMax = m.KMin, m.KMax, m.PMax
			r.sw.ECN.ByRate, r.sw.ECN.ByPriority = nil, nil
			return
		}
	}
}

// mark reads the thresholds of green packets, the colour of all here.
func (r *sonicReader) mark(p *node, name string) (m Mark, marks, ok bool) {
	path := sonicPath("WRED_PROFILE", name, "")
	lo, has1 := r.number(p, path, "green_min_threshold", 0, most)
	hi, has2 := r.number(p, path, "green_max_threshold", 0, most)
	prob, has3 := r.number(p, path, "green_drop_probability", 0, 100)
	if r.err != nil {
		return Mark{}, false, false
	}
	if !has1 || !has2 {
		r.warn(p, path, "no thresholds of green packets: it does nothing here")
		return Mark{}, false, true
	}
	if !has3 {
		prob = 100 // SAI's default
	}
	if lo > hi {
		r.fail(p.get("green_min_threshold"), path+".green_min_threshold", "%d is above green_max_threshold, %d", lo, hi)
		return Mark{}, false, false
	}
	m = Mark{KMin: Bytes(lo), KMax: Bytes(hi), PMax: percent(prob)}
	switch ecn := p.fieldText("ecn"); ecn {
	case "ecn_all", "ecn_green", "ecn_green_yellow", "ecn_green_red":
		return m, true, true
	case "", "ecn_none", "ecn_yellow", "ecn_red", "ecn_yellow_red":
		r.warn(p, path, "%q drops green packets, it does not mark them; WRED without ECN is not simulated", ecn)
		return m, false, true
	default:
		f := p.get("ecn")
		r.fail(f, path+".ecn", "unknown %s", describe(f))
		return m, false, false
	}
}

// percent is n hundredths, as parseRatio reads them.
func percent(n int64) Ratio { return Ratio(uint64(n) * uint64(One) / 100) }

func (r *sonicReader) scheduler(row entry, ref string, prios Prios) {
	name := sonicName(ref)
	p := r.c.row("SCHEDULER", ref)
	if p == nil {
		r.fail(row.val, sonicPath("QUEUE", row.key, "scheduler"), "there is no SCHEDULER %q", clip(name))
		return
	}
	path := sonicPath("SCHEDULER", name, "")
	s := &r.sw.Scheduler
	switch t := p.fieldText("type"); t {
	case "STRICT":
		s.Strict |= prios
	case "DWRR", "WRR", "":
		n, ok := r.number(p, path, "weight", 1, 100)
		for prio := range uint8(8) {
			if ok && prios.Has(prio) {
				s.Weights[prio] = int32(n)
			}
		}
		if t == "WRR" {
			r.warn(p, path, "WRR counts packets; DWRR, which counts bytes, is used")
		}
	default:
		f := p.get("type")
		r.fail(f, path+".type", "unknown %s; it is DWRR, WRR or STRICT", describe(f))
	}
	for _, key := range []string{"cir", "pir", "cbs", "pbs", "meter_type"} {
		if f := p.get(key); f != nil {
			r.warn(f, path+"."+key, "%s: shapers are not simulated", key)
		}
	}
}

// egress reads the threshold of lossy queues.
func (r *sonicReader) egress(row entry) {
	_, from, to, ok := portRows(row.key)
	if !ok {
		r.fail(row.val, sonicPath("BUFFER_QUEUE", row.key, ""), "the key is not PORT|QUEUE or PORT|FROM-TO")
		return
	}
	ref := row.val.fieldText("profile")
	p := r.c.row("BUFFER_PROFILE", ref)
	if p == nil || r.prios(from, to)&r.sw.PFC.Priorities != 0 {
		return
	}
	path := sonicPath("BUFFER_PROFILE", sonicName(ref), "")
	if a, ok := r.alpha(p, path); ok {
		r.sw.Buffer.EgressAlpha = a
	}
	if n, ok := r.number(p, path, "size", 0, 1e9); ok {
		r.sw.Buffer.EgressReserved = Bytes(n)
	}
}

// watchdog reads PFC_WD; the first port decides.
func (r *sonicReader) watchdog() {
	for _, row := range r.c.table("PFC_WD") {
		if row.key == "GLOBAL" {
			continue
		}
		path := sonicPath("PFC_WD", row.key, "")
		w := &r.sw.PFC.Watchdog
		w.On = true
		if n, ok := r.number(row.val, path, "detection_time", 1, 100_000); ok {
			w.Detect = sim.Time(n) * sim.Millisecond
		}
		if n, ok := r.number(row.val, path, "restoration_time", 1, 100_000); ok {
			w.Restore = sim.Time(n) * sim.Millisecond
		}
		switch a := row.val.fieldText("action"); a {
		case "drop", "forward", "alert":
			w.Action = a
		case "":
		default:
			r.fail(row.val.get("action"), path+".action", "unknown %q; it is drop, forward or alert", clip(a))
		}
		return
	}
}

// leftovers names fields of the tables that nothing here looks at.
func (r *sonicReader) leftovers() {
	for _, table := range sonicTables {
		known, ok := sonicFields[table]
		if !ok {
			continue
		}
		for _, row := range r.c.table(table) {
			for _, f := range row.val.entries {
				if !slices.Contains(known, f.key) {
					r.warn(f.val, sonicPath(table, row.key, f.key), "%s is not looked at", strconv.Quote(clip(f.key)))
				}
			}
		}
	}
}

// sonicFields are the fields of each table that are read, or say nothing new.
var sonicFields = map[string][]string{
	"BUFFER_POOL":    {"size", "xoff", "type", "mode"},
	"BUFFER_PROFILE": {"pool", "size", "xon", "xoff", "xon_offset", "dynamic_th", "static_th", "packet_discard_action", "headroom_type"},
	"BUFFER_PG":      {"profile"},
	"BUFFER_QUEUE":   {"profile"},
	"PORT_QOS_MAP": {
		"dscp_to_tc_map", "dot1p_to_tc_map", "tc_to_pg_map", "tc_to_queue_map", "pfc_enable", "pfcwd_sw_enable",
		"pfc_to_queue_map", "pfc_to_pg_map",
	},
	"WRED_PROFILE": {
		"ecn", "wred_green_enable", "green_min_threshold", "green_max_threshold", "green_drop_probability",
		"wred_yellow_enable", "yellow_min_threshold", "yellow_max_threshold", "yellow_drop_probability",
		"wred_red_enable", "red_min_threshold", "red_max_threshold", "red_drop_probability",
	},
	"QUEUE":     {"scheduler", "wred_profile"},
	"SCHEDULER": {"type", "weight", "cir", "pir", "cbs", "pbs", "meter_type"},
	"PFC_WD":    {"action", "detection_time", "restoration_time", "POLL_INTERVAL", "BIG_RED_SWITCH"},
}
