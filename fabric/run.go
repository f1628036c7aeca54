package fabric

import (
	"errors"

	"github.com/verbena-rdma/verbena/fabric/host"
	"github.com/verbena-rdma/verbena/fabric/port"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/swtch"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// Run is one simulation. It has one owner and no goroutine.
type Run struct {
	S           *sim.Sim
	Scenario    *scenario.Scenario
	Graph       *topo.Graph
	Routes      *topo.Routes
	NICs        []*host.NIC     // by endpoint
	Switches    []*swtch.Switch // by node; nil for hosts
	Ports       [][]*port.Port  // by node and port
	settings    []nodeSettings  // by node
	downLink    []bool          // by link
	nicMemory   host.Memory
	memory      swtch.Memory // of all switches
	subnets     []int32      // by endpoint
	common      common
	portConfigs []swtch.PortConfig // of the switch that is being made

	source work.Stream
	ahead  *work.Flow
	more   bool

	flows      []work.Flow
	state      []flowState
	out        []result.Flow
	lanes      map[*host.Conn]*lane
	shared     map[pairKey]*lane
	lossy      lossy
	pumps      []*lane
	unfinished int
	untilFlows bool

	pauses    []result.Pause
	pausesCut uint64
	drops     []result.Drop
	dropsCut  uint64
	dropCount [result.NumDropReasons]uint64
	steps     []step
	faultAt   []target // by fault of the scenario
	faultOn   []bool
	links     []result.LinkChange

	warnings  []string
	watchdogs []result.Storm
	reroutes  []result.RouteChange
	shape     result.Shape
	used      uint8 // priorities that traffic may be in

	watch   watch
	sampler sampler
	beside  int // events in the queue that only look
	over    bool
	why     string
	err     error
}

// The events of a run.
const (
	evStart uint64 = iota // a flow
	evFeed                // the next flow of the source
	evPump                // a lane has room
	evEnded               // a flow
	evFault
	evWatch
	evSample
	evEnd
	evShift = 8
)

// Handle implements sim.Handler.
func (r *Run) Handle(now sim.Time, arg uint64) {
	v := arg >> evShift
	switch arg & (1<<evShift - 1) {
	case evStart:
		r.start(now, int32(v))
	case evFeed:
		r.feed(now)
	case evPump:
		l := r.pumps[v]
		r.pumps[v] = nil
		if err := r.pump(now, l); err != nil {
			r.fail(err)
		}
	case evEnded:
		r.ended(now, int32(v))
	case evFault:
		r.fault(now, int(v))
	case evWatch:
		r.look(now)
	case evSample:
		r.sample(now)
	case evEnd:
		r.end(now, "duration")
	}
}

// slot finds a place for a lane in the list of those to be pumped.
func (r *Run) slot(l *lane) int {
	for i, p := range r.pumps {
		if p == nil {
			r.pumps[i] = l
			return i
		}
	}
	r.pumps = append(r.pumps, l)
	return len(r.pumps) - 1
}

// end stops the run.
func (r *Run) end(_ sim.Time, why string) {
	if !r.over {
		r.over, r.why = true, why
		r.S.Stop()
	}
}

// fail stops the run for a reason that makes its result worthless.
func (r *Run) fail(err error) {
	r.err = errors.Join(r.err, err)
	r.over, r.why = true, err.Error()
	r.S.Stop()
}

// Advance handles up to n events and reports whether the run is over.
func (r *Run) Advance(n uint64) (over bool, err error) {
	if r.over {
		return true, r.err
	}
	if !r.S.RunSome(sim.Never, n) && !r.over {
		r.end(r.S.Now(), r.quiet())
	}
	return r.over, r.err
}

// quiet says why nothing is left to happen.
func (r *Run) quiet() string {
	if r.unfinished > 0 {
		return "nothing left to happen, flows unfinished"
	}
	return r.done()
}

// done says that all flows have finished that have an end.
func (r *Run) done() string {
	for i := range r.flows {
		if r.flows[i].Endless && r.out[i].State != result.Finished {
			return "all flows finished that have an end"
		}
	}
	return "all flows finished"
}

// Finish runs to the end.
func (r *Run) Finish() error {
	for {
		over, err := r.Advance(1 << 20)
		if over || err != nil {
			return err
		}
	}
}

// Progress is how far a run has come.
type Progress struct {
	Now, Duration   sim.Time
	Events          uint64
	Flows, Finished int
	Delivered, Size int64 // bytes of the flows that have an end, as far as they are known
}

// Progress returns how far the run has come.
func (r *Run) Progress() Progress {
	p := Progress{Now: r.S.Now(), Duration: r.Scenario.Duration, Events: r.S.Events(), Flows: len(r.out)}
	for i := range r.out {
		f := &r.out[i]
		if f.State == result.Finished {
			p.Finished++
		}
		if !r.flows[i].Endless {
			p.Delivered += f.Delivered
			p.Size += f.Bytes
		}
	}
	return p
}

// Release lets go of what only a run that goes on needs, once it is over: before
// the result is made, for large runs.
func (r *Run) Release() {
	if r.over {
		r.S.Pool.Release()
	}
}
