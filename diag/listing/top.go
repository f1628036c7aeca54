package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Top is a frame of verbena top: for each port what it moved in the window and what
// troubled it, busiest first, then pause by priority, then the busiest queue pairs
// that count for themselves, which ours do. No line is longer than width columns and
// there are at most height lines; 0 for no limit. A dash is a rate that is not known.
func Top(w snapshot.Window, width, height int) []byte {
	s := w.After
	title := fmt.Sprintf("verbena top  %s  %s", s.Host.Or("this host"), s.Taken.Format("15:04:05"))
	if w.Length() > 0 {
		title += fmt.Sprintf("  over %v", w.Length().Round(100*time.Millisecond))
	}
	lines := []string{title, "", fmt.Sprintf("%-16s %9s %9s %8s %8s %8s %8s", "PORT", "TX Gb/s", "RX Gb/s", "RETRANS", "OOS", "CNP", "ECN")}
	ports := topPorts(w)
	for _, p := range ports {
		lines = append(lines, fmt.Sprintf("%-16s %9s %9s %8s %8s %8s %8s", clip(p.name, 16), gbps(p.tx), gbps(p.rx), perSecond(p.retrans), perSecond(p.oos), perSecond(p.cnp), perSecond(p.ecn)))
	}
	if len(ports) == 0 {
		lines = append(lines, "no RDMA port")
	}
	lines = append(lines, topPause(w)...)
	lines = append(lines, topQPs(w)...)
	if height > 0 && len(lines) > height {
		lines = append(lines[:height-1], fmt.Sprintf("… %d more lines", len(lines)-height+1))
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(clip(l, width), " "))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

type topPort struct {
	name                           string
	tx, rx, retrans, oos, cnp, ecn snapshot.Value[float64]
}

func topPorts(w snapshot.Window) []topPort {
	var all []topPort
	for i := range w.After.Devices {
		d := &w.After.Devices[i]
		f := counter.Of(d)
		for j := range d.Ports {
			p := &d.Ports[j]
			before := earlier(w, d, p)
			hw := func(n counter.Name) snapshot.Value[float64] {
				return rate(w, counter.Get(f, before.HWCounters, n), counter.Get(f, p.HWCounters, n), 1)
			}
			row := topPort{
				name: d.Name + "/" + strconv.Itoa(p.Number),
				tx:   rate(w, before.Counters.Get("port_xmit_data"), p.Counters.Get("port_xmit_data"), 32), // words
				rx:   rate(w, before.Counters.Get("port_rcv_data"), p.Counters.Get("port_rcv_data"), 32),
				oos:  hw(counter.OOSRx), ecn: hw(counter.ECNMarkedRx),
				retrans: sum(hw(counter.NAKSeqRx), hw(counter.ACKTimeout), hw(counter.NAKSeqImplied)),
				cnp:     sum(hw(counter.CNPTx), hw(counter.CNPRxHandled)),
			}
			if !row.tx.IsKnown() {
				row.tx, row.rx = times8(hw(counter.TxBytes)), times8(hw(counter.RxBytes))
			}
			all = append(all, row)
		}
	}
	slices.SortStableFunc(all, func(a, b topPort) int { return cmp.Compare(b.tx.Or(0)+b.rx.Or(0), a.tx.Or(0)+a.rx.Or(0)) })
	return all
}

// earlier is the same port in the earlier snapshot, empty without.
func earlier(w snapshot.Window, d *snapshot.Device, p *snapshot.Port) snapshot.Port {
	if w.Before != nil {
		if e := w.Before.Device(d.Name); e != nil {
			if q := port(e, p.Number); q != nil {
				return *q
			}
		}
	}
	return snapshot.Port{}
}

// rate is how fast a counter rose, per second.
func rate(w snapshot.Window, before, after snapshot.Value[uint64], factor float64) snapshot.Value[float64] {
	n, ok := snapshot.Delta(before, after).Get()
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

// topPause are the priorities of interfaces that paused.
func topPause(w snapshot.Window) []string {
	if w.Before == nil {
		return nil
	}
	var lines []string
	for i := range w.After.Netdevs {
		n := &w.After.Netdevs[i]
		b := w.Before.Netdev(n.Name)
		if b == nil {
			continue
		}
		was, is := counter.PFCOf(b), counter.PFCOf(n)
		for prio := range 8 {
			rx := rate(w, was.Rx[prio].Frames, is.Rx[prio].Frames, 1)
			tx := rate(w, was.Tx[prio].Frames, is.Tx[prio].Frames, 1)
			if rx.Or(0)+tx.Or(0) == 0 {
				continue
			}
			share := func(before, after snapshot.Value[uint64]) string {
				v, ok := rate(w, before, after, 1e-4).Get() // µs a second as per cent
				if !ok {
					return "-"
				}
				return strconv.FormatFloat(v, 'f', 1, 64)
			}
			lines = append(lines, fmt.Sprintf("%-16s %9d %9s %8s %8s %8s", clip(n.Name, 16), prio, perSecond(rx), perSecond(tx),
				share(was.Rx[prio].DurationUS, is.Rx[prio].DurationUS), share(was.Tx[prio].DurationUS, is.Tx[prio].DurationUS)))
		}
	}
	if lines == nil {
		return nil
	}
	return append([]string{"", fmt.Sprintf("%-16s %9s %9s %8s %8s %8s", "PAUSE", "PRIORITY", "RX/s", "TX/s", "RX %", "TX %")}, lines...)
}

// topQPs are queue pairs with counters of their own that sent or received, busiest first.
func topQPs(w snapshot.Window) []string {
	if w.Before == nil {
		return nil
	}
	type busy struct {
		line string
		load float64
	}
	var all []busy
	for i := range w.After.Devices {
		d := &w.After.Devices[i]
		b := w.Before.Device(d.Name)
		if b == nil {
			continue
		}
		was := map[uint32]snapshot.Counters{}
		for _, q := range b.QPs.Or(nil) {
			was[q.LQPN] = q.Counters
		}
		f := counter.Of(d)
		for _, q := range d.QPs.Or(nil) {
			get := func(n counter.Name) snapshot.Value[float64] {
				return rate(w, counter.Get(f, was[q.LQPN], n), counter.Get(f, q.Counters, n), 1)
			}
			tx, rx := times8(get(counter.TxBytes)), times8(get(counter.RxBytes))
			load := tx.Or(0) + rx.Or(0) + get(counter.TxPackets).Or(0) + get(counter.RxPackets).Or(0)
			if load == 0 {
				continue
			}
			all = append(all, busy{fmt.Sprintf("%-16s %9s %9s %8s %8s %8s", clip(fmt.Sprintf("%s:%d", d.Name, q.LQPN), 16), gbps(tx), gbps(rx),
				perSecond(sum(get(counter.NAKSeqRx), get(counter.ACKTimeout))), perSecond(sum(get(counter.CNPTx), get(counter.CNPRxHandled))), clip(q.Comm, 20)), load})
		}
	}
	if all == nil {
		return nil
	}
	slices.SortStableFunc(all, func(a, b busy) int { return cmp.Compare(b.load, a.load) })
	lines := []string{"", fmt.Sprintf("%-16s %9s %9s %8s %8s %8s", "QP", "TX Gb/s", "RX Gb/s", "RETRANS", "CNP", "PROGRAM")}
	for _, q := range all {
		lines = append(lines, q.line)
	}
	return lines
}

func gbps(v snapshot.Value[float64]) string {
	x, ok := v.Get()
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(x/1e9, 'f', 3, 64)
}

// perSecond is a rate in at most seven columns.
func perSecond(v snapshot.Value[float64]) string {
	x, ok := v.Get()
	switch {
	case !ok:
		return "-"
	case x >= 1e6:
		return strconv.FormatFloat(x/1e6, 'f', 1, 64) + "M"
	case x >= 1e4:
		return strconv.FormatFloat(x/1e3, 'f', 1, 64) + "k"
	case x == 0 || x >= 10:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// clip cuts a text at so many characters; 0 for no limit.
func clip(s string, n int) string {
	r := []rune(s)
	if n <= 0 || len(r) <= n {
		return s
	}
	return string(r[:n])
}
