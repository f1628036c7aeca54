package probe

import (
	"testing"
	"time"
)

// A rate is judged by trains that their sender sent quickly enough; others say
// nothing, neither for nor against a limit.
func TestRateOfTrains(t *testing.T) {
	const packets, size = 32, 1088
	train := func(own, span time.Duration, lost int) []trial {
		var out []trial
		for i := range packets {
			x := trial{probe: Probe{Size: size}, sent: Sent{At: int64(i) * int64(own) / (packets - 1)}}
			if i < packets-lost {
				x.seen = &Sighting{At: int64(i) * int64(span) / int64(packets-lost-1)}
			}
			out = append(out, x)
		}
		return out
	}
	const ms = time.Millisecond
	// stalled is a train that is quick but for one gap: the receiver stood.
	stalled := train(ms/2, ms, 0)
	for i := packets / 2; i < packets; i++ {
		stalled[i].seen.At += int64(60 * ms)
	}
	quick, slow, unsure := train(ms/2, ms, 0), train(ms/2, 60*ms, 0), train(40*ms, 60*ms, 0)
	for name, c := range map[string]struct {
		trains  [][]trial
		limited bool
	}{
		"none":                        {nil, false},
		"quick":                       {[][]trial{quick, quick, quick}, false},
		"slow":                        {[][]trial{slow, slow, slow}, true},
		"the receiver stood":          {[][]trial{stalled, stalled, stalled}, false},
		"once quick":                  {[][]trial{slow, slow, quick}, false},
		"the sender was slow once":    {[][]trial{slow, unsure, slow}, true},
		"the sender was slow":         {[][]trial{unsure, unsure, unsure, unsure, unsure}, false},
		"only one says so":            {[][]trial{unsure, slow, unsure}, false},
		"hardly any packets arrive":   {[][]trial{train(ms/2, 60*ms, packets-3), train(ms/2, 60*ms, packets-3)}, false},
		"no packet, or one, arrives":  {[][]trial{train(ms/2, 60*ms, packets-2)[:1], nil}, false},
		"slow, and some are lost too": {[][]trial{train(ms/2, 60*ms, 10), train(ms/2, 60*ms, 10)}, true},
	} {
		var d Direction
		d.burst(&record{trains: c.trains}, packets, (*trial).passed)
		if d.Burst.Limited != c.limited {
			t.Errorf("%s: limited %v, rate %d", name, d.Burst.Limited, d.Burst.Rate)
		}
	}
	// 31 packets of 1088 bytes in 60 ms.
	if got := speedOf(slow).bps; got < 4_490_000 || got > 4_500_000 {
		t.Errorf("%d bit/s", got)
	}
	if speedOf(unsure).told || !speedOf(quick).told || !speedOf(slow).told {
		t.Error("which trains tell")
	}
}
