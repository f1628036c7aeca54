//go:build linux

package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Capture is a running recording of the network's frames.
type Capture struct {
	cmd  *exec.Cmd
	file string
	said strings.Builder // what tcpdump printed; read after drained
	done chan struct{}
	stop sync.Once
	err  error
}

// Capture records the frames that pass dev, a device in the namespace, into a pcap file. dev is Bridge for what the
// host side sends and receives, or the Tap of a guest: that sees what the guest sees, so also traffic between guests,
// and a GSO send of the host cut into the packets that arrive. filter is in tcpdump's language and may be empty.
// It returns when the recording has begun.
func (n *Net) Capture(ctx context.Context, file, dev, filter string) (*Capture, error) {
	args := []string{"-i", dev, "-n", "-U", "-s", "0", "-B", "16384", "--immediate-mode", "-Z", "root", "-w", file}
	if filter != "" {
		args = append(args, filter)
	}
	// Not the caller's context: Stop ends the recording in order.
	c := &Capture{cmd: n.Command(context.Background(), "tcpdump", args...), file: file, done: make(chan struct{})}
	out, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("capture on %s: %w", dev, err)
	}
	begun := make(chan struct{})
	go c.listen(out, begun)
	select {
	case <-begun:
		return c, nil
	case <-c.done:
		err = errors.New("tcpdump ended")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = c.cmd.Process.Kill()
	<-c.done
	_ = c.cmd.Wait() // the reason is in what it printed
	return nil, fmt.Errorf("capture on %s: %w: %s", dev, err, strings.TrimSpace(c.said.String()))
}

// listen closes begun when tcpdump says that it listens, and done at the end of what it says.
func (c *Capture) listen(out io.Reader, begun chan struct{}) {
	defer close(c.done)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		c.said.WriteString(line)
		if begun != nil && strings.Contains(line, "listening on ") {
			close(begun)
			begun = nil
		}
		if err != nil {
			return
		}
	}
}

// File is the path of the recording.
func (c *Capture) File() string { return c.file }

// Stop ends the recording. The file is complete when it returns. Frames that tcpdump had to leave out are an error.
func (c *Capture) Stop() error {
	c.stop.Do(func() {
		_ = c.cmd.Process.Signal(syscall.SIGINT) // it may have ended
		kill := time.AfterFunc(30*time.Second, func() { _ = c.cmd.Process.Kill() })
		<-c.done
		err := c.cmd.Wait()
		kill.Stop()
		if err != nil {
			c.err = fmt.Errorf("capture to %s: %w: %s", c.file, err, strings.TrimSpace(c.said.String()))
			return
		}
		for line := range strings.Lines(c.said.String()) {
			if strings.Contains(line, "dropped by kernel") && !strings.HasPrefix(line, "0 ") {
				c.err = fmt.Errorf("capture to %s: %s", c.file, strings.TrimSpace(line))
			}
		}
	})
	return c.err
}
