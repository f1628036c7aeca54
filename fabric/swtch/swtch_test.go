package swtch

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// direct routes endpoint d to port d.
type direct [][]uint16

func (d direct) Ports(_, dst int32) []uint16 { return d[dst] }

func directly(n int) direct {
	d := make(direct, n)
	for i := range d {
		d[i] = []uint16{uint16(i)}
	}
	return d
}

// station is a greedy or a timed source, and a sink.
type station struct {
	s       *sim.Sim
	port    *port.Port
	make    func(now sim.Time, stopped uint8) *sim.Packet // nil: nothing now
	got     func(now sim.Time, p *sim.Packet)
	packets int
	bytes   int64
	last    sim.Time
	lost    int
	sent    int64
}

func (h *station) Pull(now sim.Time, _ int, stopped uint8) (*sim.Packet, bool) {
	if h.make == nil {
		return nil, false
	}
	p := h.make(now, stopped)
	return p, p != nil
}

func (h *station) Arrive(now sim.Time, _ int, p *sim.Packet) {
	h.packets++
	h.bytes += int64(p.Bytes)
	h.last = now
	if h.got != nil {
		h.got(now, p)
	}
	h.s.Pool.Put(p)
}
func (h *station) Stopped(sim.Time, int, uint8) {}
func (h *station) Lost(_ sim.Time, _ int, p *sim.Packet, _ result.DropReason) {
	h.lost++
	h.s.Pool.Put(p)
}

// book keeps what a switch logs.
type book struct {
	pauses []result.Pause
	drops  []result.Drop
	storms []result.Storm
}

func (b *book) Pause(p result.Pause) { b.pauses = append(b.pauses, p) }
func (b *book) Drop(d result.Drop)   { b.drops = append(b.drops, d) }
func (b *book) Storm(s result.Storm) { b.storms = append(b.storms, s) }

// star is a switch with a station at each port.
type star struct {
	s    *sim.Sim
	w    *Switch
	host []*station
	book book
}

// link describes the cable of a port and how its ends react.
type link struct {
	rate     sim.Rate
	delay    sim.Time
	response sim.Time
}

func newStar(t rapid.TB, seed uint64, cfg Config, links ...link) *star {
	t.Helper()
	x := &star{s: sim.New(seed)}
	n := cfg.Ports
	w, err := New(x.s, cfg, directly(n), &x.book)
	if err != nil {
		t.Fatal(err)
	}
	x.w = w
	for i := range n {
		l := links[i%len(links)]
		h := &station{s: x.s}
		c := port.Config{Rate: l.rate, Delay: l.delay, Gap: port.GapBytes}
		sw := c
		sw.Early = cfg.CutThrough
		sw.Global = cfg.GlobalPause
		h.port = port.New(x.s, h, 0, uint64(1000+i), c, &port.PFC{Obeys: 0xFF, ObeysPause: true, Response: l.response})
		p := port.New(x.s, w, i, uint64(i), sw, &port.PFC{Obeys: 0xFF, ObeysPause: true, Response: l.response})
		port.Connect(h.port, p)
		w.SetPort(i, p)
		x.host = append(x.host, h)
	}
	return x
}

// packet returns a packet of host src to host dst.
func (x *star) packet(src, dst, bytes int, dscp uint8) *sim.Packet {
	p := x.s.Pool.Get()
	p.Bytes, p.Payload = int32(bytes), int32(bytes)
	p.Src, p.Dst, p.Flow = int32(src), int32(dst), int32(src)
	p.Hash = uint32(sim.Mix(uint64(src)<<32 | uint64(dst)))
	p.DSCP, p.ECN, p.TTL = dscp, 2, 64
	p.Prio = dscp >> 3
	return p
}

// greedy makes a host send n packets to dst, as fast as it may.
func (x *star) greedy(src, dst, n, bytes int, dscp uint8) {
	x.host[src].choose(func(stopped uint8) *sim.Packet {
		if n == 0 || stopped&(1<<(dscp>>3)) != 0 {
			return nil
		}
		n--
		return x.packet(src, dst, bytes, dscp)
	})
}

// choose makes a host send what f makes, as fast as it may.
func (h *station) choose(f func(stopped uint8) *sim.Packet) {
	h.make = func(_ sim.Time, stopped uint8) *sim.Packet { return f(stopped) }
	h.port.Kick(h.s.Now())
}

