package export

import (
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Limits of what one scrape says.
const (
	// MaxSamples is how many samples a scrape has at most; those left out are counted in
	// rdma_exporter_samples_left_out.
	MaxSamples = 50_000
	// MaxQPs is how many queue pairs a device has samples of, with Options.PerQP, at most.
	MaxQPs = 1_000
	// maxLabel is how long the value of a label is at most, in bytes.
	maxLabel = 128
)

// Options say what is exported beside the metrics that are always there.
type Options struct {
	// Compat adds node_exporter's names, node_infiniband_*.
	Compat bool
	// PerQP is of how many queue pairs a device has counters, 0 to MaxQPs.
	PerQP int
	// Version is the version of the program, for rdma_exporter_build_info.
	Version string
}

// Collector makes the text of scrapes of a host. It may be used by several goroutines;
// scrapes wait for each other, since a host is not read twice at once.
type Collector struct {
	read func() *snapshot.Snapshot
	opt  Options

	mu      sync.Mutex
	page    *page
	scrapes uint64
}

// New returns a collector. read is called once a scrape, by one goroutine at a time.
func New(read func() *snapshot.Snapshot, opt Options) *Collector {
	opt.PerQP = min(max(opt.PerQP, 0), MaxQPs)
	return &Collector{read: read, opt: opt, page: newPage(newDescs(opt))}
}

// Append reads the host and appends its metrics to b, in Prometheus' text format.
func (c *Collector) Append(b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	start := time.Now()
	c.scrapes++
	snap := c.read()
	c.page.reset()
	s := &scrape{page: c.page}
	for i, name := range snap.Labels() {
		d := snap.Devices[i] // a copy: the name may be another one here
		d.Name = name
		s.device(&d, c.opt)
	}
	s.netdevs(snap)
	s.always("rdma_exporter_build_info", 1, c.opt.Version)
	s.always("rdma_exporter_scrapes_total", float64(c.scrapes))
	s.always("rdma_exporter_problems", float64(len(snap.Problems)))
	s.always("rdma_exporter_unreadable_values", float64(s.unreadable))
	s.always("rdma_exporter_samples_left_out", float64(s.leftOut))
	s.always("rdma_exporter_devices", float64(len(snap.Devices)))
	s.always("rdma_exporter_scrape_duration_seconds", time.Since(start).Seconds())
	return c.page.appendTo(b)
}
