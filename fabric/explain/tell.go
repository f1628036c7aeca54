package explain

import (
	"fmt"
	"strings"
)

// The sentences. Each file tell*.go renders findings and decides nothing but
// what is too much to print.

func (s *Story) sections() []section {
	return []section{
		s.tellVerdict(), s.tellAdvice(), s.tellDeadlocks(), s.tellStorms(), s.tellTrees(), s.tellVictims(), s.tellRates(),
		s.tellOutages(), s.tellLoss(), s.tellLossless(), s.tellHosts(), s.tellTiers(), s.tellFairness(), s.tellReadings(), s.tellWarnings(),
	}
}

// Line returns the verdict in one line.
func (s *Story) Line() string {
	v := &s.Verdict
	parts := []string{v.finished()}
	if s.Lossless.Verdict != NoClass {
		parts = append(parts, "lossless: "+s.Lossless.Verdict.String())
	}
	if v.Worst > 0 {
		parts = append(parts, "worst slowdown "+times(v.Worst))
	}
	return strings.Join(append(parts, s.mainCause()), "; ")
}

func (v *Verdict) finished() string {
	if v.Flows == 0 {
		return "no flows"
	}
	what := fmt.Sprintf("%s of %s finished", count(uint64(v.Finished)), plural(v.Flows, "flow"))
	if v.Finished == v.Flows {
		what = fmt.Sprintf("all %s finished in %s", plural(v.Flows, "flow"), when(v.Last))
		if v.Flows == 1 {
			what = "the flow finished in " + when(v.Last)
		}
	}
	if v.Failed > 0 {
		what += fmt.Sprintf(", %s failed", count(uint64(v.Failed)))
	}
	if v.Finished < v.Flows {
		what += " by " + when(v.End)
	}
	if v.Interrupted && (v.Why == "" || v.Why == "interrupted") {
		what += " (interrupted)"
	}
	return what
}

// mainCause names the main cause in half a sentence.
func (s *Story) mainCause() string {
	v := &s.Verdict
	at := v.At.Name
	switch v.Main {
	case AllWell:
		if v.Flows == 0 {
			return "nothing to explain"
		}
		if s.Loss != nil && s.Loss.Drops > 0 {
			return "nothing was slow, though " + verb(int(s.Loss.Drops), "packet was lost", "packets were lost")
		}
		return "nothing was slow"
	case BrokenRule:
		return "a rule of the simulator did not hold: do not trust this run"
	case MainDeadlock:
		return fmt.Sprintf("deadlock of %s, through %s", plural(len(s.Deadlocks[0].Cycle), "egress"), at)
	case MainStorm:
		return "pause storm from " + at
	case MainMisfit:
		return fmt.Sprintf("RDMA of priority %d is in priority %d at %s", s.Loss.Misfits[0].Want, s.Loss.Misfits[0].Got, at)
	case MainDeaf:
		return "PFC is off at " + at
	case MainUnroutable:
		return "packets that cannot pass are dropped at " + at
	case MainOverflow:
		return "packets of a lossless class were dropped at " + at
	case MainLoss:
		return "packets were lost at " + or(at, "several places") + s.lossReason()
	case MainLinkDown:
		return "the link at " + at + " was down"
	case MainReceiver:
		return "slow receiver " + at
	case MainFalseMarks:
		h := s.falseMarks()
		return fmt.Sprintf("Kmin %s at %s is below bursts of %s", size(h.At.KMin), at, size(h.Burst.Bytes))
	case MainSpread:
		return fmt.Sprintf("%s at %s spread to %s elsewhere", s.spreadKind(), at, plural(s.Spreading.Count, "flow"))
	case MainHeld:
		return "DCQCN holds " + plural(s.Rates.HeldCount, "flow") + " below the fair share" + ofMarks(at)
	case MainPause:
		return s.Trees[0].Cause.Kind.String() + " at " + at
	case MainECMP:
		if s.polarised() {
			return "ECMP is polarised at " + at
		}
		return "ECMP put several flows on " + at
	case MainSender:
		return "the NIC of " + at + " is the limit"
	case MainUnfair:
		return "unequal shares of " + at
	case MainContention:
		c := &v.Crowd
		if c.Senders > 1 && c.Ratio > 1 {
			return fmt.Sprintf("%s from %s share %s, %s its %s: no more is possible", plural(c.Flows, "flow"), plural(c.Senders, "host"), at, times(c.Ratio), speed(c.Rate))
		}
		return "flows share " + at + ", as they must"
	case Unexplained:
	}
	return "nothing in the result explains why it was slow"
}

