package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty is a terminal with the program at its other end.
type pty struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	seen bytes.Buffer
	done chan struct{}
}

// openPTY starts verbena on a new terminal.
func openPTY(t *testing.T, width, height uint16, env []string, args ...string) *pty {
	t.Helper()
	p := openPTYOf(t, width, height, exec.Command(verbenaProgram(t), args...))
	p.cmd.Env = append(os.Environ(), env...)
	p.start()
	return p
}

// openPTYOf makes a terminal for a program that start starts.
func openPTYOf(t *testing.T, width, height uint16, cmd *exec.Cmd) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master, slave: slave, cmd: cmd, done: make(chan struct{})}
	p.resize(width, height)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	return p
}

func (p *pty) start() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		b := make([]byte, 4096)
		for {
			n, err := p.master.Read(b)
			p.mu.Lock()
			p.seen.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	p.t.Cleanup(func() {
		if pid, err := unix.IoctlGetInt(int(p.master.Fd()), unix.TIOCGPGRP); err == nil && pid > 0 && pid != p.cmd.Process.Pid {
			_ = unix.Kill(-pid, unix.SIGKILL) // what a shell has started
		}
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.slave.Close()
		<-p.done
		p.master.Close()
	})
}

// verbenaProgram is this test's program under its real name: testscript.Main runs it as
// verbena then.
func verbenaProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := t.TempDir() + "/verbena"
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

func (p *pty) resize(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// frame waits for a whole frame after so many bytes for which ok holds, and returns it
// without its escapes.
func (p *pty) frame(what string, from int, ok func(lines []string) bool) (lines []string, raw string) {
	p.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) { // between two looks
		for _, part := range strings.Split(p.text()[from:], termHome) {
			body, _, whole := strings.Cut(part, termClear)
			if !whole {
				continue
			}
			lines = lines[:0]
			for l := range strings.SplitSeq(body, "\x1b[K\r\n") {
				lines = append(lines, strings.NewReplacer("\x1b[1m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(l))
			}
			if ok(lines) {
				return lines, body
			}
		}
	}
	all := p.text()
	p.t.Fatalf("%s: no such frame; the last is\n%q", what, all[max(0, len(all)-2000):])
	return nil, ""
}

func (p *pty) modes() unix.Termios {
	p.t.Helper()
	m, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *m
}

// ended waits for the program and compares the terminal with what it was.
func (p *pty) ended(was unix.Termios) {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			p.t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		p.t.Fatalf("it does not end:\n%q", p.text())
	}
	if now := p.modes(); now != was {
		p.t.Errorf("the terminal is left as %+v, was %+v", now, was)
	}
	for until := time.Now().Add(time.Minute); !strings.HasSuffix(p.text(), termLeave); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			p.t.Fatalf("the screen is not given back: …%q", p.text()[max(0, len(p.text())-60):])
		}
	}
}

func longest(lines []string) int {
	n := 0
	for _, l := range lines {
		n = max(n, len([]rune(l)))
	}
	return n
}

