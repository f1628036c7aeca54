package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"
)

// Limits of the way to a listener.
const (
	dialTime = 3 * time.Second // a name, or a connection, may take
	maxAddrs = 8               // of a name are tried
)

// Run probes hosts, each a name or an address, several at a time. The results
// are in the order of hosts; a host that could not be probed has an Error and
// status Unknown. The error is about cfg, or that ctx ended: results of hosts
// that were finished are there then too.
func Run(ctx context.Context, cfg Config, hosts []string) ([]Result, error) {
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 || len(hosts) > maxHosts {
		return nil, fmt.Errorf("%d hosts: can be 1 to %d", len(hosts), maxHosts)
	}
	e := newEndpoint(cfg.RoCEPort, cfg.Capture, cfg.Sysfs)
	defer e.close()
	results := make([]Result, len(hosts))
	turn := make(chan struct{}, cfg.Parallel)
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			results[i] = probeHost(ctx, cfg, e, host)
		})
	}
	wg.Wait()
	return results, ctx.Err()
}

// probeHost probes one host.
func probeHost(ctx context.Context, cfg Config, e *endpoint, host string) Result {
	p := &prober{cfg: cfg, e: e, r: Result{Host: host, Class: cfg.DSCP}}
	p.rev.reverse = true
	p.ctl.slack = cfg.patience
	err := p.dial(ctx, host)
	if err == nil {
		defer p.close()
		err = p.measure(ctx)
	}
	if err != nil {
		p.r.Error = oneLine(err.Error())
	}
	p.judge()
	return p.r
}

// prober is the near end of one session.
type prober struct {
	cfg  Config
	e    *endpoint
	ctl  control
	s    *session
	v    *voice
	r    Result
	fwd  record
	rev  record
	wits witness
	// overrun is what the ear here had dropped before the session.
	overrun int
	self    bool // the address asked for is the one that would be probed from
	// chance mixes packets; nil is by true chance.
	chance *rand.Rand
}

// witness is whether UDP passes on the control channel's port.
type witness struct{ tried, there, back bool }

func (p *prober) close() {
	p.e.remove(p.s)
	p.v.close()
	_ = p.ctl.c.Close()
}

// ports are the source ports of the paths.
func (p *prober) ports() []uint16 {
	var out []uint16
	for _, m := range p.v.mouths {
		out = append(out, m.local.Port())
	}
	return out
}

// control is the near end of the control channel.
type control struct {
	c net.Conn
	// slack is what is left of the time that answers may take besides what a
	// request takes by itself, over the whole session: a listener that is slow
	// each time does not hold the probe up for long.
	slack time.Duration
}

// ask sends a request, filled up to n bytes, and waits for the response, which
// takes a time by itself.
func (k *control) ask(ctx context.Context, r *request, n int, itself time.Duration) (*response, error) {
	stop := context.AfterFunc(ctx, func() { _ = k.c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	begin := time.Now()
	_ = k.c.SetDeadline(begin.Add(itself + k.slack))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := writeFrame(k.c, r, n); err != nil {
		return nil, fmt.Errorf("control channel: %w", plain(err))
	}
	b, err := readFrame(k.c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if over := time.Since(begin) - itself; over > 0 {
		k.slack -= over
	}
	if err != nil {
		return nil, fmt.Errorf("control channel: %q was not answered: %w", r.Op, plain(err))
	}
	return parseResponse(b)
}

// plain says what an error of the control channel means.
func plain(err error) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the listener ended the connection (%w)", err)
	case os.IsTimeout(err):
		return errors.New("no answer in time")
	}
	return err
}
