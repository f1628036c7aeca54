package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// TopFrame is what verbena top knows of a window. A rate that is not known is nil.
type TopFrame struct {
	Host    string     `json:"host"`
	Taken   time.Time  `json:"taken"`
	Seconds float64    `json:"seconds"` // of the window, 0 for a single look
	Ports   []TopPort  `json:"ports"`   // busiest first
	Pause   []TopPause `json:"pause"`   // priorities that paused
	QPs     []TopQP    `json:"qps"`     // that moved anything, busiest first
	Notes   []string   `json:"notes,omitempty"`
}

// TopPort is a port; bits or events a second.
type TopPort struct {
	Device        string   `json:"device"`
	Port          int      `json:"port"`
	Kind          string   `json:"kind,omitempty"`
	Program       string   `json:"program,omitempty"` // that holds a device of ours
	PID           int      `json:"pid,omitempty"`
	TxBits        *float64 `json:"tx_bits"`
	RxBits        *float64 `json:"rx_bits"`
	TxPackets     *float64 `json:"tx_packets"`
	RxPackets     *float64 `json:"rx_packets"`
	Retransmits   *float64 `json:"retransmits"` // packets sent again where the driver counts them, else NAKs and timeouts
	OutOfSequence *float64 `json:"out_of_sequence"`
	CNPs          *float64 `json:"cnps"` // sent and handled
	ECN           *float64 `json:"ecn_marked"`
	RNR           *float64 `json:"rnr"`                       // NAKs sent and received
	BytesOfNetdev string   `json:"bytes_of_netdev,omitempty"` // whose bytes these are, where the device counts none
}

// TopPause is a priority; frames a second and share of time, 0 to 1.
type TopPause struct {
	Interface string   `json:"interface"` // or port of a device of ours
	Priority  int      `json:"priority"`
	RxFrames  *float64 `json:"rx_frames"`
	TxFrames  *float64 `json:"tx_frames"`
	RxShare   *float64 `json:"rx_share"`
	TxShare   *float64 `json:"tx_share"`
}

// TopQP is a queue pair.
type TopQP struct {
	Device      string   `json:"device"`
	QPN         uint32   `json:"qpn"`
	QPs         int      `json:"qps,omitempty"` // that are counted together, where they are several: this is the first
	Type        string   `json:"type"`
	State       string   `json:"state"`
	Remote      string   `json:"remote,omitempty"`
	Program     string   `json:"program,omitempty"`
	TxBits      *float64 `json:"tx_bits"`
	RxBits      *float64 `json:"rx_bits"`
	Retransmits *float64 `json:"retransmits"`
	CNPs        *float64 `json:"cnps"`
	ECN         *float64 `json:"ecn_marked"`
}

// MaxTopQPs is how many queue pairs a frame has at most.
const MaxTopQPs = 100

// TopOf works out a frame: for each port what it moved in the window and what troubled
// it, pause by priority, and the busiest of the queue pairs that count for themselves.
func TopOf(w snapshot.Window) *TopFrame {
	s := w.After
	f := &TopFrame{Host: s.Host.Or("this host"), Taken: s.Taken, Seconds: max(w.Length().Seconds(), 0), Pause: topPause(w)}
	f.Ports = topPorts(w)
	var left int
	f.QPs, left = topQPs(w)
	switch {
	case len(f.Ports) == 0:
		f.Notes = append(f.Notes, "no RDMA port: the kernel has no RDMA device, and no process of yours holds one of Verbena's (verbena demo, or any program on Verbena, makes one)")
	case w.Before == nil:
		f.Notes = append(f.Notes, "one look: rates need two")
	}
	if left > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d more queue pairs move data", left))
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if why := uncounted(d); why != "" {
			f.Notes = append(f.Notes, shorten(d.Name, 32)+": "+why)
		}
	}
	for _, p := range s.Problems {
		if p.Place == "verbena/dev" || p.Place == "verbena/count" || p.Place == "verbena/counters" {
			f.Notes = append(f.Notes, shorten(p.Why, 200))
		}
	}
	return f
}

// uncounted says why the queue pairs of a device are not in a frame.
func uncounted(d *snapshot.Device) string {
	qps, ok := d.QPs.Get()
	switch {
	case !ok && !d.QPs.IsZero():
		return "its queue pairs cannot be read: " + d.QPs.Why()
	case d.Kind == snapshot.Verbena || d.Kind == snapshot.Sim || d.Kind == "" || len(qps) == 0:
		return ""
	case len(counted(d)) > 0:
		return ""
	case d.Kind.Software():
		return "its driver does not count by queue pair"
	}
	return fmt.Sprintf("the kernel counts by queue pair only where counters are bound: rdma statistic qp set link %s/1 auto type on", d.Name)
}

