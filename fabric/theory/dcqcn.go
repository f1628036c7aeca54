package theory

import (
	"fmt"
	"math"
)

// DCQCN is a bottleneck that equal flows share under DCQCN, in the terms of the
// fluid model (SIGCOMM'15 DCQCN §5; CoNEXT'16 "ECN or Delay" §3.1). The model
// counts packets; PacketBytes is a packet as the queue and the rate limiter count
// it, and Capacity is in the same bytes: where a link carries 1,068 bytes for
// each 1,048 that a queue counts, Capacity is 1048/1068 of the line rate.
type DCQCN struct {
	Capacity    float64 // C, bit/s
	Flows       int     // N
	PacketBytes float64

	CNPInterval   float64 // tau, s: at most one cut in it
	AlphaInterval float64 // tau', s
	Timer         float64 // T of the rate increase, s
	ByteCounter   float64 // B of the rate increase, bytes; 0 is none
	FastRecovery  float64 // F
	Additive      float64 // R_AI, bit/s
	G             float64

	Kmin, Kmax float64 // bytes
	Pmax       float64 // 0..1
}

// PaperDCQCN returns the parameters of the two papers (50 and 55 us, 10 MB, F 5,
// R_AI 40 Mb/s, g 1/256, 5/200 KB/1 %, packets of 1,000 B) for so many flows at a
// bottleneck of so many bit/s.
func PaperDCQCN(capacity float64, flows int) DCQCN {
	return DCQCN{
		Capacity: capacity, Flows: flows, PacketBytes: 1000,
		CNPInterval: 50e-6, AlphaInterval: 55e-6, Timer: 55e-6, ByteCounter: 10e6,
		FastRecovery: 5, Additive: 40e6, G: 1.0 / 256,
		Kmin: 5e3, Kmax: 200e3, Pmax: 0.01,
	}
}

// Validate names the first parameter that the model has no answer for.
func (d DCQCN) Validate() error {
	for _, v := range [...]struct {
		name     string
		v        float64
		positive bool
	}{
		{"capacity", d.Capacity, true},
		{"flows", float64(d.Flows), true},
		{"packet bytes", d.PacketBytes, true},
		{"CNP interval", d.CNPInterval, true},
		{"alpha interval", d.AlphaInterval, true},
		{"timer", d.Timer, true},
		{"byte counter", d.ByteCounter, false},
		{"fast recovery", d.FastRecovery, false},
		{"additive increase", d.Additive, true},
		{"g", d.G, true},
		{"Kmin", d.Kmin, false},
	} {
		if !(v.v >= 0) || math.IsInf(v.v, 0) || v.positive && v.v == 0 {
			return fmt.Errorf("dcqcn: %s is %g, not a finite number of the right sign", v.name, v.v)
		}
	}
	if !(d.Kmax >= d.Kmin) || math.IsInf(d.Kmax, 0) {
		return fmt.Errorf("dcqcn: Kmax %g B is below Kmin %g B", d.Kmax, d.Kmin)
	}
	if !(d.Pmax > 0 && d.Pmax <= 1) {
		return fmt.Errorf("dcqcn: Pmax %g is not in 0..1", d.Pmax)
	}
	return nil
}

// Mark returns the probability with which a packet is marked at a queue in bytes:
// 0 up to Kmin, a line to Pmax at Kmax, 1 above. Kmin = Kmax is marking by step.
func (d DCQCN) Mark(queue float64) float64 {
	switch {
	case queue <= d.Kmin:
		return 0
	case queue > d.Kmax:
		return 1
	}
	return d.Pmax * (queue - d.Kmin) / (d.Kmax - d.Kmin)
}

// QueueAt returns the queue in bytes at which packets are marked with probability
// p: Kmin + p/Pmax (Kmax-Kmin), at most Kmax.
func (d DCQCN) QueueAt(p float64) float64 {
	return d.Kmin + min(1, p/d.Pmax)*(d.Kmax-d.Kmin)
}

