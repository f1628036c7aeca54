package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Switch returns the settings of a switch with what the tables say put over
// base. The warnings name what has no meaning here, and ports that differ:
// settings hold for the whole switch, by port speed at most, so the first port
// decides, and of headroom the least at each speed.
func (c *SONiC) Switch(base Switch) (Switch, []Warning, error) {
	r := sonicReader{c: c, sw: base.clone()}
	for _, f := range []func(){r.pools, r.portMaps, r.groups, r.queues, r.watchdog, r.leftovers} {
		f()
		if r.err != nil {
			return Switch{}, nil, r.err
		}
	}
	return r.sw, r.warnings, nil
}

type sonicReader struct {
	c        *SONiC
	sw       Switch
	queueMap PrioMap // of TC_TO_QUEUE_MAP
	warnings []Warning
	said     map[string]bool
	err      error
}

// warn says something once for each table, field and text.
func (r *sonicReader) warn(n *node, path, format string, args ...any) {
	w := Warning{Place: n.pos.String(), Path: path, Text: fmt.Sprintf(format, args...)}
	table, _, _ := strings.Cut(path, "|")
	if r.said[table+w.Text] {
		return
	}
	if r.said == nil {
		r.said = map[string]bool{}
	}
	r.said[table+w.Text] = true
	r.warnings = append(r.warnings, w)
}

func (r *sonicReader) fail(n *node, path, format string, args ...any) {
	if r.err == nil {
		r.err = errorAt(n.pos, path, format, args...)
	}
}

// number reads a field that is a whole number from lo to hi; ok is false if it
// is not there.
func (r *sonicReader) number(row *node, path, field string, lo, hi int64) (int64, bool) {
	f := row.get(field)
	if f == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(f.text, 10, 64)
	if err != nil || n < lo || n > hi {
		r.fail(f, path+"."+field, "%s is not a whole number from %d to %d", describe(f), lo, hi)
		return 0, false
	}
	return n, true
}

// most is the largest amount of memory that is believed.
const most = 256_000_000_000

// pools takes the largest pool as the whole memory: pools of ingress and egress
// are views of the same cells, and what an ingress pool lacks of it is headroom.
func (r *sonicReader) pools() {
	largest := int64(0)
	for _, row := range r.c.table("BUFFER_POOL") {
		path := sonicPath("BUFFER_POOL", row.key, "")
		if n, ok := r.number(row.val, path, "size", 0, most); ok {
			largest = max(largest, n)
		}
		if n, ok := r.number(row.val, path, "xoff", 0, most); ok && row.val.fieldText("type") == "ingress" {
			r.sw.Buffer.HeadroomPool = Bytes(n)
		}
	}
	if largest > 0 {
		r.sw.Buffer.Total = Bytes(largest)
	}
}

// portMaps takes maps and PFC priorities of the first port.
func (r *sonicReader) portMaps() {
	for i := range r.queueMap {
		r.queueMap[i] = uint8(i)
	}
	rows := r.c.table("PORT_QOS_MAP")
	i := slices.IndexFunc(rows, func(e entry) bool { return e.key != "global" && e.val.kind == mapKind })
	if i < 0 {
		r.loneMaps()
		return
	}
	first := rows[i].val
	path := sonicPath("PORT_QOS_MAP", rows[i].key, "")
	dscp, dot1p := first.fieldText("dscp_to_tc_map"), first.fieldText("dot1p_to_tc_map")
	if dscp == "" {
		// Newer releases have the map of code points for the whole switch.
		dscp = r.c.root.get("PORT_QOS_MAP").get("global").fieldText("dscp_to_tc_map")
	}
	switch {
	case dscp != "":
		r.sw.Trust = TrustDSCP
		r.sw.DSCPMap = DSCPMap{} // what a map does not name is in class 0 (SAI)
		r.mapInto("DSCP_TO_TC_MAP", dscp, first, path, r.sw.DSCPMap[:])
	case dot1p != "":
		r.sw.Trust = TrustPCP
		r.mapInto("DOT1P_TO_TC_MAP", dot1p, first, path, r.sw.PCPMap[:])
	}
	if m := first.fieldText("tc_to_pg_map"); m != "" {
		r.mapInto("TC_TO_PRIORITY_GROUP_MAP", m, first, path, r.sw.GroupMap[:])
	}
	if m := first.fieldText("tc_to_queue_map"); m != "" {
		r.mapInto("TC_TO_QUEUE_MAP", m, first, path, r.queueMap[:])
	}
	if f := first.get("pfc_enable"); f != nil {
		p, ok := prioList(f.text)
		if !ok {
			r.fail(f, path+".pfc_enable", "%s is not a list of priorities from 0 to 7", describe(f))
		}
		r.sw.PFC.Priorities = p
	}
	if f := first.get("pfcwd_sw_enable"); f != nil && f.text != "" {
		r.sw.PFC.Watchdog.On = true
	}
	for _, row := range rows[i+1:] {
		if row.key == "global" {
			continue
		}
		for _, key := range []string{"dscp_to_tc_map", "dot1p_to_tc_map", "tc_to_pg_map", "tc_to_queue_map", "pfc_enable"} {
			if a, b := first.fieldText(key), row.val.fieldText(key); a != b {
				r.warn(row.val, sonicPath("PORT_QOS_MAP", row.key, key), "%q is not what %s has, %q, which is used for all ports", clip(b), rows[i].key, clip(a))
			}
		}
	}
}