// Top is a frame as text: no line is longer than width columns and there are at most
// height lines; 0 for no limit. A dash is a rate that is not known.
func Top(w snapshot.Window, width, height int) []byte { return TopOf(w).Text(width, height, false) }

// Text draws the frame; see [Top]. Columns that have no room are left out, the last
// first. With colour, headings are bold and lines with trouble are yellow, in ANSI's
// sequences, which take no columns.
func (f *TopFrame) Text(width, height int, colour bool) []byte {
	title := fmt.Sprintf("verbena top  %s  %s", f.Host, f.Taken.Format("15:04:05"))
	if f.Seconds > 0 {
		title += fmt.Sprintf("  over %v", time.Duration(f.Seconds*1e9).Round(100*time.Millisecond))
	}
	lines := []topLine{{text: title, bold: true}, {}}
	table := func(columns []topColumn, rows []topRow) {
		lines = append(lines, drawTable(columns, rows, width)...)
	}
	if len(f.Ports) > 0 {
		table(portColumns, f.portRows())
	}
	if len(f.Pause) > 0 {
		lines = append(lines, topLine{})
		table(pauseColumns, f.pauseRows())
	}
	if len(f.QPs) > 0 {
		lines = append(lines, topLine{})
		table(qpColumns, f.qpRows())
	}
	for i, n := range f.Notes {
		if i == 0 && (len(f.Ports) > 0 || len(f.QPs) > 0) {
			lines = append(lines, topLine{})
		}
		for _, l := range wrap(n, width) {
			lines = append(lines, topLine{text: l})
		}
	}
	if height > 0 && len(lines) > height {
		lines = append(lines[:height-1], topLine{text: fmt.Sprintf("… %d more lines", len(lines)-height+1)})
	}
	var b strings.Builder
	for _, l := range lines {
		text := strings.TrimRight(shorten(l.text, width), " ")
		switch {
		case colour && text != "" && l.bold:
			text = "\x1b[1m" + text + "\x1b[0m"
		case colour && text != "" && l.trouble:
			text = "\x1b[33m" + text + "\x1b[0m"
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

func topPorts(w snapshot.Window) []TopPort {
	all := []TopPort{}
	for i := range w.After.Devices {
		d := &w.After.Devices[i]
		f := counter.Of(d)
		for j := range d.Ports {
			p := &d.Ports[j]
			before := earlier(w, d, p)
			hw := func(n counter.Name) snapshot.Value[float64] {
				return rate(w, counter.Get(f, before.HWCounters, n), counter.Get(f, p.HWCounters, n), 1)
			}
			again := rate(w, before.HWCounters.Get("retransmitted"), p.HWCounters.Get("retransmitted"), 1)
			if !again.IsKnown() {
				again = sum(hw(counter.NAKSeqRx), hw(counter.ACKTimeout), hw(counter.NAKSeqImplied))
			}
			words := func(name string) snapshot.Value[float64] {
				return rising(w, counter.PortDelta(name, before.Counters.Get(name), p.Counters.Get(name)), 32)
			}
			tx, rx := words("port_xmit_data"), words("port_rcv_data")
			if !tx.IsKnown() {
				tx, rx = times8(hw(counter.TxBytes)), times8(hw(counter.RxBytes))
			}
			row := TopPort{
				Device: d.Name, Port: p.Number, Kind: string(d.Kind), Program: d.Comm, PID: d.PID,
				TxPackets: pointer(hw(counter.TxPackets)), RxPackets: pointer(hw(counter.RxPackets)),
				Retransmits: pointer(again), OutOfSequence: pointer(hw(counter.OOSRx)), ECN: pointer(hw(counter.ECNMarkedRx)),
				CNPs: pointer(sum(hw(counter.CNPTx), hw(counter.CNPRxHandled))), RNR: pointer(sum(hw(counter.RNRNAKRx), hw(counter.RNRTx))),
			}
			if n := p.Netdev.Or(""); !tx.IsKnown() && w.Before != nil && n != "" { // rdma_rxe counts no bytes: its interface's
				is, was := w.After.Netdev(n), w.Before.Netdev(n)
				if is != nil && was != nil {
					tx = times8(rate(w, was.Statistics.Get("tx_bytes"), is.Statistics.Get("tx_bytes"), 1))
					rx = times8(rate(w, was.Statistics.Get("rx_bytes"), is.Statistics.Get("rx_bytes"), 1))
					row.BytesOfNetdev = n
				}
			}
			row.TxBits, row.RxBits = pointer(tx), pointer(rx)
			all = append(all, row)
		}
	}
	slices.SortStableFunc(all, func(a, b TopPort) int { return cmp.Compare(or0(b.TxBits)+or0(b.RxBits), or0(a.TxBits)+or0(a.RxBits)) })
	return all
}

// earlier is the same port in the earlier snapshot, empty without.
func earlier(w snapshot.Window, d *snapshot.Device, p *snapshot.Port) snapshot.Port {
	if w.Before != nil {
		if e := w.Before.Same(d); e != nil {
			if q := port(e, p.Number); q != nil {
				return *q
			}
		}
	}
	return snapshot.Port{}
}

// rate is how fast a counter rose, per second.
func rate(w snapshot.Window, before, after snapshot.Value[uint64], factor float64) snapshot.Value[float64] {
	return rising(w, snapshot.Delta(before, after), factor)
}

func rising(w snapshot.Window, rise snapshot.Value[uint64], factor float64) snapshot.Value[float64] {
	n, ok := rise.Get()
	if seconds := w.Length().Seconds(); ok && seconds > 0 {
		return snapshot.Known(float64(n) * factor / seconds)
	}
	return snapshot.Value[float64]{}
}

func sum(all ...snapshot.Value[float64]) snapshot.Value[float64] {
	var total snapshot.Value[float64]
	for _, v := range all {
		known(v, func(x float64) { total = snapshot.Known(total.Or(0) + x) })
	}
	return total
}

func times8(v snapshot.Value[float64]) snapshot.Value[float64] {
	known(v, func(x float64) { v = snapshot.Known(8 * x) })
	return v
}

// topPause are the priorities of interfaces, and of our own ports, that paused.
func topPause(w snapshot.Window) []TopPause {
	all := []TopPause{}
	if w.Before == nil {
		return all
	}
	add := func(name string, was, is counter.PFC) {
		for prio := range 8 {
			row := TopPause{
				Interface: name, Priority: prio,
				RxFrames: pointer(rate(w, was.Rx[prio].Frames, is.Rx[prio].Frames, 1)), TxFrames: pointer(rate(w, was.Tx[prio].Frames, is.Tx[prio].Frames, 1)),
				RxShare: pointer(rate(w, was.Rx[prio].DurationUS, is.Rx[prio].DurationUS, 1e-6)), TxShare: pointer(rate(w, was.Tx[prio].DurationUS, is.Tx[prio].DurationUS, 1e-6)),
			}
			if or0(row.RxFrames)+or0(row.TxFrames)+or0(row.RxShare)+or0(row.TxShare) > 0 {
				all = append(all, row)
			}
		}
	}
	for i := range w.After.Netdevs {
		n := &w.After.Netdevs[i]
		if b := w.Before.Netdev(n.Name); b != nil {
			add(n.Name, counter.PFCOf(b), counter.PFCOf(n))
		}
	}
	for i := range w.After.Devices {
		d := &w.After.Devices[i]
		if d.Kind != snapshot.Verbena {
			continue
		}
		for j := range d.Ports {
			before := earlier(w, d, &d.Ports[j])
			add(d.Name+"/"+strconv.Itoa(d.Ports[j].Number), counter.PFCOfPort(&before), counter.PFCOfPort(&d.Ports[j]))
		}
	}
	return all
}

// topQPs are queue pairs with counters of their own that sent or received, busiest
// first, and how many more there are.
func topQPs(w snapshot.Window) (all []TopQP, left int) {
	all = []TopQP{}
	if w.Before == nil {
		return all, 0
	}
	for i := range w.After.Devices {
		d := &w.After.Devices[i]
		b := w.Before.Same(d)
		if b == nil {
			continue
		}
		was := map[uint64]*countedQP{}
		old := counted(b)
		for j := range old {
			was[old[j].key] = &old[j]
		}
		f := counter.Of(d)
		for _, q := range counted(d) {
			var before snapshot.Counters
			if o := was[q.key]; o != nil {
				before = o.Counters
			}
			// What a queue pair of ours has not met is not in its list.
			zero := snapshot.Value[uint64]{}
			if d.Kind == snapshot.Verbena && was[q.key] != nil {
				zero = snapshot.Known[uint64](0)
			}
			get := func(n counter.Name) snapshot.Value[float64] {
				return rate(w, orElse(counter.Get(f, before, n), zero), orElse(counter.Get(f, q.Counters, n), zero), 1)
			}
			tx, rx := times8(get(counter.TxBytes)), times8(get(counter.RxBytes))
			moved := tx.Or(0)+rx.Or(0)+get(counter.TxPackets).Or(0)+get(counter.RxPackets).Or(0) > 0
			for _, c := range q.Counters { // drivers count no bytes in bound counters
				moved = moved || q.bound && rate(w, before.Get(c.Name), c.Value, 1).Or(0) > 0
			}
			if !moved {
				continue
			}
			again := sum(get(counter.NAKSeqRx), get(counter.ACKTimeout))
			if d.Kind == snapshot.Verbena {
				again = rate(w, orElse(before.Get("retransmitted"), zero), orElse(q.Counters.Get("retransmitted"), zero), 1)
			}
			all = append(all, TopQP{
				Device: d.Name, QPN: q.LQPN, QPs: q.together, Type: q.Type, State: q.State, Remote: q.RemoteGID.Or(""), Program: q.Comm,
				TxBits: pointer(tx), RxBits: pointer(rx), Retransmits: pointer(again),
				CNPs: pointer(sum(get(counter.CNPTx), get(counter.CNPRxHandled))), ECN: pointer(get(counter.ECNMarkedRx)),
			})
		}
	}
	slices.SortStableFunc(all, func(a, b TopQP) int { return cmp.Compare(or0(b.TxBits)+or0(b.RxBits), or0(a.TxBits)+or0(a.RxBits)) })
	if left = len(all) - MaxTopQPs; left > 0 {
		return all[:MaxTopQPs], left
	}
	return all, 0
}

// countedQP is a queue pair with counters of its own, or those that one of the kernel's
// counters is bound to, by the first of them.
type countedQP struct {
	snapshot.QP
	key      uint64
	bound    bool
	together int // how many, where they are several
}

// counted lists them.
func counted(d *snapshot.Device) (all []countedQP) {
	qps, _ := d.QPs.Get()
	at := map[uint32]*snapshot.QP{}
	for i := range qps {
		at[qps[i].LQPN] = &qps[i]
		if qps[i].Counters != nil || d.Kind == snapshot.Verbena {
			all = append(all, countedQP{QP: qps[i], key: uint64(qps[i].LQPN)})
		}
	}
	for _, b := range d.Bound.Or(nil) {
		if len(b.QPs) == 0 {
			continue
		}
		q := countedQP{key: 1<<63 | uint64(uint32(b.Port))<<32 | uint64(b.ID), bound: true}
		q.LQPN, q.Port, q.Type, q.Comm = slices.Min(b.QPs), b.Port, b.Type.Or(""), b.Comm
		if len(b.QPs) > 1 {
			q.together = len(b.QPs)
		} else if one := at[q.LQPN]; one != nil {
			q.QP = *one
		}
		q.Counters = b.Counters
		all = append(all, q)
	}
	return all
}

func orElse(a, b snapshot.Value[uint64]) snapshot.Value[uint64] {
	if a.IsZero() {
		return b
	}
	return a
}

func pointer(v snapshot.Value[float64]) *float64 {
	if x, ok := v.Get(); ok {
		return &x
	}
	return nil
}

func or0(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func gbps(p *float64) string {
	if p == nil {
		return "-"
	}
	return strconv.FormatFloat(*p/1e9, 'f', 3, 64)
}

// perSecond is a rate in at most seven columns.
func perSecond(p *float64) string {
	if p == nil {
		return "-"
	}
	x := *p
	switch {
	case x >= 1e6:
		return strconv.FormatFloat(x/1e6, 'f', 1, 64) + "M"
	case x >= 1e4:
		return strconv.FormatFloat(x/1e3, 'f', 1, 64) + "k"
	case x == 0 || x >= 10:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// shorten cuts a text at so many characters, 0 for no limit, with an ellipsis for the
// last of them: that something is missing must be seen. A character that does not print
// is a question mark, so that a name cannot move the cursor.
func shorten(text string, n int) string {
	r := []rune(text)
	for i, c := range r {
		if !unicode.IsPrint(c) {
			r[i] = '?'
		}
	}
	if n <= 0 || len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// squeeze is shorten for names that differ at their ends: it leaves out of the middle.
func squeeze(text string, n int) string {
	r := []rune(shorten(text, 0))
	if n <= 2 || len(r) <= n {
		return shorten(text, n)
	}
	head := n * 2 / 5
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}
