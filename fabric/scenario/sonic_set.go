package scenario

import (
	"slices"
	"strconv"
)

// SetSwitch changes the tables so that Switch gives these settings. What says
// the same already is left as it is, names of profiles and maps are kept, and
// so is everything that is not understood. Settings that the tables do not
// have are not added. The warnings name what SONiC cannot hold.
func (c *SONiC) SetSwitch(sw *Switch) ([]Warning, error) {
	now, _, err := c.Switch(*sw)
	if err != nil {
		return nil, err
	}
	w := sonicWriter{c: c}
	ports := c.ports()
	w.setPools(&now, sw)
	w.setMaps(&now, sw, ports)
	w.setProfiles(&now, sw)
	w.setQueues(&now, sw)
	w.setPFC(&now, sw, ports)
	return w.warnings, nil
}

// ports lists the ports of the tables, in their order.
func (c *SONiC) ports() []string {
	var out []string
	for _, row := range c.table("PORT_QOS_MAP") {
		if row.key != "global" {
			out = append(out, row.key)
		}
	}
	return out
}

func (w *sonicWriter) setPools(now, sw *Switch) {
	for _, row := range w.c.table("BUFFER_POOL") {
		size, err := strconv.ParseInt(row.val.fieldText("size"), 10, 64)
		if now.Buffer.Total != sw.Buffer.Total && err == nil && (Bytes(size) == now.Buffer.Total || Bytes(size) > sw.Buffer.Total) {
			w.c.put("BUFFER_POOL", row.key, "size", byteText(sw.Buffer.Total))
		}
		if now.Buffer.HeadroomPool != sw.Buffer.HeadroomPool && row.val.get("xoff") != nil {
			w.c.put("BUFFER_POOL", row.key, "xoff", byteText(sw.Buffer.HeadroomPool))
		}
	}
}

