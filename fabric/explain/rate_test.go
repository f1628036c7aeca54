package explain

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// falseAlarm is the case of every course: a long flow over two subnets, and
// every 400 us a burst of 128 KB into the same port, 2.6 % of it.
func falseAlarm(kmin int64, rate sim.Rate) *fabric {
	f := spineLeaf(4, 8, 8)
	f.r.Name = "cross-subnet-ecn"
	f.r.Shape.Preset, f.r.Shape.KMin, f.r.Shape.KMax, f.r.Shape.PMax = "mlx5", kmin, kmin, 1
	f.r.Shape.AI, f.r.Shape.HAI, f.r.Shape.IncreaseEvery = 5*sim.Mbps, 50*sim.Mbps, 300*us
	f.r.Shape.CNPPrio = 6
	const long = 200 * 1000 * 1000
	fct := rate.For(long)
	l := f.flow("long", 0, 8, 0, long, 0, fct)
	l.Marks, l.CNPs, l.CNPsHandled, l.Cuts, l.Clamps, l.Additive = 6000, 900, 900, 410, 400, 120
	l.MinRate, l.LastRate = 4*g, 9500*sim.Mbps
	for at := 400 * us; at < fct; at += 400 * us {
		f.flow("bursts", 16, 8, 1, 128*kb, at, 20*us)
	}
	f.r.End = fct
	p := f.port(f.leaf[1], 0)
	p.Prio[3].Marked, p.Prio[3].TxPackets = 9000, 252_000
	p.Prio[3].PeakQueue, p.Prio[3].MeanQueue = 140*kb, 3100
	q := result.Series{Kind: result.QueueBytes, Node: f.leaf[1], Port: 0, Prio: 3, Flow: -1, Step: 10 * us}
	rc := result.Series{Kind: result.FlowRC, Node: -1, Port: -1, Flow: 0, Step: 100 * us}
	for at := sim.Time(0); at < fct; at += q.Step {
		v := int64(0)
		if d := at % (400 * us); at >= 400*us && d < 20*us {
			v = 100 * kb
		}
		q.Values = append(q.Values, v)
	}
	for at := sim.Time(0); at < fct; at += rc.Step {
		rc.Values = append(rc.Values, int64(rate))
	}
	f.r.Series = []result.Series{q, rc}
	f.r.Nodes[f.host[8]].NIC = []result.Counter{{Name: "np_ecn_marked_roce_packets", Value: 6000}, {Name: "np_cnp_sent", Value: 900}}
	f.r.Nodes[f.host[0]].NIC = []result.Counter{{Name: "rp_cnp_handled", Value: 900}}
	return f
}

func TestFalseMarks(t *testing.T) {
	f := falseAlarm(8*kb, 9800*sim.Mbps)
	s := Explain(&f.r)
	if s.Verdict.Main != MainFalseMarks || s.Rates.HeldCount != 1 {
		t.Fatalf("main %v, %d held", s.Verdict.Main, s.Rates.HeldCount)
	}
	h := &s.Rates.Held[0]
	b := h.Burst
	if b.Bytes != 128*kb || b.Every != 400*us || !b.Benign || !b.Above || b.From != "host16" {
		t.Errorf("burst %+v", b)
	}
	// 128 KB * 1.048 each 400 us of 100 Gb/s: 2.68 %.
	if b.Load < 0.026 || b.Load > 0.027 {
		t.Errorf("load %g", b.Load)
	}
	// The share is what the bursts leave: at most payload/frame of the line,
	// 95.4 Gb/s. From 9.8 to 100 Gb/s by 5 Mb/s each 300 us are 18,040 steps,
	// 5.412 s, and a tenth of them by 50.
	if h.Fair < 92*g || h.Fair > 96*g {
		t.Errorf("share %v", h.Fair)
	}
	if want := 5412 * ms; h.Recovery != want || h.RecoveryByHyper != want/10 {
		t.Errorf("recovery %v and %v, want %v and a tenth", h.Recovery, h.RecoveryByHyper, want)
	}
	// 256 KiB at 9.8 Gb/s.
	if want := sim.Rate(9800 * sim.Mbps).For(256 << 10); max(h.MessageTime-want, want-h.MessageTime) > us {
		t.Errorf("message %v, want %v", h.MessageTime, want)
	}
	p := &s.Rates.Ports[0]
	if p.First != 400*us || p.Crossed != len(f.r.Flows)-1 {
		t.Errorf("crossed %d times, first at %v; %d bursts", p.Crossed, p.First, len(f.r.Flows)-1)
	}
	if !strings.Contains(s.Advice[0].Do, "Kmin") && !strings.Contains(s.Advice[0].Do, "kmin") {
		t.Errorf("advice %+v", s.Advice)
	}
	golden(t, "falsemarks", text(t, s))
}

