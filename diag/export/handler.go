package export

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Bounds of the HTTP handler.
const (
	maxInFlight   = 4                // scrapes at a time; more are answered 503
	scrapeTimeout = 20 * time.Second // then 503; a host's firmware may be slow
)

// Handler answers GET /metrics, /healthz and, with a line of help, /. Nothing else: no
// method that changes anything, no profile.
func Handler(c *Collector) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(c) // a new registry has nothing that it could clash with
	scrape := promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxInFlight,
		Timeout:             scrapeTimeout,
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Verbena exporter: RDMA metrics for Prometheus are at /metrics.")
	})
	return mux
}

// Text writes what one scrape of a collector answers, in Prometheus' text format.
func Text(c *Collector, w io.Writer) error {
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		return err
	}
	families, err := reg.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}
