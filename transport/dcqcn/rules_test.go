package dcqcn

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// base cuts at once, by half, without clamp, with a timer of 100 us and a byte
// counter of 1 MB; each rule's test changes what it is about.
func base() Params {
	p := paper()
	p.ClampTgtRate = false
	p.RPGTimeReset = 100 * time.Microsecond
	p.RPGByteReset = mega
	p.StageBeforeEvent = false
	p.RPGAIRate, p.RPGHAIRate = 40*mega, 200*mega
	p.InitialAlphaValue = 1024
	p.DCETCPRTT = 100 * time.Millisecond // alpha stays 1
	return p
}

// started returns an RP on a 100G line after one CNP at 0.
func started(p *Params) *RP {
	r := &RP{}
	r.Start(0, p, 100*giga)
	r.Congestion(0)
	return r
}

// grow expires the timer and the byte counter until the stages are t and b.
func grow(r *RP, t, b int) clock.Time {
	now := r.now
	for range t {
		now = r.incAt
		r.Rate(now)
	}
	for range b {
		r.Sent(now, mega)
	}
	return now
}

// The clamp: what a cut does to R_T, by flags and stages.
func TestClampRules(t *testing.T) {
	for _, c := range []struct {
		clamp, after bool
		time, byte   int
		want         bool
	}{
		{false, false, 0, 0, false},
		{false, false, 1, 0, false},
		{false, false, 0, 1, true},
		{false, true, 0, 0, false},
		{false, true, 1, 0, true},
		{false, true, 0, 1, true},
		{true, false, 0, 0, true},
		{true, true, 1, 1, true},
	} {
		p := base()
		p.ClampTgtRate, p.ClampTgtRateAfterTimeInc = c.clamp, c.after
		r := started(&p)
		now := grow(r, c.time, c.byte)
		before := r.State()
		r.Congestion(now)
		after := r.State()
		want := before.Rt
		if c.want {
			want = before.Rc
		}
		if after.Rt != want || (after.Clamps != 0) != c.want {
			t.Errorf("%+v: R_C %d R_T %d before, R_T %d after, %d clamps", c, before.Rc, before.Rt, after.Rt, after.Clamps)
		}
		if after.TimeStage != 0 || after.ByteStage != 0 {
			t.Errorf("%+v: stages after the cut: %+v", c, after)
		}
	}
}

// The phase of the next timer event, by the stages that it makes or finds.
func TestPhases(t *testing.T) {
	const fr, ai, hai = 0, 40 * mega, 200 * mega
	for _, c := range []struct {
		name       string
		change     func(p *Params)
		time, byte int // before the event
		want       uint64
	}{
		{"F 5, after: fourth", nil, 3, 0, fr},
		{"F 5, after: fifth", nil, 4, 0, ai},
		{"F 5, before: fifth", func(p *Params) { p.StageBeforeEvent = true }, 4, 0, fr},
		{"F 5, before: sixth", func(p *Params) { p.StageBeforeEvent = true }, 5, 0, ai},
		{"the larger stage counts", nil, 0, 5, ai},
		{"both at F", nil, 4, 5, ai},
		{"both at F, hyper_at_threshold", func(p *Params) { p.HyperAtThreshold = true }, 4, 5, hai},
		{"above F", nil, 5, 6, hai},
		{"above F, before", func(p *Params) { p.StageBeforeEvent = true }, 5, 6, ai},
		{"above F, before, later", func(p *Params) { p.StageBeforeEvent = true }, 6, 6, hai},
		{"third stage of hyper", nil, 7, 9, 3 * hai},
		{"third stage of hyper at F", func(p *Params) { p.HyperAtThreshold = true }, 6, 9, 3 * hai},
		{"i is the smaller stage's", nil, 9, 6, hai},
		{"not scaled", func(p *Params) { p.HyperScaled = false }, 7, 9, hai},
		{"no bytes, never hyper", nil, 20, 0, ai},
		{"no bytes, hyper_by_timer", func(p *Params) { p.HyperByTimer = true; p.HyperScaled = false }, 20, 0, hai},
		{"F 0: never recovery", func(p *Params) { p.RPGThreshold = 0 }, 0, 0, ai},
		{"F 1 of the NIC: first", func(p *Params) { p.RPGThreshold = 1; p.StageBeforeEvent = true }, 0, 0, fr},
		{"F 1 of the NIC: second", func(p *Params) { p.RPGThreshold = 1; p.StageBeforeEvent = true }, 1, 0, ai},
	} {
		p := base()
		p.ClampTgtRate = true
		if c.change != nil {
			c.change(&p)
		}
		r := started(&p)
		for range 3 { // R_T far below the line: nothing is capped
			r.Congestion(0)
		}
		grow(r, c.time, c.byte)
		before := r.State()
		grow(r, 1, 0)
		after := r.State()
		if after.Rt-before.Rt != c.want {
			t.Errorf("%s: R_T rose by %d, want %d (%+v)", c.name, after.Rt-before.Rt, c.want, after)
		}
		if want := (before.Rc + after.Rt + 1) / 2; after.Rc != want {
			t.Errorf("%s: R_C %d, want %d", c.name, after.Rc, want)
		}
	}
}

