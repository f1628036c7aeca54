package explain

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// into has 4 senders to host 0, 10 MB each, done at the given rate together.
func into(rate sim.Rate) *fabric {
	f := star(6)
	t := rate.For(int(4 * wire(10*mb)))
	for i := range 4 {
		f.flow("in", 1+i, 0, 0, 10*mb, 0, t)
	}
	f.r.End = t
	return f
}

func TestOneRxQueue(t *testing.T) {
	f := into(38 * g)
	f.r.Name = "rss off"
	h := &f.r.Nodes[f.host[0]].Host
	h.RxQueues = make([]result.RxQueue, 8)
	h.RxQueues[3] = result.RxQueue{Packets: 41920, Bytes: uint64(4 * wire(10*mb)), Busy: f.r.End * 99 / 100}
	h.RxQueueRate, h.RxBuffer, h.PeakRx = 38*g, 1<<20, 900*kb
	f.stop(f.host[0], 0, -1, false, 100*us, f.r.End/2)
	f.r.Pauses[0].Cause = result.CauseSlowReceiver
	s := Explain(f.sorted())
	if len(s.Hosts) != 1 || s.Hosts[0].Kind != OneRxQueue || s.Hosts[0].Flows != 4 || s.Hosts[0].Busiest != 3 {
		t.Fatalf("hosts %+v", s.Hosts)
	}
	if out := text(t, s); !strings.Contains(out, "host0: 1 of 8 RX queues (number 3) did all the work at 38 Gb/s") {
		t.Error(out)
	}
	if s.Verdict.Main != MainReceiver || !strings.Contains(s.Advice[0].Do, "host.nic.rss") {
		t.Errorf("main %v, advice %+v", s.Verdict.Main, s.Advice)
	}
	golden(t, "rss", text(t, s))
}

func TestHostLimits(t *testing.T) {
	tests := []struct {
		name string
		rate sim.Rate
		make func(f *fabric, h *result.Host)
		want []LimitKind
	}{
		{"nothing known", 40 * g, func(*fabric, *result.Host) {}, nil},
		{"queues share the work", 80 * g, func(f *fabric, h *result.Host) {
			h.RxQueues = make([]result.RxQueue, 2)
			for i := range h.RxQueues {
				h.RxQueues[i] = result.RxQueue{Bytes: 1000, Busy: f.r.End}
			}
		}, []LimitKind{RxQueues}},
		{"one queue, idle half of the time", 40 * g, func(f *fabric, h *result.Host) {
			h.RxQueues = make([]result.RxQueue, 8)
			h.RxQueues[0] = result.RxQueue{Bytes: 1000, Busy: f.r.End / 2}
		}, nil},
		{"drain", 40 * g, func(f *fabric, h *result.Host) {
			h.DrainRate = 40 * g
			f.rx(f.host[0], uint64(4*wire(10*mb)))
		}, []LimitKind{Drain}},
		{"drain with room", 20 * g, func(f *fabric, h *result.Host) {
			h.DrainRate = 40 * g
			f.rx(f.host[0], uint64(4*wire(10*mb)))
		}, nil},
		{"drops at the NIC", 40 * g, func(f *fabric, _ *result.Host) {
			f.r.Drops = []result.Drop{{Node: f.host[0], Reason: result.DropHostBuffer, Prio: 3}}
		}, []LimitKind{Drain}},
		{"a moment's stop", 40 * g, func(f *fabric, _ *result.Host) {
			f.stop(f.host[0], 0, -1, false, 100*us, f.r.End/20)
			f.r.Pauses[0].Cause = result.CauseSlowReceiver
		}, nil},
		// Each flow has 10 Gb/s of goodput and a share of 25.
		{"engine", 40 * g, func(f *fabric, _ *result.Host) {
			for i := range 4 {
				f.r.Nodes[f.host[1+i]].Host.QPRate = 10 * g
			}
		}, []LimitKind{QPEngine, QPEngine, QPEngine, QPEngine}},
		{"engine at the fair share", 100 * g, func(f *fabric, _ *result.Host) {
			for i := range 4 {
				f.r.Nodes[f.host[1+i]].Host.QPRate = 25 * g
			}
		}, nil},
		{"two queue pairs, half of what they can", 40 * g, func(f *fabric, _ *result.Host) {
			for i := range 4 {
				f.r.Nodes[f.host[1+i]].Host.QPRate = 10 * g
				f.r.Flows[i].QPs = 2
			}
		}, nil},
		{"packet rate", 40 * g, func(f *fabric, _ *result.Host) {
			p := &f.port(f.host[1], 0).Prio[3]
			p.TxPackets = uint64(f.r.End / us) // a million a second
			p.TxBytes = p.TxPackets * 100
			f.r.Nodes[f.host[1]].Host.PacketRate = 1_050_000
		}, []LimitKind{PacketRate}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := into(tt.rate)
			tt.make(f, &f.r.Nodes[f.host[0]].Host)
			s := Explain(f.sorted())
			if len(s.Hosts) != len(tt.want) {
				t.Fatalf("hosts %+v, want %v", s.Hosts, tt.want)
			}
			for i, k := range tt.want {
				if s.Hosts[i].Kind != k {
					t.Errorf("%v, want %v", s.Hosts[i].Kind, k)
				}
				if out := s.Hosts[i].sentence(); !strings.HasPrefix(out, s.Hosts[i].Host.Name+": ") {
					t.Error(out)
				}
			}
		})
	}
}

func (f *fabric) rx(n int32, bytes uint64) { f.port(n, 0).Prio[3].RxBytes = bytes }