// spreadKind is the kind of the root that the worst victim waited for.
func (s *Story) spreadKind() string {
	for i := range s.Trees {
		if t := &s.Trees[i]; t.root == s.Spreading.Victims[0].rootKey && t.Cause.Kind != Unknown {
			return t.Cause.Kind.String()
		}
	}
	return "congestion"
}

func (s *Story) lossReason() string {
	for i := range s.Loss.Places {
		if p := &s.Loss.Places[i]; p.At == s.Verdict.At && p.Count > p.TCP {
			return " (" + p.Reason.String() + ")"
		}
	}
	return ""
}

func (s *Story) polarised() bool {
	i := s.costlyTier()
	return i >= 0 && s.Tiers[i].Polarised
}

func or(s, other string) string {
	if s == "" || s == "?" {
		return other
	}
	return s
}

func ofMarks(at string) string {
	if or(at, "") == "" {
		return ""
	}
	return ", marks at " + at
}

func (s *Story) tellVerdict() section {
	sec := section{title: "VERDICT"}
	sec.say("%s.", upper(s.Line()))
	v := &s.Verdict
	if v.Worst >= slowSlowdown {
		sec.say("Slowest: %s, %s its time on an idle network (median of all %s).", v.WorstFlow, times(v.Worst), times(v.Median))
	}
	if v.Running > 0 || v.Waiting > 0 {
		text := ""
		if v.Running > 0 {
			text = plural(v.Running, "flow") + " still running"
			for i, q := range v.Silent {
				sep := ", "
				if i == 0 {
					sep = ": "
				}
				text += fmt.Sprintf("%s%s (%d)", sep, q.Why, q.Flows)
			}
		}
		if v.Waiting > 0 {
			if text != "" {
				text += "; "
			}
			text += plural(v.Waiting, "flow") + " not started"
		}
		sec.say("%s. The run ended: %s.", upper(text), or(v.Why, "not said why"))
	}
	for i, b := range s.Breaches {
		if i == maxLossPlaces {
			sec.item("and %d more", len(s.Breaches)-i)
			break
		}
		sec.item("broken rule: %s", b)
	}
	return sec
}

func (s *Story) tellWarnings() section {
	sec := section{title: "THE SCENARIO WARNED"}
	for _, w := range s.Warnings {
		sec.item("%s", w)
	}
	return sec
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

func (s *Story) tellAdvice() section {
	sec := section{title: "WHAT TO CHANGE FIRST"}
	for i, a := range s.Advice {
		text := fmt.Sprintf("%s. Why: %s.", upper(a.Do), a.Because)
		if a.Costs != "" {
			text += fmt.Sprintf(" Its price: %s.", a.Costs)
		}
		sec.paras = append(sec.paras, para{mark: fmt.Sprintf("%d. ", i+1), text: text})
	}
	return sec
}

func (s *Story) tellReadings() section {
	sec := section{title: "COUNTERS THAT SHOW IT"}
	for _, r := range s.Readings {
		value := count(r.Value)
		if r.Says == "us" {
			sec.item("%s %s = %s us", r.At, r.Name, value)
			continue
		}
		sec.item("%s %s = %s: %s", r.At, r.Name, value, r.Says)
	}
	return sec
}
