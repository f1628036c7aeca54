//go:build linux

package guest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// The lines by which the agent tells how the boot went; agent/main_linux.go has the same.
const (
	markReady  = "VERBENA-GUEST-READY"
	markFailed = "VERBENA-GUEST-FAILED"
	markPanic  = "Kernel panic"
)

// console copies what a guest prints into a file and looks for the lines that decide a boot.
type console struct {
	path  string
	ready chan struct{} // closed at markReady
	bad   chan string   // the line that says that the boot failed; one at most
	ended chan struct{} // closed at the end of the output: QEMU is gone
}

// watch starts to follow r, until it ends.
func watchConsole(r io.Reader, path string) (*console, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	c := &console{path: path, ready: make(chan struct{}), bad: make(chan string, 1), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer f.Close()
		c.follow(bufio.NewReader(r), f)
	}()
	return c, nil
}

func (c *console) follow(r *bufio.Reader, f io.Writer) {
	ready := false
	for {
		line, err := r.ReadString('\n')
		_, _ = io.WriteString(f, line) // a full disk must not end the guest
		switch {
		case strings.Contains(line, markReady) && !ready:
			ready = true
			close(c.ready)
		case strings.Contains(line, markFailed), strings.Contains(line, markPanic):
			select {
			case c.bad <- strings.TrimSpace(line):
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// tail returns the last lines of a console log, for an error message.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(no console log: %v)", err)
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
