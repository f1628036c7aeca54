package host

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// book is a boss that writes down what it is told.
type book struct {
	done      []sim.Time
	status    []ib.WCStatus
	delivered int64
	drops     []result.Drop
	pauses    []result.Pause
	marks     int
	cnps      [2]int
}

func (b *book) Done(now sim.Time, _ *Conn, _ int32, _ uint64, s ib.WCStatus) {
	b.done, b.status = append(b.done, now), append(b.status, s)
}
func (b *book) Delivered(_ sim.Time, _ *Conn, _ int32, n int) { b.delivered += int64(n) }
func (b *book) Marked(sim.Time, int32)                        { b.marks++ }
func (b *book) CNP(_ sim.Time, _ int32, sent bool) {
	if sent {
		b.cnps[0]++
	} else {
		b.cnps[1]++
	}
}
func (b *book) NAK(sim.Time, int32)  {}
func (b *book) Drop(d result.Drop)   { b.drops = append(b.drops, d) }
func (b *book) Pause(p result.Pause) { b.pauses = append(b.pauses, p) }

// back joins two NICs back to back at 100 Gb/s and 1 us.
func back(t testing.TB, change func(i int, c *Config)) (*sim.Sim, [2]*NIC, *book) {
	t.Helper()
	s, b := sim.New(1), &book{}
	var n [2]*NIC
	for i := range n {
		c := Config{
			Name: fmt.Sprintf("host%d", i), Node: int32(i), Endpoint: int32(i), Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}),
			Rate: 100 * sim.Gbps, MTU: ib.MTU1024, Payload: 1000, Header: 48, Control: 64, AckEvery: 1, TimeoutExp: 14, RetryCnt: 7, RNRRetry: 7, CNPPrio: 6, CNPDSCP: 48,
			Lossless: 1 << 3,
		}
		if change != nil {
			change(i, &c)
		}
		var err error
		if n[i], err = New(s, c, b); err != nil {
			t.Fatal(err)
		}
		p := port.New(s, n[i], 0, uint64(i), port.Config{Rate: c.Rate, Delay: sim.Microsecond}, &port.PFC{Obeys: c.Lossless})
		n[i].SetPort(p)
	}
	port.Connect(n[0].Port(), n[1].Port())
	return s, n, b
}

// A lone message: n packets of 1048 bytes one behind the other, one delay there,
// the acknowledgement of 64 bytes and one delay back.
func TestMessageTakesWhatTheLinkTakes(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		wire  int64 // bytes on the wire
	}{{1, 49}, {1000, 1048}, {1100, 1048 + 148}, {1_000_000, 1_048_000}} {
		s, n, b := back(t, nil)
		conn, err := Dial(0, n[0], n[1], Spec{Service: ib.RC, Prio: 3, DSCP: 26})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Post(0, ib.Write, c.bytes, 0, 7); err != nil {
			t.Fatal(err)
		}
		s.Run(sim.Second)
		want := sim.Time(c.wire)*80 + 64*80 + 2*sim.Microsecond
		if len(b.done) != 1 || b.status[0] != ib.Success || b.done[0] != want || b.delivered != c.bytes {
			t.Errorf("%d bytes: done %v %v, want %v; delivered %d", c.bytes, b.done, b.status, want, b.delivered)
		}
	}
}

func BenchmarkBackToBack(b *testing.B) {
	s, n, _ := back(b, func(_ int, c *Config) {
		c.AckEvery = 16
		p, _ := dcqcn.Preset("mlx5")
		c.DCQCN = &p
	})
	conn, err := Dial(0, n[0], n[1], Spec{Service: ib.RC, Prio: 3, DSCP: 26})
	if err != nil {
		b.Fatal(err)
	}
	if err := conn.Post(0, ib.Write, min(int64(b.N)*1000, 1<<31), 0, 7); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	s.Run(sim.Never - 1)
	b.ReportMetric(float64(s.Events())/float64(b.N), "events/op")
}

// A limit is never less strict than it was asked for by being cut to kilobits
// in 32 bits.
func TestRateLimitsInKilobits(t *testing.T) {
	for limit, want := range map[sim.Rate]uint32{
		0: 0, 1: 1, 999: 1, sim.Kbps: 1, 5 * sim.Mbps: 5000, 400 * sim.Gbps: 400_000_000, 5000 * sim.Gbps: 1<<32 - 1,
	} {
		if got := kbps(limit); got != want {
			t.Errorf("%v: %d kb/s, want %d", limit, got, want)
		}
	}
}