// loneMaps takes maps that no port refers to, if there is one of a kind.
func (r *sonicReader) loneMaps() {
	for _, m := range []struct {
		table string
		to    []uint8
	}{
		{"DSCP_TO_TC_MAP", r.sw.DSCPMap[:]},
		{"DOT1P_TO_TC_MAP", r.sw.PCPMap[:]},
		{"TC_TO_PRIORITY_GROUP_MAP", r.sw.GroupMap[:]},
		{"TC_TO_QUEUE_MAP", r.queueMap[:]},
	} {
		rows := r.c.table(m.table)
		if len(rows) == 0 {
			continue
		}
		if m.table == "DSCP_TO_TC_MAP" {
			r.sw.DSCPMap = DSCPMap{}
		}
		r.mapInto(m.table, rows[0].key, rows[0].val, sonicPath(m.table, rows[0].key, ""), m.to)
		if len(rows) > 1 {
			r.warn(rows[1].val, sonicPath(m.table, rows[1].key, ""), "no port says which map it uses; the first, %s, is used", clip(rows[0].key))
		}
	}
}

// mapInto reads a map of numbers.
func (r *sonicReader) mapInto(table, ref string, at *node, path string, to []uint8) {
	row := r.c.row(table, ref)
	if row == nil {
		r.fail(at, path, "there is no %s %q", table, clip(sonicName(ref)))
		return
	}
	for _, f := range row.entries {
		k, err1 := strconv.Atoi(f.key)
		v, err2 := strconv.Atoi(f.val.text)
		if err1 != nil || k < 0 || k >= len(to) {
			r.fail(f.val, sonicPath(table, sonicName(ref), clip(f.key)), "key %q is not a number from 0 to %d", clip(f.key), len(to)-1)
			return
		}
		if err2 != nil || v < 0 || v > 7 {
			r.fail(f.val, sonicPath(table, sonicName(ref), f.key), "%s is not a number from 0 to 7", describe(f.val))
			return
		}
		to[k] = uint8(v)
	}
}

// prioList reads "3,4"; "" is none.
func prioList(s string) (Prios, bool) {
	var p Prios
	for _, f := range strings.Split(s, ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		n, err := strconv.ParseUint(f, 10, 8)
		if err != nil || n > 7 {
			return 0, false
		}
		p |= 1 << n
	}
	return p, true
}

// groups reads the profiles of priority groups.
func (r *sonicReader) groups() {
	lossless := map[uint8]bool{}
	for p := range uint8(8) {
		if r.sw.PFC.Priorities.Has(p) {
			lossless[r.sw.GroupMap[p]] = true
		}
	}
	var first, lossy *node
	for _, row := range r.c.table("BUFFER_PG") {
		path := sonicPath("BUFFER_PG", row.key, "profile")
		ports, from, to, ok := portRows(row.key)
		if !ok {
			r.fail(row.val, sonicPath("BUFFER_PG", row.key, ""), "the key is not PORT|GROUP or PORT|FROM-TO")
			return
		}
		ref := row.val.fieldText("profile")
		if ref == "" || ref == "NULL" {
			continue // computed by the switch from speed and cable
		}
		profile := r.c.row("BUFFER_PROFILE", ref)
		if profile == nil {
			r.fail(row.val, path, "there is no BUFFER_PROFILE %q", clip(sonicName(ref)))
			return
		}
		isLossless := profile.get("xoff") != nil
		for g := from; g <= to && g < 8; g++ {
			if lossless[uint8(g)] && !isLossless {
				r.warn(row.val, path, "group %d has PFC, but the profile %s has no headroom (xoff)", g, clip(sonicName(ref)))
			}
		}
		switch {
		case isLossless && first == nil:
			first = profile
			r.losslessProfile(profile, sonicName(ref))
		case isLossless && first != profile:
			r.compare(row, first, profile, path)
		case !isLossless && lossy == nil:
			lossy = profile
			r.lossyProfile(profile, sonicName(ref))
		}
		if isLossless {
			r.headroom(ports, profile, sonicName(ref))
		}
		if r.err != nil {
			return
		}
	}
	if first == nil {
		r.loneProfile()
	}
	r.oneHeadroom()
}

// loneProfile takes the profiles that no group refers to: the switch makes the
// rows itself from cable and speed.
func (r *sonicReader) loneProfile() {
	for _, row := range r.c.table("BUFFER_PROFILE") {
		if row.val.get("xoff") != nil {
			r.losslessProfile(row.val, row.key)
			r.headroom(nil, row.val, row.key)
			break
		}
	}
	if p := r.c.row("BUFFER_PROFILE", "ingress_lossy_profile"); p != nil {
		r.lossyProfile(p, "ingress_lossy_profile")
	}
}

