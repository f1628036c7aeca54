//go:build linux

package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest/internal/channel"
)

// killGrace is how long Run waits, after its context ended, for the last words of the command it killed.
const killGrace = 5 * time.Second

// Result is what a command left.
type Result struct {
	Command        string
	Stdout, Stderr string
	Exit           int // exit status; 128+n when signal n ended it
	Signal         syscall.Signal
}

// Err returns nil where the command exited with 0, and otherwise an error with the end of what it printed.
func (r Result) Err() error {
	if r.Exit == 0 {
		return nil
	}
	return fmt.Errorf("%q exited with %d\n%s", r.Command, r.Exit, lastLines(r.Stdout+r.Stderr, 20))
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Run runs command through the guest's shell and waits for it. The error tells that the command could not be run to
// its end (no connection, ctx ended: the command is then killed, the Result has what it printed); a command that
// fails is no error: see Result.Err.
func (g *Guest) Run(ctx context.Context, command string) (Result, error) {
	p, err := g.Background(ctx, command)
	if err != nil {
		return Result{Command: command, Exit: -1}, err
	}
	return p.Wait(ctx)
}

// Proc is a command that runs in a guest. Its methods are safe for concurrent use.
type Proc struct {
	guest   *Guest
	command string
	conn    net.Conn
	w       *channel.Writer

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
	news   chan struct{} // closed and replaced when output arrives

	ended chan struct{} // closed at the end, after which the two below are constant
	done  channel.Done
	err   error // of the connection, or why the agent could not run it
}

// Background starts command through the guest's shell. It runs on when ctx ends; Kill it, or Close the network.
func (g *Guest) Background(ctx context.Context, command string) (*Proc, error) {
	c, err := g.dial(ctx)
	if err != nil {
		return nil, err
	}
	p := &Proc{guest: g, command: command, conn: c, w: channel.NewWriter(c), news: make(chan struct{}), ended: make(chan struct{})}
	if err := p.w.JSON(channel.KindRequest, channel.Request{Op: channel.OpRun, Command: command}); err != nil {
		return nil, errors.Join(g.wrap(command, err), c.Close())
	}
	go p.follow()
	return p, nil
}

// follow reads frames until the last.
func (p *Proc) follow() {
	defer close(p.ended)
	defer p.conn.Close()
	if m := p.guest.getVM(); m != nil {
		over := make(chan struct{})
		defer close(over)
		go func() { // QEMU's end leaves the connection open: nobody is there to close it
			select {
			case <-m.exited:
				p.conn.Close()
			case <-over:
			}
		}()
	}
	for {
		kind, b, err := channel.Read(p.conn)
		if err != nil {
			p.err = p.guest.wrap(p.command, fmt.Errorf("%w: %w", ErrGone, err))
			return
		}
		switch kind {
		case channel.KindStdout:
			p.append(&p.stdout, b)
		case channel.KindStderr:
			p.append(&p.stderr, b)
		case channel.KindDone:
			p.err = json.Unmarshal(b, &p.done)
			if p.err == nil && p.done.Err != "" {
				p.err = p.guest.wrap(p.command, errors.New(p.done.Err))
			}
			return
		default: // what only we send
		}
	}
}

func (p *Proc) append(to *bytes.Buffer, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to.Write(b)
	close(p.news)
	p.news = make(chan struct{})
}

// Copy copies what the command prints, as it comes, until it ends.
func (p *Proc) Copy(stdout, stderr io.Writer) {
	var o, e int
	for {
		p.mu.Lock()
		out, errs, news := p.stdout.Bytes()[o:], p.stderr.Bytes()[e:], p.news
		p.mu.Unlock()
		o, e = o+len(out), e+len(errs)
		_, _ = stdout.Write(out) // what cannot be shown is still in the Result
		_, _ = stderr.Write(errs)
		if len(out)+len(errs) > 0 {
			continue
		}
		select {
		case <-news:
		case <-p.ended:
			select {
			case <-news: // the last output came before the end
			default:
				return
			}
		}
	}
}

// Output returns what the command has printed so far.
func (p *Proc) Output() (stdout, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String(), p.stderr.String()
}

// Ended is closed when the command has ended.
func (p *Proc) Ended() <-chan struct{} { return p.ended }

// Signal sends a signal to the command and its children.
func (p *Proc) Signal(s syscall.Signal) error {
	return p.guest.wrap(p.command, p.w.Frame(channel.KindSignal, []byte{byte(s)}))
}

// Kill ends the command with SIGKILL and waits until it is gone. It does nothing when the command has ended.
func (p *Proc) Kill() {
	select {
	case <-p.ended:
		return
	default:
	}
	_ = p.Signal(syscall.SIGKILL) // a lost connection kills it as well
	select {
	case <-p.ended:
	case <-time.After(killGrace):
		p.conn.Close()
		<-p.ended
	}
}

// Write gives b to the command's standard input.
func (p *Proc) Write(b []byte) (int, error) { return p.w.Stream(channel.KindStdin).Write(b) }

// CloseInput ends the command's standard input.
func (p *Proc) CloseInput() error { return p.w.Frame(channel.KindStdin, nil) }

// Wait returns when the command has ended. When ctx ends before, the command is killed and the error is ctx's.
func (p *Proc) Wait(ctx context.Context) (Result, error) {
	var err error
	select {
	case <-p.ended:
		err = p.err
	case <-ctx.Done():
		p.Kill()
		err = p.guest.wrap(p.command, context.Cause(ctx))
	}
	r := Result{Command: p.command, Exit: -1}
	r.Stdout, r.Stderr = p.Output()
	if p.err == nil {
		r.Exit, r.Signal = p.done.Exit, syscall.Signal(p.done.Signal)
	}
	return r, err
}

// WaitOutput returns when the command has printed text, on either stream. It is an error if the command ends before.
func (p *Proc) WaitOutput(ctx context.Context, text string) error {
	for {
		p.mu.Lock()
		found := bytes.Contains(p.stdout.Bytes(), []byte(text)) || bytes.Contains(p.stderr.Bytes(), []byte(text))
		news := p.news
		p.mu.Unlock()
		if found {
			return nil
		}
		var why error
		select {
		case <-news:
			continue
		case <-p.ended:
			select {
			case <-news: // the last output came before the end
				continue
			default:
			}
			why = errors.New("the command ended")
		case <-ctx.Done():
			why = context.Cause(ctx)
		}
		stdout, stderr := p.Output()
		return p.guest.wrap(p.command, fmt.Errorf("wait for output %q: %w; it printed:\n%s", text, why, lastLines(stdout+stderr, 20)))
	}
}

// doneError turns the last frame of a request into its error.
func doneError(p []byte) error {
	var d channel.Done
	if err := json.Unmarshal(p, &d); err != nil {
		return err
	}
	if d.Err != "" {
		return errors.New(d.Err)
	}
	return nil
}
