package theory

import (
	"errors"
	"math"
	"math/cmplx"
)

// PhaseMargin returns how far, in degrees, the loop with control delay tau* (s)
// is from oscillating by itself at its fixed point: positive is stable (Bode).
//
// The model of [DCQCN.Fluid] is linearised at the exact root with the exact
// terms. CoNEXT'16 linearises Taylor's forms, with an alpha that is updated by the
// packet (g R in place of g/tau'), so its printed margins differ by up to 20
// degrees and call 10 flows at 40 Gb/s and 50 us unstable, where its own fluid
// model rests. The margin here has the sign that the integrator shows.
//
// An error says that there is no interior fixed point.
func (d DCQCN) PhaseMargin(delay float64) (float64, error) {
	fp, err := d.FixedPoint()
	if err != nil {
		return 0, err
	}
	if !fp.Interior {
		return 0, errors.New("dcqcn: phase margin: no interior fixed point, p* is above Pmax or marking is by step")
	}
	l := d.linearise(fp)
	gain := func(w float64) float64 { return cmplx.Abs(l.open(w, delay)) }
	best := math.Inf(1)
	const perDecade = 400
	w := 1.0
	before := gain(w)
	for i := 1; i <= 7*perDecade; i++ {
		next := math.Pow(10, float64(i)/perDecade)
		after := gain(next)
		if (before-1)*(after-1) < 0 {
			falling := after < before
			at := bisect(w, next, func(x float64) bool { return (gain(x) < 1) == falling })
			margin := math.Remainder(cmplx.Phase(l.open(at, delay))*180/math.Pi+180, 360)
			if math.Abs(margin) < math.Abs(best) {
				best = margin
			}
		}
		w, before = next, after
	}
	return best, nil
}

// linear is the model at its fixed point: derivatives of R_C, R_T and alpha by
// R_C, R_T, alpha and by the delayed R_C and queue, and N for the queue.
type linear struct {
	j [3][5]float64
	n float64
}

func (d DCQCN) linearise(fp FixedPoint) linear {
	k, bits := d.packets(), 8*d.PacketBytes
	slope := d.Pmax / ((d.Kmax - d.Kmin) / d.PacketBytes) // of p by packets of queue
	// x is R_C, R_T, alpha, delayed R_C, p.
	x := [5]float64{fp.Rate / bits, fp.Target / bits, fp.Alpha, fp.Rate / bits, fp.P}
	f := func(x [5]float64) [3]float64 {
		t := d.terms(x[4], x[3], k.b)
		return [3]float64{
			-x[0]*x[2]*t.cut/(2*d.CNPInterval) + (x[1]-x[0])/2*x[3]*t.incr,
			-(x[1]-x[0])/d.CNPInterval*t.cut + k.rai*x[3]*t.add,
			d.G / d.AlphaInterval * (t.alpha - x[2]),
		}
	}
	l := linear{n: float64(d.Flows)}
	for c := range x {
		up, down := x, x
		h := x[c] * 1e-4
		up[c] += h
		down[c] -= h
		fu, fd := f(up), f(down)
		for r := range l.j {
			l.j[r][c] = (fu[r] - fd[r]) / (2 * h)
		}
	}
	for r := range l.j {
		l.j[r][4] *= slope
	}
	return l
}

// open returns the open-loop gain at angular frequency w. The characteristic
// equation is D0(s) + e^(-s tau*) D1(s) = 0: only R_C and the queue act with
// delay, and the queue's own row has R_C alone, so the delay enters once. The
// loop is e^(-s tau*) D1/D0.
func (l linear) open(w, delay float64) complex128 {
	s := complex(0, w)
	d0 := l.det(s, 0)
	return (l.det(s, 1) - d0) / d0 * cmplx.Exp(-s*complex(delay, 0))
}

// det returns det(s I - A0 - z A1) over R_C, R_T, alpha, q.
func (l linear) det(s, z complex128) complex128 {
	var m [4][4]complex128
	for r := range 3 {
		for c := range 3 {
			m[r][c] = complex(-l.j[r][c], 0)
		}
		m[r][0] -= z * complex(l.j[r][3], 0)
		m[r][3] = -z * complex(l.j[r][4], 0)
		m[r][r] += s
	}
	m[3][0], m[3][3] = complex(-l.n, 0), s
	det := complex128(1)
	for c := range m {
		pivot := c
		for r := c + 1; r < len(m); r++ {
			if cmplx.Abs(m[r][c]) > cmplx.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		if pivot != c {
			m[pivot], m[c], det = m[c], m[pivot], -det
		}
		if m[c][c] == 0 {
			return 0
		}
		det *= m[c][c]
		for r := c + 1; r < len(m); r++ {
			q := m[r][c] / m[c][c]
			for k := c; k < len(m); k++ {
				m[r][k] -= q * m[c][k]
			}
		}
	}
	return det
}
