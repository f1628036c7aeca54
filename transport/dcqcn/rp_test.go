package dcqcn

import (
	"testing"
	"time"
	"unsafe"

	"github.com/verbena-rdma/verbena/clock"
)

const us = clock.Time(time.Microsecond)

// step is something that happens to an RP, and what it must be after it.
type step struct {
	at    clock.Time
	do    string // "cnp", "sent", or nothing: only look
	bytes int
	rc    uint64
	rt    uint64
	alpha uint64 // Q32, not compared if 0
}

func play(t *testing.T, p *Params, line uint64, steps []step) *RP {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &RP{}
	r.Start(0, p, line)
	for i, s := range steps {
		switch s.do {
		case "cnp":
			r.Congestion(s.at)
		case "sent":
			r.Sent(s.at, s.bytes)
		default:
			r.Rate(s.at)
		}
		st := r.State()
		if st.Rc != s.rc || st.Rt != s.rt || s.alpha != 0 && st.Alpha != s.alpha {
			t.Fatalf("step %d at %v %s: R_C %d R_T %d alpha %d, want %d %d %d", i, time.Duration(s.at), s.do, st.Rc, st.Rt, st.Alpha, s.rc, s.rt, s.alpha)
		}
	}
	return r
}

// SIGCOMM'15: cut, then alpha; fast recovery halves the gap F times; then R_T
// rises by R_AI. alpha in 2^-32: 255/256 is 2^32 - 2^24.
func TestPaperTranscript(t *testing.T) {
	p := paper()
	const line = 40 * giga
	play(t, &p, line, []step{
		{0, "", 0, line, line, 1 << 32},
		// alpha 1: halved. alpha = (1-g)·1 + g = 1.
		{0, "cnp", 0, 20 * giga, 40 * giga, 1 << 32},
		{55*us - 1, "", 0, 20 * giga, 40 * giga, 1 << 32},
		// T = K = 55 us: (20+40)/2; alpha = 255/256.
		{55 * us, "", 0, 30 * giga, 40 * giga, 1<<32 - 1<<24},
		// R_T = 30; R_C = 30·(1 - 255/512) = 15.05859375; then
		// alpha = 255/256·255/256 + 1/256 = 65281/65536.
		{100 * us, "cnp", 0, 15_058_593_750, 30 * giga, 65281 << 16},
		// Timers restarted at 100: (15.05859375+30)/2 at 155.
		{155*us - 1, "", 0, 15_058_593_750, 30 * giga, 65281 << 16},
		{155 * us, "", 0, 22_529_296_875, 30 * giga, 0},
		// The gap 7.470703125 halves, rounded towards R_T: five steps in all.
		{210 * us, "", 0, 26_264_648_438, 30 * giga, 0},
		{265 * us, "", 0, 28_132_324_219, 30 * giga, 0},
		{320 * us, "", 0, 29_066_162_110, 30 * giga, 0},
		{375 * us, "", 0, 29_533_081_055, 30 * giga, 0},
		// Sixth: additive, R_T = 30.04, R_C = (29.533081055 + 30.04)/2.
		{430 * us, "", 0, 29_786_540_528, 30_040_000_000, 0},
		// Ten steps later the gap, 253459472, has come nearer to R_AI: each step
		// halves what is over it, 213459472/2^10 = 208456.5.
		{430*us + 10*55*us, "", 0, 30_399_791_544, 30_440_000_000, 0},
	})
}

