package theory_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// Measured in HPCC's simulator at 40 Gb/s with 4 flows of 1,048 B packets and
// a 50 us window: 42.4 KB with clamp, 55.5 without. The fluid model knows no
// difference. The noise of the queue is in the measured ones, so 10 %.
func TestRenewalKnowsTheClamp(t *testing.T) {
	d := theory.PaperDCQCN(40e9, 4)
	d.PacketBytes, d.ByteCounter = 1048, 0
	at := func(v theory.Renewal) float64 {
		fp, err := d.Renewal(v)
		if err != nil {
			t.Fatal(err)
		}
		return fp.Queue / 1e3
	}
	on, off := at(theory.Renewal{Clamp: theory.ClampAlways}), at(theory.Renewal{Clamp: theory.ClampAfterIncrease})
	near(t, "clamp", on, 42.4, 0.10)
	near(t, "no clamp", off, 55.5, 0.10)
	near(t, "fluid", fixedPoint(t, d).Queue/1e3, 42.4, 0.05)
	// What a paced notification point does to the clamp: cuts are 50 us or more
	// apart, so there are few before the first increase.
	paced := at(theory.Renewal{Gate: theory.GatePaced, AlphaOnCNP: true})
	if paced < 1.15*on || paced > 1.05*off {
		t.Errorf("window %.1f and %.1f KB, paced %.1f", on, off, paced)
	}
}

// For small p the two balances are the same but for one thing: each of the first
// increases after a cut has one window of 50 us in its 55, where the fluid has 1.1.
// So the renewal loses 1.1 times less, and p, whose cube it is, is 1.1^(1/3) higher.
func TestRenewalMeetsFluid(t *testing.T) {
	for _, rai := range []float64{4e6, 4e5, 4e4} {
		d := theory.PaperDCQCN(40e9, 2)
		d.ByteCounter, d.Additive = 0, rai
		fp, err := d.Renewal(theory.Renewal{})
		if err != nil {
			t.Fatal(err)
		}
		fluid := fixedPoint(t, d)
		few := fluid.P * d.Timer * fluid.Rate / 8e3 // cuts a timer: what "small" is
		near(t, fmt.Sprintf("p* at R_AI %g", rai), fp.P, fluid.P*math.Cbrt(1.1), 0.002+few)
	}
}

// One reaction point with a constant marking probability, event by event: at the p*
// of the renewal its rate averages to C/N.
func TestRenewalAgainstEvents(t *testing.T) {
	const seed = 7
	for _, n := range []int{2, 4, 10} {
		for _, v := range []theory.Renewal{
			{},
			{Clamp: theory.ClampAfterIncrease},
			{Gate: theory.GatePaced, AlphaOnCNP: true},
			{Gate: theory.GatePaced, Clamp: theory.ClampAfterIncrease, AlphaOnCNP: true},
		} {
			d := theory.PaperDCQCN(40e9, n)
			d.ByteCounter = 0
			fp, err := d.Renewal(v)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			rate := meanRate(d, v, fp.P, 20, rng)
			near(t, fmt.Sprintf("seed %d, %d flows, %+v: mean rate", seed, n, v), rate, fp.Rate, 0.03)
		}
	}
}

// meanRate runs a reaction point for so many simulated seconds.
func meanRate(d theory.DCQCN, v theory.Renewal, p, seconds float64, rng *rand.Rand) float64 {
	bits := 8 * d.PacketBytes
	rc := d.Capacity / float64(d.Flows)
	rt, alpha := rc, 0.1
	toMark := func() float64 { return math.Floor(math.Log(1-rng.Float64())/math.Log1p(-p)) + 1 } // packets
	left := toMark()
	var now, sum float64
	timer, window, decay := d.Timer, d.CNPInterval, d.AlphaInterval
	stage, clean := 0.0, true // clean: no increase since the cut
	seenWindow, seenAlpha, last := false, false, -1.0
	cut := func() {
		if v.Clamp == theory.ClampAlways || !clean {
			rt = rc
		}
		rc *= 1 - alpha/2
		stage, timer, clean = 0, now+d.Timer, true
	}
	for now < seconds {
		mark := now + left*bits/rc
		next := min(mark, timer, window, decay)
		left -= (next - now) * rc / bits
		sum += (next - now) * rc
		now = next
		switch next {
		case mark:
			left = toMark()
			seenWindow, seenAlpha = true, true
			if v.Gate == theory.GatePaced && now >= last+d.CNPInterval {
				last = now
				cut()
				if v.AlphaOnCNP {
					alpha += d.G * (1 - alpha)
					decay = now + d.AlphaInterval
				}
			}
		case timer:
			timer, clean = now+d.Timer, false
			if stage++; stage > d.FastRecovery {
				rt += d.Additive
			}
			rc = (rc + rt) / 2
		case window:
			window = now + d.CNPInterval
			if v.Gate == theory.GateWindow && seenWindow {
				cut()
			}
			seenWindow = false
		case decay:
			decay = now + d.AlphaInterval
			to := 0.0
			if seenAlpha && !v.AlphaOnCNP {
				to = 1
			}
			alpha += d.G * (to - alpha)
			seenAlpha = false
		}
	}
	return sum / now
}

func TestRenewalErrors(t *testing.T) {
	d := theory.PaperDCQCN(40e9, 4)
	for _, v := range []theory.Renewal{{Gate: 2}, {Clamp: 2}} {
		if _, err := d.Renewal(v); err == nil {
			t.Errorf("%+v is accepted", v)
		}
	}
}
