package monitor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Bounds of what a host is shown with.
const (
	maxEvents   = 200
	maxFindings = 100
	maxUnread   = 20
	maxWhy      = 300 // bytes
)

// Event is a finding that came or went.
type Event struct {
	At     int64  `json:"t"` // ms since 1970
	Rule   string `json:"rule"`
	Status string `json:"status"`
	Where  string `json:"where"`
	Title  string `json:"title"`
	Gone   bool   `json:"gone,omitempty"`
}

// watch is one host with what is known of it.
type watch struct {
	host Host
	cfg  *Config

	last, full *snapshot.Snapshot // of run's goroutine

	mu       sync.Mutex
	ring     *ring
	report   *doctor.Report
	judged   time.Time
	events   []Event
	firing   map[string]Event
	devices  int
	ports    map[string]string // what ports are, by the names that series have
	problems int
	unread   []Unread // the first of the problems
	origin   snapshot.Origin
	hostname string
	note     string // why there are no plots, for people
	bare     bool   // the host was looked at and has no RDMA device
}

// Unread is a place that could not be read.
type Unread struct {
	Place string `json:"place"`
	Why   string `json:"why"`
}

func newWatch(h Host, cfg *Config) *watch {
	w := &watch{host: h, cfg: cfg, ring: newRing(Samples), firing: map[string]Event{}, origin: snapshot.Live}
	if h.Past != nil {
		w.origin, w.note = snapshot.Recorded, "the recording is being read"
	}
	return w
}

func (w *watch) run(ctx context.Context) {
	if w.host.Past != nil {
		w.replay(ctx)
		return
	}
	tick := time.NewTicker(w.cfg.Every)
	defer tick.Stop()
	var next time.Time
	for {
		w.look(w.host.Look())
		if now := time.Now(); !now.Before(next) {
			next = now.Add(w.cfg.Examine)
			full := w.host.Look
			if w.host.Full != nil {
				full = w.host.Full
			}
			w.examine(full())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// replay reads a recording once, its last instants.
func (w *watch) replay(ctx context.Context) {
	first := max(0, w.host.Times-Samples-1)
	for i := first; i < w.host.Times; i++ {
		if ctx.Err() != nil {
			return
		}
		s := w.host.Past(i)
		w.look(s)
		if w.full == nil || i == w.host.Times-1 || s.Taken.Sub(w.full.Taken) >= w.cfg.Examine {
			w.examine(s)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var notes []string
	switch {
	case w.host.Times < 2:
		notes = append(notes, "the recording has one instant: there are no rates")
	case w.ring.seq == 0:
		notes = append(notes, "the recording does not say when its instants were: there are no rates")
	}
	switch {
	case w.devices > 0 || w.last == nil:
	case w.last.Switch != nil:
		notes = append(notes, "a switch: PFC frames by port are plotted, the rest of its counters is in the findings")
	default:
		notes = append(notes, "there is no RDMA device in the recording")
	}
	w.note = strings.Join(notes, "; ")
}

// look takes the next reading of the counters.
func (w *watch) look(s *snapshot.Snapshot) {
	var points []point
	seconds := 0.0
	if w.last != nil {
		window := snapshot.Window{Before: w.last, After: s}
		seconds = window.Length().Seconds()
		if seconds > 0 && !window.Restarted() {
			points = rates(w.last, s, seconds)
		}
	}
	w.last = s
	ports := about(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	if seconds > 0 {
		w.ring.push(s.Taken.UnixMilli(), points)
	}
	w.ports = ports
	w.devices, w.problems, w.hostname = len(s.Devices), len(s.Problems), s.Host.Or("")
	if s.Origin != "" {
		w.origin = s.Origin
	}
}

// examine lets the doctor look at the window since it last did.
func (w *watch) examine(s *snapshot.Snapshot) {
	window := snapshot.Window{Before: w.full, After: s}
	w.full = s
	r := doctor.Examine(doctor.Input{Host: window, Prio: -1}, w.cfg.Rules)
	if len(r.Findings) > maxFindings {
		r.Findings = r.Findings[:maxFindings]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report, w.judged = r, s.Taken
	w.explain(s)
	now := map[string]Event{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Status == doctor.Info {
			continue
		}
		for _, place := range f.Places[:min(len(f.Places), maxFindings)] {
			e := Event{At: s.Taken.UnixMilli(), Rule: f.Rule, Status: string(f.Status), Where: place, Title: f.Title}
			key := f.Rule + " " + place
			if was, ok := w.firing[key]; ok {
				e.At = was.At
			} else {
				w.events = append(w.events, e)
			}
			now[key] = e
		}
	}
	for key, e := range w.firing {
		if _, still := now[key]; !still {
			e.At, e.Gone = s.Taken.UnixMilli(), true
			w.events = append(w.events, e)
		}
	}
	w.firing = now
	if n := len(w.events) - maxEvents; n > 0 {
		w.events = slices.Delete(w.events, 0, n)
	}
}

// explain says what could not be read, and whether there is anything to plot.
func (w *watch) explain(s *snapshot.Snapshot) {
	w.bare = w.host.Past == nil && len(s.Devices) == 0
	w.unread = nil
	for _, p := range s.Problems[:min(len(s.Problems), maxUnread)] {
		w.unread = append(w.unread, Unread{short(p.Place), short(p.Why)})
	}
}

// short cuts what a host says.
func short(s string) string {
	if len(s) > maxWhy {
		return strings.ToValidUTF8(s[:maxWhy], "") + "…"
	}
	return s
}

// about says what the ports of a host are: who holds them, or whose they are and how fast.
func about(s *snapshot.Snapshot) map[string]string {
	all := map[string]string{}
	for i, label := range s.Labels() {
		d := &s.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			if len(all) >= MaxSeries {
				return all
			}
			var words []string
			if d.PID != 0 {
				words = append(words, fmt.Sprintf("%s (%d)", d.Comm, d.PID))
			}
			for _, word := range []string{d.Driver.Or(""), p.Netdev.Or(""), p.Rate.Or("")} {
				if word != "" && d.PID == 0 {
					words = append(words, word)
				}
			}
			if len(words) > 0 {
				all[label+"/"+strconv.Itoa(p.Number)] = short(strings.Join(words, ", "))
			}
		}
	}
	return all
}
