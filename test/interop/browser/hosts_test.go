package browser_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// end is one of two devices that talk.
type end struct {
	dev  *verbs.Device
	cq   *verbs.CQ
	mr   *verbs.MR
	qp   *verbs.QP
	peer *verbs.Peer
}

func newEnd(t *testing.T, addr string) *end {
	t.Helper()
	dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr(addr), Port: 14791})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	e := &end{dev: dev}
	pd := dev.AllocPD()
	if e.cq, err = dev.CreateCQ(verbs.CQConfig{Depth: 64}); err != nil {
		t.Fatal(err)
	}
	if e.mr, err = pd.RegisterMR(make([]byte, 1<<16), ib.AccessAll); err != nil {
		t.Fatal(err)
	}
	if e.qp, err = pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: e.cq, RecvCQ: e.cq}); err != nil {
		t.Fatal(err)
	}
	return e
}

// talk joins two devices.
func talk(t *testing.T) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, "127.0.0.71"), newEnd(t, "127.0.0.72")
	x, y := net.Pipe()
	var wg sync.WaitGroup
	var errA, errB error
	wg.Go(func() { a.peer, errA = verbs.Connect(t.Context(), x, a.qp, a.mr) })
	wg.Go(func() { b.peer, errB = verbs.Connect(t.Context(), y, b.qp, b.mr) })
	wg.Wait()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return a, b
}

