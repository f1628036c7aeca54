package dcqcn

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// An RP names the phase whose step it then takes: the counts of steps say so.
func TestPhaseIsTheStepThatFollows(t *testing.T) {
	for _, name := range Presets() {
		p, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		const line = 100 * giga
		var r RP
		r.Start(0, &p, line)
		if st := r.State(); p.Phase(&st, line) != PhaseLine {
			t.Errorf("%s: at the start %v", name, p.Phase(&st, line))
		}
		for i := range 20 {
			r.Congestion(clock.Time(i) * clock.Time(10*time.Microsecond))
		}
		seen := map[Phase]int{}
		for now := clock.Time(200 * time.Microsecond); r.Limited(); now = now.Add(time.Microsecond) {
			before := r.State()
			r.Rate(now)
			if now%7 == 0 {
				r.Sent(now, 1<<20)
			}
			after := r.State()
			if after.Rc == line {
				break
			}
			n := after.Recoveries + after.Additive + after.Hyper - before.Recoveries - before.Additive - before.Hyper
			if n != 1 || !p.StageBeforeEvent {
				continue
			}
			got := PhaseAdditive
			switch {
			case after.Recoveries != before.Recoveries:
				got = PhaseRecovery
			case after.Hyper != before.Hyper:
				got = PhaseHyper
			}
			if want := p.Phase(&before, line); got != want {
				t.Fatalf("%s: at %v it was in %v and did %v: %+v", name, now, want, got, before)
			}
			seen[got]++
		}
		if seen[PhaseRecovery] == 0 || seen[PhaseHyper]+seen[PhaseAdditive] == 0 {
			t.Errorf("%s: phases %v", name, seen)
		}
	}
}

func TestRatesReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]uint64{"1Gbps": 1e9, "2.5Gb/s": 25e8, "40": 40e6, "1bps": 1, "1Pbps": 1e15} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if back, err := ParseRate(FormatRate(got)); err != nil || back != got {
			t.Errorf("%s: written %s, read %d, %v", text, FormatRate(got), back, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "1 furlong", "2Pbps", "1e9"} {
		if v, err := ParseRate(text); err == nil {
			t.Errorf("%q: %d", text, v)
		}
	}
}
