package monitor

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

//go:embed web
var web embed.FS

// policy lets the page load nothing but itself: no other host, no script or style in
// line, no frame around it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hostInfo is a host in the answer to /api/hosts.
type hostInfo struct {
	Name   string          `json:"name"`
	Origin snapshot.Origin `json:"origin"`
	Fail   int             `json:"fail"` // findings of the doctor's last look
	Warn   int             `json:"warn"`
}

// answer is the answer to /api/data.
type answer struct {
	Host     string          `json:"host"`
	Hostname string          `json:"hostname,omitempty"`
	Origin   snapshot.Origin `json:"origin"`
	Began    int64           `json:"began"` // of this monitor, ms since 1970: another one has other counts
	Seq      uint64          `json:"seq"`   // for since= of the next question
	EveryMs  int64           `json:"every_ms"`
	Devices  int             `json:"devices"`
	// Ports says what the devices of the series are, where anything is known.
	Ports    map[string]string `json:"ports,omitempty"`
	Bare     bool              `json:"bare,omitempty"` // a live host without a device
	Problems int               `json:"problems"`       // places that could not be read
	Unread   []Unread          `json:"unread,omitempty"`
	LeftOut  int               `json:"series_left_out,omitempty"`
	Note     string            `json:"note,omitempty"`

	Times  []int64  `json:"times"` // ms since 1970
	Series []series `json:"series"`

	Judged   int64            `json:"judged,omitempty"` // ms since 1970, 0 before the doctor has looked
	Window   float64          `json:"window_seconds"`
	Findings []doctor.Finding `json:"findings"`
	Passed   int              `json:"passed"`
	Skipped  int              `json:"skipped"`
	Events   []Event          `json:"events"`
}

// Handler serves the page and its data to any number of viewers. It answers GET only
// and changes nothing.
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /api/hosts", func(w http.ResponseWriter, _ *http.Request) { send(w, m.hosts()) })
	mux.HandleFunc("GET /api/data", m.data)
	mux.HandleFunc("GET /{file...}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		if name == "" {
			name = "index.html"
		}
		kind, ok := kinds[path.Ext(name)]
		b, err := fs.ReadFile(files, name)
		if !ok || err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(b)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// kinds are the files of the page.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
}

func (m *Monitor) hosts() []hostInfo {
	all := make([]hostInfo, 0, len(m.order))
	for _, w := range m.order {
		w.mu.Lock()
		h := hostInfo{Name: w.host.Name, Origin: w.origin}
		if w.report != nil {
			for i := range w.report.Findings {
				switch w.report.Findings[i].Status {
				case doctor.Fail:
					h.Fail++
				case doctor.Warn:
					h.Warn++
				case doctor.Info, doctor.Skip, doctor.Pass:
				}
			}
		}
		w.mu.Unlock()
		all = append(all, h)
	}
	return all
}

func (m *Monitor) data(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	host, ok := m.by[q.Get("host")]
	if !ok {
		http.Error(w, fmt.Sprintf("no host %.80q; /api/hosts lists them", q.Get("host")), http.StatusNotFound)
		return
	}
	since := uint64(0)
	if s := q.Get("since"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			http.Error(w, fmt.Sprintf("since=%.40q is no number", s), http.StatusBadRequest)
			return
		}
		since = n
	}
	send(w, host.answer(since))
}

func (w *watch) answer(since uint64) *answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &answer{
		Host: w.host.Name, Hostname: w.hostname, Origin: w.origin, Began: w.cfg.began, Seq: w.ring.seq, EveryMs: w.cfg.Every.Milliseconds(),
		Devices: w.devices, Ports: w.ports, Bare: w.bare, Problems: w.problems, Unread: w.unread, LeftOut: w.ring.left, Note: w.note,
		Findings: []doctor.Finding{}, Events: append([]Event{}, w.events...),
	}
	a.Times, a.Series = w.ring.since(since)
	if r := w.report; r != nil {
		a.Judged, a.Window = w.judged.UnixMilli(), r.Seconds
		a.Findings = append(a.Findings, r.Findings...) // a report is not changed once it is there
		a.Passed, a.Skipped = len(r.Passed), len(r.Skipped)
	}
	return a
}

// send writes JSON. An error means that the viewer has gone.
func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
