package bench

import (
	"fmt"
	"math"
	"regexp"
)

// Row is one ratio of two subjects of a group.
type Row struct {
	Name   string // unique
	A, B   string // subjects; what is printed is A ÷ B. Empty B: A alone, without ratio
	Metric Metric
	// Goal and Floor bound the ratio; 0 where there is none. Both are upper
	// bounds where less is better, as the metric says.
	Goal, Floor float64
}

// Metric picks what a row compares.
type Metric string

// The metrics.
const (
	Gbps  Metric = "Gb/s"
	Mmsg  Metric = "M/s"
	CPUGB Metric = "CPU s/GB"
	P50   Metric = "µs p50"
	P99   Metric = "µs p99"
)

// Of returns the metric of a sample.
func (m Metric) Of(s *Sample) float64 {
	switch m {
	case Gbps:
		return s.Gbps()
	case Mmsg:
		return s.Mmsg()
	case CPUGB:
		return s.CPUPerGB()
	case P50:
		return s.P50
	case P99:
		return s.P99
	}
	return math.NaN()
}

// LessIsBetter reports whether goals and floors are upper bounds.
func (m Metric) LessIsBetter() bool { return m == CPUGB || m == P50 || m == P99 }

// Verdict is what a ratio means for its row.
type Verdict string

// The verdicts.
const (
	OK         Verdict = "ok"
	BelowGoal  Verdict = "below goal"
	BelowFloor Verdict = "BELOW FLOOR"
	NoGoal     Verdict = ""
)

// gateAt is the part of its floor that a ratio must reach to pass the gate:
// medians of shared machines repeat within a tenth.
const gateAt = 0.8

// Judge returns the verdict on a ratio and whether it passes the gate.
func (r *Row) Judge(ratio float64) (Verdict, bool) {
	if r.Floor == 0 || math.IsNaN(ratio) {
		return NoGoal, r.Floor == 0
	}
	goal, floor := r.Goal, r.Floor
	if r.Metric.LessIsBetter() {
		ratio, goal, floor = 1/ratio, 1/goal, 1/floor
	}
	switch {
	case ratio >= goal:
		return OK, true
	case ratio >= floor:
		return BelowGoal, true
	}
	return BelowFloor, ratio >= gateAt*floor
}

// Group is a set of subjects that take turns, and the rows made of them.
type Group struct {
	Name     string
	Network  string // lo or veth
	Unpinned bool   // the children run on any processor
	Subjects map[string]Spec
	Rows     []Row
}

// The sizes of messages, and how many segments the kernel cuts a send into when
// a WRITE of that size leaves: a WRITE's first packet is longer than the others
// and begins a new send, so that 64 KiB are two sends.
var sizes = []struct {
	bytes    int
	name     string
	segs4096 int
	segs1024 int
}{{64 << 10, "64K", 8, 32}, {1 << 20, "1M", 15, 60}}

// Plan returns all groups.
func Plan() []Group {
	var all []Group
	for _, network := range []string{"lo", "veth"} {
		for _, mtu := range []int{4096, 1024} {
			for _, qps := range []int{1, 2, 4} {
				for i := range sizes {
					all = append(all, bandwidth(network, mtu, qps, i))
				}
			}
		}
		all = append(all, spinning(network), blocking(network), rates(network))
	}
	return append(all, packets(), incasts(), memory(), loops())
}

// packets is the packet link beside the UDP link: what whole Ethernet frames
// cost.
func packets() Group {
	g := Group{Name: "veth packet link", Network: "veth", Subjects: map[string]Spec{}}
	add := func(name string, s Spec, m Metric) {
		g.Subjects[name+" udp"] = s
		s.Packet = true
		g.Subjects[name+" packet"] = s
		g.Rows = append(g.Rows, Row{Name: "veth packet ÷ udp " + name, A: name + " packet", B: name + " udp", Metric: m})
	}
	for _, mtu := range []int{4096, 1024} {
		for _, z := range sizes {
			for _, op := range []string{"write", "read"} {
				name := fmt.Sprintf("mtu%d %s %s", mtu, z.name, op)
				add(name, Spec{Kind: KindRDMA, Op: op, Size: z.bytes, QPs: 1, MTU: mtu}, Gbps)
				g.Rows = append(g.Rows, Row{Name: "veth packet ÷ udp " + name + " CPU", A: name + " packet", B: name + " udp", Metric: CPUGB})
			}
		}
	}
	add("rate 64B write", Spec{Kind: KindRate, Size: pingBytes}, Mmsg)
	add("spin 64B send", Spec{Kind: KindPing, Op: "send", Size: pingBytes}, P50)
	return g
}

