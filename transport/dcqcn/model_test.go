package dcqcn

import (
	"math/big"

	"github.com/verbena-rdma/verbena/clock"
)

// model is the RP as its definition reads, slow and obvious: every timer is an
// event of its own, one after the other, and products are exact. Where it
// differs from what RP computes, RP is wrong.
type model struct {
	p    *Params
	line uint64

	rc, rt, alpha    uint64
	alphaAt, checkAt clock.Time // alpha's timer; the end of the monitor period
	timerAt          clock.Time // the increase timer
	cnp, cnpForAlpha bool       // seen in this monitor period, in this alpha period
	started          bool
	bytes, interval  uint64
	time, byte       uint64
	st               State // its counters only
}

func newModel(p *Params, line uint64) *model {
	m := &model{p: p, line: line, rc: line, rt: line, alphaAt: clock.Never, checkAt: clock.Never, timerAt: clock.Never}
	m.alpha = uint64(p.InitialAlphaValue) << p.AlphaBits / 1024
	if p.AlphaBits < 32 && m.alpha == 1<<p.AlphaBits {
		m.alpha--
	}
	return m
}

func (m *model) advance(now clock.Time) {
	for {
		at := min(m.timerAt, m.alphaAt, m.checkAt)
		if at > now || at == clock.Never {
			return
		}
		switch {
		case m.timerAt == at:
			m.timerAt = at + clock.Time(m.p.RPGTimeReset)
			if m.increase(&m.time) && m.p.HyperHalves && m.timerAt != clock.Never {
				m.timerAt = at + clock.Time(m.p.RPGTimeReset/2)
			}
		case m.alphaAt == at && (m.checkAt != at || m.p.AlphaBeforeCut):
			m.alphaAt = at + clock.Time(m.p.DCETCPRTT)
			m.updateAlpha(m.cnpForAlpha && m.p.AlphaUpdate == AlphaPeriodic)
			m.cnpForAlpha = false
		default:
			m.checkAt = at + clock.Time(m.p.RateReduceMonitorPeriod)
			if m.cnp {
				m.cnp = false
				m.cut(at)
			}
		}
	}
}

// updateAlpha is (1-g)·alpha rounded down, or (1-g)·alpha + g rounded up.
func (m *model) updateAlpha(up bool) {
	g := big.NewRat(int64(m.p.DCETCPG.Num), int64(m.p.DCETCPG.Den))
	one := big.NewRat(1, 1)
	a := new(big.Rat).SetFrac(new(big.Int).SetUint64(m.alpha), new(big.Int).Lsh(big.NewInt(1), uint(m.p.AlphaBits)))
	a.Mul(a, one.Sub(one, g))
	if up {
		a.Add(a, g)
	}
	num := new(big.Int).Lsh(a.Num(), uint(m.p.AlphaBits))
	quo, rem := new(big.Int).QuoRem(num, a.Denom(), new(big.Int))
	m.alpha = quo.Uint64()
	if up && rem.Sign() != 0 {
		m.alpha++
	}
	if m.p.AlphaBits < 32 && m.alpha == 1<<m.p.AlphaBits {
		m.alpha--
	}
}

func (m *model) congestion(now clock.Time) {
	m.advance(now)
	m.cnpForAlpha = m.started
	if !m.started {
		m.started = true
		m.alphaAt = now + clock.Time(m.p.DCETCPRTT)
		if m.p.RateReduceMonitorPeriod > 0 {
			m.checkAt = now + clock.Time(m.p.RateReduceMonitorPeriod)
		}
		if set := m.p.RateToSetOnFirstCNP; set != 0 {
			m.rc = max(min(set, m.line), m.floor())
			m.rt = m.rc
			m.restart(now)
		}
	}
	gated := m.p.RateReduceMonitorPeriod > 0
	m.cnp = gated
	if !gated && !m.p.AlphaBeforeCut {
		m.cut(now)
	}
	if m.p.AlphaUpdate == AlphaOnCNP {
		m.updateAlpha(true)
		m.alphaAt = now + clock.Time(m.p.DCETCPRTT)
	}
	if !gated && m.p.AlphaBeforeCut {
		m.cut(now)
	}
}

