package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime/pprof"
	"time"

	"github.com/verbena-rdma/verbena/verbs"
)

// request is what the parent asks of a child, one JSON value each.
type request struct {
	Do      string // see child.do
	Subject int
	Spec    Spec
	Peer    Offer
	Slot    time.Duration
	Args    []string
}

// reply answers one request.
type reply struct {
	Err    string
	Offer  Offer
	Sample Sample
}

// child is one process that has ends of subjects. It does one thing at a time.
type child struct {
	addr    netip.Addr
	port    int // the first UDP port of the devices
	near    bool
	devices map[deviceKey]*verbs.Device
	ends    map[int]end
	serving *serving
}

// serving is an end that serves in a goroutine.
type serving struct {
	h     *halt
	done  chan error
	start time.Time
	cpu   time.Duration
}

// Child is the main function of a child process: it obeys the parent until in
// ends. in and out are the process's standard input and output.
func Child(in io.Reader, out io.Writer) error {
	c := &child{devices: map[deviceKey]*verbs.Device{}, ends: map[int]end{}}
	if name := os.Getenv(profileEnv); name != "" {
		f, err := os.Create(fmt.Sprintf("%s.%d", name, os.Getpid()))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer f.Close()
		defer pprof.StopCPUProfile()
	}
	dec, enc := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q request
		if err := dec.Decode(&q); err != nil {
			// The parent has gone, or is done.
			return c.close()
		}
		var r reply
		if err := c.do(&q, &r); err != nil {
			r.Err = err.Error()
		}
		if err := enc.Encode(&r); err != nil {
			return errors.Join(err, c.close())
		}
	}
}

func (c *child) do(q *request, r *reply) (err error) {
	e := c.ends[q.Subject]
	if e == nil && (q.Do == "join" || q.Do == "slot" || q.Do == "serve") {
		return fmt.Errorf("%s: no subject %d", q.Do, q.Subject)
	}
	switch q.Do {
	case "hello":
		c.near, c.port = q.Args[0] == "near", q.Subject
		c.addr, err = netip.ParseAddr(q.Args[1])
	case "run": // a command, in this process's network namespace
		out, runErr := exec.Command(q.Args[0], q.Args[1:]...).CombinedOutput()
		if runErr != nil {
			err = fmt.Errorf("%v: %w: %s", q.Args, runErr, out)
		}
	case "pin":
		err = c.pin(q.Subject)
	case "prepare":
		if e, err = newEnd(c, &q.Spec); err == nil {
			c.ends[q.Subject] = e
			r.Offer, err = e.prepare()
			r.Offer.Addr = c.addr.String()
		}
	case "join":
		err = e.join(q.Peer)
	case "slot":
		r.Sample, err = e.slot(q.Slot)
	case "serve":
		s := &serving{h: newHalt(), done: make(chan error, 1), start: time.Now(), cpu: processCPU()}
		go func() { s.done <- e.serve(s.h) }()
		c.serving = s
	case "stop":
		if s := c.serving; s != nil {
			c.serving = nil
			r.Sample.CPU = (processCPU() - s.cpu).Seconds()
			r.Sample.Seconds = time.Since(s.start).Seconds()
			s.h.set()
			err = <-s.done
		}
	case "close":
		if e != nil {
			delete(c.ends, q.Subject)
			err = e.close()
		}
	default:
		err = fmt.Errorf("unknown request %q", q.Do)
	}
	return err
}

// pin lets this process, and the server that it may have started, run on one
// processor, or on all of them for a negative one.
func (c *child) pin(cpu int) error {
	errs := []error{pin(os.Getpid(), cpu)}
	for _, e := range c.ends {
		if p, ok := e.(*iperf); ok && p.server != nil {
			errs = append(errs, pin(p.server.Process.Pid, cpu))
		}
	}
	return errors.Join(errs...)
}

func (c *child) close() error {
	var errs []error
	if c.serving != nil {
		c.serving.h.set()
		errs = append(errs, <-c.serving.done)
	}
	for _, e := range c.ends {
		errs = append(errs, e.close())
	}
	for _, d := range c.devices {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
