package scenario

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
)

// lint returns the warnings of a file.
func lint(t *testing.T, text string) []string {
	t.Helper()
	s, g := graphOf(t, text)
	if err := s.Check(g); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var out []string
	for _, w := range s.Lint(g) {
		out = append(out, w.String())
	}
	return out
}

const clean = `
topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}
host: {rdma: {ack_every: 1}}
workload: [{kind: incast, src: host1..3, dst: host0, bytes: 1MB}]
`

// A plain scenario has nothing to warn of: no false alarms.
func TestLintClean(t *testing.T) {
	for _, text := range []string{
		clean,
		clean + "switch: {buffer: {preset: hpcc}}\npacket: {payload: 1000, header: 48}\n",
		clean + "switch: {buffer: {preset: tomahawk3}}\n",
		strings.Replace(clean, "topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}", "topology: {kind: fat-tree, k: 4}", 1),
		strings.Replace(clean, "topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}", "topology: {kind: parking-lot, switches: 4}", 1),
		strings.Replace(clean, "topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}", "topology: {kind: rail, units: 2, hosts_per_unit: 4, nics: 2, spines: 2}", 1),
		// A ring of three has no path of two trunks.
		strings.Replace(clean, "topology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 4}", "topology: {kind: ring, switches: 3, hosts_per_switch: 2}", 1),
		"workload: [{kind: long, src: host0, dst: host1, op: tcp, bytes: 1MB}]\nhost: {dcqcn: {preset: \"off\"}}",
	} {
		if w := lint(t, text); len(w) > 0 {
			t.Errorf("%s\n%s", text, strings.Join(w, "\n"))
		}
	}
}

