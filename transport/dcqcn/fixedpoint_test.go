package dcqcn

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
)

// CoNEXT'16 Theorem 1, with rates in packets per second:
//
//	a = 1-(1-p)^(tau R)    alpha* = 1-(1-p)^(tau' R)
//	b = p/((1-p)^-B - 1)   c = (1-p)^(F B) b        events of the byte counter; those after F of them
//	d = p/((1-p)^-TR - 1)  e = (1-p)^(F T R) d      events of the timer, likewise
//	a² alpha* / ((b+d)(c+e)) = tau² R_AI R
//
// F here counts events of fast recovery: p.RPGThreshold if the stages are
// compared before the event, one less if after it.
type fluid struct {
	packet          float64 // bytes
	tau, tauP, t    float64 // seconds
	bytes, f, rAI   float64 // packets, events, packets per second
	kmin, kmax, max float64 // bytes, bytes, share
}

func fluidOf(p *Params, packet float64) fluid {
	f := float64(p.RPGThreshold)
	if !p.StageBeforeEvent {
		f--
	}
	return fluid{
		packet: packet, tau: p.MinTimeBetweenCNPs.Seconds(), tauP: p.DCETCPRTT.Seconds(), t: p.RPGTimeReset.Seconds(),
		bytes: float64(p.RPGByteReset) / packet, f: f, rAI: float64(p.RPGAIRate) / 8 / packet,
		kmin: 5000, kmax: 200_000, max: 0.01,
	}
}

// side is the left side of the theorem less the right one; it rises with p.
func (f fluid) side(p, r float64) float64 {
	l := math.Log1p(-p)
	a := -math.Expm1(f.tau * r * l)
	b := p / math.Expm1(-f.bytes*l)
	c := math.Exp(f.f*f.bytes*l) * b
	d := p / math.Expm1(-f.t*r*l)
	e := math.Exp(f.f*f.t*r*l) * d
	return a*a*f.alpha(p, r)/((b+d)*(c+e)) - f.tau*f.tau*f.rAI*r
}

func (f fluid) alpha(p, r float64) float64 { return -math.Expm1(f.tauP * r * math.Log1p(-p)) }