// With the threshold above the burst the flow is as fast as it can be.
func TestNotHeld(t *testing.T) {
	f := falseAlarm(256*kb, 90*g)
	p := &f.port(f.leaf[1], 0).Prio[3]
	p.Marked = 0
	f.r.Flows[0].Marks, f.r.Flows[0].CNPs, f.r.Flows[0].CNPsHandled = 0, 0, 0
	s := Explain(&f.r)
	if s.Rates.HeldCount != 0 || s.Verdict.Main != AllWell {
		t.Errorf("%d held, main %v", s.Rates.HeldCount, s.Verdict.Main)
	}
}

// A flow that is slow for another reason is not held by marks.
func TestNotHeldByMarks(t *testing.T) {
	tests := []struct {
		name string
		make func(f *fabric)
	}{
		{"one CNP", func(f *fabric) { f.r.Flows[0].CNPsHandled = 1 }},
		{"stopped by PFC", func(f *fabric) { f.stop(f.leaf[0], 0, 8, false, 0, 60*ms) }},
		{"loss", func(f *fabric) { f.r.Flows[0].Retransmitted = 3000 }},
		{"its own limit", func(f *fabric) { f.r.Flows[0].RateLimit = 11 * g }},
		{"the engine", func(f *fabric) { f.r.Nodes[f.host[0]].Host.QPRate = 11 * g }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := falseAlarm(8*kb, 9800*sim.Mbps)
			tt.make(f)
			if s := Explain(f.sorted()); s.Rates.HeldCount != 0 {
				t.Errorf("held: %+v", s.Rates.Held)
			}
		})
	}
}

// Bursts that fill the port are congestion and not a false alarm.
func TestBurstsThatAreCongestion(t *testing.T) {
	f := falseAlarm(8*kb, 9800*sim.Mbps)
	for i := 1; i < len(f.r.Flows); i++ {
		// 20 times the bytes: 52 % of the port.
		f.r.Flows[i].Bytes *= 20
		f.r.Flows[i].Finish = f.r.Flows[i].Start + 350*us
	}
	s := Explain(&f.r)
	if s.falseMarks() != nil {
		t.Errorf("false alarm: %+v", s.falseMarks().Burst)
	}
}

// Short flows beside an equal that takes half of the port are no false alarm.
func TestBurstBesideAnEqual(t *testing.T) {
	f := falseAlarm(8*kb, 9800*sim.Mbps)
	f.flow("long", 24, 8, 3, 1150*mb, 0, f.r.End)
	b := Explain(&f.r).Rates.Held[0].Burst
	if b.Benign || b.Others < 0.6 || b.Load > 0.03 {
		t.Errorf("%+v", b)
	}
}

func TestPeriod(t *testing.T) {
	tests := []struct {
		gaps []sim.Time
		want sim.Time
	}{
		{[]sim.Time{400, 400, 400}, 400},
		{[]sim.Time{390, 400, 410}, 400},
		{[]sim.Time{100, 400, 900}, 0}, // irregular
		{[]sim.Time{400}, 0},           // two bursts make no period
		{nil, 0},
	}
	for _, tt := range tests {
		if got := period(tt.gaps); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.gaps, got, tt.want)
		}
	}
}