// hyper_halves: an interval that begins with an event of hyper increase is half.
func TestHyperHalves(t *testing.T) {
	p := base()
	p.ClampTgtRate, p.HyperHalves = true, true
	p.RPGThreshold, p.HyperAtThreshold = 1, true
	r := started(&p)
	r.Congestion(0)
	now := grow(r, 0, 1)
	if got := r.Deadline(); got != now+100*us {
		t.Error("before hyper increase:", got)
	}
	now = grow(r, 1, 0) // both stages 1
	if got := r.Deadline(); got != now+50*us {
		t.Error("in hyper increase:", got)
	}
	r.Sent(now, mega) // the interval under way is a whole one, the next is half
	r.Sent(now, mega/2)
	if s := r.State(); s.ByteStage != 3 || s.Hyper != 3 {
		t.Errorf("%+v", s)
	}
	r.Congestion(now)
	if got := r.Deadline(); got != now+100*us {
		t.Error("after a cut:", got)
	}
	if r.Sent(now, mega-1); r.State().ByteStage != 0 {
		t.Error("half an interval after a cut")
	}
}

// extra_fast_recovery: R_T > 10 R_C at a first stage divides R_T by 8.
func TestExtraFastRecovery(t *testing.T) {
	for _, on := range []bool{false, true} {
		p := base()
		p.ExtraFastRecovery = on
		r := started(&p)
		for range 3 { // no clamp: 100 over 6.25
			r.Congestion(0)
		}
		grow(r, 1, 0)
		want := uint64(53_125_000_000) // (6.25+100)/2
		if on {
			want = 9_375_000_000 // (6.25+12.5)/2
		}
		if got := r.State(); got.Rc != want {
			t.Errorf("%v: %+v", on, got)
		}
	}
}

