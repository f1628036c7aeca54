package play

import (
	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// fraction estimates how much of a run is done. It never goes back.
type fraction struct{ most float64 }

// of returns the share that is done, 0 to 1: of time where the run ends by it,
// else of the bytes of flows that are waited for, as far as they are known,
// but of the time of arrivals while more are to come.
func (f *fraction) of(run *fabric.Run) float64 {
	p := run.Progress()
	share := part(float64(p.Now), float64(p.Duration))
	if run.Scenario.Until == scenario.UntilFlows && p.Size > 0 {
		share = max(share, part(float64(p.Delivered), float64(p.Size)))
		if last := arrivals(run.Scenario); p.Now < last {
			share = part(float64(p.Now), float64(last))
		}
	}
	f.most = max(f.most, min(share, 1))
	return f.most
}

func part(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// arrivals is when the last flow begins that is waited for, as far as the
// scenario says.
func arrivals(sc *scenario.Scenario) sim.Time {
	last := sim.Time(0)
	for i := range sc.Workload {
		w := &sc.Workload[i]
		switch {
		case w.Endless:
		case w.Kind == scenario.Poisson && w.End > 0:
			last = max(last, w.End)
		case w.Kind == scenario.Poisson:
			last = max(last, sc.Duration)
		case w.Kind == scenario.Bursts && w.Count > 0:
			last = max(last, w.Start.Add(w.Every*sim.Time(w.Count-1)))
		}
	}
	return last
}
