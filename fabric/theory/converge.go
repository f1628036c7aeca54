package theory

import (
	"fmt"
	"math"
)

// Convergence is the bound on how long two flows need to become equal.
type Convergence struct {
	Alpha   float64 // lower bound alpha* of alpha
	Cycle   float64 // Delta T*, alpha intervals from cut to cut
	Cycles  float64 // AIMD cycles
	Seconds float64
}

// ConvergenceBound returns the upper bound of CoNEXT'16 §3.3 and its appendix on
// the time in which the difference of two rates, at first C, falls below the
// fraction share of C/N (the paper: 0.1). A cycle of AIMD takes
//
//	DT = 2 + (t/2 + C/(2 N R_AI)) alpha,   t = (-1 + sqrt(1 + 8 Kmax/(N R_AI tau')))/2
//
// alpha intervals and multiplies the difference by 1 - alpha/2; alpha falls to
// the solution of
//
//	alpha = (1-g)^(DT-1) ((1-g) alpha + g).
//
// The appendix prints the exponent DT; the text's DT-1 is what the paper's own
// data have.
func (d DCQCN) ConvergenceBound(share float64) (Convergence, error) {
	if err := d.Validate(); err != nil {
		return Convergence{}, err
	}
	if !(share > 0 && share < 1) {
		return Convergence{}, fmt.Errorf("dcqcn: convergence: share %g is not between 0 and 1", share)
	}
	n := float64(d.Flows)
	t := (-1 + math.Sqrt(1+8*8*d.Kmax/(n*d.Additive*d.AlphaInterval))) / 2
	cycle := func(alpha float64) float64 { return 2 + (t/2+d.Capacity/(2*n*d.Additive))*alpha }
	alpha := bisect(0, 1, func(a float64) bool {
		return math.Pow(1-d.G, cycle(a)-1)*((1-d.G)*a+d.G) <= a
	})
	c := Convergence{Alpha: alpha, Cycle: cycle(alpha), Cycles: math.Log(share/n) / math.Log1p(-alpha/2)}
	c.Seconds = c.Cycles * c.Cycle * d.AlphaInterval
	return c, nil
}