// How deep a cut is.
func TestCutDepth(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *Params)
		want   uint64
	}{
		{"alpha/2", nil, 50 * giga},
		{"rpg_gd 10 takes alpha, rpg_min_dec_fac 50 stops it", func(p *Params) { p.RPGGd = 10 }, 50 * giga},
		{"rpg_gd 10, rpg_min_dec_fac 25", func(p *Params) { p.RPGGd, p.RPGMinDecFac = 10, 25 }, 25 * giga},
		{"rpg_gd 12", func(p *Params) { p.RPGGd = 12 }, 75 * giga},
		{"rpg_min_dec_fac 100", func(p *Params) { p.RPGMinDecFac = 100 }, 100 * giga},
		{"rpg_min_rate", func(p *Params) { p.RPGMinRate = 80 * giga }, 80 * giga},
		{"rpg_min_rate above the line", func(p *Params) { p.RPGMinRate = 800 * giga }, 100 * giga},
		{"a share as rpg_min_rate", func(p *Params) { p.MinRateDiv = 1 }, 100 * giga},
		{"initial_alpha_value 512, cut first", func(p *Params) { p.InitialAlphaValue = 512 }, 75 * giga},
		// alpha = 255/256/2 + 1/256 = 257/512, half of it is taken.
		{"initial_alpha_value 512, alpha first", func(p *Params) { p.InitialAlphaValue, p.AlphaBeforeCut = 512, true }, 100*giga - 100*giga/1024*257},
		{"rate_to_set_on_first_cnp", func(p *Params) { p.RateToSetOnFirstCNP = 10 * giga }, 5 * giga},
		{"rate_to_set_on_first_cnp above the line", func(p *Params) { p.RateToSetOnFirstCNP = 1000 * giga }, 50 * giga},
		{"rate_to_set_on_first_cnp below the minimum", func(p *Params) { p.RateToSetOnFirstCNP = mega }, 100 * mega},
		{"alpha in 10 bits is never 1", func(p *Params) { p.AlphaBits = 10 }, 100*giga - 100*giga*1023/2048},
	} {
		p := base()
		if c.change != nil {
			c.change(&p)
		}
		if got := started(&p).Rate(0); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// rate_to_set_on_first_cnp sets R_T too, and only the first time.
func TestFirstCNPRate(t *testing.T) {
	p := base()
	p.RateToSetOnFirstCNP = 10 * giga
	r := started(&p)
	if s := r.State(); s.Rt != 10*giga {
		t.Errorf("%+v", s)
	}
	r.Rate(10 * clock.Time(time.Second))
	if r.Limited() {
		t.Fatal("no recovery")
	}
	r.Congestion(20 * clock.Time(time.Second))
	if s := r.State(); s.Rt != 100*giga {
		t.Errorf("second time: %+v", s)
	}
}

// rpg_max_rate lets go of the limiter.
func TestMaxRateReleases(t *testing.T) {
	p := base()
	p.RPGMaxRate = 75 * giga
	r := started(&p)
	if r.Rate(100*us-1) != 50*giga || r.Rate(100*us) != 100*giga || r.Limited() || r.Deadline() != clock.Never {
		t.Errorf("%+v", r.State())
	}
}

// The monitor period: one cut at the end of a period with CNPs, whatever their
// number; a CNP at the very end belongs to the next; periods follow each other
// from the first CNP on.
func TestMonitorPeriod(t *testing.T) {
	p := base()
	p.RateReduceMonitorPeriod = 4 * time.Microsecond
	r := started(&p)
	r.Congestion(1)
	r.Congestion(3 * us)
	if r.Deadline() != 4*us || r.Limited() {
		t.Error("before the end:", r.Deadline(), r.State())
	}
	r.Congestion(4 * us)
	if s := r.State(); s.Cuts != 1 || r.Deadline() != 8*us {
		t.Errorf("%+v %d", s, r.Deadline())
	}
	r.Rate(20 * us)
	if s := r.State(); s.Cuts != 2 {
		t.Errorf("%+v", s)
	}
	r.Congestion(21*us + 1)
	if r.Deadline() != 24*us {
		t.Errorf("grid lost: %d", r.Deadline())
	}
	// Timer and monitor period end together: the increase comes first.
	p.RateReduceMonitorPeriod = 100 * time.Microsecond
	r = started(&p)
	r.Congestion(150 * us)
	if r.Rate(200 * us); r.State().Recoveries != 1 || r.State().TimeStage != 0 || r.State().Cuts != 2 {
		t.Errorf("%+v", r.State())
	}
}

// NP as the paper has it: the marks of a window are answered at its end, in
// windows that follow each other; a window without marks ends the chain.
func TestNotificationWindow(t *testing.T) {
	p := paper()
	var n NP
	if n.Deadline(&p) != clock.Never || !n.Marked(10*us, &p) || n.Deadline(&p) != clock.Never {
		t.Fatal("first mark")
	}
	if n.Marked(20*us, &p) || n.Marked(59*us, &p) || n.Deadline(&p) != 60*us {
		t.Fatal("marks in the window")
	}
	if n.Due(60*us-1, &p) || !n.Due(60*us, &p) || n.Due(60*us, &p) || n.Deadline(&p) != clock.Never {
		t.Fatal("end of the window")
	}
	if n.Marked(61*us, &p) || n.Deadline(&p) != 110*us {
		t.Fatal("the next window")
	}
	// Nobody asked at 110: the next mark is answered at once and for both.
	if !n.Marked(130*us, &p) || n.Deadline(&p) != clock.Never || n.Due(300*us, &p) {
		t.Fatal("late")
	}
	p.NPWindow = false
	if n.Marked(140*us, &p) || n.Deadline(&p) != clock.Never || !n.Marked(180*us, &p) {
		t.Fatal("a plain limiter")
	}
}
