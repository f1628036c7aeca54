package play

import (
	"context"
	"io"
	"runtime"
	"time"

	"github.com/verbena-rdma/verbena/fabric"
	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/topo"
)

// Options of a run. The zero value runs quietly.
type Options struct {
	Bar  *Bar              // shows progress; nil: none
	Warn func(text string) // is told what is unwise before the run begins; may be nil
	// Captures opens the file of a port that the scenario's record.pcap names;
	// nil: nothing is captured. The caller closes the files.
	Captures func(port string) (io.Writer, error)
	Headers  bool // captured frames are cut behind their headers
	// Share is called now and then with how much of the run is done, 0 to 1;
	// may be nil.
	Share func(done float64)
}

// Outcome is a run that has ended, or was stopped.
type Outcome struct {
	Reading  *Reading
	Graph    *topo.Graph
	Result   *result.Run
	Warnings []string
	Checks   []Check // of the expectations; none where the run was stopped
	Stopped  bool    // by the context: the result is that of a part
	Frames   uint64  // captured
	Missed   uint64  // not captured: record.pcap_packets

	story *explain.Story // of Result, once it is asked for
}

// Story returns why the run went as it did.
func (o *Outcome) Story() *explain.Story {
	if o.story == nil {
		o.story = explain.Explain(o.Result)
	}
	return o.story
}

// chunk is how many events happen between two looks at the context: some
// milliseconds.
const chunk = 1 << 14

// Load composes the run, and lists what is unwise about it.
func (r *Reading) Load(files *Files) (*fabric.Run, []string, error) {
	run, list, err := fabric.Load(r.Scenario, files.Open)
	warnings := r.warnings(list)
	return run, warnings, r.unplaced(err)
}

// Run runs the scenario until it ends or the context does: then the outcome is
// that of the part that has happened. The error is one of the scenario, of a
// capture, or of the simulator.
func (r *Reading) Run(ctx context.Context, files *Files, o Options) (*Outcome, error) {
	run, warnings, err := r.Load(files)
	if o.Warn != nil {
		for _, w := range warnings {
			o.Warn(w)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.Play(ctx, run, warnings, o)
}

// Play lets a run that Load has composed happen.
func (r *Reading) Play(ctx context.Context, run *fabric.Run, warnings []string, o Options) (out *Outcome, err error) {
	var capture *fabric.Capture
	if o.Captures != nil {
		if capture, err = run.Capture(o.Captures, fabric.CaptureOptions{Full: !o.Headers}); err != nil {
			return nil, err
		}
	}
	out = &Outcome{Reading: r, Graph: run.Graph, Warnings: warnings}
	if out.Stopped, err = advance(ctx, run, o); err != nil {
		return nil, err
	}
	if capture != nil {
		if err := capture.Flush(); err != nil {
			return nil, err
		}
		out.Frames, out.Missed = capture.Packets()
	}
	run.Release()
	runtime.GC() // what the run needed makes room for the result
	res := run.Result()
	res.Name, res.Source, res.Warnings = r.Name, string(r.YAML()), warnings
	if out.Stopped {
		res.Interrupted, res.Why = true, "interrupted"
	} else {
		out.Checks = checks(res, r.Expect)
	}
	out.Result = res
	return out, nil
}

// advance lets the run happen, piece by piece.
func advance(ctx context.Context, run *fabric.Run, o Options) (stopped bool, err error) {
	var done fraction
	look := time.Time{}
	o.Bar.begin(run.Scenario.Name)
	defer o.Bar.end()
	for {
		if ctx.Err() != nil {
			return true, nil
		}
		over, err := run.Advance(chunk)
		if over || err != nil {
			return false, err
		}
		if o.Bar == nil && o.Share == nil {
			continue
		}
		if now := time.Now(); now.Sub(look) >= refresh {
			look = now
			share := done.of(run)
			o.Bar.show(now, run, share)
			if o.Share != nil {
				o.Share(share)
			}
		}
	}
}