func (m *model) floor() uint64 {
	f := m.p.RPGMinRate
	if m.p.MinRateDiv != 0 {
		f = m.line / uint64(m.p.MinRateDiv)
	}
	return max(1, min(f, m.line))
}

func (m *model) cut(now clock.Time) {
	p := m.p
	clamp := p.ClampTgtRate
	if !clamp {
		clamp = m.byte > 0 || p.ClampTgtRateAfterTimeInc && m.time > 0
	}
	if clamp {
		if m.rt != m.rc {
			m.st.Clamps++
		}
		m.rt = m.rc
	}
	rc := new(big.Int).SetUint64(m.rc)
	byAlpha := new(big.Int).Mul(rc, new(big.Int).SetUint64(m.alpha))
	byAlpha.Mul(byAlpha, big.NewInt(1024))
	byAlpha.Rsh(byAlpha, uint(p.AlphaBits)+uint(p.RPGGd))
	most := new(big.Int).Mul(rc, big.NewInt(100-int64(p.RPGMinDecFac)))
	most.Quo(most, big.NewInt(100))
	if byAlpha.Cmp(most) > 0 {
		byAlpha = most
	}
	m.rc = max(m.rc-byAlpha.Uint64(), m.floor())
	m.st.Cuts++
	m.restart(now)
}

func (m *model) restart(now clock.Time) {
	m.time, m.byte, m.bytes, m.interval = 0, 0, 0, m.p.RPGByteReset
	m.timerAt = clock.Never
	if m.p.RPGTimeReset > 0 && m.rc < m.line {
		m.timerAt = now + clock.Time(m.p.RPGTimeReset)
	}
}

func (m *model) sent(now clock.Time, bytes int) {
	m.advance(now)
	if m.p.RPGByteReset == 0 || m.rc == m.line {
		return
	}
	if m.interval == 0 {
		m.interval = m.p.RPGByteReset
	}
	m.bytes += uint64(bytes)
	for m.rc < m.line && m.bytes >= m.interval {
		m.bytes -= m.interval
		m.interval = m.p.RPGByteReset
		if m.increase(&m.byte) && m.p.HyperHalves {
			m.interval /= 2
		}
	}
}

// increase is one event of the counter with that stage; true in hyper increase.
func (m *model) increase(stage *uint64) bool {
	p := m.p
	t, b := m.time, m.byte
	*stage++
	if !p.StageBeforeEvent {
		t, b = m.time, m.byte
	}
	f := uint64(p.RPGThreshold)
	first := f + 1 // stage of hyper increase
	if p.HyperAtThreshold {
		first = f
	}
	lowest := min(t, b)
	if p.HyperByTimer {
		lowest = t
	}
	step := new(big.Int)
	inHyper := false
	switch {
	case t < f && b < f:
		m.st.Recoveries++
	case lowest >= first:
		m.st.Hyper++
		inHyper = true
		step.SetUint64(p.RPGHAIRate)
		if p.HAIRateDiv != 0 {
			step.SetUint64(m.line / uint64(p.HAIRateDiv))
		}
		if p.HyperScaled {
			step.Mul(step, new(big.Int).SetUint64(lowest-first+1))
		}
	default:
		m.st.Additive++
		step.SetUint64(p.RPGAIRate)
		if p.AIRateDiv != 0 {
			step.SetUint64(m.line / uint64(p.AIRateDiv))
		}
	}
	if p.ExtraFastRecovery && (m.time == 1 || m.byte == 1) && m.rt > 10*m.rc {
		m.rt /= 8
	} else {
		step.Add(step, new(big.Int).SetUint64(m.rt))
		m.rt = m.line
		if step.Cmp(new(big.Int).SetUint64(m.line)) < 0 {
			m.rt = step.Uint64()
		}
	}
	m.rc = (m.rc + m.rt + 1) / 2
	if m.rc == m.line || p.RPGMaxRate != 0 && m.rc >= p.RPGMaxRate {
		m.rc, m.rt, m.timerAt = m.line, m.line, clock.Never
	}
	return inHyper
}

func (m *model) state() State {
	s := m.st
	s.Rc, s.Rt, s.Alpha = m.rc, m.rt, m.alpha<<(32-m.p.AlphaBits)
	s.TimeStage, s.ByteStage = uint32(m.time), uint32(m.byte)
	return s
}
