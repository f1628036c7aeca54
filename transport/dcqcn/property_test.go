package dcqcn

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/clock"
)

// drawParams draws any valid set of parameters, with intervals short enough
// for the model and often in simple ratios, so that timers meet.
func drawParams(t *rapid.T) Params {
	us := func(least, most int, name string) time.Duration {
		n := rapid.IntRange(least*4, most*4).Draw(t, name)
		return time.Duration(n) * 250 * time.Nanosecond
	}
	den := rapid.SampledFrom([]uint32{2, 16, 100, 256, 1024, 4096, 65536}).Draw(t, "den")
	p := Params{
		DCETCPG:                  Fraction{uint32(rapid.IntRange(int(den/4096), int(den)/8+1).Draw(t, "num")), den},
		DCETCPRTT:                us(1, 20, "rtt"),
		InitialAlphaValue:        uint32(rapid.IntRange(0, 1024).Draw(t, "initial")),
		AlphaBits:                rapid.SampledFrom([]uint8{10, 16, 31, 32}).Draw(t, "bits"),
		AlphaUpdate:              rapid.SampledFrom([]AlphaUpdate{AlphaOnCNP, AlphaPeriodic}).Draw(t, "update"),
		AlphaBeforeCut:           rapid.Bool().Draw(t, "before"),
		RateReduceMonitorPeriod:  us(0, 20, "monitor"),
		RPGGd:                    uint8(rapid.IntRange(8, 13).Draw(t, "gd")),
		RPGMinDecFac:             uint8(rapid.IntRange(0, 100).Draw(t, "dec fac")),
		RPGMinRate:               uint64(rapid.IntRange(1000, 5*giga).Draw(t, "min rate")),
		MinRateDiv:               rapid.SampledFrom([]uint32{0, 0, 100}).Draw(t, "min div"),
		ClampTgtRate:             rapid.Bool().Draw(t, "clamp"),
		ClampTgtRateAfterTimeInc: rapid.Bool().Draw(t, "after time"),
		RPGTimeReset:             us(0, 50, "T"),
		RPGThreshold:             uint32(rapid.IntRange(0, 6).Draw(t, "F")),
		StageBeforeEvent:         rapid.Bool().Draw(t, "stage before"),
		RPGAIRate:                uint64(rapid.OneOf(rapid.IntRange(1000, mega), rapid.IntRange(mega, giga)).Draw(t, "AI")),
		AIRateDiv:                rapid.SampledFrom([]uint32{0, 0, 5000}).Draw(t, "AI div"),
		RPGHAIRate:               uint64(rapid.OneOf(rapid.IntRange(1000, mega), rapid.IntRange(mega, giga)).Draw(t, "HAI")),
		HAIRateDiv:               rapid.SampledFrom([]uint32{0, 0, 500}).Draw(t, "HAI div"),
		HyperAtThreshold:         rapid.Bool().Draw(t, "at F"),
		HyperByTimer:             rapid.Bool().Draw(t, "by timer"),
		HyperScaled:              rapid.Bool().Draw(t, "scaled"),
		HyperHalves:              rapid.Bool().Draw(t, "halves"),
		ExtraFastRecovery:        rapid.Bool().Draw(t, "extra"),
	}
	if p.DCETCPG.Num == 0 {
		p.DCETCPG.Num = 1
	}
	if rapid.Bool().Draw(t, "bytes") || p.RPGTimeReset == 0 {
		p.RPGByteReset = uint64(rapid.IntRange(64, 200_000).Draw(t, "B"))
	}
	if rapid.IntRange(0, 3).Draw(t, "max") == 0 {
		p.RPGMaxRate = uint64(rapid.IntRange(6*giga, 120*giga).Draw(t, "max rate"))
	}
	if rapid.IntRange(0, 3).Draw(t, "first") == 0 {
		p.RateToSetOnFirstCNP = uint64(rapid.IntRange(1000, 120*giga).Draw(t, "first rate"))
	}
	if rapid.IntRange(0, 3).Draw(t, "no AI") == 0 && p.RPGTimeReset > 0 && (p.RPGByteReset > 0 || p.HyperByTimer) {
		p.RPGAIRate, p.AIRateDiv = 0, 0
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("drawn parameters: %v", err)
	}
	return p
}

