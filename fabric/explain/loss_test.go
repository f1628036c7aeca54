package explain

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// dropping has 4 senders to host 0 over a spine, and n drops of them at the
// spine's port to leaf 1.
func dropping(n int, prio uint8, reason result.DropReason) *fabric {
	f := spineLeaf(2, 1, 4)
	for i := range 4 {
		fl := f.flow("rdma", 4+i, 0, 0, 10*mb, 0, 20*ms)
		fl.Retransmitted, fl.NAKs = 4000, 40
		fl.Packets += 4000
	}
	for k := range n {
		f.r.Drops = append(f.r.Drops, result.Drop{At: sim.Time(k+1) * 100 * us, Node: f.spine[0], Port: f.down(1), Flow: int32(k % 4), Prio: prio, Reason: reason, Bytes: 1048})
	}
	f.r.End = 20 * ms
	return f
}

// The spine puts priority 3 into 0, where there is no PFC.
func TestMisfit(t *testing.T) {
	f := dropping(100, 0, result.DropNoBuffer)
	f.r.Name = "dscp map wrong on one switch"
	s := Explain(&f.r)
	if len(s.Loss.Misfits) != 1 {
		t.Fatalf("misfits %+v", s.Loss.Misfits)
	}
	m := s.Loss.Misfits[0]
	if m.At.Name != "spine0" || m.Want != 3 || m.Got != 0 || m.Drops != 100 || m.Flows != 4 || m.Everywhere {
		t.Errorf("misfit %+v", m)
	}
	// 16,000 packets again for 100 lost.
	if s.Loss.Again != 16000 || s.Loss.PerDrop != 160 {
		t.Errorf("%d again, %g per drop", s.Loss.Again, s.Loss.PerDrop)
	}
	if s.Verdict.Main != MainMisfit || s.Lossless.Verdict == Violated {
		t.Errorf("main %v, lossless %v", s.Verdict.Main, s.Lossless.Verdict)
	}
	golden(t, "misfit", text(t, s))
}

// All RDMA is in a class without PFC: no switch is to blame.
func TestLossyEverywhere(t *testing.T) {
	f := dropping(100, 5, result.DropNoBuffer)
	for i := range f.r.Flows {
		f.r.Flows[i].Prio = 5
	}
	s := Explain(&f.r)
	if m := s.Loss.Misfits; len(m) != 1 || !m[0].Everywhere || m[0].Want != 5 {
		t.Errorf("misfits %+v", m)
	}
}

func TestNoMisfit(t *testing.T) {
	for name, make := range map[string]func() *fabric{
		"lossless class": func() *fabric { return dropping(10, 3, result.DropHeadroom) },
		"link errors":    func() *fabric { return dropping(10, 0, result.DropError) },
		"TCP": func() *fabric {
			f := dropping(10, 0, result.DropNoBuffer)
			for i := range f.r.Flows {
				f.r.Flows[i].Op = "tcp"
			}
			return f
		},
		"no lossless class at all": func() *fabric {
			f := dropping(10, 3, result.DropNoBuffer)
			f.r.Shape.Lossless = 0
			return f
		},
	} {
		t.Run(name, func(t *testing.T) {
			if s := Explain(&make().r); len(s.Loss.Misfits) != 0 {
				t.Errorf("misfits %+v", s.Loss.Misfits)
			}
		})
	}
}

// Stops that the other end does not obey.
func TestDeaf(t *testing.T) {
	f := dropping(50, 3, result.DropHeadroom)
	p := &f.port(f.spine[0], f.down(1)).Prio[3]
	p.PauseTx, p.RxPackets = 20, 1000
	f.r.Name = "pfc off on one hop"
	s := Explain(&f.r)
	if d := s.Loss.Deaf; len(d) != 1 || d[0].Peer.Name != "leaf1:Ethernet4" || d[0].Stops != 20 || d[0].Drops != 50 {
		t.Fatalf("deaf %+v", d)
	}
	if s.Verdict.Main != MainDeaf || !strings.Contains(s.Advice[0].Do, "leaf1:Ethernet4") {
		t.Errorf("main %v, advice %+v", s.Verdict.Main, s.Advice)
	}
	golden(t, "deaf", text(t, s))
	// It was told to stop, and did not: that is no time that anybody was stopped.
	f.r.Pauses = []result.Pause{{At: us, Node: f.spine[0], Port: f.down(1), Prio: 3, Egress: f.down(0), On: true, Held: 2, Limit: 1}}
	if s := Explain(&f.r); len(s.Trees) != 1 || s.Trees[0].Stopped != 0 || s.Trees[0].Stops != 1 || !s.Trees[0].Branches[0].Deaf ||
		!strings.Contains(text(t, s), "told to stop once and did not") {
		t.Errorf("trees %+v", s.Trees)
	}
	f.r.Pauses = nil
	// Who was stopped for a picosecond has heard.
	f.port(f.leaf[1], 4).Prio[3].PausedFor = 1
	if s := Explain(&f.r); len(s.Loss.Deaf) != 0 {
		t.Errorf("deaf %+v", s.Loss.Deaf)
	}
}

