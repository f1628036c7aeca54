package theory

import (
	"fmt"
	"math"
)

// FluidRun says how the fluid model is integrated.
type FluidRun struct {
	Delay float64 // tau*, s: of the control loop; at least Step
	Step  float64 // s; 0 is 1 us
	Span  float64 // s of simulated time; 0 is 0.2
	From  float64 // s: statistics begin; 0 is half the span
	Floor float64 // minimum rate, bit/s; 0 is 10 Mb/s
}

// FluidResult is what the queue and the link did in the statistics' time.
type FluidResult struct {
	Queue, SD   float64 // mean and standard deviation, bytes
	Utilisation float64 // of the link, 0..1
}

// Fluid integrates the delay differential equations of CoNEXT'16 §3.1 by Euler
// steps, with N equal flows that start at line rate with alpha 1 and an empty
// queue, as flows do:
//
//	dq/dt     = N R_C - C                                                 q ≥ 0
//	dalpha/dt = g/tau' ( (1-(1-p)^(tau' R)) - alpha )
//	dR_T/dt   = -(R_T-R_C)/tau a + R_AI R (c+e)                            R_T ≤ C
//	dR_C/dt   = -R_C alpha/(2 tau) a + (R_T-R_C)/2 R (b+d)                 R_C ≤ C
//
// where p and R are those of tau* ago and a..e the terms of [DCQCN.FixedPoint].
// Like the reaction point that the paper models, it sets R_T = R_C at each cut
// (clamp); [DCQCN.Renewal] knows others.
func (d DCQCN) Fluid(run FluidRun) (FluidResult, error) {
	if err := d.Validate(); err != nil {
		return FluidResult{}, err
	}
	orElse(&run.Step, 1e-6)
	orElse(&run.Span, 0.2)
	orElse(&run.From, run.Span/2)
	orElse(&run.Floor, 10e6)
	lag, steps := int(run.Delay/run.Step+0.5), int(run.Span/run.Step+0.5)
	if !(run.Step > 0) || lag < 1 || lag > 1e7 || steps < 1 || steps > 1e9 || !(run.From < run.Span) {
		return FluidResult{}, fmt.Errorf("dcqcn: fluid: delay %g s, step %g s, %g to %g s: need 0 < step ≤ delay and from < span", run.Delay, run.Step, run.From, run.Span)
	}
	k, n := d.packets(), float64(d.Flows)
	line, kb := d.Capacity/(8*d.PacketBytes), d.PacketBytes // packets/s, bytes
	floor := run.Floor / (8 * d.PacketBytes)
	type past struct{ q, rc float64 }
	rc, rt, alpha, q := line, line, 1.0, 0.0
	ring := make([]past, lag+1)
	for i := range ring {
		ring[i] = past{q, rc}
	}
	var stat running
	for i := range steps {
		ring[i%(lag+1)] = past{q, rc}
		old := ring[(i+1)%(lag+1)]
		t := d.terms(d.Mark(old.q*kb), old.rc, k.b)
		if float64(i)*run.Step >= run.From {
			used := 1.0
			if q == 0 {
				used = min(1, n*rc/line)
			}
			stat.add(q*kb, used)
		}
		drc := -rc*alpha/(2*d.CNPInterval)*t.cut + (rt-rc)/2*old.rc*t.incr
		drt := -(rt-rc)/d.CNPInterval*t.cut + k.rai*old.rc*t.add
		q = max(0, q+float64((n*rc-line)*run.Step))
		alpha += float64(d.G / d.AlphaInterval * (t.alpha - alpha) * run.Step)
		rc = min(line, max(floor, rc+float64(drc*run.Step)))
		rt = min(line, rt+float64(drt*run.Step))
	}
	return stat.result(), nil
}

func orElse(v *float64, def float64) {
	if *v == 0 {
		*v = def
	}
}

// running is Welford's mean and variance.
type running struct{ n, mean, m2, used float64 }

func (r *running) add(v, used float64) {
	r.n++
	dv := v - r.mean
	r.mean += dv / r.n
	r.m2 += dv * (v - r.mean)
	r.used += used
}

func (r *running) result() FluidResult {
	return FluidResult{Queue: r.mean, SD: math.Sqrt(r.m2 / r.n), Utilisation: r.used / r.n}
}
