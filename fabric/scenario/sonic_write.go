package scenario

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// SONiCPort is a port of a switch whose tables are written.
type SONiCPort struct {
	Name  string // Ethernet0
	Rate  sim.Rate
	Delay sim.Time // of its cable
}

// NewSONiC returns tables with the settings of a switch, for its ports. The
// warnings name what SONiC cannot hold. Headroom rules become bytes: have gives
// them for a port.
func NewSONiC(sw *Switch, ports []SONiCPort, have func(SONiCPort) Bytes) (*SONiC, []Warning) {
	c := &SONiC{name: "config_db.json", root: &node{kind: mapKind}}
	w := sonicWriter{c: c}
	w.maps(sw, ports)
	w.pools(sw)
	w.profiles(sw, ports, have)
	w.queues(sw, ports)
	w.watchdog(sw, ports)
	w.limits(sw)
	return c, w.warnings
}

type sonicWriter struct {
	c        *SONiC
	queueMap *PrioMap // see priosOf
	warnings []Warning
}

func (w *sonicWriter) warn(path, format string, args ...any) {
	w.warnings = append(w.warnings, Warning{Path: path, Text: fmt.Sprintf(format, args...)})
}

// put sets a field of a row, making table and row where they are missing.
func (c *SONiC) put(table, row, field, value string) {
	t := c.root.child(table)
	f := t.child(row)
	if field == "" {
		return
	}
	for i := range f.entries {
		if f.entries[i].key == field {
			if f.entries[i].val.text != value {
				f.entries[i].val = &node{kind: scalarKind, text: value}
			}
			return
		}
	}
	f.add(field, &node{kind: scalarKind, text: value})
}

// add appends an entry.
func (n *node) add(key string, val *node) {
	if n.places != nil {
		n.places[key] = len(n.entries)
	}
	n.entries = append(n.entries, entry{key: key, val: val})
}

// child returns the map of a key, which it makes.
func (n *node) child(key string) *node {
	if x := n.get(key); x != nil {
		return x
	}
	x := &node{kind: mapKind}
	n.add(key, x)
	return x
}

// drop removes a key.
func (n *node) drop(key string) {
	n.places = nil
	n.entries = slices.DeleteFunc(n.entries, func(e entry) bool { return e.key == key })
}

const azure = "AZURE" // the name that SONiC's own templates give to maps

func (w *sonicWriter) maps(sw *Switch, ports []SONiCPort) {
	for dscp, prio := range sw.DSCPMap {
		w.c.put("DSCP_TO_TC_MAP", azure, strconv.Itoa(dscp), strconv.Itoa(int(prio)))
	}
	if sw.Trust == TrustPCP {
		for pcp, prio := range sw.PCPMap {
			w.c.put("DOT1P_TO_TC_MAP", azure, strconv.Itoa(pcp), strconv.Itoa(int(prio)))
		}
	}
	for tc := range 8 {
		w.c.put("TC_TO_PRIORITY_GROUP_MAP", azure, strconv.Itoa(tc), strconv.Itoa(int(sw.GroupMap[tc])))
	}
	for tc := range 8 {
		w.c.put("TC_TO_QUEUE_MAP", azure, strconv.Itoa(tc), strconv.Itoa(tc))
	}
	for _, p := range ports {
		if sw.Trust == TrustPCP {
			w.c.put("PORT_QOS_MAP", p.Name, "dot1p_to_tc_map", azure)
		} else {
			w.c.put("PORT_QOS_MAP", p.Name, "dscp_to_tc_map", azure)
		}
		w.c.put("PORT_QOS_MAP", p.Name, "pfc_enable", prioText(sw.PFC.Priorities))
		w.c.put("PORT_QOS_MAP", p.Name, "tc_to_pg_map", azure)
		w.c.put("PORT_QOS_MAP", p.Name, "tc_to_queue_map", azure)
		if sw.PFC.Watchdog.On {
			w.c.put("PORT_QOS_MAP", p.Name, "pfcwd_sw_enable", prioText(sw.PFC.Priorities))
		}
		w.c.put("PORT", p.Name, "speed", strconv.FormatInt(int64(p.Rate/sim.Mbps), 10))
		w.c.put("CABLE_LENGTH", azure, p.Name, cableText(p.Delay))
	}
}

// prioText writes priorities as SONiC does: "3,4".
func prioText(p Prios) string {
	var b []byte
	for i := range uint8(8) {
		if p.Has(i) {
			if len(b) > 0 {
				b = append(b, ',')
			}
			b = append(b, '0'+i)
		}
	}
	return string(b)
}

// cableText is the length of a cable with a delay, in whole metres, rounded up.
func cableText(d sim.Time) string {
	const metre = 5 * sim.Nanosecond
	return strconv.FormatInt(int64((d+metre-1)/metre), 10) + "m"
}

const (
	ingressPool = "ingress_lossless_pool"
	egressPool  = "egress_lossless_pool"
)