// PFC without a mark: Kmin lies above XOFF.
func TestSilentECN(t *testing.T) {
	f := spread()
	f.r.Shape.Preset, f.r.Shape.KMin = "mlx5", 400*kb
	s := Explain(f.sorted())
	q := s.Rates.Silent
	if q == nil || q.Root.Name != "leaf0:Ethernet0" || q.KMin != 400*kb || q.Limit != 45000 {
		t.Fatalf("silent %+v", q)
	}
	golden(t, "silent", text(t, s))
	// One mark, and ECN is not silent; PFC for a moment is not worth a word.
	f.port(f.leaf[0], 0).Prio[3].Marked = 1
	if s := Explain(&f.r); s.Rates.Silent != nil {
		t.Errorf("silent in spite of a mark")
	}
	f = star(3)
	f.r.Shape.Preset = "mlx5"
	f.flow("", 1, 0, 0, mb, 0, ms)
	f.stop(f.leaf[0], 1, 0, false, 0, 90*us) // of 10 ms: 0.9 %
	if s := Explain(f.sorted()); s.Rates.Silent != nil {
		t.Errorf("silent for %v", s.Trees[0].Stopped)
	}
}

// Lost CNPs are told, and the class they travel in.
func TestLostCNPs(t *testing.T) {
	f := falseAlarm(8*kb, 9800*sim.Mbps)
	f.r.Flows[0].CNPsHandled = 450
	f.r.Shape.CNPPrio = 3
	s := Explain(&f.r)
	if s.Rates.Lost != 450 || s.Rates.CNPs != 900 {
		t.Errorf("%d of %d lost", s.Rates.Lost, s.Rates.CNPs)
	}
	if out := text(t, s); !strings.Contains(out, "50 % of the CNPs") || !strings.Contains(out, "CNPs travel in priority 3 like the data") {
		t.Error(out)
	}
	f.r.Shape.CNPPrio = 6
	if s := Explain(&f.r); s.Rates.InData {
		t.Error("CNPs of priority 6 are in the data's class")
	}
}

// Kmin is raised above the bursts as far as PFC allows; where it does not allow it,
// that is said, and nothing above XOFF is proposed.
func TestKMinStaysBelowXOFF(t *testing.T) {
	for _, x := range []struct {
		xoff  int64 // of an ingress with an empty buffer
		alpha float64
		want  string
	}{
		// 128 frames of 1,048 B are 134,144 B.
		{0, 0, "Raise Kmin of priority 3 at leaf1:Ethernet0 from 8 KB to 256 KiB (switch.ecn.kmin)."},
		{10 * mb, 0.125, "Raise Kmin of priority 3 at leaf1:Ethernet0 from 8 KB to 256 KiB (switch.ecn.kmin)."},
		// Static: less two frames.
		{200 * kb, 0, "Raise Kmin of priority 3 at leaf1:Ethernet0 from 8 KB to 197.9 KB (switch.ecn.kmin)."},
		// X/(1 + 1/8) - 2,096 = 175,682 B: one ingress feeds one egress, of one that is used.
		{200 * kb, 0.125, "Raise Kmin of priority 3 at leaf1:Ethernet0 from 8 KB to 175.7 KB (switch.ecn.kmin)."},
		{100 * kb, 0.125, "Kmin of priority 3 there may be 86.8 KB at most (switch.ecn.kmin), now 8 KB."},
		{3 * kb, 0, "no Kmin of priority 3 there (switch.ecn.kmin), now 8 KB, is small enough as it is."},
	} {
		f := falseAlarm(8*kb, 9800*sim.Mbps)
		for p := range f.r.Nodes[f.leaf[1]].Ports {
			q := &f.port(f.leaf[1], int32(p)).Prio[3]
			q.XOFF, q.XOFFAlpha = x.xoff, x.alpha
		}
		got := strings.Join(strings.Fields(text(t, Explain(&f.r))), " ")
		if !strings.Contains(got, x.want) {
			t.Errorf("XOFF %d, alpha %g: no word of %q in\n%s", x.xoff, x.alpha, x.want, got)
		}
		if says := strings.Contains(got, "no Kmin is above the largest benign burst, 128 KB, and lets ECN act before PFC"); says != (x.xoff > 0 && x.xoff < 134144) {
			t.Errorf("XOFF %d, alpha %g: said that there is none: %v", x.xoff, x.alpha, says)
		}
	}
}
