package export

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of the HTTP handler.
const (
	maxInFlight   = 4                // scrapes at a time; more are answered 503
	scrapeTimeout = 20 * time.Second // then 503; a host's firmware may be slow
)

// contentType is that of the text format.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler answers GET /metrics, /healthz and, with a line of help, /. Nothing else: no
// method that changes anything, no profile.
func Handler(c *Collector) http.Handler {
	s := &server{collector: c, slots: make(chan struct{}, maxInFlight), timeout: scrapeTimeout}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Verbena exporter: RDMA metrics for Prometheus are at /metrics.")
	})
	return mux
}

// Text writes what one scrape of a collector answers.
func Text(c *Collector, w io.Writer) error {
	_, err := w.Write(c.Append(nil))
	return err
}

// server answers scrapes.
type server struct {
	collector *Collector
	slots     chan struct{}
	timeout   time.Duration
	zips      sync.Pool // of *gzip.Writer
	texts     sync.Pool // of *[]byte
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
	default:
		http.Error(w, fmt.Sprintf("%d scrapes are under way, which is the limit.", maxInFlight), http.StatusServiceUnavailable)
		return
	}
	made := make(chan *[]byte, 1)
	go func() { // which may outlast the request
		b, ok := s.texts.Get().(*[]byte)
		if !ok {
			b = new([]byte)
		}
		*b = s.collector.Append((*b)[:0])
		made <- b
	}()
	late := time.NewTimer(s.timeout)
	defer late.Stop()
	select {
	case b := <-made: // also for a client that has ended its side of the connection
		s.write(w, r, *b)
		s.texts.Put(b)
		<-s.slots // not before a slow reader has read: so many texts are held
	case <-late.C:
		go func() { <-made; <-s.slots }()
		http.Error(w, fmt.Sprintf("Reading the host takes more than %v.", s.timeout), http.StatusServiceUnavailable)
	}
}

// write sends the text.
func (s *server) write(w http.ResponseWriter, r *http.Request, text []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	if !compressed(r) {
		h.Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text) // that the client has gone is its own affair
		return
	}
	h.Set("Content-Encoding", "gzip")
	z, ok := s.zips.Get().(*gzip.Writer)
	if !ok {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // a level that there is
	}
	defer s.zips.Put(z)
	z.Reset(w)
	_, _ = z.Write(text)
	_ = z.Close()
}

// compressed reports whether the answer is to be compressed: not for this host itself,
// whose processor that costs while it saves nobody a network.
func compressed(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err == nil && from.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, field := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(field, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
			name, weight = strings.TrimSpace(name), strings.ReplaceAll(weight, " ", "")
			if strings.EqualFold(name, "gzip") && strings.Trim(weight, "0.") != "q=" {
				return true
			}
		}
	}
	return false
}