// setMaps changes entries of the maps that ports refer to.
func (w *sonicWriter) setMaps(now, sw *Switch, ports []string) {
	for _, m := range []struct {
		table, field string
		old, val     []uint8
	}{
		{"DSCP_TO_TC_MAP", "dscp_to_tc_map", now.DSCPMap[:], sw.DSCPMap[:]},
		{"DOT1P_TO_TC_MAP", "dot1p_to_tc_map", now.PCPMap[:], sw.PCPMap[:]},
		{"TC_TO_PRIORITY_GROUP_MAP", "tc_to_pg_map", now.GroupMap[:], sw.GroupMap[:]},
	} {
		if slices.Equal(m.old, m.val) {
			continue
		}
		var names []string
		for _, p := range append([]string{"global"}, ports...) {
			if ref := w.c.row("PORT_QOS_MAP", p).fieldText(m.field); ref != "" {
				names = append(names, sonicName(ref))
			}
		}
		if len(names) == 0 {
			if rows := w.c.table(m.table); len(rows) > 0 {
				names = []string{rows[0].key}
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			for k := range m.val {
				if m.old[k] != m.val[k] {
					w.c.put(m.table, name, strconv.Itoa(k), strconv.Itoa(int(m.val[k])))
				}
			}
		}
	}
	if now.Trust != sw.Trust {
		w.warn("trust", "which map a port uses is not changed: set dscp_to_tc_map or dot1p_to_tc_map in PORT_QOS_MAP")
	}
}

// setProfiles changes the profiles that priority groups refer to.
func (w *sonicWriter) setProfiles(now, sw *Switch) {
	a, b := &now.Buffer, &sw.Buffer
	thresholds := a.Alpha != b.Alpha || a.XOFF != b.XOFF || a.XON != b.XON || a.XONOffset != b.XONOffset || a.Reserved != b.Reserved
	headroom := a.Headroom != b.Headroom || !slices.Equal(a.HeadroomByRate, b.HeadroomByRate)
	seen := map[string]bool{}
	r := sonicReader{c: w.c}
	for _, row := range w.c.table("BUFFER_PG") {
		name := sonicName(row.val.fieldText("profile"))
		p := w.c.row("BUFFER_PROFILE", name)
		known := seen[name]
		seen[name] = true
		switch {
		case p == nil || known:
		case p.get("xoff") != nil:
			if !thresholds && !headroom {
				continue
			}
			ports, _, _, _ := portRows(row.key)
			h := b.HeadroomOf(r.speed(ports[0], name))
			if h.Rule != HeadroomBytes {
				w.warn("buffer.headroom", "%s is a rule; the bytes in the file are kept", h)
				n, _ := strconv.ParseInt(p.fieldText("xoff"), 10, 64)
				h.Bytes = Bytes(n)
			}
			if !headroom {
				n, _ := strconv.ParseInt(p.fieldText("xoff"), 10, 64)
				h.Bytes = Bytes(n)
			}
			w.setLossless(name, b, h.Bytes)
		default:
			if a.LossyAlpha != b.LossyAlpha && p.get("dynamic_th") != nil {
				w.c.put("BUFFER_PROFILE", name, "dynamic_th", w.exponent("buffer.lossy_alpha", b.LossyAlpha))
			}
		}
	}
	if a.EgressAlpha == b.EgressAlpha && a.EgressReserved == b.EgressReserved || b.EgressAlpha == 0 {
		return
	}
	for _, row := range w.c.table("BUFFER_QUEUE") {
		name := sonicName(row.val.fieldText("profile"))
		_, from, to, _ := portRows(row.key)
		p := w.c.row("BUFFER_PROFILE", name)
		if p == nil || seen["egress "+name] || w.priosOf(from, to)&sw.PFC.Priorities != 0 || p.get("dynamic_th") == nil {
			continue
		}
		seen["egress "+name] = true
		w.c.put("BUFFER_PROFILE", name, "dynamic_th", w.exponent("buffer.egress_alpha", b.EgressAlpha))
		w.c.put("BUFFER_PROFILE", name, "size", byteText(b.EgressReserved))
	}
}

// priosOf returns the priorities whose queues are in a range.
func (w *sonicWriter) priosOf(from, to int) Prios {
	if w.queueMap == nil {
		r := sonicReader{c: w.c}
		r.portMaps()
		w.queueMap = &r.queueMap
	}
	r := sonicReader{queueMap: *w.queueMap}
	return r.prios(from, to)
}

// setQueues writes QUEUE anew, one row for each queue, if marks or schedulers
// are others than before.
func (w *sonicWriter) setQueues(now, sw *Switch) {
	rows := w.c.table("QUEUE")
	if len(rows) == 0 {
		if m := now.ECN; len(w.c.table("WRED_PROFILE")) > 0 && (m.KMin != sw.ECN.KMin || m.KMax != sw.ECN.KMax || m.PMax != sw.ECN.PMax) {
			w.setMark(w.c.table("WRED_PROFILE")[0].key, Mark{sw.ECN.KMin, sw.ECN.KMax, sw.ECN.PMax})
		}
		return
	}
	marks := !sameMarks(&now.ECN, &sw.ECN)
	scheds := now.Scheduler.Strict != sw.Scheduler.Strict || now.Scheduler.Weights != sw.Scheduler.Weights
	if marks && w.setMarks(rows, sw) {
		marks = false
	}
	if !marks && !scheds {
		return
	}
	var names [8]string
	if marks {
		names = w.reuse(rows, sw)
	}
	fresh := &node{kind: mapKind, pos: w.c.root.get("QUEUE").pos}
	for _, row := range rows {
		ports, from, to, _ := portRows(row.key)
		for _, port := range ports {
			for q := from; q <= to; q++ {
				f := fresh.child(port + "|" + strconv.Itoa(q))
				for _, e := range row.val.entries {
					if f.get(e.key) == nil {
						f.add(e.key, e.val)
					}
				}
				w.setQueue(f, w.priosOf(q, q), sw, marks, scheds, names)
			}
		}
	}
	for i := range w.c.root.entries {
		if w.c.root.entries[i].key == "QUEUE" {
			w.c.root.entries[i].val = fresh
		}
	}
}

// setMarks writes thresholds into the profiles that queues have, if each of
// them is for priorities that want the same; otherwise it changes nothing.
func (w *sonicWriter) setMarks(rows []entry, sw *Switch) bool {
	want := map[string]Mark{}
	var order []string
	var covered Prios
	for _, row := range rows {
		name := sonicName(row.val.fieldText("wred_profile"))
		if name == "" {
			continue
		}
		_, from, to, _ := portRows(row.key)
		prios := w.priosOf(from, to)
		for p := range uint8(8) {
			if !prios.Has(p) {
				continue
			}
			m, ok := sw.ECN.For(p, 0)
			if old, had := want[name]; !ok || had && old != m {
				return false
			} else if !had {
				order = append(order, name)
			}
			want[name] = m
		}
		covered |= prios
	}
	if covered != sw.ECN.Priorities {
		return false
	}
	for _, name := range order {
		w.setMark(name, want[name])
	}
	return true
}

func (w *sonicWriter) setQueue(f *node, prios Prios, sw *Switch, marks, scheds bool, names [8]string) {
	for p := range uint8(8) {
		if !prios.Has(p) {
			continue
		}
		if marks {
			f.drop("wred_profile")
			if names[p] != "" {
				f.add("wred_profile", &node{kind: scalarKind, text: names[p]})
			}
		}
		if scheds {
			name := schedulerName(sw, p)
			f.drop("scheduler")
			f.add("scheduler", &node{kind: scalarKind, text: name})
			if sw.Scheduler.Strict.Has(p) {
				w.c.put("SCHEDULER", name, "type", "STRICT")
				continue
			}
			w.c.put("SCHEDULER", name, "type", "DWRR")
			w.c.put("SCHEDULER", name, "weight", strconv.Itoa(int(sw.Scheduler.Weights[p])))
		}
	}
}

// reuse finds a profile's name for the marks of each priority: where all
// priorities have one set of thresholds, the file's own profile takes it.
func (w *sonicWriter) reuse(rows []entry, sw *Switch) [8]string {
	if sameMarks(&ECN{Priorities: sw.ECN.Priorities, KMin: sw.ECN.KMin, KMax: sw.ECN.KMax, PMax: sw.ECN.PMax}, &sw.ECN) {
		for _, row := range rows {
			name := sonicName(row.val.fieldText("wred_profile"))
			if p := w.c.row("WRED_PROFILE", name); name == "" || p.get("green_min_threshold") == nil || p.fieldText("ecn") == "ecn_none" {
				continue
			}
			w.setMark(name, Mark{sw.ECN.KMin, sw.ECN.KMax, sw.ECN.PMax})
			var names [8]string
			for p := range uint8(8) {
				if sw.ECN.Priorities.Has(p) {
					names[p] = name
				}
			}
			return names
		}
	}
	return w.marks(sw)
}

func sameMarks(a, b *ECN) bool {
	for p := range uint8(8) {
		m, on := a.For(p, 0)
		n, also := b.For(p, 0)
		if on != also || m != n {
			return false
		}
	}
	return true
}

func (w *sonicWriter) setPFC(now, sw *Switch, ports []string) {
	if now.PFC.Priorities != sw.PFC.Priorities {
		for _, p := range ports {
			w.c.put("PORT_QOS_MAP", p, "pfc_enable", prioText(sw.PFC.Priorities))
		}
	}
	a, b := now.PFC.Watchdog, sw.PFC.Watchdog
	if a == b {
		return
	}
	if !b.On {
		w.c.root.drop("PFC_WD")
		for _, p := range ports {
			w.c.root.child("PORT_QOS_MAP").child(p).drop("pfcwd_sw_enable")
		}
		return
	}
	for _, p := range ports {
		w.setWatchdog(p, &b)
	}
}