// losslessProfile reads thresholds of groups with PFC.
func (r *sonicReader) losslessProfile(p *node, name string) {
	b := &r.sw.Buffer
	path := sonicPath("BUFFER_PROFILE", name, "")
	xoff, _ := r.number(p, path, "xoff", 0, most)
	if n, ok := r.number(p, path, "xon", 0, most); ok {
		b.XON = Bytes(n)
	}
	if n, ok := r.number(p, path, "xon_offset", 0, most); ok {
		b.XONOffset = Bytes(n)
	}
	if size, ok := r.number(p, path, "size", 0, most); ok {
		// Where headroom is not shared, size counts it too.
		if xoff > 0 && size >= xoff+int64(b.XON) {
			size -= xoff
		}
		b.Reserved = Bytes(size)
	}
	if a, ok := r.alpha(p, path); ok {
		b.Alpha, b.XOFF = a, 0
	} else if n, ok := r.number(p, path, "static_th", 0, most); ok {
		b.XOFF = Bytes(n)
	}
}

// lossyProfile reads the threshold of groups without PFC.
func (r *sonicReader) lossyProfile(p *node, name string) {
	path := sonicPath("BUFFER_PROFILE", name, "")
	if n, ok := r.alpha(p, path); ok {
		r.sw.Buffer.LossyAlpha = n
	}
}

// alpha reads dynamic_th: alpha is 2 to its power. 7 is "all that is free" to
// some chips; 64, the greatest alpha here, is as much.
func (r *sonicReader) alpha(p *node, path string) (Ratio, bool) {
	n, ok := r.number(p, path, "dynamic_th", -10, 7)
	return alphaOf(min(n, 6)), ok
}

func alphaOf(n int64) Ratio {
	if n < 0 {
		return One >> -n
	}
	return One << n
}

// headroom notes the xoff of a profile for the speed of its ports.
func (r *sonicReader) headroom(ports []string, p *node, name string) {
	n, ok := r.number(p, sonicPath("BUFFER_PROFILE", name, ""), "xoff", 0, 1e9)
	if !ok {
		return
	}
	b := &r.sw.Buffer
	if len(ports) == 0 {
		ports = []string{""}
	}
	for _, port := range ports {
		rate := r.speed(port, name)
		i := slices.IndexFunc(b.HeadroomByRate, func(h RateHeadroom) bool { return h.Rate == rate })
		if i < 0 {
			if len(b.HeadroomByRate) < 64 {
				b.HeadroomByRate = append(b.HeadroomByRate, RateHeadroom{rate, Headroom{HeadroomBytes, Bytes(n)}})
			}
			continue
		}
		if old := b.HeadroomByRate[i].Headroom.Bytes; old != Bytes(n) {
			r.warn(p, sonicPath("BUFFER_PROFILE", name, "xoff"), "%s differs from other ports of the speed, %s; the less is used", Bytes(n), old)
			b.HeadroomByRate[i].Headroom.Bytes = min(old, Bytes(n))
		}
	}
}

// oneHeadroom uses a single value for all ports where there is only one speed.
func (r *sonicReader) oneHeadroom() {
	b := &r.sw.Buffer
	if len(b.HeadroomByRate) == 0 {
		return
	}
	b.Headroom = b.HeadroomByRate[0].Headroom
	for _, h := range b.HeadroomByRate[1:] {
		if h.Headroom.Bytes < b.Headroom.Bytes {
			b.Headroom = h.Headroom
		}
	}
	b.HeadroomByRate = slices.DeleteFunc(b.HeadroomByRate, func(h RateHeadroom) bool { return h.Rate == 0 || h.Headroom == b.Headroom })
	if len(b.HeadroomByRate) == 0 {
		b.HeadroomByRate = nil
	}
}

// speed returns the rate of a port from the table PORT, or from a profile's name
// such as pg_lossless_100000_5m_profile; 0: not known.
func (r *sonicReader) speed(port, profile string) sim.Rate {
	if n, err := strconv.ParseInt(r.c.row("PORT", port).fieldText("speed"), 10, 64); err == nil && n > 0 && n <= 10_000_000 {
		return sim.Rate(n) * sim.Mbps
	}
	if f := strings.Split(profile, "_"); len(f) > 2 && f[0] == "pg" && f[1] == "lossless" {
		if n, err := strconv.ParseInt(f[2], 10, 64); err == nil && n > 0 && n <= 10_000_000 {
			return sim.Rate(n) * sim.Mbps
		}
	}
	return 0
}

// compare reports fields of profiles that are one setting here.
func (r *sonicReader) compare(row entry, first, other *node, path string) {
	for _, key := range []string{"dynamic_th", "static_th", "xon", "xon_offset"} {
		if a, b := first.fieldText(key), other.fieldText(key); a != b {
			r.warn(row.val, path, "%s of the profile is %q, of the first %q, which is used for all ports", key, clip(b), clip(a))
		}
	}
}