// FixedPoint is where the loop rests, if it does.
type FixedPoint struct {
	P      float64 // marking probability
	Alpha  float64
	Queue  float64 // bytes
	Rate   float64 // R_C of each flow, bit/s: C/N
	Target float64 // R_T
	// Interior is false when p* is above Pmax, and with step marking: there is no
	// queue that marks with p*. It then chatters around Kmax, where the
	// probability jumps to 1, and Queue is Kmax.
	Interior bool
}

// packets is the model in its own unit.
type packets struct {
	rate, rai float64 // packets/s of one flow, and R_AI
	b         float64 // packets; +Inf without byte counter
}

func (d DCQCN) packets() packets {
	bits := 8 * d.PacketBytes
	b := d.ByteCounter / d.PacketBytes
	if b == 0 {
		b = math.Inf(1)
	}
	return packets{rate: d.Capacity / float64(d.Flows) / bits, rai: d.Additive / bits, b: b}
}

// terms are the factors of the model at marking probability p and rate r in
// packets/s, delayed by the loop:
//
//	cut   a  = 1-(1-p)^(tau r)        probability of a cut in tau
//	alpha    = 1-(1-p)^(tau' r)       where alpha goes
//	incr  b+d                         increase events a packet, byte counter and timer
//	add   c+e                         those beyond fast recovery
type terms struct{ cut, alpha, incr, add float64 }

func (d DCQCN) terms(p, r, b float64) terms {
	switch {
	case p >= 1:
		return terms{cut: 1, alpha: 1}
	case p <= 0:
		n := 1/b + 1/(d.Timer*r)
		return terms{incr: n, add: n}
	}
	l := math.Log1p(-p)
	t := terms{
		cut:   -math.Expm1(d.CNPInterval * r * l),
		alpha: -math.Expm1(d.AlphaInterval * r * l),
	}
	for _, n := range [...]float64{b, d.Timer * r} {
		if x := -n * l; x < 700 { // beyond, e^-x is nothing
			v := p / math.Expm1(x)
			t.incr += v
			t.add += float64(v * math.Exp(-d.FastRecovery*x))
		}
	}
	return t
}

// FixedPoint returns the unique fixed point of the fluid model (CoNEXT'16
// Theorem 1), the root p of
//
//	a^2 alpha / ((b+d)(c+e)) = tau^2 R_AI R,   R = C/N,
//
// found by bisection, since the left side rises with p.
func (d DCQCN) FixedPoint() (FixedPoint, error) {
	if err := d.Validate(); err != nil {
		return FixedPoint{}, err
	}
	k := d.packets()
	p := math.Exp(bisect(math.Log(1e-15), 0, func(x float64) bool {
		t := d.terms(math.Exp(x), k.rate, k.b)
		return t.cut*t.cut*t.alpha >= d.CNPInterval*d.CNPInterval*k.rai*k.rate*t.incr*t.add
	}))
	t := d.terms(p, k.rate, k.b)
	gap := k.rai * k.rate * d.CNPInterval * t.add / t.cut // R_T - R_C of dR_T/dt = 0
	return d.point(p, t.alpha, gap*8*d.PacketBytes), nil
}

// point completes a fixed point.
func (d DCQCN) point(p, alpha, gap float64) FixedPoint {
	rate := d.Capacity / float64(d.Flows)
	return FixedPoint{
		P: p, Alpha: alpha, Rate: rate, Target: rate + gap,
		Queue: d.QueueAt(p), Interior: p <= d.Pmax && d.Kmax > d.Kmin,
	}
}

// TaylorP returns the approximation of p* that CoNEXT'16 prints,
//
//	cbrt( R_AI N^2 / (tau' C^2) (1/B + N/(T C))^2 ),
//
// which is 15 to 36 % above the root for the papers' parameters. For comparison only.
func (d DCQCN) TaylorP() float64 {
	k := d.packets()
	n := 1/k.b + 1/(d.Timer*k.rate)
	return math.Cbrt(k.rai / (d.AlphaInterval * k.rate * k.rate) * n * n)
}
