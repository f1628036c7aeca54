package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childEnv marks a process as a child; profileEnv names the files for CPU
// profiles of the children.
const (
	childEnv   = "VERBENA_BENCH_CHILD"
	profileEnv = "VERBENA_BENCH_PROFILE"
)

// IsChild reports whether this process was started to call [Child].
func IsChild() bool { return os.Getenv(childEnv) != "" }

// patience bounds what a request may take beyond its slot.
const patience = 20 * time.Second

// proc is a child seen from the parent.
type proc struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	enc     *json.Encoder
	replies chan reply
	dead    error
}

// startProc starts this program again as a child. shared becomes its file 3.
// edit may be nil.
func startProc(shared *os.File, edit func(*exec.Cmd)) (*proc, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &proc{cmd: exec.Command(exe), replies: make(chan reply, 1)}
	p.cmd.Env = append(os.Environ(), childEnv+"=1")
	p.cmd.Stderr = os.Stderr
	if shared != nil {
		p.cmd.ExtraFiles = []*os.File{shared}
	}
	dieWithParent(p.cmd)
	if edit != nil {
		edit(p.cmd)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.enc = json.NewEncoder(p.in)
	go func() {
		defer close(p.replies)
		dec := json.NewDecoder(out)
		for {
			var r reply
			if dec.Decode(&r) != nil {
				return
			}
			p.replies <- r
		}
	}()
	return p, nil
}

// ask sends a request and waits for its reply. A child that does not answer is
// ended.
func (p *proc) ask(q request) (reply, error) {
	if p.dead != nil {
		return reply{}, p.dead
	}
	if err := p.enc.Encode(&q); err != nil {
		return reply{}, p.fail(fmt.Errorf("the child has gone: %w", err))
	}
	timer := time.NewTimer(q.Slot + patience)
	defer timer.Stop()
	select {
	case r, ok := <-p.replies:
		if !ok {
			return reply{}, p.fail(errors.New("the child has gone"))
		}
		if r.Err != "" {
			return r, errors.New(r.Err)
		}
		return r, nil
	case <-timer.C:
		return reply{}, p.fail(fmt.Errorf("the child did not answer %q within %v", q.Do, q.Slot+patience))
	}
}

func (p *proc) fail(err error) error {
	p.dead = err
	_ = p.cmd.Process.Kill()
	return err
}

// close lets the child end.
func (p *proc) close() error {
	_ = p.in.Close()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.replies { // until its output ends
	}
	err := p.cmd.Wait()
	if p.dead != nil {
		return nil // has been told
	}
	return err
}

// pair is the two children of one network.
type pair struct {
	network   string
	near, far *proc
	port      int // UDP port of the devices
	shared    *os.File
}

// subject is a Spec that both children of a pair have joined.
type subject struct {
	p  *pair
	id int
}

var subjectNumber int

// join makes the ends of a subject.
func (p *pair) join(spec *Spec) (_ *subject, err error) {
	subjectNumber++
	s := &subject{p, subjectNumber}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	far, err := p.far.ask(request{Do: "prepare", Subject: s.id, Spec: *spec})
	if err != nil {
		return nil, err
	}
	near, err := p.near.ask(request{Do: "prepare", Subject: s.id, Spec: *spec})
	if err != nil {
		return nil, err
	}
	if _, err = p.near.ask(request{Do: "join", Subject: s.id, Peer: far.Offer}); err != nil {
		return nil, err
	}
	_, err = p.far.ask(request{Do: "join", Subject: s.id, Peer: near.Offer})
	return s, err
}

// slot measures once.
func (s *subject) slot(d time.Duration) (Sample, error) {
	if _, err := s.p.far.ask(request{Do: "serve", Subject: s.id}); err != nil {
		return Sample{}, err
	}
	r, err := s.p.near.ask(request{Do: "slot", Subject: s.id, Slot: d})
	far, farErr := s.p.far.ask(request{Do: "stop", Subject: s.id})
	if err = errors.Join(err, farErr); err != nil {
		return Sample{}, err
	}
	if r.Sample.FarCPU == 0 && far.Sample.Seconds > 0 {
		r.Sample.FarCPU = far.Sample.CPU * r.Sample.Seconds / far.Sample.Seconds
	}
	return r.Sample, nil
}

func (s *subject) close() {
	_, _ = s.p.near.ask(request{Do: "close", Subject: s.id})
	_, _ = s.p.far.ask(request{Do: "close", Subject: s.id})
}

func (p *pair) close() error {
	var err error
	for _, c := range []*proc{p.near, p.far} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	if p.shared != nil {
		err = errors.Join(err, p.shared.Close())
	}
	return err
}

func (p *pair) hello(near, far string) error {
	for _, c := range []struct {
		p          *proc
		role, addr string
	}{{p.near, "near", near}, {p.far, "far", far}} {
		if _, err := c.p.ask(request{Do: "hello", Subject: p.port, Args: []string{c.role, c.addr}}); err != nil {
			return err
		}
	}
	return nil
}