// verbena top on a terminal: our own device with its traffic and queue pair, whatever
// the width; q and Ctrl-C give the terminal back as it was.
func TestTopTerminal(t *testing.T) {
	pair := newOwnPair(t, 14819, "127.0.0.174", "127.0.0.175")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil && pair.write(ctx, 1) == nil {
			time.Sleep(time.Millisecond) // a light load
		}
	})
	defer wg.Wait()
	defer stop()
	qp := fmt.Sprintf(":%d", pair.qp[0].Num())

	p := openPTY(t, 120, 60, []string{"TERM=xterm", "NO_COLOR="}, "top", "--interval", "200ms")
	was := p.modes()
	_, raw := p.frame("traffic", 0, func(lines []string) bool {
		text := strings.Join(lines, "\n")
		return strings.Contains(text, "PORT") && strings.Contains(text, "QP ") && strings.Contains(text, qp) && strings.Contains(text, "over ")
	})
	if !strings.HasPrefix(p.text(), termEnter) || !strings.Contains(raw, "\x1b[1m") {
		t.Errorf("no other screen or no bold heading: %q", p.text()[:min(80, len(p.text()))])
	}
	for _, width := range []uint16{40, 200} {
		from := len(p.text())
		p.resize(width, 50)
		lines, _ := p.frame(fmt.Sprint(width, " columns"), from, func(lines []string) bool {
			return longest(lines) <= int(width) && (width < 100 || longest(lines) > 120)
		})
		text := strings.Join(lines, "\n")
		if !strings.Contains(text, "TX Gb/s") || width == 200 && !strings.Contains(text, "REMOTE") {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
	from := len(p.text())
	p.resize(80, 5)
	p.frame("five lines", from, func(lines []string) bool {
		return len(lines) <= 5 && strings.Contains(strings.Join(lines, "\n"), "more lines")
	})
	if _, err := p.master.WriteString("xq"); err != nil {
		t.Fatal(err)
	}
	p.ended(was)

	p = openPTY(t, 100, 30, []string{"TERM=xterm", "NO_COLOR=1"}, "top", "--interval", "200ms")
	was = p.modes()
	if _, raw = p.frame("a frame", 0, func(lines []string) bool { return longest(lines) > 20 }); strings.Contains(raw, "\x1b[1m") || strings.Contains(raw, "\x1b[33m") {
		t.Errorf("NO_COLOR: %q", raw)
	}
	if _, err := p.master.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	p.ended(was)

	// Into a pipe.
	for _, args := range [][]string{{"top", "--once", "--interval", "300ms"}, {"top", "--once", "--json", "--interval", "300ms"}} {
		out, err := exec.Command(verbenaProgram(t), args...).Output()
		if err != nil || bytes.ContainsRune(out, 0x1b) {
			t.Errorf("%v: %v\n%q", args, err, out)
		}
		if args[2] != "--json" {
			if !strings.Contains(string(out), qp) {
				t.Errorf("%v: no queue pair %s in\n%s", args, qp, out)
			}
			continue
		}
		checkTop(t, out, pair)
	}
	cmd := exec.Command(verbenaProgram(t), "top", "--json", "--interval", "200ms")
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r)
	for range 3 {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		checkTop(t, line, pair)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, r)
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

// checkTop reads one frame as JSON: the queue pair that writes is there and sends.
func checkTop(t *testing.T, b []byte, pair *ownPair) {
	t.Helper()
	var f struct {
		Seconds float64
		Ports   []struct {
			PID int
			Tx  *float64 `json:"tx_bits"`
		}
		QPs []struct {
			QPN uint32
			Tx  *float64 `json:"tx_bits"`
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	port, qp := false, false
	for _, p := range f.Ports {
		port = port || p.PID == os.Getpid() && p.Tx != nil && *p.Tx > 0
	}
	for _, q := range f.QPs {
		qp = qp || q.QPN == uint32(pair.qp[0].Num()) && q.Tx != nil && *q.Tx > 0
	}
	if f.Seconds <= 0 || !port || !qp {
		t.Errorf("over %v s, port %v, queue pair %v in\n%s", f.Seconds, port, qp, b)
	}
}

// Ctrl-Z gives the terminal to the shell as it was and fg takes it again, as a real shell
// with job control sees it; where there is no shell, Ctrl-Z does nothing.
func TestTopStops(t *testing.T) {
	p := openPTYOf(t, 100, 30, exec.Command("sh", "-i"))
	p.cmd.Env = append(os.Environ(), "TERM=xterm", "PS1=prompt> ", "NO_COLOR=1", "HISTFILE=")
	p.start()
	p.see("a prompt", 0, "prompt> ")
	typed := func(what string) {
		t.Helper()
		if _, err := p.master.WriteString(what); err != nil {
			t.Fatal(err)
		}
	}
	isFrame := func(lines []string) bool { return strings.HasPrefix(lines[0], "verbena top") }
	was := p.modes()
	typed(verbenaProgram(t) + " top --interval 200ms\n")
	p.frame("a frame", 0, isFrame)
	for _, how := range []string{"\x1a", "kill"} { // by key, and by somebody who cannot be refused
		from := len(p.text())
		if how == "kill" {
			if err := unix.Kill(p.foreground(), unix.SIGTSTP); err != nil {
				t.Fatal(err)
			}
		} else {
			typed(how)
		}
		p.see("the screen given back", from, termLeave)
		p.see("the shell's prompt", from, "prompt> ")
		if now := p.modes(); now.Lflag&(unix.ICANON|unix.ECHO) != was.Lflag&(unix.ICANON|unix.ECHO) {
			t.Errorf("stopped, the terminal has local modes %#x, had %#x", now.Lflag, was.Lflag)
		}
		from = len(p.text())
		typed("echo q$((40+2))\n") // that q is the shell's
		p.see("the shell's answer", from, "q42")
		p.resize(60, 20) // while it is stopped
		from = len(p.text())
		typed("fg\n")
		p.see("the screen taken again", from, termEnter)
		p.frame("a frame in the new size", from+strings.Index(p.text()[from:], termEnter), func(lines []string) bool { return isFrame(lines) && longest(lines) <= 60 })
		p.resize(100, 30)
	}
	from := len(p.text())
	pid := p.foreground()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil { // nobody is asked before this stop
		t.Fatal(err)
	}
	p.see("the prompt after a stop that gives nothing back", from, "prompt> ")
	typed("fg\n")
	p.see("the screen taken once more", from, termEnter)
	from = len(p.text())
	typed("q")
	p.see("the screen given back at the end", from, termLeave)
	p.see("the prompt again", from, "prompt> ")
	if now := p.modes(); now.Lflag != was.Lflag {
		t.Errorf("at the end the terminal has local modes %#x, had %#x", now.Lflag, was.Lflag)
	}
	typed("exit\n")
	if err := p.wait(); err != nil {
		t.Error(err)
	}

	p = openPTY(t, 100, 30, []string{"TERM=xterm", "NO_COLOR=1"}, "top", "--interval", "200ms")
	was = p.modes()
	p.frame("a frame", 0, isFrame)
	from = len(p.text())
	if _, err := p.master.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	p.see("it gives the screen away", from, termLeave)
	p.see("and takes it", from, termEnter)
	p.frame("a frame", from, isFrame)
	if _, err := p.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	p.ended(was)
}

// see waits for a text in what came after so many bytes.
func (p *pty) see(what string, from int, text string) {
	p.t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) { // between two looks
		if strings.Contains(p.text()[from:], text) {
			return
		}
	}
	p.t.Fatalf("%s: no %q in\n%q", what, text, p.text()[from:])
}

// foreground is the process group that has the terminal.
func (p *pty) foreground() int {
	p.t.Helper()
	pid, err := unix.IoctlGetInt(int(p.master.Fd()), unix.TIOCGPGRP)
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// wait waits for the program's end.
func (p *pty) wait() error {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		p.t.Fatalf("it does not end:\n%q", p.text())
		return nil
	}
}
