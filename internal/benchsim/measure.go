package benchsim

import (
	"fmt"
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/result"
)

// Figures is what one run of a case gave.
type Figures struct {
	Case     string  `json:"case"`
	Hosts    int     `json:"hosts"`
	Flows    int     `json:"flows"`
	DataHops uint64  `json:"data_hops"`
	AckHops  uint64  `json:"ack_hops"` // of everything without user data
	Events   uint64  `json:"events"`
	Marks    uint64  `json:"marks"`
	CNPs     uint64  `json:"cnps"`   // notifications, as packets or in acknowledgements
	Pauses   int     `json:"pauses"` // XOFF and XON
	Drops    uint64  `json:"drops"`
	AckEvery int     `json:"ack_every"`
	Preset   string  `json:"dcqcn"`
	Micros   float64 `json:"simulated_us"`
	Digest   string  `json:"digest"`

	SetupSeconds  float64 `json:"setup_cpu_s"`
	RunSeconds    float64 `json:"run_cpu_s"`
	ResultSeconds float64 `json:"result_cpu_s"`
	// CPUSeconds is the processor time of the whole process, user and system.
	CPUSeconds  float64 `json:"cpu_s"`
	WallSeconds float64 `json:"wall_s"`
	// PeakBytes is the most memory that was resident; 0 where that is not known.
	PeakBytes uint64 `json:"peak_rss_bytes"`
	// Allocs is how often the run, without set-up and result, allocated.
	Allocs uint64 `json:"run_allocs"`
	GCs    uint32 `json:"gcs"`
}

// HopsPerSecond is the rate that goals are about.
func (f *Figures) HopsPerSecond() float64 { return float64(f.DataHops) / f.CPUSeconds }

// EventsPerSecond is the rate of events.
func (f *Figures) EventsPerSecond() float64 { return float64(f.Events) / f.CPUSeconds }

// Measure runs a case in this process. It fails if a flow does not finish or a
// rule that every run keeps does not hold. sets change the scenario.
func Measure(name string, sets ...string) (*Figures, error) {
	begin, cpu := time.Now(), processCPU()
	lap := func() float64 {
		was := cpu
		cpu = processCPU()
		return (cpu - was).Seconds()
	}
	sc, err := load(name, sets...)
	if err != nil {
		return nil, err
	}
	r, _, err := fabric.Load(sc, nil)
	if err != nil {
		return nil, err
	}
	f := &Figures{Case: name, Hosts: len(r.NICs), AckEvery: sc.Host.RDMA.AckEvery, Preset: sc.Host.DCQCN.Preset}
	f.SetupSeconds = lap()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := r.Finish(); err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	f.Allocs = after.Mallocs - before.Mallocs
	f.RunSeconds = lap()
	r.Release()
	runtime.GC() // what the run needed makes room for the result
	res := r.Result()
	if err := f.fill(res); err != nil {
		return nil, err
	}
	f.ResultSeconds = lap()
	f.WallSeconds = time.Since(begin).Seconds()
	runtime.ReadMemStats(&after)
	f.GCs = after.NumGC
	f.PeakBytes, f.CPUSeconds = peakRSS(), processCPU().Seconds()
	if f.CPUSeconds == 0 { // not known here
		f.CPUSeconds = f.WallSeconds
	}
	return f, nil
}

// fill takes what a result says, and refuses one that is not as it must be.
func (f *Figures) fill(res *result.Run) error {
	f.Flows, f.DataHops, f.AckHops, f.Events = len(res.Flows), res.DataHops, res.AckHops, res.Events
	f.Pauses, f.Micros, f.Digest = len(res.Pauses)+int(res.PausesCut), res.End.Micros(), fmt.Sprintf("%016x", res.Digest)
	f.Drops = uint64(len(res.Drops)) + res.DropsCut
	for i := range res.Flows {
		fl := &res.Flows[i]
		if fl.State != result.Finished {
			return fmt.Errorf("%s: flow %d is %v at %v: %s", f.Case, fl.ID, fl.State, res.End, fl.Status)
		}
		f.Marks += fl.Marks
		f.CNPs += fl.CNPs
	}
	for i := range res.Breaches {
		b := &res.Breaches[i]
		return fmt.Errorf("%s: %d rules did not hold, the first at %v: %s: %s", f.Case, len(res.Breaches), b.At, b.Rule, b.Detail)
	}
	return nil
}