// Drops in a lossless class without a single stop.
func TestMute(t *testing.T) {
	f := dropping(50, 3, result.DropNoBuffer)
	s := Explain(&f.r)
	if m := s.Loss.Mute; len(m) != 1 || m[0].At.Name != "spine0:Ethernet1" || m[0].Drops != 50 {
		t.Fatalf("mute %+v", m)
	}
	if s.Verdict.Main != MainDeaf || !strings.Contains(s.Advice[0].Do, "Turn PFC on") && !strings.Contains(s.Advice[0].Do, "turn PFC on") {
		t.Errorf("main %v, advice %+v", s.Verdict.Main, s.Advice)
	}
	// Who says stop and drops nevertheless has too little headroom.
	f.port(f.spine[0], f.down(1)).Prio[3].PauseTx = 20
	f.port(f.leaf[1], 4).Prio[3].PausedFor = ms
	if s := Explain(&f.r); len(s.Loss.Mute) != 0 || s.Verdict.Main != MainOverflow {
		t.Errorf("mute %+v, main %v", s.Loss.Mute, s.Verdict.Main)
	}
}

func TestOtherLoss(t *testing.T) {
	tests := []struct {
		reason result.DropReason
		want   Main
		advice string
	}{
		{result.DropMTU, MainUnroutable, "MTU"},
		{result.DropV1, MainUnroutable, "RoCEv2"},
		{result.DropNoRoute, MainUnroutable, "routes"},
		{result.DropError, MainLoss, "link"},
		{result.DropDown, MainLoss, "link"},
		{result.DropHostBuffer, MainLoss, "host.nic.pfc"},
		{result.DropWatchdog, MainLoss, ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason.String(), func(t *testing.T) {
			f := dropping(5, 3, tt.reason)
			s := Explain(&f.r)
			if s.Verdict.Main != tt.want {
				t.Errorf("main %v, want %v", s.Verdict.Main, tt.want)
			}
			if tt.advice != "" && (len(s.Advice) == 0 || !strings.Contains(s.Advice[0].Do, tt.advice)) {
				t.Errorf("advice %+v", s.Advice)
			}
			if s.Lossless.Elsewhere != 5 || s.Lossless.ElsewhereReason != tt.reason {
				t.Errorf("lossless %+v", s.Lossless)
			}
		})
	}
}

// Flows that gave up are named with their status.
func TestFailed(t *testing.T) {
	f := dropping(5, 3, result.DropMTU)
	f.r.Flows[2].State, f.r.Flows[2].Status = result.Failed, "RETRY_EXC_ERR"
	s := Explain(&f.r)
	if s.Loss.FailedCount != 1 || s.Loss.Failed[0].Status != "RETRY_EXC_ERR" || s.Verdict.Failed != 1 {
		t.Errorf("failed %+v", s.Loss.Failed)
	}
	if out := text(t, s); !strings.Contains(out, "gave up: RETRY_EXC_ERR") {
		t.Error(out)
	}
}

func TestLossless(t *testing.T) {
	port := func(need, have, peak int64, dropped uint64) result.Lossless {
		return result.Lossless{Node: 0, Port: 3, Prio: 3, Need: need, Have: have, Peak: peak, Dropped: dropped}
	}
	tests := []struct {
		name string
		list []result.Lossless
		want Proof
		text string
	}{
		{
			"proven",
			[]result.Lossless{port(37000, 37500, 18200, 0), {Node: 0, Port: 1, Prio: 3, Need: 37000, Have: 37500, Peak: 100}},
			Proven,
			"Proven: all 2 ingresses had the headroom that the formula asks for; the tightest, leaf0:Ethernet3 p3, used 18.2 KB of 37.5 KB.",
		},
		{"held", []result.Lossless{port(37500, 30000, 18200, 0)}, HeldOnly, "has 30 KB and needs 37.5 KB"},
		{"violated", []result.Lossless{port(37500, 30000, 31048, 0)}, Violated, "violated by 1.05 KB at leaf0:Ethernet3 p3: 31 KB of 30 KB, needs 37.5 KB"},
		{"dropped", []result.Lossless{port(37500, 30000, 30000, 2)}, Violated, "violated by 7.5 KB at leaf0:Ethernet3 p3: 30 KB of 30 KB, needs 37.5 KB, 2 packets dropped"},
		{
			"dropped with enough headroom",
			[]result.Lossless{port(37000, 37500, 36700, 9)},
			Violated,
			"violated at leaf0:Ethernet3 p3: 9 packets dropped although its 37.5 KB of headroom are what the formula asks for",
		},
		{"nothing known", nil, Unchecked, "Not checked"},
		{"a port that does not exist", []result.Lossless{{Node: 77, Port: -3, Dropped: 5}}, Unchecked, "Not checked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := star(4)
			f.r.Lossless = tt.list
			s := Explain(&f.r)
			if s.Lossless.Verdict != tt.want {
				t.Errorf("%v, want %v", s.Lossless.Verdict, tt.want)
			}
			out := strings.Join(strings.Fields(text(t, s)), " ")
			if !strings.Contains(out, tt.text) {
				t.Errorf("no %q in\n%s", tt.text, out)
			}
		})
	}
	f := star(4)
	f.r.Shape.Lossless = 0
	if s := Explain(&f.r); s.Lossless.Verdict != NoClass {
		t.Errorf("%v", s.Lossless.Verdict)
	}
}
