package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/test/interop/guest/internal/channel"
)

// pipeGrace is how long the output pipes stay open for children that a command left in the background.
const pipeGrace = time.Second

// serve answers requests, each on a connection of its own, until the guest ends.
func serve() error {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(channel.Port))
	if err != nil {
		return err
	}
	fmt.Println(markReady)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			answer(c)
		}()
	}
}

func answer(c net.Conn) {
	kind, p, err := channel.Read(c)
	if err != nil || kind != channel.KindRequest {
		return
	}
	w := channel.NewWriter(c)
	var req channel.Request
	if err := json.Unmarshal(p, &req); err != nil {
		_ = w.JSON(channel.KindDone, channel.Done{Err: err.Error()})
		return
	}
	var done channel.Done
	switch req.Op {
	case channel.OpRun:
		done, err = run(c, w, req.Command)
	case channel.OpRead:
		err = read(w, req.Path)
	case channel.OpWrite:
		err = write(c, req.Path, os.FileMode(req.Mode))
	case channel.OpListen:
		err = waitListening(c, req.Port)
	case channel.OpPing:
	default:
		err = fmt.Errorf("the agent knows no operation %q", req.Op)
	}
	if err != nil {
		done.Err = err.Error()
	}
	// An error means that the host has gone; there is nobody left to tell.
	_ = w.JSON(channel.KindDone, done)
}

// run runs command through the shell in a session of its own. When the host hangs up, the session is killed.
func run(c net.Conn, w *channel.Writer, command string) (channel.Done, error) {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/tmp"
	cmd.WaitDelay = pipeGrace
	cmd.Stdout, cmd.Stderr = w.Stream(channel.KindStdout), w.Stream(channel.KindStderr)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return channel.Done{}, err
	}
	if err := cmd.Start(); err != nil {
		return channel.Done{}, err
	}
	ended := make(chan struct{})
	go func() {
		defer stdin.Close()
		for {
			kind, p, err := channel.Read(c)
			if err != nil {
				select {
				case <-ended: // the number may be another's by now
				default:
					_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				}
				return
			}
			switch {
			case kind == channel.KindSignal && len(p) == 1:
				select {
				case <-ended:
				default:
					_ = syscall.Kill(-cmd.Process.Pid, syscall.Signal(p[0]))
				}
			case kind == channel.KindStdin && len(p) == 0:
				_ = stdin.Close()
			case kind == channel.KindStdin:
				_, _ = stdin.Write(p) // a command that does not read its input is no error
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return channel.Done{}, err
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return channel.Done{Exit: 128 + int(status.Signal()), Signal: int(status.Signal())}, nil
	}
	return channel.Done{Exit: status.ExitStatus()}, nil
}

func read(w *channel.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w.Stream(channel.KindData), f)
	return err
}

func write(c net.Conn, path string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		kind, p, err := channel.Read(c)
		if err != nil {
			return err
		}
		if kind != channel.KindData {
			return fmt.Errorf("frame of kind %d in a file's data", kind)
		}
		if len(p) == 0 {
			if err := f.Chmod(mode); err != nil {
				return err
			}
			return f.Close()
		}
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
}

// waitListening returns once something listens on the TCP port, or the host hangs up.
func waitListening(c net.Conn, port uint16) error {
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		_, _, _ = channel.Read(c)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			text, err := os.ReadFile(table)
			if err != nil {
				return err
			}
			if listens(string(text), port) {
				return nil
			}
		}
		select {
		case <-hungUp:
			return errors.New("the host hung up")
		case <-tick.C:
		}
	}
}

// listens reports whether a table of /proc/net/tcp has a socket in LISTEN (0A) on port.
func listens(table string, port uint16) bool {
	want := ":" + strings.ToUpper(hex.EncodeToString([]byte{byte(port >> 8), byte(port)}))
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && f[3] == "0A" && strings.HasSuffix(f[1], want) {
			return true
		}
	}
	return false
}
