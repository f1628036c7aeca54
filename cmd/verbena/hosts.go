package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// hostFlags say which host is looked at: this one, or a recorded one.
type hostFlags struct {
	dir                 string
	interval            time.Duration
	pid                 int
	app, log            string
	sysfsRoot, procRoot string
	later               bool // the program of --app may begin later
}

func (h *hostFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.dir, "host", "", "another `host`: a recording (directory of verbena snapshot, or one text file), or HOST[:PORT] that runs verbena snapshot --listen; default: this host")
	f.DurationVar(&h.interval, "interval", 10*time.Second, "time between the two looks at this host; 0 for one look")
	f.IntVar(&h.pid, "pid", 0, "the program's process: its limits and environment")
	f.StringVar(&h.app, "app", "", "the program, as all processes of this `name` (64 at most), instead of --pid")
	f.StringVar(&h.log, "log", "", "a `file` with what the program printed")
	f.StringVar(&h.sysfsRoot, "sysfs-root", "/sys", "where sysfs is mounted")
	f.StringVar(&h.procRoot, "proc-root", "/proc", "where proc is mounted")
}

func (h *hostFlags) options() read.Options { return read.Options{} }

// maxInterval is the longest time between two looks: counters of 32 bits wrap.
const maxInterval = time.Hour

// live opens this host.
func (h *hostFlags) live() (*source.Live, error) {
	if h.pid < 0 {
		return nil, fmt.Errorf("--pid is %d, must be a process", h.pid)
	}
	if h.pid != 0 && h.app != "" {
		return nil, errors.New("--pid and --app name one program; give one of them")
	}
	cfg := source.LiveConfig{SysfsRoot: h.sysfsRoot, ProcRoot: h.procRoot, App: source.AppConfig{PID: h.pid, Name: h.app}}
	if h.log != "" {
		lines, err := readLog(h.log)
		if err != nil {
			return nil, fmt.Errorf("--log: %w", err)
		}
		cfg.App.Log = lines
	}
	if err := mounted("--sysfs-root", h.sysfsRoot, "/sys", "class"); err != nil {
		return nil, err
	}
	if err := mounted("--proc-root", h.procRoot, "/proc", "sys"); err != nil {
		return nil, err
	}
	if h.procRoot == "/proc" { // sockets are this namespace's, whatever is mounted elsewhere
		ask := func(q control.Query) func() (any, error) {
			return func() (any, error) { return control.Devices(q) }
		}
		cfg.Extra = map[string]func() (any, error){
			source.QueryVerbena: ask(control.Query{Resources: true}), source.QueryVerbenaCounts: ask(control.Query{}),
			source.QueryVerbenaCounters: ask(control.Query{Counters: true}),
		}
	}
	l, err := source.NewLive(cfg)
	if err != nil {
		return nil, err
	}
	if _, _, err := l.Processes(); err != nil && (h.pid != 0 || !h.later) {
		l.Close()
		return nil, fmt.Errorf("%s: %w", map[bool]string{true: "--pid", false: "--app"}[h.pid != 0], err)
	}
	return l, nil
}

// mounted makes sure that a directory that somebody named for sysfs or proc is one: an
// empty directory would be a host without devices.
func mounted(flag, dir, usual, has string) error {
	if dir == "" || dir == usual {
		return nil
	}
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !fi.IsDir():
		return fmt.Errorf("%s %s: not a directory", flag, dir)
	}
	if fi, err := os.Stat(filepath.Join(dir, has)); err != nil || !fi.IsDir() {
		return fmt.Errorf("%s %s: there is no directory %s, so this is not what is at %s", flag, dir, has, usual)
	}
	return nil
}

// openRegular opens a regular file and says how long it is.
func openRegular(name string) (*os.File, int64, error) {
	fi, err := os.Stat(name) // before the open: that of a pipe would wait
	switch {
	case err != nil:
		return nil, 0, err
	case !fi.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	return f, fi.Size(), nil
}

// readLog reads the end of a file: that is where errors are.
func readLog(name string) ([]string, error) {
	f, size, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > source.MaxFile {
		if _, err := f.Seek(-source.MaxFile, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, source.MaxFile))
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("%s: nothing is in it; leave the flag out if the program printed nothing", name)
	}
	return source.Lines(b), nil
}

// window reads this host, at two instants unless the interval is 0.
func (h *hostFlags) window(ctx context.Context, a app) (snapshot.Window, error) {
	live, err := h.live()
	if err != nil {
		return snapshot.Window{}, err
	}
	defer live.Close()
	w := snapshot.Window{After: read.Host(live, h.options())}
	if h.interval == 0 {
		return w, nil
	}
	fmt.Fprintf(a.err, "looking again in %v (--interval 0 for one look) …\n", h.interval)
	select {
	case <-ctx.Done():
		return w, ctx.Err()
	case <-time.After(h.interval):
	}
	w.Before, w.After = w.After, read.Host(live, h.options())
	return w, nil
}

// recordedWindow reads a recording.
func recordedWindow(dir string, opt read.Options) (snapshot.Window, error) {
	rec, err := source.Open(dir)
	if err != nil {
		return snapshot.Window{}, err
	}
	defer rec.Close()
	return read.Window(rec, opt)
}