// config is a switch with priority 3 lossless, like most RoCE networks.
func config(ports int) Config {
	c := Config{
		Name: "s", Ports: ports, DSCPToPrio: ClassSelector(), PCPToPrio: Identity(), PrioToGroup: Identity(),
		Buffer: Buffer{Total: 4 << 20},
	}
	c.Queue[3].Lossless = true
	c.Buffer.Group[3] = Group{Headroom: 60000, Limit: Limit{Mode: Dynamic, Alpha: AlphaOne / 8}, XONOffset: 3000}
	return c
}

var fast = link{rate: 100 * sim.Gbps, delay: sim.Microsecond}

func TestIncastIsLossless(t *testing.T) {
	x := newStar(t, 1, config(9), fast)
	const n, size = 2000, 1048
	for i := 1; i < 9; i++ {
		x.greedy(i, 0, n, size, 26)
	}
	x.s.Run(sim.Second)
	if err := x.w.Audit(); err != nil {
		t.Error(err)
	}
	if x.host[0].packets != 8*n || len(x.book.drops) != 0 || len(x.book.pauses) == 0 {
		t.Errorf("%d packets of %d, %d drops, %d pauses", x.host[0].packets, 8*n, len(x.book.drops), len(x.book.pauses))
	}
	// The receiver's link is never idle: first bit after one link and one
	// packet, then all of it, then the second delay.
	one := (100 * sim.Gbps).For(size + port.GapBytes)
	if want := 2*sim.Microsecond + one + 8*n*one; x.host[0].last != want {
		t.Errorf("ends at %v; %v by arithmetic", x.host[0].last, want)
	}
}

// What the link loses is logged and given back; control frames are not worth a
// line.
func TestLost(t *testing.T) {
	x := newStar(t, 1, config(2), fast)
	p := x.packet(1, 0, 1000, 26)
	p.Flow = 42
	x.w.Lost(5, 1, p, result.DropError)
	for _, k := range []sim.Kind{sim.KindPFC, sim.KindPause} {
		c := x.s.Pool.Get()
		c.Kind = k
		x.w.Lost(6, 0, c, result.DropDown)
	}
	want := result.Drop{At: 5, Port: 1, Flow: 42, Prio: 3, Reason: result.DropError, Bytes: 1000}
	if len(x.book.drops) != 1 || x.book.drops[0] != want || x.s.Pool.Live() != 0 {
		t.Errorf("%+v, %d packets live", x.book.drops, x.s.Pool.Live())
	}
	x.audit(t)
}

// A log is not needed.
func TestWithoutLog(t *testing.T) {
	c := config(3)
	c.Watchdog = Watchdog{Detect: 10 * sim.Microsecond, Action: DropAll}
	x := newStar(t, 1, c, fast)
	x.w.log = nil
	x.greedy(1, 0, 500, 1048, 26)
	x.greedy(2, 0, 500, 1048, 26)
	x.host[0].port.Stop(0, 3)
	x.s.Run(100 * sim.Microsecond)
	if x.w.Stats.Drops[result.DropWatchdog] == 0 || x.w.ID() != 0 || x.w.Name() != "s" {
		t.Errorf("%+v", x.w.Stats)
	}
	x.audit(t)
}

// The sums of an Audit are its own: a wrong count of any kind is found.
func TestAuditFindsErrors(t *testing.T) {
	for name, spoil := range map[string]func(w *Switch){
		"group":    func(w *Switch) { w.ingress(1<<3|3).in++ },
		"headroom": func(w *Switch) { w.ingress(1<<3 | 3).in -= 70000; w.ingress(1<<3 | 3).head += 70000 },
		"stopped":  func(w *Switch) { w.ingress(1<<3|3).in--; w.ingress(1<<3|3).head++ },
		"shared":   func(w *Switch) { w.mmu.used++ },
		"queue":    func(w *Switch) { w.rules.counts, w.out[0].q[3].held = true, 1 },
		"ready":    func(w *Switch) { w.out[0].ready = 0 },
		"held":     func(w *Switch) { w.keep(); w.held.bytes[w.held.row(1, 3)]++ },
		"bytes":    func(w *Switch) { w.Stats.TxBytes++ },
	} {
		x := still(t, 2, func(c *Config) { c.Buffer.Group[3].Limit = Limit{Mode: Static, Bytes: 1 << 20} })
		for range 100 {
			x.in(1, 0, 1000, 3)
		}
		x.audit(t)
		if spoil(x.w); x.w.Audit() == nil {
			t.Errorf("%s: nothing found", name)
		}
	}
}
