package main

import (
	"context"
	"encoding/json"
	"fmt"
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
			"that pause, and the busiest queue pairs; of the kernel's devices and of Verbena's in all processes of yours, busiest\n" +
			"first. q or Ctrl-C ends it. With --json it prints a line for each interval, with --once one document. --host shows\n" +
			"a recording's window.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 100*time.Millisecond || interval > maxInterval {
				return fmt.Errorf("--interval is %v, must be 100ms to %v", interval, maxInterval)
			}
			if l.dir != "" {
				w, err := recordedWindow(l.dir, read.Options{NoSystem: true})
				if err != nil {
					return err
				}
				return a.frame(listing.TopOf(w), l.asJSON, nil)
			}
			return a.top(cmd.Context(), &l, interval, once)
		},
	}
	l.flags(cmd)
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "time between frames")
	cmd.Flags().BoolVar(&once, "once", false, "one frame, after one interval, and end")
	return cmd
}

func (a app) top(ctx context.Context, l *listFlags, interval time.Duration, once bool) error {
	live, err := l.live()
	if err != nil {
		return err
	}
	defer live.Close()
	opt := read.Options{NoSystem: true, NoApp: true, NoAttr: true, Counters: true}
	w := snapshot.Window{After: read.Host(live, opt)}
	var s *screen
	if out, ok := a.terminal(); ok && !once && !l.asJSON {
		s = openScreen(a.in, out, os.Getenv("NO_COLOR") == "")
		defer s.close()
		if err := a.frame(listing.TopOf(w), false, s); err != nil { // what there is, before there are rates
			return err
		}
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	f := listing.TopOf(w)
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how it ends
		case <-s.quit():
			return nil
		case <-s.resized():
		case sig := <-s.jobs():
			s.obey(sig)
		case <-tick.C:
			w.Before, w.After = w.After, read.Host(live, opt)
			f = listing.TopOf(w)
		}
		if err := a.frame(f, l.asJSON, s); err != nil || once {
			return err
		}
	}
}

// terminal is the terminal that the command writes to.
func (a app) terminal() (*os.File, bool) {
	out := a.out
	if c, ok := out.(*counter); ok {
		out = c.w
	}
	f, ok := out.(*os.File)
	if !ok {
		return nil, false
	}
	_, _, ok = terminalSize(f)
	return f, ok
}

// frame writes one frame: on a screen in the size that it has now, else one after
// another.
func (a app) frame(f *listing.TopFrame, asJSON bool, s *screen) error {
	switch {
	case asJSON:
		b, err := json.Marshal(f)
		if err != nil {
			return err
		}
		_, err = a.out.Write(append(b, '\n'))
		return err
	case s != nil:
		width, height := s.size()
		return s.draw(f.Text(width, max(height-1, 1), s.colour))
	}
	_, err := a.out.Write(f.Text(80, 0, false))
	return err
}