// mark is p* at a rate in bit/s.
func (f fluid) mark(rate float64) float64 {
	lo, hi := 1e-9, 0.5
	for range 200 {
		mid := (lo + hi) / 2
		if f.side(mid, rate/8/f.packet) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// queue is q* in bytes for p.
func (f fluid) queue(p float64) float64 { return f.kmin + p/f.max*(f.kmax-f.kmin) }

// The formula gives the published table.
func TestFixedPointFormula(t *testing.T) {
	p := paper()
	p.StageBeforeEvent = true
	f := fluidOf(&p, 1000)
	for _, row := range []struct{ c, n, p, alpha, q float64 }{
		{40, 2, 0.0777, 0.1014, 20.2},
		{40, 4, 0.1888, 0.1218, 41.8},
		{40, 8, 0.4552, 0.1452, 93.8},
		{40, 10, 0.6032, 0.1533, 122.6},
		{100, 2, 0.0239, 0.0788, 9.7},
		{100, 8, 0.1420, 0.1149, 32.7},
		{100, 16, 0.3432, 0.1373, 71.9},
		{100, 32, 0.8225, 0.1626, 165.4},
		{10, 2, 0.4552, 0.1452, 93.8},
	} {
		rate := row.c * giga / row.n
		mark := f.mark(rate)
		alpha, q := f.alpha(mark, rate/8/1000), f.queue(mark)/1000
		if math.Abs(100*mark-row.p) > 0.0002 || math.Abs(alpha-row.alpha) > 0.0002 || math.Abs(q-row.q) > 0.1 {
			t.Errorf("%vG, N %v: p* %.4f %% alpha* %.4f q* %.1f KB, published %+v", row.c, row.n, 100*mark, alpha, q, row)
		}
	}
}

// loop is N senders, one queue, and notification after a delay: all of a
// network that the fixed point knows.
type loop struct {
	p      *Params
	line   float64 // bit/s
	n      int
	packet int
	mark   func(queue float64) float64 // the probability
	delay  time.Duration
}

type sender struct {
	rp   RP
	np   NP
	next float64 // ns
}

// means are averages over the second half of a run.
type means struct{ queue, rate, alpha, mark float64 }

func (l loop) run(seed uint64, total time.Duration) means {
	type note struct {
		at clock.Time
		to int
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	s := make([]sender, l.n)
	for i := range s {
		s[i].rp.Start(0, l.p, uint64(l.line))
		s[i].next = rng.Float64() * 1000
	}
	var notes []note
	var m means
	var queue, last, packets, alphas float64
	bits := float64(8 * l.packet)
	half := float64(total / 2)
	for {
		i := 0
		for j := range s {
			if s[j].next < s[i].next {
				i = j
			}
			if due := s[j].np.Deadline(l.p); due <= clock.Time(last) && s[j].np.Due(due, l.p) {
				notes = append(notes, note{due.Add(l.delay), j})
			}
		}
		at, from := s[i].next, &s[i]
		now := clock.Time(at)
		if at >= float64(total) {
			break
		}
		for len(notes) > 0 && notes[0].at <= now {
			s[notes[0].to].rp.Congestion(notes[0].at)
			notes = notes[1:]
		}
		// The queue empties at the line rate, then the packet joins it.
		queue = max(queue-(at-last)*l.line/8e9, 0)
		prob := l.mark(queue)
		if at >= half {
			m.queue += queue * (at - last)
			m.mark += prob
			packets++
			if int(packets)%16 == 0 {
				m.alpha += float64(from.rp.State().Alpha) / (1 << 32)
				alphas++
			}
		}
		queue += float64(l.packet)
		last = at
		if rng.Float64() < prob && from.np.Marked(now, l.p) {
			notes = append(notes, note{now.Add(l.delay), i})
		}
		rate := from.rp.Rate(now)
		from.rp.Sent(now, l.packet)
		from.next = at + bits*1e9/float64(rate)
	}
	m.queue /= half
	m.alpha /= alphas
	m.rate = packets * bits * 1e9 / half / float64(l.n)
	m.mark /= packets
	return m
}

// within reports whether got is want but for a share.
func within(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// renewal is R (bit/s) and alpha at a fixed probability of marks taken from CNP
// to CNP, for preset paper. With X the time between two CNPs,
//
//	P(X ≥ t) = 1 for t ≤ N, then (1-p)^(R t) if the marks of the window are
//	answered at its end, (1-p)^(R (t-N)) if they are forgotten
//
// and K = floor(X/T) increases in it. The gap R_T-R_C is alpha R/2 after a cut;
// each increase halves it, and from the F-th on adds R_AI first. R_T loses the
// gap there is at the next cut and gains R_AI E[(K-F)+]; at rest they are equal.
// alpha rests where rises equal falls: 1/(1 + E[floor(X/tau')]).
func (f fluid) renewal(p float64, forget bool) (rate, alpha float64) {
	lo, hi := 1e3, 1e8 // packets per second
	for range 100 {
		r := math.Sqrt(lo * hi)
		reach := func(t float64) float64 {
			if t <= f.tau {
				return 1
			}
			if forget {
				t -= f.tau
			}
			return math.Exp(r * t * math.Log1p(-p))
		}
		falls, lose, gain := 0.0, 0.0, 0.0
		for k := 1.0; k < 3000; k++ {
			falls += reach(k * f.tauP)
		}
		alpha = 1 / (1 + falls)
		for k := range 3000 {
			prob := reach(float64(k)*f.t) - reach(float64(k+1)*f.t)
			ai := max(float64(k)-f.f, 0)
			lose += prob * (alpha*r/2*math.Exp2(-float64(k)) + f.rAI*(1-math.Exp2(-ai)))
			gain += prob * f.rAI * ai
		}
		if lose < gain {
			lo = r
		} else {
			hi = r
		}
	}
	return lo * 8 * f.packet, alpha
}

// openLoop is what chance may do to the mean rate of 2.5 s: its standard
// deviation over seeds is 1.1 %.
const openLoop = 0.04

// With a fixed probability of marks the rate and alpha of the preset paper are
// the theorem's. That takes a notification point which answers the marks of a
// window at its end; one that forgets them lets the rate rise by a fifth, as the
// sum over CNPs says too.
func TestFixedPointOpenLoop(t *testing.T) {
	for _, rate := range []float64{5 * giga, 10 * giga, 20 * giga} {
		p := paper()
		f := fluidOf(&p, 1000)
		mark := f.mark(rate)
		l := loop{p: &p, line: 100 * giga, n: 1, packet: 1000, mark: func(float64) float64 { return mark }}
		for _, forget := range []bool{false, true} {
			p.NPWindow = !forget
			m := l.run(1, 5*time.Second)
			want, alpha := f.renewal(mark, forget)
			if !within(m.rate, want, openLoop) || !within(m.alpha, alpha, 0.02) {
				t.Errorf("p %.4f %%, forget %v: R %.2f Gb/s, want %.2f; alpha %.4f, want %.4f", 100*mark, forget, m.rate/giga, want/giga, m.alpha, alpha)
			}
			if forget {
				continue
			}
			if alpha := f.alpha(mark, rate/8/f.packet); !within(m.rate, rate, openLoop) || !within(m.alpha, alpha, 0.02) {
				t.Errorf("p %.4f %%: R %.2f Gb/s, theorem %.2f; alpha %.4f, theorem %.4f", 100*mark, m.rate/giga, rate/giga, m.alpha, alpha)
			}
		}
	}
}

// N reaction points behind one queue that marks as RED settle on the theorem's
// p*, alpha* and q*, for the preset paper and for the same numbers with the
// gate at the reaction point.
func TestFixedPointClosedLoop(t *testing.T) {
	gate := paper()
	gate.Notify, gate.MinTimeBetweenCNPs, gate.NPWindow = NotifyCNP, 0, false
	gate.RateReduceMonitorPeriod = 50 * time.Microsecond
	gate.AlphaUpdate, gate.AlphaBeforeCut = AlphaPeriodic, true
	preset := paper()
	for _, row := range []struct {
		c float64
		n int
	}{{40, 4}, {40, 8}, {25, 4}} {
		for _, p := range []*Params{&preset, &gate} {
			f := fluidOf(&preset, 1000)
			rate := row.c * giga / float64(row.n)
			mark := f.mark(rate)
			alpha, queue := f.alpha(mark, rate/8/f.packet), f.queue(mark)
			red := func(q float64) float64 { return min(max((q-f.kmin)/(f.kmax-f.kmin), 0), 1) * f.max }
			l := loop{p: p, line: row.c * giga, n: row.n, packet: 1000, delay: 4 * time.Microsecond, mark: red}
			m := l.run(1, 600*time.Millisecond)
			// The theorem puts means where chances are: it is good to some percent,
			// less so for the gate, whose windows the increase timer straddles.
			if !within(m.mark, mark, 0.1) || !within(m.alpha, alpha, 0.06) || !within(m.queue, queue, 0.12) || !within(m.rate, rate, 0.01) {
				t.Errorf("%vG N %d: p %.4f %%, theorem %.4f; alpha %.4f, %.4f; q %.1f KB, %.1f; R %.2f Gb/s, %.2f", row.c, row.n,
					100*m.mark, 100*mark, m.alpha, alpha, m.queue/1000, queue/1000, m.rate/giga, rate/giga)
			}
		}
	}
}