func (w *sonicWriter) pools(sw *Switch) {
	size := byteText(sw.Buffer.Total)
	for _, p := range []struct{ name, kind, mode string }{{ingressPool, "ingress", "dynamic"}, {egressPool, "egress", "static"}} {
		w.c.put("BUFFER_POOL", p.name, "type", p.kind)
		w.c.put("BUFFER_POOL", p.name, "mode", p.mode)
		w.c.put("BUFFER_POOL", p.name, "size", size)
	}
	if sw.Buffer.HeadroomPool > 0 {
		w.c.put("BUFFER_POOL", ingressPool, "xoff", byteText(sw.Buffer.HeadroomPool))
	}
}

func byteText(b Bytes) string { return strconv.FormatInt(int64(b), 10) }

func (w *sonicWriter) profiles(sw *Switch, ports []SONiCPort, have func(SONiCPort) Bytes) {
	lossless, lossy := groupsOf(sw)
	for _, p := range ports {
		name := fmt.Sprintf("pg_lossless_%d_%s_profile", p.Rate/sim.Mbps, cableText(p.Delay))
		if lossless != 0 {
			w.lossless(name, sw, have(p))
		}
		for g := range uint8(8) {
			key := p.Name + "|" + strconv.Itoa(int(g))
			switch {
			case lossless.Has(g):
				w.c.put("BUFFER_PG", key, "profile", name)
			case lossy.Has(g):
				w.c.put("BUFFER_PG", key, "profile", "ingress_lossy_profile")
			}
		}
	}
	w.c.put("BUFFER_PROFILE", "ingress_lossy_profile", "pool", ingressPool)
	w.c.put("BUFFER_PROFILE", "ingress_lossy_profile", "size", byteText(sw.Buffer.Reserved))
	w.c.put("BUFFER_PROFILE", "ingress_lossy_profile", "dynamic_th", w.exponent("buffer.lossy_alpha", sw.Buffer.LossyAlpha))
	if sw.Buffer.EgressAlpha == 0 {
		return
	}
	w.c.put("BUFFER_PROFILE", "egress_lossy_profile", "pool", egressPool)
	w.c.put("BUFFER_PROFILE", "egress_lossy_profile", "size", byteText(sw.Buffer.EgressReserved))
	w.c.put("BUFFER_PROFILE", "egress_lossy_profile", "dynamic_th", w.exponent("buffer.egress_alpha", sw.Buffer.EgressAlpha))
	for _, p := range ports {
		for q := range uint8(8) {
			if !sw.PFC.Priorities.Has(q) {
				w.c.put("BUFFER_QUEUE", p.Name+"|"+strconv.Itoa(int(q)), "profile", "egress_lossy_profile")
			}
		}
	}
}

// groupsOf returns the groups with PFC, and the others in use.
func groupsOf(sw *Switch) (lossless, lossy Prios) {
	for p := range uint8(8) {
		if sw.PFC.Priorities.Has(p) {
			lossless |= 1 << sw.GroupMap[p]
		} else {
			lossy |= 1 << sw.GroupMap[p]
		}
	}
	return lossless, lossy &^ lossless
}

func (w *sonicWriter) lossless(name string, sw *Switch, headroom Bytes) {
	b := &sw.Buffer
	w.c.put("BUFFER_PROFILE", name, "pool", ingressPool)
	w.setLossless(name, b, headroom)
}

// setLossless writes thresholds into a profile. Its size counts headroom too
// where it could be read so.
func (w *sonicWriter) setLossless(name string, b *Buffer, headroom Bytes) {
	size := b.Reserved
	if headroom > 0 && (size >= headroom+b.XON || size >= b.XON && w.counted(name)) {
		size += headroom
	}
	w.c.put("BUFFER_PROFILE", name, "xon", byteText(b.XON))
	w.c.put("BUFFER_PROFILE", name, "xoff", byteText(headroom))
	w.c.put("BUFFER_PROFILE", name, "xon_offset", byteText(b.XONOffset))
	w.c.put("BUFFER_PROFILE", name, "size", byteText(size))
	p := w.c.root.child("BUFFER_PROFILE").child(name)
	if b.XOFF > 0 {
		p.drop("dynamic_th")
		w.c.put("BUFFER_PROFILE", name, "static_th", byteText(b.XOFF))
		return
	}
	p.drop("static_th")
	w.c.put("BUFFER_PROFILE", name, "dynamic_th", w.exponent("buffer.alpha", b.Alpha))
}

// counted reports whether the size of a profile as it stands counts headroom.
func (w *sonicWriter) counted(name string) bool {
	p := w.c.row("BUFFER_PROFILE", name)
	size, err1 := strconv.ParseInt(p.fieldText("size"), 10, 64)
	xoff, err2 := strconv.ParseInt(p.fieldText("xoff"), 10, 64)
	xon, _ := strconv.ParseInt(p.fieldText("xon"), 10, 64)
	return err1 == nil && err2 == nil && size >= xoff+xon
}

