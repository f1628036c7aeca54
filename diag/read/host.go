package read

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// Options say what of a host is read; the zero Options are all of it.
type Options struct {
	Devices     []string // only these devices, by name; none for all
	Exclude     []string // not these, not even a file of theirs
	NoResources bool     // no queue pairs, memory regions and so on, nor what only an opened device tells
	OwnCounts   bool     // of devices that processes of ours hold how many objects there are, no lists of them
	NoAttr      bool     // nothing that only an opened device tells
	Counters    bool     // only what is counted, and what names it: for those who look every second
	NoNetdevs   bool     // no network interfaces
	NoSystem    bool     // no routes, sysctl, firewall, modules and so on
	NoApp       bool     // no application and no switch
}

func (o Options) wants(device string) bool {
	if slices.Contains(o.Exclude, device) {
		return false
	}
	return len(o.Devices) == 0 || slices.Contains(o.Devices, device)
}

// Host reads a host. It never fails: what cannot be read is in Problems and in the
// values.
func Host(src source.Source, opt Options) *snapshot.Snapshot {
	r := &reader{src: src, opt: opt, snap: &snapshot.Snapshot{Version: snapshot.Version, Origin: snapshot.Live, Devices: []snapshot.Device{}}}
	if o, ok := src.(interface{ Origin() snapshot.Origin }); ok {
		r.snap.Origin = o.Origin()
	}
	r.meta()
	r.subsystem()
	r.devices()
	if !opt.NoNetdevs {
		r.netdevs()
	}
	if !opt.NoSystem {
		r.system()
	}
	if !opt.NoApp {
		r.app()
		if v, ok := ask[snapshot.Switch](r, source.QuerySwitch).Get(); ok {
			r.snap.Switch = &v
		}
	}
	r.relate()
	if r.dropped > 0 {
		r.snap.Problems = append(r.snap.Problems, snapshot.Problem{Place: "snapshot", Why: fmt.Sprintf("%d more problems are not listed", r.dropped)})
	}
	return r.snap
}

// Window reads the last two instants of a recording, or the only one.
func Window(rec *source.Recording, opt Options) (snapshot.Window, error) {
	n := rec.Times()
	if n == 0 {
		return snapshot.Window{}, errors.New("the recording has no instant")
	}
	w := snapshot.Window{After: Host(rec.At(n-1), opt)}
	if n > 1 {
		w.Before = Host(rec.At(n-2), opt)
	}
	return w, nil
}

func (r *reader) meta() {
	s := r.snap
	m, _ := ask[source.Meta](r, source.QueryMeta).Get()
	if len(m.Taken) > 0 {
		s.Taken = m.Taken[0].Round(time.Nanosecond).UTC() // without the monotonic reading
	}
	s.Host = value(r, "proc/sys/kernel/hostname", text)
	if s.Host.IsZero() && m.Host != "" {
		s.Host = snapshot.Known(clean(m.Host))
	}
	s.Uptime = value(r, "proc/uptime", seconds)
	if !r.opt.Counters {
		s.Kernel = value(r, "proc/sys/kernel/osrelease", text)
	}
}

func (r *reader) subsystem() {
	if r.opt.Counters {
		return
	}
	if v, ok := ask[snapshot.Subsystem](r, source.QuerySubsystem).Get(); ok {
		r.snap.RDMA = v
	}
	r.snap.Chardevs = ask[[]snapshot.Chardev](r, source.QueryChardevs)
}