// drawSmall makes the rates so small that they often meet exactly, as large ones
// hardly ever do, and returns such a line rate. The limits of Validate do not
// matter here.
func drawSmall(t *rapid.T, p *Params) uint64 {
	line := rapid.IntRange(20, 5000).Draw(t, "small line")
	p.RPGMinRate, p.MinRateDiv = uint64(rapid.IntRange(0, 20).Draw(t, "small min")), 0
	p.RPGAIRate, p.AIRateDiv = uint64(rapid.IntRange(0, 30).Draw(t, "small AI")), 0
	p.RPGHAIRate, p.HAIRateDiv = uint64(rapid.IntRange(0, 30).Draw(t, "small HAI")), 0
	if p.RPGMaxRate != 0 {
		p.RPGMaxRate = uint64(rapid.IntRange(20, line).Draw(t, "small max"))
	}
	if p.RateToSetOnFirstCNP != 0 {
		p.RateToSetOnFirstCNP = uint64(rapid.IntRange(1, line).Draw(t, "small first"))
	}
	if p.RPGByteReset != 0 {
		p.RPGByteReset = uint64(rapid.IntRange(64, 50_000).Draw(t, "small B"))
	}
	return uint64(line)
}

// gap draws a step of time: often zero or to the nanosecond of a timer, now and
// then long.
func gap(t *rapid.T, p *Params) time.Duration {
	unit := rapid.SampledFrom([]time.Duration{
		time.Nanosecond, 250 * time.Nanosecond, time.Microsecond, p.DCETCPRTT, p.RateReduceMonitorPeriod, p.RPGTimeReset,
	}).Draw(t, "unit")
	n := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 40), rapid.IntRange(0, 300)).Draw(t, "times")
	return unit * time.Duration(n)
}

// The RP without timers gives what the RP with timers gives, bit for bit, and
// R_C stays within its bounds; its Deadline comes no later than the change.
func TestLazyEqualsStepwise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		line := rapid.SampledFrom([]uint64{10 * giga, 25 * giga, 100*giga + 1, 400 * giga}).Draw(t, "line")
		if rapid.Bool().Draw(t, "small") {
			line = drawSmall(t, &p)
		}
		m := newModel(&p, line)
		var r RP
		r.Start(0, &p, line)
		now := clock.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			d := gap(t, &p)
			if due := r.Deadline(); due > now && now.Add(d) < due {
				if c := r; c.Rate(now.Add(d)) != r.rc {
					t.Fatalf("at %d the rate went from %d to %d, the deadline is %d", now.Add(d), r.rc, c.rc, due)
				}
			}
			now = now.Add(d)
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0, 1:
				r.Congestion(now)
				m.congestion(now)
			case 2:
				n := rapid.OneOf(rapid.IntRange(0, 9000), rapid.IntRange(0, 5_000_000)).Draw(t, "bytes")
				r.Sent(now, n)
				m.sent(now, n)
			case 3:
				r.Rate(now)
				m.advance(now)
			default: // the RP is not told: it will have to catch up
				continue
			}
			if d := cmp.Diff(m.state(), r.State()); d != "" {
				t.Fatalf("at %v, model against RP:\n%s", time.Duration(now), d)
			}
			if low := p.floor(line); r.rc < low || r.rc > r.rt || r.rt > line {
				t.Fatalf("at %v: not %d <= R_C %d <= R_T %d <= %d", time.Duration(now), low, r.rc, r.rt, line)
			}
			if r.Limited() != (r.rc < line) {
				t.Fatal("Limited is wrong")
			}
			if due := r.Deadline(); due <= now {
				t.Fatalf("deadline %d is not after %d", due, now)
			}
		}
	})
}

