package swtch

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// randomConfig draws a switch, with headroom that is enough for the links and
// frames, or not.
func randomConfig(t *rapid.T, ports int, links []link, mtu int, enough bool) Config {
	c := Config{
		Name: "s", Ports: ports, DSCPToPrio: ClassSelector(), PCPToPrio: Identity(), PrioToGroup: Identity(),
		CutThrough: rapid.Bool().Draw(t, "cut"), MTU: mtu,
		Latency:     rapid.SampledFrom([]sim.Time{0, 0, 1, 300000}).Draw(t, "latency"),
		GlobalPause: rapid.IntRange(0, 5).Draw(t, "global") == 0,
	}
	for i := range c.PrioToGroup {
		// Lossless 0–3 and lossy 4–7 stay apart.
		c.PrioToGroup[i] = uint8(i&4 + rapid.IntRange(0, 3).Draw(t, "group"))
	}
	limit := func(name string) Limit {
		return Limit{
			Mode:  rapid.SampledFrom([]Mode{Unlimited, Dynamic, Static}).Draw(t, name),
			Alpha: rapid.SampledFrom([]uint32{AlphaOne / 64, AlphaOne / 8, AlphaOne, 8 * AlphaOne}).Draw(t, "alpha"),
			Bytes: int64(rapid.IntRange(0, 50000).Draw(t, "bytes")),
		}
	}
	c.Buffer.Cell = rapid.SampledFrom([]int{0, 0, 1, 80, 208}).Draw(t, "cell")
	for i := range 8 {
		q := &c.Queue[i]
		q.Lossless = i < 4
		q.Strict = rapid.IntRange(0, 3).Draw(t, "strict") == 0
		q.Weight = rapid.IntRange(0, 20).Draw(t, "weight")
		q.ECN.KMin = int64(rapid.IntRange(0, 20000).Draw(t, "kmin"))
		q.ECN.KMax = q.ECN.KMin + int64(rapid.IntRange(0, 20000).Draw(t, "kmax"))
		q.ECN.PMax = rapid.Uint32().Draw(t, "pmax")
		q.ECN.AtEnqueue = rapid.Bool().Draw(t, "enqueue")
		q.Limit = limit("queue")
		g := &c.Buffer.Group[i]
		g.Reserved = int64(rapid.IntRange(0, 3000).Draw(t, "reserved"))
		g.Limit = limit("xoff")
		g.XONOffset = int64(rapid.IntRange(0, 3000).Draw(t, "xon"))
	}
	var reserved, headroom int64
	for i, pc := range c.PerPort() {
		for k := range pc.Group {
			g := &c.Port[i].Group[k]
			if k < 4 {
				// One frame more than with room for the frame that passes the
				// threshold, and seven PFC frames of other classes ahead; a
				// cell more for each frame.
				n := need(links[i], mtu) + int64(mtu) + 7*84
				g.Headroom = n + n/64*int64(c.Buffer.Cell) + int64(c.Buffer.Cell)*4
				if !enough {
					g.Headroom = int64(rapid.IntRange(0, 3*mtu).Draw(t, "headroom"))
				}
			}
			reserved += cells(g.Reserved, c.Buffer.Cell)
			headroom += g.Headroom
		}
	}
	if rapid.Bool().Draw(t, "shared headroom") {
		if !enough {
			headroom = int64(rapid.IntRange(1, 3*mtu).Draw(t, "pool"))
		}
		c.Buffer.SharedHeadroom = headroom
	}
	total := reserved + headroom
	c.Buffer.Total = total + int64(rapid.IntRange(0, 100000).Draw(t, "shared"))
	return c
}

// need is the headroom by the formula of the package comment.
func need(l link, mtu int) int64 {
	return l.rate.Bytes(2*l.delay+l.response) + 1 + 2*int64(mtu) + port.ControlBytes + port.GapBytes
}

func TestRandomTrafficKeepsTheBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.IntRange(2, 6).Draw(t, "ports")
		mtu := rapid.SampledFrom([]int{64, 300, 1048, 4200}).Draw(t, "mtu")
		links := make([]link, ports)
		for i := range links {
			links[i] = link{
				rate:     rapid.SampledFrom([]sim.Rate{10 * sim.Gbps, 25 * sim.Gbps, 100 * sim.Gbps}).Draw(t, "rate"),
				delay:    sim.Time(rapid.IntRange(0, 300000).Draw(t, "delay")),
				response: sim.Time(rapid.IntRange(0, 100000).Draw(t, "response")),
			}
		}
		enough := rapid.Bool().Draw(t, "enough")
		c := randomConfig(t, ports, links, mtu, enough)
		c.Watchdog = Watchdog{
			Detect: sim.Time(rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "detect")) * sim.Microsecond,
			Action: rapid.SampledFrom([]Action{Alert, DropAll, Forward}).Draw(t, "action"),
		}
		x := newStar(t, rapid.Uint64().Draw(t, "seed"), c, links...)
		r := x.s.Rand("traffic")
		var sent, sentBytes int64
		for i := range ports {
			left := 60
			x.host[i].choose(func(stopped uint8) *sim.Packet {
				if left == 0 {
					return nil
				}
				prio := uint8(r.N(8))
				if stopped&(1<<prio) != 0 {
					return nil
				}
				left--
				dst := (i + 1 + int(r.N(uint64(ports-1)))) % ports
				if r.Below(1 << 30) {
					dst = 0
				}
				p := x.packet(i, dst, 64+int(r.N(uint64(mtu-63))), prio<<3)
				p.ECN = uint8(r.N(3))
				sent++
				sentBytes += int64(p.Bytes)
				return p
			})
		}
		x.host[ports-1].port.Stop(0, uint8(rapid.IntRange(0, 7).Draw(t, "stuck")))
		until := sim.Time(rapid.IntRange(0, 60).Draw(t, "release")) * sim.Microsecond
		for x.s.RunSome(until, 1) && x.s.Next() <= until {
			if err := x.w.Audit(); err != nil {
				t.Fatal(x.s.Now(), err)
			}
		}
		for c := range uint8(8) {
			x.host[ports-1].port.Resume(x.s.Now(), c)
		}
		for x.s.RunSome(3*sim.Millisecond, 1) && x.s.Next() <= 3*sim.Millisecond {
			if err := x.w.Audit(); err != nil {
				t.Fatal(x.s.Now(), err)
			}
		}
		var got, gotBytes int64
		for _, h := range x.host {
			got += int64(h.packets)
			gotBytes += h.bytes
		}
		if sent != int64(60*ports) {
			t.Fatalf("sources sent %d packets of %d: somebody is stopped for ever", sent, 60*ports)
		}
		if got+int64(len(x.book.drops)) != sent || gotBytes+int64(x.w.Stats.DropBytes) != sentBytes {
			t.Fatalf("%d packets (%d B) sent, %d (%d B) arrived, %d (%d B) dropped",
				sent, sentBytes, got, gotBytes, len(x.book.drops), x.w.Stats.DropBytes)
		}
		if n := x.s.Pool.Live(); n != 0 {
			t.Fatalf("%d packets are still somewhere", n)
		}
		for _, d := range x.book.drops {
			if d.Prio < 4 && d.Reason != result.DropWatchdog && enough {
				t.Fatalf("lossless class lost a packet: %+v, buffer %+v", d, x.w.Buffer())
			}
		}
		if err := paired(x.book.pauses); err != nil {
			t.Fatal(err)
		}
		if x.w.SharedUsed() != 0 || x.w.HeadroomUsed() != 0 {
			t.Fatalf("shared %d, headroom %d in use at the end", x.w.SharedUsed(), x.w.HeadroomUsed())
		}
	})
}

// paired says whether every XOFF was followed by its XON.
func paired(pauses []result.Pause) error {
	on := map[[2]int32]bool{}
	for _, p := range pauses {
		k := [2]int32{p.Port, int32(p.Prio)}
		if on[k] == p.On {
			return fmt.Errorf("%+v repeats the one before", p)
		}
		on[k] = p.On
	}
	for k, v := range on {
		if v {
			return fmt.Errorf("port %d priority %d: never let go on", k[0], k[1])
		}
	}
	return nil
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) uint64 {
		c := config(9)
		c.Queue[3].ECN = ECN{KMin: 5000, KMax: 200000, PMax: 1 << 30}
		x := newStar(t, seed, c, fast)
		for i := 1; i < 9; i++ {
			x.greedy(i, 0, 300, 1048, 26)
		}
		x.host[0].got = func(_ sim.Time, p *sim.Packet) { x.s.Note(uint64(p.ECN)) }
		x.s.Run(sim.Second)
		return x.s.Digest()
	}
	if a, b := run(7), run(7); a != b {
		t.Errorf("digests %x and %x of one seed", a, b)
	}
	if a, b := run(7), run(8); a == b {
		t.Errorf("digest %x of two seeds", a)
	}
}