// write sends 64 KiB writes, a few hundred a second, until the context ends.
func (e *end) write(ctx context.Context) error {
	var wcs [1]ib.WC
	for {
		err := e.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: e.mr.SGE(0, 1<<16), Remote: e.peer.At(0), Flags: ib.Signaled})
		if err != nil {
			return err
		}
		if _, err := e.cq.Wait(ctx, wcs[:]); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if wcs[0].Status != ib.Success {
			return fmt.Errorf("a write ended with %v", wcs[0].Status)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// described is what a process says about a device of ours that it holds.
func described(dev *verbs.Device) snapshot.Device {
	p := snapshot.Port{Number: 1, State: snapshot.Known(4), PhysState: snapshot.Known(5), LinkLayer: snapshot.Known("Ethernet")}
	for _, c := range dev.Stats() {
		p.HWCounters = append(p.HWCounters, snapshot.Counter{Name: c.Name, Value: snapshot.Known(c.Value)})
	}
	return snapshot.Device{Name: dev.Name(), Kind: snapshot.Verbena, Ports: []snapshot.Port{p}}
}

// live is this host with devices of ours.
func live(t *testing.T, devs ...*verbs.Device) monitor.Host {
	t.Helper()
	src, err := source.NewLive(source.LiveConfig{Extra: map[string]func() (any, error){
		source.QueryVerbena: func() (any, error) {
			var all []snapshot.Device
			for _, d := range devs {
				all = append(all, described(d))
			}
			return all, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return monitor.Host{
		Name: "this host",
		Look: func() *snapshot.Snapshot {
			return read.Host(src, read.Options{NoResources: true, NoSystem: true, NoApp: true})
		},
		Full: func() *snapshot.Snapshot { return read.Host(src, read.Options{NoApp: true}) },
	}
}

// storm is a recorded host of two 100 Gb/s ports whose peer begins to pause it half-way:
// counters by formula, so that every plot has a known shape.
func storm() monitor.Host {
	const instants = 400
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	var total [instants + 1][2]float64 // bytes
	for i := range instants {
		for d := range 2 {
			rate := 10.5e9 + 0.5e9*math.Sin(float64(i)/(13+5*float64(d)))
			if i > 200 {
				rate *= 0.45 + 0.1*math.Sin(float64(i)/9)
			}
			total[i+1][d] = total[i][d] + rate
		}
	}
	since := func(i, from int) uint64 { return uint64(max(0, i-from)) }
	return monitor.Host{Name: "gpu-17", Times: instants, Past: func(i int) *snapshot.Snapshot {
		s := &snapshot.Snapshot{Origin: snapshot.Recorded, Host: snapshot.Known("gpu-17"), Taken: begin.Add(time.Duration(i) * time.Second)}
		for d := range 2 {
			name, eth := "mlx5_"+strconv.Itoa(d), "eth"+strconv.Itoa(d)
			wave := uint64(float64(i) * (2 + math.Sin(float64(i)/40)))
			s.Devices = append(s.Devices, snapshot.Device{
				Name: name, Kind: snapshot.Hardware, Driver: snapshot.Known("mlx5_core"),
				Ports: []snapshot.Port{{
					Number: 1, State: snapshot.Known(4), PhysState: snapshot.Known(5), LinkLayer: snapshot.Known("Ethernet"),
					Netdev: snapshot.Known(eth), RateMbps: snapshot.Known[int64](100_000), Rate: snapshot.Known("100 Gb/sec (4X EDR)"),
					Counters: counters("port_xmit_data", uint64(total[i][d]/4), "port_rcv_data", uint64(total[i][1-d]/4*0.8)),
					HWCounters: counters("np_cnp_sent", 40*uint64(i)+wave, "rp_cnp_handled", 55*uint64(i)+400*since(i, 200), "rp_cnp_ignored", 0,
						"np_ecn_marked_roce_packets", 90*uint64(i)+900*since(i, 200), "packet_seq_err", 3*since(i, 230), "implied_nak_seq_err", since(i, 250),
						"local_ack_timeout_err", since(i, 300)/4, "out_of_sequence", 2*since(i, 230)),
				}},
			})
			s.Netdevs = append(s.Netdevs, snapshot.Netdev{
				Name: eth, MTU: snapshot.Known(4200), Driver: snapshot.Known("mlx5_core"),
				Ethtool: counters("rx_prio3_pause", 2*uint64(i)+2500*since(i, 200), "rx_prio3_pause_duration", uint64(i)*1000+uint64(d+1)*180_000*since(i, 200),
					"tx_prio3_pause", 20*since(i, 260), "tx_prio3_pause_duration", 9_000*since(i, 260)),
			})
		}
		return s
	}}
}

// changing is a live host whose devices are what the test says: each sends at a rate of
// its own.
type changing struct {
	mu    sync.Mutex
	names []string
}

func (c *changing) set(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = names
}

func (c *changing) host(name string) monitor.Host {
	return monitor.Host{Name: name, Look: func() *snapshot.Snapshot {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		s := &snapshot.Snapshot{Origin: snapshot.Live, Host: snapshot.Known(name), Taken: now}
		for _, n := range c.names {
			ms := uint64(now.UnixMilli() % (1 << 40))
			s.Devices = append(s.Devices, snapshot.Device{Name: n, Kind: snapshot.Verbena, Ports: []snapshot.Port{{
				Number: 1, HWCounters: counters("sent_bytes", ms*1000*uint64(n[0]), "sent_pkts", ms, "np_cnp_sent", ms/100),
			}}})
		}
		return s
	}}
}

// lone is a recording of two instants: one rate.
func lone() monitor.Host {
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	return monitor.Host{Name: "lone", Times: 2, Past: func(i int) *snapshot.Snapshot {
		return &snapshot.Snapshot{Origin: snapshot.Recorded, Taken: begin.Add(time.Duration(i) * 10 * time.Second), Devices: []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, Counters: counters("port_xmit_data", 1_000_000_000*i)}}}}}
	}}
}

// instant is a recording of one instant.
func instant() monitor.Host {
	h := lone()
	h.Name, h.Times = "instant", 1
	return h
}

func counters(pairs ...any) snapshot.Counters {
	var all snapshot.Counters
	for i := 0; i < len(pairs); i += 2 {
		var v uint64
		switch x := pairs[i+1].(type) {
		case int:
			v = uint64(x)
		case uint64:
			v = x
		}
		all = append(all, snapshot.Counter{Name: pairs[i].(string), Value: snapshot.Known(v)})
	}
	return all
}