// bandwidth is one size of message, every operation, beside the three rivals.
func bandwidth(network string, mtu, qps, size int) Group {
	z := sizes[size]
	segs := z.segs4096
	if mtu == 1024 {
		segs = z.segs1024
	}
	name := fmt.Sprintf("%s mtu%d qp%d %s", network, mtu, qps, z.name)
	gso := fmt.Sprintf("GSO×%d", segs)
	g := Group{Name: name, Network: network, Subjects: map[string]Spec{
		"iperf3": {Kind: KindIperf},
		"TCP":    {Kind: KindTCP},
		gso:      {Kind: KindGSO, MTU: mtu, Segs: segs},
	}}
	// Goals are for 4 KiB packets.
	judged := mtu == 4096
	bound := func(on bool, goal, floor float64) (float64, float64) {
		if on && judged {
			return goal, floor
		}
		return 0, 0
	}
	for _, op := range []string{"write", "read", "send"} {
		g.Subjects[op] = Spec{Kind: KindRDMA, Op: op, Size: z.bytes, QPs: qps, MTU: mtu}
		iperf := Row{Name: name + " " + op + " ÷ iperf3", A: op, B: "iperf3", Metric: Gbps}
		bare := Row{Name: name + " " + op + " ÷ " + gso, A: op, B: gso, Metric: Gbps}
		cpu := Row{Name: name + " " + op + " CPU ÷ iperf3", A: op, B: "iperf3", Metric: CPUGB}
		if op == "write" {
			switch {
			case network == "lo" && z.name == "1M":
				iperf.Goal, iperf.Floor = bound(true, 2.0, 1.5)
			case network == "lo":
				iperf.Goal, iperf.Floor = bound(true, 1.45, 1.1)
			case z.name == "64K":
				iperf.Goal, iperf.Floor = bound(true, 1.4, 1.05)
			}
			bare.Goal, bare.Floor = bound(network == "lo", 0.65, 0.5)
			if z.name == "1M" {
				cpu.Goal, cpu.Floor = bound(network == "lo", 0.85, 1.1)
			} else {
				cpu.Goal, cpu.Floor = bound(network == "lo", 1.1, 1.4)
			}
		}
		g.Rows = append(g.Rows, iperf, Row{Name: name + " " + op + " ÷ TCP", A: op, B: "TCP", Metric: Gbps}, bare, cpu)
	}
	read := Row{Name: name + " read ÷ write", A: "read", B: "write", Metric: Gbps}
	read.Goal, read.Floor = bound(true, 0.9, 0.75)
	g.Rows = append(g.Rows, read)
	return g
}

// spinning is a small message there and back while everybody spins.
func spinning(network string) Group {
	g := Group{Name: network + " spin 64B", Network: network, Subjects: map[string]Spec{
		"UDP":   {Kind: KindUDP},
		"write": {Kind: KindPing, Op: "write", Size: pingBytes},
		"send":  {Kind: KindPing, Op: "send", Size: pingBytes},
	}}
	for _, op := range []string{"write", "send"} {
		p50 := Row{Name: g.Name + " " + op + " p50 ÷ UDP", A: op, B: "UDP", Metric: P50, Goal: 1.35, Floor: 1.8}
		p99 := Row{Name: g.Name + " " + op + " p99 ÷ UDP", A: op, B: "UDP", Metric: P99, Goal: 1.7, Floor: 2.5}
		g.Rows = append(g.Rows, p50, p99)
	}
	return g
}

