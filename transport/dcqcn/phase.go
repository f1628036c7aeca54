package dcqcn

import (
	"fmt"
	"math"
)

// Phase is where a reaction point stands.
type Phase uint8

// The phases. PhaseOff is for whoever has no reaction point.
const (
	PhaseOff      Phase = iota
	PhaseLine           // R_C is the line rate: nothing limits the QP
	PhaseRecovery       // fast recovery: R_C goes half way to R_T
	PhaseAdditive       // R_T rises by R_AI
	PhaseHyper          // R_T rises by R_HAI
)

func (p Phase) String() string {
	switch p {
	case PhaseOff:
		return "off"
	case PhaseLine:
		return "line rate"
	case PhaseRecovery:
		return "fast recovery"
	case PhaseAdditive:
		return "additive increase"
	case PhaseHyper:
		return "hyper increase"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Phase says what an increase event does to an RP that is in state s on a line of
// that many bit/s, by the stages that it has counted.
func (p *Params) Phase(s *State, line uint64) Phase {
	if s.Rc >= line {
		return PhaseLine
	}
	switch kind, _ := p.classify(s.TimeStage, s.ByteStage, line); kind {
	case fastRecovery:
		return PhaseRecovery
	case hyper:
		return PhaseHyper
	default:
		return PhaseAdditive
	}
}

// FormatRate writes a rate in bit/s as knobs do: "40Gbps".
func FormatRate(bps uint64) string { return Knob{form: rate}.format(int64(min(bps, math.MaxInt64))) }

// ParseRate reads a rate: a bare number of Mb/s, or a number with kbps, Mbps or
// Gbps. The error says what is allowed; ok values are 1 bit/s to 1 Pb/s.
func ParseRate(text string) (uint64, error) {
	k := Knob{Name: "rate", form: rate, scale: mega, least: 1, most: maxRate}
	v, ok := k.parse(text)
	if !ok {
		return 0, fmt.Errorf("%q is not %s", text, k.wants())
	}
	if !k.allows(v) {
		return 0, fmt.Errorf("%s is not allowed: %s", k.format(v), k.Limits())
	}
	return uint64(v), nil
}