// exponent writes an alpha as the power of two that is nearest below.
func (w *sonicWriter) exponent(path string, a Ratio) string {
	n := bits.Len64(uint64(a)) - 1 - 32
	if a != alphaOf(int64(n)) {
		w.warn(path, "%s is not a power of two: %s is written", a, alphaOf(int64(n)))
	}
	return strconv.Itoa(n)
}

func (w *sonicWriter) queues(sw *Switch, ports []SONiCPort) {
	wred := w.marks(sw)
	for q := range uint8(8) {
		sched := schedulerName(sw, q)
		if sw.Scheduler.Strict.Has(q) {
			w.c.put("SCHEDULER", sched, "type", "STRICT")
		} else {
			w.c.put("SCHEDULER", sched, "type", "DWRR")
			w.c.put("SCHEDULER", sched, "weight", strconv.Itoa(int(sw.Scheduler.Weights[q])))
		}
	}
	for _, p := range ports {
		for q := range uint8(8) {
			key := p.Name + "|" + strconv.Itoa(int(q))
			w.c.put("QUEUE", key, "scheduler", schedulerName(sw, q))
			if wred[q] != "" {
				w.c.put("QUEUE", key, "wred_profile", wred[q])
			}
		}
	}
}

// schedulerName names what a queue does: equal queues share a row.
func schedulerName(sw *Switch, q uint8) string {
	if sw.Scheduler.Strict.Has(q) {
		return "scheduler.strict"
	}
	return "scheduler.dwrr" + strconv.Itoa(int(sw.Scheduler.Weights[q]))
}

// marks writes the profiles of WRED and returns which each priority has.
func (w *sonicWriter) marks(sw *Switch) (names [8]string) {
	var done []Mark
	for q := range uint8(8) {
		m, ok := sw.ECN.For(q, 0)
		if !ok {
			continue
		}
		i := slices.Index(done, m)
		if i < 0 {
			i = len(done)
			done = append(done, m)
		}
		names[q] = "AZURE_LOSSLESS"
		if i > 0 {
			names[q] += "_" + strconv.Itoa(i+1)
		}
		w.setMark(names[q], m)
	}
	if len(sw.ECN.ByRate) > 0 {
		w.warn("ecn.by_rate", "thresholds by port speed are not written: a queue's profile says nothing of speed")
	}
	return names
}

func (w *sonicWriter) setMark(name string, m Mark) {
	pct := (uint64(m.PMax)*100 + uint64(One) - 1) / uint64(One)
	if percent(int64(pct)) != m.PMax {
		w.warn("ecn.pmax", "%s is not a whole number of percent: %d%% is written", m.PMax, pct)
	}
	w.c.put("WRED_PROFILE", name, "ecn", "ecn_all")
	for _, colour := range []string{"green", "yellow", "red"} {
		w.c.put("WRED_PROFILE", name, "wred_"+colour+"_enable", "true")
		w.c.put("WRED_PROFILE", name, colour+"_min_threshold", byteText(m.KMin))
		w.c.put("WRED_PROFILE", name, colour+"_max_threshold", byteText(m.KMax))
		w.c.put("WRED_PROFILE", name, colour+"_drop_probability", strconv.FormatUint(pct, 10))
	}
}

func (w *sonicWriter) watchdog(sw *Switch, ports []SONiCPort) {
	d := &sw.PFC.Watchdog
	if !d.On {
		return
	}
	for _, p := range ports {
		w.setWatchdog(p.Name, d)
	}
}

func (w *sonicWriter) setWatchdog(port string, d *Watchdog) {
	for _, t := range []struct {
		key string
		val sim.Time
	}{{"detection_time", d.Detect}, {"restoration_time", d.Restore}} {
		ms := max(1, (t.val+sim.Millisecond-1)/sim.Millisecond)
		if ms*sim.Millisecond != t.val {
			w.warn("pfc.watchdog", "%s is not whole milliseconds: %dms is written", TimeText(t.val), int64(ms))
		}
		w.c.put("PFC_WD", port, t.key, strconv.FormatInt(int64(ms), 10))
	}
	w.c.put("PFC_WD", port, "action", d.Action)
}

// limits says what SONiC has no place for.
func (w *sonicWriter) limits(sw *Switch) {
	if sw.PFC.GlobalPause {
		w.warn("pfc.global_pause", "802.3x PAUSE is not among these tables")
	}
	if sw.Buffer.ScaleAlpha {
		w.warn("buffer.scale_alpha", "alpha is written without its scale by port speed")
	}
	for p, a := range sw.Buffer.AlphaBy {
		if a != 0 {
			w.warn("buffer.alpha_by_priority", "alpha of priority %d is not written: a profile here is for all groups of a kind", p)
		}
	}
}
