package swtch

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func TestClassify(t *testing.T) {
	c := config(2)
	c.DSCPToPrio[26], c.PCPToPrio[5], c.Untagged = 4, 6, 1
	for _, tt := range []struct {
		name  string
		trust Trust
		p     sim.Packet
		want  uint8
	}{
		{"DSCP", TrustDSCP, sim.Packet{DSCP: 26, Tagged: true, PCP: 5}, 4},
		{"DSCP 63", TrustDSCP, sim.Packet{DSCP: 63}, 7},
		{"DSCP out of range", TrustDSCP, sim.Packet{DSCP: 64 + 26}, 4},
		{"PCP", TrustPCP, sim.Packet{DSCP: 26, Tagged: true, PCP: 5}, 6},
		{"PCP untagged", TrustPCP, sim.Packet{DSCP: 26}, 1},
		{"v1 under DSCP", TrustDSCP, sim.Packet{V1: true, Tagged: true, PCP: 5}, 6},
		{"v1 untagged", TrustDSCP, sim.Packet{V1: true, DSCP: 26}, 1},
	} {
		c.Trust = tt.trust
		x := newStar(t, 1, c, fast)
		if got := x.w.classify(&tt.p); got != tt.want {
			t.Errorf("%s: priority %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestRouterRules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		router  bool
		subnets []int32
		dst     int
		v1      bool
		ttl     uint8
		bytes   int
		why     result.DropReason
		drop    bool
		left    uint8
	}{
		{"bridge", false, []int32{0, 0, 1}, 2, false, 1, 1000, 0, false, 1},
		{"bridge, v1", false, []int32{0, 0, 1}, 2, true, 0, 1000, 0, false, 0},
		{"same subnet", true, []int32{0, 0, 1}, 1, false, 1, 1000, 0, false, 1},
		{"same subnet, v1", true, []int32{0, 0, 1}, 1, true, 0, 1000, 0, false, 0},
		{"routed", true, []int32{0, 0, 1}, 2, false, 64, 1000, 0, false, 63},
		{"routed, v1", true, []int32{0, 0, 1}, 2, true, 64, 1000, result.DropV1, true, 0},
		{"TTL over", true, []int32{0, 0, 1}, 2, false, 1, 1000, result.DropTTL, true, 0},
		{"no subnets", true, nil, 2, false, 2, 1000, 0, false, 1},
		{"no subnets, v1", true, nil, 2, true, 0, 1000, 0, false, 0},
		{"MTU", false, nil, 2, false, 64, 1500, 0, false, 64},
		{"beyond the MTU", false, nil, 2, false, 64, 1501, result.DropMTU, true, 0},
		{"nobody", false, nil, 3, false, 64, 1000, result.DropNoRoute, true, 0},
	} {
		x := still(t, 4, func(c *Config) {
			c.Router, c.Subnets, c.MTU, c.ID = tt.router, tt.subnets, 1500, 77
		})
		x.w.routes = direct{{0}, {1}, {2}, {}}
		p := x.packet(0, tt.dst, tt.bytes, 26)
		p.V1, p.TTL = tt.v1, tt.ttl
		x.w.Arrive(0, 0, p)
		if drop := len(x.book.drops) == 1; drop != tt.drop {
			t.Errorf("%s: dropped %v", tt.name, drop)
			continue
		}
		if !tt.drop {
			if p.TTL != tt.left {
				t.Errorf("%s: TTL %d", tt.name, p.TTL)
			}
			continue
		}
		want := result.Drop{Node: 77, Reason: tt.why, Bytes: int32(tt.bytes), Prio: x.book.drops[0].Prio}
		if x.book.drops[0] != want || x.s.Pool.Live() != 0 {
			t.Errorf("%s: %+v, %d packets live", tt.name, x.book.drops[0], x.s.Pool.Live())
		}
		var rx, tx uint64
		for port := range 4 {
			for prio := range uint8(8) {
				var r result.PortPrio
				x.w.Count(0, port, prio, &r)
				rx, tx = rx+r.RxDrops, tx+r.TxDrops
			}
		}
		if rx != 0 || tx != 1 {
			t.Errorf("%s: %d drops on the way in, %d on the way out", tt.name, rx, tx)
		}
		x.audit(t)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		want   string
		change func(*Config)
	}{
		{"", func(*Config) {}},
		{"switch s: 0 ports; from 1 to 32767 are possible", func(c *Config) { c.Ports = 0 }},
		{"switch s: configuration of 1 ports for 2", func(c *Config) { c.Port = make([]PortConfig, 1) }},
		{"switch s: latency -1ps is negative", func(c *Config) { c.Latency = -1 }},
		{"switch s: watchdog: detection -1ps, restoration 0ps: negative", func(c *Config) { c.Watchdog.Detect = -1 }},
		{"switch s: buffer of 0 bytes; from 1 to 274877906944 are possible", func(c *Config) { c.Buffer.Total = 0 }},
		{"switch s: cell of -1 bytes; at most 65536 are possible", func(c *Config) { c.Buffer.Cell = -1 }},
		{"switch s: shared headroom of -5 bytes is negative", func(c *Config) { c.Buffer.SharedHeadroom = -5 }},
		{"switch s: DSCP 26: priority 8; at most 7 is possible", func(c *Config) { c.DSCPToPrio[26] = 8 }},
		{"switch s: PCP 1: priority 9; at most 7 is possible", func(c *Config) { c.PCPToPrio[1] = 9 }},
		{"switch s: priority 2: group 8; at most 7 is possible", func(c *Config) { c.PrioToGroup[2] = 8 }},
		{"switch s: scheduler: quantum of -1 bytes; from 0 to 1000000 are possible", func(c *Config) { c.Quantum = -1 }},
		{"switch s: untagged packets: priority 8; at most 7 is possible", func(c *Config) { c.Untagged = 8 }},
		{"switch s: buffer of 4194304 bytes: reserved 0 and headroom 4194306 exceed it by 2", func(c *Config) { c.Buffer.Group[3].Headroom = 2097153 }},
		{"switch s: buffer of 4194304 bytes: reserved 4194816 and headroom 120000 exceed it by 120512", func(c *Config) {
			c.Buffer.Cell, c.Buffer.Group[3].Reserved = 256, 2097153
		}},
		{"switch s: buffer of 4194304 bytes: reserved 0 and shared headroom 5000000 exceed it by 805696", func(c *Config) { c.Buffer.SharedHeadroom = 5000000 }},
		{"switch s: port 0: MTU -1; from 1 to 65536 are possible, or 0 for any", func(c *Config) { c.MTU = -1 }},
		{"switch s: port 1: priority 3: weight 1001; from 1 to 1000 are possible", func(c *Config) { c.PerPort()[1].Queue[3].Weight = 1001 }},
		{"switch s: port 0: priority 3: reserved -1 bytes; from 0 to 274877906944 are possible", func(c *Config) { c.Queue[3].Reserved = -1 }},
		{"switch s: port 0: priority 3: ECN: KMin 9 bytes exceeds KMax 8", func(c *Config) { c.Queue[3].ECN = ECN{KMin: 9, KMax: 8} }},
		{"switch s: port 0: priority 3: ECN thresholds -1 and 8 bytes; from 0 to 274877906944 are possible", func(c *Config) { c.Queue[3].ECN = ECN{KMin: -1, KMax: 8} }},
		{"switch s: port 0: priority 3: threshold of unknown mode 9", func(c *Config) { c.Queue[3].Limit.Mode = 9 }},
		{"switch s: port 0: group 3: alpha 65; at most 64 is possible", func(c *Config) { c.Buffer.Group[3].Limit.Alpha = 65 * AlphaOne }},
		{"switch s: port 0: group 3: threshold -1 bytes; from 0 to 274877906944 are possible", func(c *Config) { c.Buffer.Group[3].Limit = Limit{Mode: Static, Bytes: -1} }},
		{"switch s: port 0: group 3: headroom -1 bytes; from 0 to 274877906944 are possible", func(c *Config) { c.Buffer.Group[3].Headroom = -1 }},
		{"switch s: port 0: group 3: XON -1 bytes; from 0 to 274877906944 are possible", func(c *Config) { c.Buffer.Group[3].XON = -1 }},
	} {
		c := config(2)
		tt.change(&c)
		got := ""
		if w, err := New(sim.New(1), c, directly(2), nil); err != nil {
			got = err.Error()
		} else if w == nil {
			t.Error("no switch and no error")
		}
		if got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}