// What is unwise is said with what will happen.
func TestLint(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"ECN above XOFF", "switch: {ecn: {kmin: 3MB, kmax: 3MB}, buffer: {xoff: 1MB}}",
			"switch.ecn.kmin: 3MB is above XOFF, 1.004MB for one congested port of leaf0 (and 3 others): PFC pauses the sender before its packets are marked",
		},
		// alpha 1/8 of what is shared: T = B/9 for one port.
		{"ECN above dynamic XOFF", "switch: {ecn: {kmin: 4MB, kmax: 4MB}}", "switch.ecn.kmin: 4MB is above XOFF, 3."},
		{"K below a packet", "switch: {ecn: {kmin: 500B}}", "switch.ecn.kmin: 500B is less than one packet (1102 bytes)"},
		// 2 × 100 Gb/s × 1 us + 2 × 1102 + 64 = 25,000 + 2,268.
		{
			"headroom", "switch: {buffer: {headroom: 20KB}}",
			"switch.buffer.headroom: 20KB at leaf0/Ethernet0; its link of 100Gbps and 1us needs 27.268KB: up to 7.268KB of a lossless class are dropped",
		},
		{"headroom of short cables", "switch: {buffer: {headroom: hpcc}}\ntopology: {delay: 25ns}", "its link of 100Gbps and 25ns needs"},
		{"oversubscribed", "switch: {buffer: {total: 100KB}}", "switch.buffer.total: 100KB of leaf0"},
		{"headroom pool", "switch: {buffer: {headroom_pool: 60KB}}", "switch.buffer.headroom_pool: 60KB of leaf0 (and 3 others) is enough for 2 of its 6 ports"},
		{"CNP in the data class", "host: {cnp: {dscp: 26, priority: 3}}", "host.cnp.dscp: leaf0 (and 3 others) puts CNPs (DSCP 26) in priority 3, that of the data"},
		{"DCQCN off", `host: {dcqcn: {preset: "off"}}`, "host.dcqcn.preset: DCQCN is off at host0 (and 7 others) and switches mark its packets"},
		{"ECN off", "switch: {ecn: {priorities: none}}", "no switch marks RDMA of host0 (and 7 others): DCQCN never hears of congestion"},
		{"trust", "switches: [{match: leaf1, trust: pcp}]", "switches[0].trust: leaf1 trusts PCP, but hosts send frames without tags: all of them are in priority 0"},
		{"lossy by map", "switches: [{match: leaf1, dscp_map: {26: 0}}]", "switches[0].dscp_map: leaf1 puts RDMA with DSCP 26 of host0 (and 7 others) in priority 0, which has no PFC"},
		{"no PFC on one switch", "switches: [{match: spine0, pfc: {priorities: none}}]", "switches[0].pfc.priorities: spine0 has no PFC and others have: RDMA is dropped there"},
		{"NIC without PFC", "hosts: [{match: host3, nic: {pfc: none}}]", "hosts[0].nic.pfc: host3 does not obey pauses of priority 3"},
		{"other priority", "host: {rdma: {priority: 4}, nic: {pfc: [3, 4]}}", "host.rdma.priority: host0 (and 7 others) sends in priority 4, but leaf0 (and 3 others) pauses priority 3 for it"},
		{"RSS off", "host: {nic: {rx_queues: 8, rss: \"off\", rx_rate: 20Gbps}}", "host.nic.rss: all 3 flows into host0 go through one receive queue of 20Gbps, on a link of 100Gbps"},
		{"slow receiver", "hosts: [{match: host0, nic: {pcie_rate: 50Gbps}}]", "hosts[0].nic.pcie_rate: host0 takes in 50Gbps of the 100Gbps that its link brings: beyond that, the NIC pauses its switch"},
		{"MTU", "switches: [{match: leaf1, mtu: 1000}]", "switches[0].mtu: leaf1 drops every frame of more than 1000 bytes; full packets of host0 (and 7 others) have 1102"},
		{"polarised", "switch: {ecmp: {seed: same}}\ntopology: {kind: fat-tree, k: 4}", "switch.ecmp.seed: switches of 2 tiers hash with one seed"},
		{"watchdog", "switch: {pfc: {watchdog: {enable: true}}}\nduration: 100ms", "switch.pfc.watchdog.detect: 200ms is not less than the duration of the run, 100ms"},
		{"quanta", "switch: {pfc: {quanta: 10}}", "switch.pfc.quanta: 10 last as long as 640 bytes on the link"},
		{"quanta of a NIC", "hosts: [{match: host1, nic: {quanta: 34}}]", "hosts[0].nic.quanta: 34 last as long as 2176 bytes on the link"},
		{"no timeout", "host: {rdma: {timeout_exp: 0}}", "host.rdma.timeout_exp: without ACK timeout a lost last packet is never sent again"},
		{
			"RoCEv1", "host: {roce: v1}\ntopology: {kind: spine-leaf, leaves: 2, spines: 2, hosts_per_leaf: 2, subnets: per-leaf}",
			"host.roce: RoCEv1 is not routed: packets of incast to other subnets are dropped at their leaf",
		},
		{
			"cycle", "topology: {kind: ring, switches: 3, hosts_per_switch: 2, one_way: true}",
			"topology.kind: routes make a circle, sw0 → sw1 → sw2 → sw0: with PFC its links can wait for each other, a deadlock",
		},
		{"bounce", "topology: {kind: bounce, hosts_per_leaf: 2}", "topology.kind: routes make a circle, "},
		{"unused key", "topology: {k: 8}", "topology.k: does nothing: kind is spine-leaf"},
		{"endless", "workload: [{kind: long, src: host1, dst: host0}]", "until: no workload ends by itself: the run lasts 10s"},
		{"knobs", "host: {dcqcn: {rpg_min_rate: 100Gbps}}", "host.dcqcn: rpg_min_rate 100Gbps is not below the line rate: no CNP slows a QP"},
		{"priority without ECN", "switch: {ecn: {by_priority: [{priority: 5}]}}", "switch.ecn.by_priority[0]: does nothing: priority 5 is not among ecn.priorities, [3]"},
	} {
		// The case's keys stand in for the clean file's.
		text := c.in + "\n"
		for _, line := range strings.Split(strings.TrimSpace(clean), "\n") {
			key, rest, _ := strings.Cut(line, ": {")
			switch {
			case key == "topology" && strings.HasPrefix(c.in, "topology") && !strings.Contains(c.in, "kind"):
				text = strings.Replace(text, "topology: {", "topology: {"+strings.TrimSuffix(rest, "}")+", ", 1)
			case key == "topology" && strings.Contains(c.in, "\ntopology") && !strings.Contains(c.in, "kind"):
				text = strings.Replace(text, "topology: {", "topology: {"+strings.TrimSuffix(rest, "}")+", ", 1)
			case !strings.Contains("\n"+c.in, "\n"+strings.SplitN(line, ":", 2)[0]+":"):
				text += line + "\n"
			}
		}
		got := lint(t, text)
		found := false
		for _, w := range got {
			found = found || strings.Contains(w, c.want)
			if strings.Contains(w, "\n") {
				t.Errorf("%s: more than a line: %s", c.name, w)
			}
		}
		if !found {
			t.Errorf("%s:\n%s\ngot:\n%s\nwant %s", c.name, text, strings.Join(got, "\n"), c.want)
		}
	}
}

// A warning has the place of the key that it is about.
func TestWarningPlaces(t *testing.T) {
	s, g := graphOf(t, clean+"switches:\n  - match: leaf1\n    mtu: 1000\n")
	w := s.Lint(g)
	if len(w) != 1 || !strings.HasPrefix(w[0].String(), "test:7:10: warning: switches[0].mtu: leaf1 drops") {
		t.Errorf("%v", w)
	}
}

