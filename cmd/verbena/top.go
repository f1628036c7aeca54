package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func (a app) topCommand() *cobra.Command {
	var (
		l        listFlags
		interval time.Duration
		once     bool
	)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch rates, retransmissions, CNPs, ECN marks and pause by priority",
		Long: "Shows each port's rates, retransmissions, requests out of sequence, CNPs and ECN marks a second, the priorities\n" +
			"that pause, and the busiest of our own queue pairs; busiest first. Ctrl-C ends it. --host shows a recording's window.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond || interval > maxInterval {
				return fmt.Errorf("--interval is %v, must be 100ms to %v", interval, maxInterval)
			}
			if l.asJSON {
				return errors.New("--json: verbena snapshot and verbena exporter give the numbers")
			}
			if l.dir != "" {
				w, err := recordedWindow(l.dir, read.Options{NoSystem: true})
				if err != nil {
					return err
				}
				_, err = a.out.Write(listing.Top(w, 80, 0))
				return err
			}
			return a.top(cmd.Context(), &l, interval, once)
		},
	}
	l.flags(cmd)
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "time between frames")
	cmd.Flags().BoolVar(&once, "once", false, "one frame without clearing the screen")
	return cmd
}

// Sequences of ANSI terminals: the other screen without a cursor, and back; home, and
// to the end of line or screen.
const (
	termEnter = "\x1b[?1049h\x1b[?25l"
	termLeave = "\x1b[?25h\x1b[?1049l"
	termHome  = "\x1b[H"
	termClear = "\x1b[J"
)

func (a app) top(ctx context.Context, l *listFlags, interval time.Duration, once bool) error {
	live, err := l.live()
	if err != nil {
		return err
	}
	defer live.Close()
	opt := read.Options{NoSystem: true, NoApp: true, NoResources: true}
	w := snapshot.Window{After: read.Host(live, opt)}
	_, _, terminal := terminalSize(os.Stdout)
	screen := terminal && !once
	if screen {
		if _, err := io.WriteString(a.out, termEnter); err != nil {
			return err
		}
		defer func() { _, _ = io.WriteString(a.out, termLeave) }()
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how it ends
		case <-tick.C:
		}
		w.Before, w.After = w.After, read.Host(live, opt)
		if err := a.frame(w, screen); err != nil || once {
			return err
		}
	}
}

// frame draws one frame in the size that the terminal has now.
func (a app) frame(w snapshot.Window, screen bool) error {
	if !screen {
		_, err := a.out.Write(listing.Top(w, 80, 0))
		return err
	}
	width, height, ok := terminalSize(os.Stdout)
	if !ok {
		width, height = 80, 24
	}
	out := []byte(termHome)
	for _, c := range listing.Top(w, width, max(height-1, 1)) {
		if c == '\n' {
			out = append(out, "\x1b[K\r"...)
		}
		out = append(out, c)
	}
	_, err := a.out.Write(append(out, termClear...))
	return err
}