// Where hyper increase takes growing steps, many at once must not be taken for
// equal ones: all small rates, so that every coincidence occurs.
func TestGrowingStepsAreTakenOneByOne(t *testing.T) {
	p := Params{
		DCETCPG: Fraction{1, 16}, DCETCPRTT: time.Microsecond, InitialAlphaValue: 1024, AlphaBits: 32,
		RPGGd: 11, RPGMinRate: 1, ClampTgtRate: true, RPGTimeReset: time.Microsecond, RPGByteReset: 64, RPGThreshold: 1,
		RPGAIRate: 1, HyperScaled: true, HyperAtThreshold: true,
	}
	for line := uint64(10); line < 300; line += 3 {
		for hai := uint64(1); hai <= 6; hai++ {
			for stages := 1; stages <= 5; stages++ {
				p.RPGHAIRate = hai
				p.StageBeforeEvent = stages%2 == 0
				m := newModel(&p, line)
				var r RP
				r.Start(0, &p, line)
				for range 2 { // R_C = line/4, R_T = line/2: room for both
					r.Congestion(0)
					m.congestion(0)
				}
				r.Sent(0, 64*stages)
				m.sent(0, 64*stages)
				for _, now := range []clock.Time{4_000, 50_000} {
					m.advance(now)
					r.Rate(now)
					if d := cmp.Diff(m.state(), r.State()); d != "" {
						t.Fatalf("line %d, R_HAI %d, byte stage %d, at %d:\n%s", line, hai, stages, now, d)
					}
				}
			}
		}
	}
}

// However long the silence, an RP with a timer and steps reaches the line rate
// again and alpha 0, and says so at once: the cost must not grow with the time.
func TestNeverStalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawParams(t)
		line := rapid.SampledFrom([]uint64{10 * giga, 400 * giga}).Draw(t, "line")
		var r RP
		r.Start(0, &p, line)
		now := clock.Time(0)
		for range rapid.IntRange(1, 200).Draw(t, "CNPs") {
			now = now.Add(time.Duration(rapid.IntRange(0, 50_000).Draw(t, "gap")))
			r.Congestion(now)
			r.Sent(now, rapid.IntRange(0, 1<<20).Draw(t, "bytes"))
		}
		if p.RPGTimeReset == 0 {
			for r.Rate(now.Add(time.Second)) != line {
				r.Sent(now.Add(time.Second), 1<<62)
			}
		}
		end := clock.Time(200 * 365 * 24 * time.Hour)
		if p.RPGAIRate == 0 && p.AIRateDiv == 0 { // only hyper increase raises, which may need the byte counter
			for range 64 {
				r.Sent(now.Add(time.Second), 1<<40)
				now = now.Add(time.Second)
			}
		}
		if got := r.Rate(end); got != line {
			t.Errorf("after 200 years: %d of %d, %+v", got, line, r.State())
		}
		if got := r.State().Alpha; got != 0 {
			t.Errorf("after 200 years alpha is %d", got)
		}
		if r.Limited() || r.Deadline() != clock.Never {
			t.Error("limited at line rate")
		}
		// And at the end of time, where sums would overflow.
		r.Congestion(clock.Never - 10)
		r.Rate(clock.Never - 1)
		r.Congestion(clock.Never - 1)
		if r.rc > r.rt || r.rt > line {
			t.Error("at the end of time", r.rc, r.rt)
		}
	})
}

// NP: the first mark is answered, then no two CNPs are closer than N, and every
// mark that comes N after the last CNP is answered.
func TestNotificationPacing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{MinTimeBetweenCNPs: time.Duration(rapid.IntRange(0, 100).Draw(t, "N"))}
		var np NP
		last, sent := clock.Time(0), false
		now := clock.Time(0)
		for range 100 {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "gap")))
			want := !sent || now.Sub(last) >= p.MinTimeBetweenCNPs
			if got := np.Marked(now, &p); got != want {
				t.Fatalf("at %d after %d, N %d: %v", now, last, p.MinTimeBetweenCNPs, got)
			}
			if want {
				last, sent = now, true
			}
			if np.TakeEcho() {
				t.Fatal("CNPs and flags")
			}
		}
		p.Notify = NotifyAck
		if np.Marked(now, &p) || !np.TakeEcho() || np.TakeEcho() {
			t.Fatal("a flag is one flag and no CNP")
		}
	})
}