// Headroom in bytes is 802.1Qbb's sum; in cells it holds what the worst packets fill.
func TestHeadroom(t *testing.T) {
	link := PortLink{Rate: 100 * sim.Gbps, Delay: sim.Microsecond, MaxFrame: 1102, Least: 64}
	b := Buffer{Cell: 1, Headroom: Headroom{Rule: HeadroomAuto}}
	// 2 × 12,500 bytes on the cable, two frames, a pause frame.
	if n := b.NeedHeadroom(link); n != 25000+2*1102+64 || b.HaveHeadroom(link) != n {
		t.Error(n)
	}
	link.Response = 400 * sim.Nanosecond // 5,000 bytes
	if n := b.NeedHeadroom(link); n != 25000+5000+2*1102+64 {
		t.Error(n)
	}
	link.Gap = 20
	if n := b.NeedHeadroom(link); n != 25000+5000+2*1122+84 {
		t.Error(n)
	}
	link.Gap, link.Response = 0, 0
	for _, cell := range []Bytes{80, 96, 208, 256} {
		b.Cell = cell
		n, c := b.NeedHeadroom(link), int64(cell)
		// Any mix of lengths from 64 to 1102 that brings the bytes fits.
		bytes := int64(25000 + 2*1102 + 64)
		for size := int64(64); size <= 1102; size++ {
			if fills := bytes / size * ((size + c - 1) / c * c); fills > n {
				t.Errorf("cell %d: %d packets of %d fill %d of %d", cell, bytes/size, size, fills, n)
			}
		}
		if n%c != 0 || n > 4*bytes+c {
			t.Errorf("cell %d: %d", cell, n)
		}
	}
	b = Buffer{Cell: 1, Headroom: Headroom{Rule: HeadroomHPCC}, HeadroomByRate: []RateHeadroom{{400 * sim.Gbps, Headroom{HeadroomBytes, 7}}}}
	if n := b.HaveHeadroom(link); n != 37500 || n != theory.HPCCHeadroom(100e9, 1e6) {
		t.Error(n) // 3 × 100 Gb/s × 1 us
	}
	link.Rate = 400 * sim.Gbps
	if n := b.HaveHeadroom(link); n != 7 {
		t.Error(n)
	}
}

// A preset's memory is whole cells, and about what its data sheet says.
func TestASICs(t *testing.T) {
	sheet := map[string]float64{ // MiB
		"trident2": 12, "trident3": 32, "tomahawk": 16, "tomahawk-plus": 22, "tomahawk2": 42, "tomahawk3": 64, "tomahawk5": 165.2,
		"spectrum": 16, "spectrum2": 42, "spectrum3": 64, "spectrum4": 160,
	}
	for _, a := range ASICs() {
		mib := float64(a.Total) / (1 << 20)
		if sheet[a.Name] == 0 || mib < 0.8*sheet[a.Name] || mib > 1.06*sheet[a.Name] || a.Source == "" {
			t.Errorf("%s: %.1f MiB of %v", a.Name, mib, sheet[a.Name])
		}
		s := mustParse(t, []byte("switch: {buffer: {preset: "+a.Name+", cell: 100B}}"))
		if b := s.Switch.Buffer; b.Total != a.Total || b.Cell != 100 || b.Alpha != One/8 {
			t.Errorf("%s: %+v", a.Name, b)
		}
	}
	// SIGCOMM'19 HPCC's simulator: 16 MB × rate / 50 Gb/s, in its megabytes.
	for rate, want := range map[string]Bytes{"25Gbps": 8 << 20, "100Gbps": 32 << 20, "400Gbps": 128 << 20} {
		s := mustParse(t, []byte("topology: {rate: "+rate+"}\nswitch: {buffer: {preset: hpcc}}\nswitches: [{match: sw0, buffer: {preset: hpcc, reserved: 0}}]"))
		b, o := s.Switch.Buffer, s.SwitchFor("sw0").Buffer
		if b.Total != want || b.Reserved != 4096 || b.XONOffset != 3072 || b.Headroom.Rule != HeadroomHPCC || o.Total != want || o.Reserved != 0 {
			t.Errorf("%s: %+v %+v", rate, b, o)
		}
	}
}

// Thresholds go by priority, then by port speed, then by the rest.
func TestMarks(t *testing.T) {
	e := mustParse(t, []byte(`
switch:
  ecn:
    priorities: [3, 4]
    kmin: 1KB
    kmax: 2KB
    by_rate: [{rate: 100Gbps, kmin: 3KB, kmax: 4KB, pmax: 10%}]
    by_priority: [{priority: 4, kmin: 5KB, kmax: 6KB}]
`)).Switch.ECN
	for _, c := range []struct {
		prio uint8
		rate sim.Rate
		want Mark
		ok   bool
	}{
		{3, 25 * sim.Gbps, Mark{1e3, 2e3, 858993459}, true},
		{3, 100 * sim.Gbps, Mark{3e3, 4e3, 429496729}, true},
		{4, 100 * sim.Gbps, Mark{5e3, 6e3, One}, true},
		{0, 100 * sim.Gbps, Mark{}, false},
	} {
		if m, ok := e.For(c.prio, c.rate); m != c.want || ok != c.ok {
			t.Errorf("%d %s: %v %v", c.prio, c.rate, m, ok)
		}
	}
}