// The byte counter counts stages of its own, and both together lead to hyper
// increase: i·R_HAI above F.
func TestPaperByteCounterTranscript(t *testing.T) {
	p := paper()
	p.RPGTimeReset = 100 * time.Microsecond
	p.RPGThreshold = 1
	const line = 400 * giga
	steps := []step{
		{0, "cnp", 0, 200 * giga, 400 * giga, 0},
		{1 * us, "cnp", 0, 100 * giga, 200 * giga, 0}, // alpha still 1
		{2 * us, "sent", 9_999_999, 100 * giga, 200 * giga, 0},
		{3 * us, "sent", 1, 150 * giga, 200 * giga, 0},                      // stages 0,0: fast recovery
		{3 * us, "sent", 15_000_000, 175_020_000_000, 200_040_000_000, 0},   // 0,1: R_AI; 5 MB stay
		{4 * us, "sent", 5_000_000, 187_550_000_000, 200_080_000_000, 0},    // 0,2: R_AI
		{101 * us, "", 0, 193_835_000_000, 200_120_000_000, 0},              // timer, 0,3: min is 0: R_AI
		{201 * us, "", 0, 196_997_500_000, 200_160_000_000, 0},              // 1,3: min = F is not above it: R_AI
		{301 * us, "", 0, 198_678_750_000, 200_360_000_000, 0},              // 2,3: hyper, i = 1: R_HAI
		{401 * us, "", 0, 199_719_375_000, 200_760_000_000, 0},              // 3,3: i = 2
		{402 * us, "sent", 10_000_000, 200_439_687_500, 201_160_000_000, 0}, // 4,3: i = 2 again
	}
	r := play(t, &p, line, steps)
	want := State{
		Rc: r.rc, Rt: r.rt, Alpha: r.State().Alpha, TimeStage: 4, ByteStage: 4,
		Cuts: 2, Clamps: 1, Recoveries: 1, Additive: 4, Hyper: 3,
	}
	if got := r.State(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// ConnectX: the CNPs of 4 us give one cut at their end, alpha moves each 1 us
// in 10 bits.
func TestMlx5Transcript(t *testing.T) {
	p := mlx5()
	const line = 100 * giga
	r := play(t, &p, line, []step{
		// 1023 at the first CNP, which does not count for alpha.
		{0, "cnp", 0, line, line, 1023 << 22},
		// 1023·1019/1024 = 1018.005, 1018·1019/1024 = 1013.03: rounded down.
		{1 * us, "", 0, line, line, 1018 << 22},
		{2 * us, "", 0, line, line, 1013 << 22},
		// A CNP in the third period raises: (1013·1019 + 5·1024)/1024 = 1013.05, up.
		{2*us + 1, "cnp", 0, line, line, 1013 << 22},
		{3 * us, "", 0, line, line, 1014 << 22},
		{4*us - 1, "", 0, line, line, 1014 << 22},
		// 1014·1019/1024 = 1009.05, before the cut: 100G·1009/2048 is taken, once.
		{4 * us, "", 0, 50_732_421_875, line, 1009 << 22},
		// No CNP in this period or the next: no cut.
		{12 * us, "", 0, 50_732_421_875, line, 0},
		// 300 us after the cut: stages are 0, fast recovery.
		{304 * us, "", 0, 75_366_210_938, line, 0},
		// A CNP at 305: the period [304, 308) ends with a cut, and since the timer
		// has expired R_T is clamped. alpha has lost ceil(5·alpha/1024) 301 times,
		// which leaves 162; (162·1019 + 5·1024)/1024 = 166.2, up to 167 at 306;
		// 166 and 165 after that. 75366210938·165/2048 = 6071984767.9.
		{305 * us, "cnp", 0, 75_366_210_938, line, 162 << 22},
		{306 * us, "", 0, 75_366_210_938, line, 167 << 22},
		{308 * us, "", 0, 75_366_210_938 - 6_071_984_767, 75_366_210_938, 165 << 22},
		{608 * us, "", 0, 72_330_218_555, 75_366_210_938, 0},
		// Second expiry: additive, 5 Mb/s.
		{908 * us, "", 0, 73_850_714_747, 75_371_210_938, 0},
		// And so on: without bytes never hyper.
		{908*us + 100*300*us, "", 0, 75_866_210_938, 75_871_210_938, 0},
	})
	if s := r.State(); s.Cuts != 2 || s.Clamps != 1 || s.Hyper != 0 || s.Recoveries != 2 || s.Additive != 101 {
		t.Errorf("%+v", s)
	}
	// With the byte counter two stages on, the next expiry is hyper: 50 Mb/s.
	now := 908*us + 100*300*us
	r.Sent(now, 2*32767*64)
	before := r.State().Rt
	if r.Rate(now + 300*us); r.State().Rt != before+50*mega {
		t.Errorf("R_T rose by %d", r.State().Rt-before)
	}
}

// HPCC's simulator: shares of the line, timer only, hyper from the third
// expiry on.
func TestHpccTranscript(t *testing.T) {
	p := hpcc()
	const line = 100 * giga
	// alpha = (255/256)^4 at the cut, 4 us after the first flag:
	// 4228250625/2^32 exactly.
	const cut = line * 4228250625 >> 33
	const rc = line - cut // 50.776…G
	r := play(t, &p, line, []step{
		{0, "cnp", 0, line, line, 1 << 32},
		{4*us - 1, "", 0, line, line, 0},
		{4 * us, "", 0, rc, line, 4228250625},
		{10 * us, "cnp", 0, rc, line, 0},
	})
	// Flag at 10: cut at 12, stage 0: R_T stays. Then 312: recovery, 612: R_T + 20
	// Mb/s but at most the line. So another at 613, cut at 616, which clamps.
	r.Congestion(613 * us)
	r.Rate(616 * us)
	s := r.State()
	if s.Rt >= line || s.Cuts != 3 || s.Clamps != 1 || s.Recoveries != 1 || s.Additive != 1 {
		t.Fatalf("%+v", s)
	}
	for i, add := range []uint64{0, 20 * mega, 200 * mega, 200 * mega} {
		want := s.Rt + add
		r.Rate(616*us + clock.Time(i+1)*300*us)
		if s = r.State(); s.Rt != want {
			t.Errorf("expiry %d: R_T %d, want %d", i+1, s.Rt, want)
		}
	}
	if got := p.floor(line); got != giga {
		t.Errorf("minimum rate %d", got)
	}
}

// alpha without CNPs is (1-g)^n after n periods: below 1 % within the time that
// gives, and not much before.
func TestAlphaDecay(t *testing.T) {
	for _, c := range []struct {
		preset string
		n      int // ceil(ln 100 / -ln(1-g))
	}{{"paper", 1177}, {"hpcc", 1177}} {
		p, _ := Preset(c.preset)
		var r RP
		r.Start(0, &p, 100*giga)
		r.Congestion(0)
		period := clock.Time(p.DCETCPRTT)
		r.Rate(period * clock.Time(c.n-1))
		if a := r.State().Alpha; a < 1<<32/100 {
			t.Errorf("%s: below 1 %% too soon: %d", c.preset, a)
		}
		r.Rate(period * clock.Time(c.n))
		if a := r.State().Alpha; a >= 1<<32/100 {
			t.Errorf("%s: %d after %d periods", c.preset, a, c.n)
		}
	}
	// In 10 bits a step takes ceil(5·alpha/1024), 1 at the least: from 1023 to 410
	// in 160 steps, to 205 in 102 more, and the rest one by one: 0 after
	// 466, where exact arithmetic is below 10/1024 after 946.
	p := mlx5()
	var r RP
	r.Start(0, &p, 100*giga)
	r.Congestion(0)
	for _, c := range []struct {
		n     clock.Time
		alpha uint64
	}{{160, 410}, {262, 205}, {446, 20}, {466, 0}} {
		r.Rate(c.n * us)
		// The cut at 4 us does not touch alpha.
		if a := r.State().Alpha >> 22; a != c.alpha {
			t.Errorf("mlx5: alpha %d/1024 after %d us, want %d", a, c.n, c.alpha)
		}
	}
	// Marks all the time bring it back to the top, however few bits it has.
	for i := range clock.Time(2000) {
		r.Congestion((1000 + i) * us)
	}
	if a := r.State().Alpha >> 22; a != 1023 {
		t.Errorf("mlx5: alpha %d/1024 under constant CNPs", a)
	}
}

// A reaction point is small and its hot path allocates nothing.
func TestSizesAndAllocations(t *testing.T) {
	if n := unsafe.Sizeof(RP{}); n > 128 {
		t.Errorf("RP is %d bytes", n)
	}
	if n := unsafe.Sizeof(NP{}); n > 16 {
		t.Errorf("NP is %d bytes", n)
	}
	for _, name := range Presets() {
		p, _ := Preset(name)
		var r RP
		var np NP
		r.Start(0, &p, 100*giga)
		now := clock.Time(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 30 * us
			if np.Marked(now, &p) || np.Due(now, &p) || np.TakeEcho() {
				r.Congestion(now)
			}
			r.Sent(now, 1<<20)
			_, _, _, _ = r.Rate(now+1), r.Deadline(), r.Limited(), r.State()
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
