package theory

import (
	"fmt"
	"math"
)

// Gate says what keeps two cuts apart.
type Gate uint8

const (
	// GateWindow looks at the end of every CNP interval whether a CNP came in it:
	// the reaction point of HPCC's simulator and of the NIC (its
	// rate_reduce_monitor_period), and what the fluid model averages.
	GateWindow Gate = iota
	// GatePaced is the notification point of the paper: a CNP at once for the
	// first mark that comes an interval or more after the last CNP. Marks in the
	// interval are forgotten, so cuts are never closer than that.
	GatePaced
)

// Clamp says when a cut sets the target rate to the current rate.
type Clamp uint8

const (
	// ClampAlways does at every cut (clamp_tgt_rate 1; the fluid model).
	ClampAlways Clamp = iota
	// ClampAfterIncrease does unless no increase came since the last cut
	// (clamp_tgt_rate 0 and clamp_tgt_rate_after_time_inc 1; HPCC's 0).
	ClampAfterIncrease
)

// Renewal is a reaction point cut by cut.
type Renewal struct {
	Gate  Gate
	Clamp Clamp
	// AlphaOnCNP updates alpha up at a CNP and down after each whole interval
	// without one (the paper's text). Otherwise it looks at the end of each
	// interval (mlx, the fluid model).
	AlphaOnCNP bool
}

// Renewal returns the fixed point for a constant marking probability, taken cut by
// cut: the fluid model multiplies means, but the target falls by the gap
// R_T - R_C that there is at a cut, and that gap halves with every increase since
// the cut before. So it matters how soon cuts follow each other, which the gate
// and the clamp decide.
//
// Let X be the time from a cut to the next, K = floor(X/T) the increases in it, and
// h = alpha R/2 the gap after a cut. With u_k = P(X ≥ k T),
//
//	always:         E[gap after K increases] = R_AI E[(K-F)+]
//	after increase: E[gap after K; K ≥ 1]    = R_AI E[(K-F)+],  h = alpha R/2 / u_1
//
// the left being what the target loses a cycle and the right what it gains. Fast
// recovery halves the gap; an additive step raises it by R_AI first.
// X is a multiple of tau with P(X > j tau) = (1-p)^(j tau R) behind a window, and
// tau plus the wait for a mark when paced. Timer increases only: the byte counter
// is not looked at (10 MB moves the root by less than its fourth digit at these
// rates). Alpha on CNP rests at 1/(1+E[floor(X/tau')]).
//
// The rate is taken to be C/N in all of this. At the p* that comes out, a reaction
// point that meets marks with that probability has a mean rate within 2 % of C/N
// (the test runs one); the noise of a real queue is not in it. It is ours, not
// published. In HPCC's simulator 40 Gb/s and 4 flows of 1,048 B packets gave 42.4
// and 55.5 KB with and without clamp: 45.4 and 54.0 here, 43.6 for both by the fluid.
func (d DCQCN) Renewal(v Renewal) (FixedPoint, error) {
	if err := d.Validate(); err != nil {
		return FixedPoint{}, err
	}
	if v.Gate > GatePaced || v.Clamp > ClampAfterIncrease {
		return FixedPoint{}, fmt.Errorf("dcqcn: renewal: no gate %d or no clamp %d", v.Gate, v.Clamp)
	}
	p := math.Exp(bisect(math.Log(1e-9), 0, func(x float64) bool {
		lose, gain := d.cycle(v, math.Exp(x))
		return lose >= gain
	}))
	alpha := d.alphaAt(v, p)
	k := d.packets()
	// The mean gap is not what the balance needs; the fluid's stands in for R_T.
	t := d.terms(p, k.rate, math.Inf(1))
	return d.point(p, alpha, k.rai*k.rate*d.CNPInterval*t.add/t.cut*8*d.PacketBytes), nil
}

// survives returns P(X ≥ x) at marking probability p.
func (d DCQCN) survives(v Renewal, p, x float64) float64 {
	marks := d.packets().rate * math.Log1p(-p) // log of no mark, a second
	if v.Gate == GatePaced {
		return math.Exp(min(0, marks*(x-d.CNPInterval)))
	}
	windows := max(0, math.Ceil(x/d.CNPInterval-1e-9)-1)
	return math.Exp(marks * windows * d.CNPInterval)
}

func (d DCQCN) alphaAt(v Renewal, p float64) float64 {
	if !v.AlphaOnCNP {
		return -math.Expm1(d.AlphaInterval * d.packets().rate * math.Log1p(-p))
	}
	var decays float64
	for k := 1; k <= maxSteps; k++ {
		u := d.survives(v, p, float64(k)*d.AlphaInterval)
		decays += u
		if u < 1e-12 {
			break
		}
	}
	return 1 / (1 + decays)
}

// maxSteps bounds the sums over a cycle.
const maxSteps = 1 << 17

// cycle returns what the target loses and gains from cut to cut, in packets/s.
func (d DCQCN) cycle(v Renewal, p float64) (lose, gain float64) {
	k := d.packets()
	gap := d.alphaAt(v, p) * k.rate / 2
	u := d.survives(v, p, d.Timer)
	if v.Clamp == ClampAfterIncrease {
		gap /= max(u, 1e-12)
	}
	before := 1.0 // P(K ≥ n)
	for n := 0; n < maxSteps && before > 1e-12; n++ {
		if v.Clamp == ClampAlways || n > 0 {
			lose += float64((before - u) * gap)
		}
		if float64(n+1) > d.FastRecovery {
			gain += float64(k.rai * u)
			gap += k.rai
		}
		gap /= 2
		before, u = u, d.survives(v, p, float64(n+2)*d.Timer)
	}
	return lose, gain
}
