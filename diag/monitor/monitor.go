package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Host is a host that the page can show. One of Look and Past is set.
type Host struct {
	Name string
	// Look reads the counters of a live host; it is called every Config.Every.
	Look func() *snapshot.Snapshot
	// Full reads all that the doctor wants, every Config.Examine; nil for Look.
	Full func() *snapshot.Snapshot
	// Past returns instant i of a recording of Times instants; it is read once.
	Past  func(i int) *snapshot.Snapshot
	Times int
}

// Config says what a Monitor shows.
type Config struct {
	Hosts []Host // with different names, at least one, at most MaxHosts
	Rules []*doctor.Rule
	// Every is the time between two looks at counters, 1 s if 0; Examine that between
	// two looks of the doctor, 10 s if 0.
	Every, Examine time.Duration

	began int64
}

// MaxHosts is how many hosts a page has at most.
const MaxHosts = 64

// Monitor watches hosts and shows them. Its handler may be used by many at once.
type Monitor struct {
	cfg   Config
	order []*watch
	by    map[string]*watch
}

// New makes a monitor. The error names the host that is wrong.
func New(cfg Config) (*Monitor, error) {
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Examine == 0 {
		cfg.Examine = 10 * time.Second
	}
	switch n := len(cfg.Hosts); {
	case n == 0:
		return nil, errors.New("no host to show")
	case n > MaxHosts:
		return nil, fmt.Errorf("%d hosts, the limit is %d", n, MaxHosts)
	case cfg.Every < 0 || cfg.Examine < 0:
		return nil, errors.New("a time between looks is negative")
	}
	cfg.began = time.Now().UnixMilli()
	m := &Monitor{cfg: cfg, by: map[string]*watch{}}
	for _, h := range cfg.Hosts {
		if h.Name == "" || (h.Look == nil) == (h.Past == nil) {
			return nil, fmt.Errorf("host %q has no name, or not one of Look and Past", h.Name)
		}
		if _, twice := m.by[h.Name]; twice {
			return nil, fmt.Errorf("two hosts have the name %q", h.Name)
		}
		w := newWatch(h, &m.cfg)
		m.order, m.by[h.Name] = append(m.order, w), w
	}
	return m, nil
}

// Run watches the hosts until the context ends, and returns when nothing of it runs any
// more.
func (m *Monitor) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range m.order {
		all.Go(func() { w.run(ctx) })
	}
	all.Wait()
}