// blocking is a small message there and back while everybody waits.
func blocking(network string) Group {
	name := network + " block 64B"
	return Group{Name: name, Network: network, Unpinned: true, Subjects: map[string]Spec{
		"UDPConn": {Kind: KindUDP, Blocking: true},
		"send":    {Kind: KindPing, Op: "send", Size: pingBytes, Blocking: true},
	}, Rows: []Row{
		{Name: name + " send p50 ÷ UDPConn", A: "send", B: "UDPConn", Metric: P50, Goal: 1.2, Floor: 1.5},
		{Name: name + " send p99 ÷ UDPConn", A: "send", B: "UDPConn", Metric: P99},
	}}
}

// rates is many small WRITEs, with and without the kernel's segmentation.
func rates(network string) Group {
	name := network + " rate 64B"
	return Group{Name: name, Network: network, Subjects: map[string]Spec{
		"write":      {Kind: KindRate, Size: pingBytes},
		"no offload": {Kind: KindRate, Size: pingBytes, NoOffload: true},
	}, Rows: []Row{
		{Name: name + " write ÷ no offload", A: "write", B: "no offload", Metric: Mmsg, Goal: 6, Floor: 3},
	}}
}

// defaultBuffer is what most systems grant a socket.
const defaultBuffer = 212992

// incasts is one and sixteen senders with a small receive buffer. What counts
// is that many do not do much worse than one.
func incasts() Group {
	one := Spec{Kind: KindIncast, Size: 64 << 10, Senders: 1, RecvBuffer: defaultBuffer}
	many := one
	many.Senders = 16
	big := Spec{Kind: KindRDMA, Op: "write", Size: 64 << 10, QPs: 1}
	return Group{Name: "lo rcvbuf 212992", Network: "lo", Subjects: map[string]Spec{"1 sender": one, "16 senders": many, "4 MiB": big}, Rows: []Row{
		{Name: "lo rcvbuf 212992 16 senders ÷ 1 sender", A: "16 senders", B: "1 sender", Metric: Gbps, Goal: 0.8, Floor: 0.5},
		{Name: "lo rcvbuf 212992 1 sender ÷ 4 MiB", A: "1 sender", B: "4 MiB", Metric: Gbps},
	}}
}

func memory() Group {
	return Group{Name: "copy+CRC", Network: "lo", Subjects: map[string]Spec{
		"fused":                {Kind: KindCopy, Fused: true},
		"hash/crc32 then copy": {Kind: KindCopy},
	}, Rows: []Row{
		{Name: "copy+CRC fused ÷ hash/crc32 then copy", A: "fused", B: "hash/crc32 then copy", Metric: Gbps, Goal: 2.0, Floor: 1.6},
	}}
}

// loops is what the adapters cost without a kernel: the row that says how much
// of a stream's time is ours.
func loops() Group {
	g := Group{Name: "adapters", Network: "lo", Subjects: map[string]Spec{}}
	for _, c := range []struct {
		name      string
		size, mtu int
	}{{"1M mtu4096", 1 << 20, 4096}, {"64K mtu4096", 64 << 10, 4096}, {"64K mtu1024", 64 << 10, 1024}, {"64B", 64, 4096}} {
		g.Subjects[c.name] = Spec{Kind: KindLoop, Size: c.size, MTU: c.mtu}
		metric := Gbps
		if c.size == 64 {
			metric = Mmsg
		}
		g.Rows = append(g.Rows, Row{Name: "adapters alone write " + c.name, A: c.name, Metric: metric})
	}
	return g
}

// Select keeps the rows whose names match, and what they need.
func Select(all []Group, only *regexp.Regexp) []Group {
	if only == nil {
		return all
	}
	var kept []Group
	for _, g := range all {
		var rows []Row
		subjects := map[string]Spec{}
		for _, r := range g.Rows {
			if only.MatchString(r.Name) {
				rows = append(rows, r)
				subjects[r.A] = g.Subjects[r.A]
				if r.B != "" {
					subjects[r.B] = g.Subjects[r.B]
				}
			}
		}
		if len(rows) > 0 {
			kept = append(kept, Group{g.Name, g.Network, g.Unpinned, subjects, rows})
		}
	}
	return kept
}
