package tcp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
)

// book is a boss that writes down what it is told.
type book struct {
	delivered map[int32]int64
	acked     map[int32]sim.Time
	segments  int
	again     int
	marks     int
	timeouts  int
	close     bool // connections whose flow is over
	drops     int
}

func (b *book) Segment(_ sim.Time, _ int32, again bool) {
	b.segments++
	if again {
		b.again++
	}
}
func (b *book) Delivered(_ sim.Time, flow int32, n int) { b.delivered[flow] += int64(n) }
func (b *book) Marked(sim.Time, int32)                  { b.marks++ }
func (b *book) Timeout(sim.Time, int32)                 { b.timeouts++ }
func (b *book) Acked(now sim.Time, c *Conn, flow int32) {
	b.acked[flow] = now
	if b.close {
		c.Close()
	}
}

// hostBook hears of drops.
type hostBook struct {
	host.Boss
	b *book
}

func (h hostBook) Drop(result.Drop) { h.b.drops++ }

// rig is two NICs back to back, 100 Gb/s, with a stack each.
type rig struct {
	s     *sim.Sim
	k     [2]*Stack
	p     [2]*port.Port
	b     *book
	delay sim.Time
}

// What a full segment of 1,000 bytes and an acknowledgement take at 100 Gb/s.
const (
	segment1000 = (1000 + HeaderBytes) * 80 * sim.Picosecond
	shortFrame  = AckBytes * 80 * sim.Picosecond
)

func newRig(t testing.TB, delay sim.Time, cfg Config) *rig {
	t.Helper()
	r := &rig{s: sim.New(1), b: &book{delivered: map[int32]int64{}, acked: map[int32]sim.Time{}}, delay: delay}
	if cfg.MSS == 0 {
		cfg.MSS = 1000
	}
	if cfg.MinRTO == 0 {
		cfg.MinRTO = 10 * sim.Millisecond
	}
	if cfg.G == 0 {
		cfg.G = one / 16
	}
	for i := range r.k {
		n, err := host.New(r.s, host.Config{
			Name: fmt.Sprintf("host%d", i), Node: int32(i), Endpoint: int32(i), Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}),
			Rate: 100 * sim.Gbps, MTU: ib.MTU1024,
		}, hostBook{b: r.b})
		if err != nil {
			t.Fatal(err)
		}
		r.p[i] = port.New(r.s, n, 0, uint64(i), port.Config{Rate: 100 * sim.Gbps, Delay: delay}, &port.PFC{Obeys: 0xFF})
		n.SetPort(r.p[i])
		r.k[i] = New(r.s, n, cfg, r.b)
	}
	port.Connect(r.p[0], r.p[1])
	return r
}

func (r *rig) dial(t testing.TB, spec Spec) *Conn {
	t.Helper()
	c, err := Dial(r.k[0], r.k[1], spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rtt is the round trip of a full segment and its acknowledgement.
func (r *rig) rtt() sim.Time { return 2*r.delay + segment1000 + shortFrame }

// frame is one packet as it began to leave.
type frame struct {
	at    sim.Time
	data  bool
	seq   int64 // of an acknowledgement: what it acknowledges
	n     int
	flags uint8
	ecn   uint8
}

// record returns what leaves either port from now on.
func (r *rig) record() *[]frame {
	var all []frame
	for _, p := range r.p {
		p.Tap = func(now sim.Time, k *sim.Packet, out bool) {
			if !out {
				return
			}
			f := frame{at: now, data: !k.Ack, seq: k.Seq, n: int(k.Payload), flags: k.Flags, ecn: k.ECN}
			if k.Ack {
				f.seq = k.AckSeq
			}
			all = append(all, f)
		}
	}
	return &all
}

// data returns the numbers of the segments of 1,000 bytes that left, in order.
func data(all []frame) (seqs []int) {
	for _, f := range all {
		if f.data {
			seqs = append(seqs, int(f.seq/1000))
		}
	}
	return seqs
}

// lose loses the segments of those numbers, each as often as it is named.
func (r *rig) lose(numbers ...int64) {
	left := map[int64]int{}
	for _, n := range numbers {
		left[n*1000]++
	}
	r.p[1].Lose = func(p *sim.Packet) bool {
		if p.Ack || left[p.Seq] == 0 {
			return false
		}
		left[p.Seq]--
		return true
	}
}

// done checks that flow 0 arrived whole, and that no packet is left.
func (r *rig) done(t *testing.T, bytes int64) {
	t.Helper()
	if r.b.delivered[0] != bytes || r.b.acked[0] == 0 {
		t.Fatalf("delivered %d of %d bytes, acknowledged at %v", r.b.delivered[0], bytes, r.b.acked[0])
	}
	if n := r.s.Pool.Live(); n != 0 {
		t.Fatalf("%d packets are left", n)
	}
}

// check says what is wrong with the state of a connection at rest between two
// events.
func (c *Conn) check() error {
	switch {
	case c.una > c.nxt || c.nxt > c.max || c.max > c.end:
		return fmt.Errorf("una %d nxt %d max %d end %d", c.una, c.nxt, c.max, c.end)
	case c.got < c.una || c.got > c.max:
		return fmt.Errorf("received %d, una %d max %d", c.got, c.una, c.max)
	case c.max > c.una && !c.timer.on():
		return fmt.Errorf("[%d, %d) is in flight and no timer runs", c.una, c.max)
	case c.timer.on() && c.timer.rang > c.timer.at:
		return fmt.Errorf("the timer runs out at %v and rings at %v", c.timer.at, c.timer.rang)
	case c.cwnd < int64(c.cfg.MSS):
		return fmt.Errorf("window %d", c.cwnd)
	case c.dctcp.alpha > one:
		return fmt.Errorf("alpha %d", c.dctcp.alpha)
	}
	for i, h := range c.holes {
		if h.from >= h.to || h.from <= c.got || i > 0 && h.from <= c.holes[i-1].to {
			return fmt.Errorf("received %d and %v", c.got, c.holes)
		}
	}
	return nil
}
