package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/remote"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// looker looks at one end, once or twice with the interval between.
type looker func(context.Context) (snapshot.Window, error)

// ends looks at the host and, if there is one, its peer, both in the same time.
func (s *doctorFlags) ends(ctx context.Context, a app) (host snapshot.Window, peer *snapshot.Window, err error) {
	look, err := s.host.looker(a)
	if err != nil {
		return host, nil, err
	}
	all := []looker{look}
	if s.peer != "" {
		peer = &snapshot.Window{}
		if look, err = otherEnd("--peer", s.peer, s.host); err != nil {
			return host, nil, err
		}
		all = append(all, look)
	}
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		end int
		w   snapshot.Window
		err error
	}
	done := make(chan outcome, len(all))
	for i, look := range all {
		go func() {
			w, err := look(both)
			done <- outcome{i, w, err}
		}()
	}
	for range all {
		o := <-done
		switch {
		case o.err != nil && err == nil: // those that follow have been told to stop
			err = o.err
			cancel()
		case o.end == 0:
			host = o.w
		default:
			*peer = o.w
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return host, peer, err
}

// looker looks at the host of --host, or this one.
func (h *hostFlags) looker(a app) (looker, error) {
	switch {
	case h.dir == "":
		return func(ctx context.Context) (snapshot.Window, error) { return h.window(ctx, a) }, nil
	case h.pid != 0 || h.app != "" || h.log != "":
		return nil, errors.New("--pid, --app and --log are about this host; a recording, and a host that hands out recordings, has what it was made with (verbena snapshot --app, --log)")
	}
	return otherEnd("--host", h.dir, *h)
}

// otherEnd looks at what a flag names: a recording of that name here, which is read at
// once, else the host of that name, which runs verbena snapshot --listen.
func otherEnd(flag, name string, h hostFlags) (looker, error) {
	address, noHost := remote.Address(name)
	switch {
	case recordingNamed(name):
		w, err := recordedWindow(name, h.options())
		switch {
		case err != nil && noHost == nil && !strings.Contains(name, ":"):
			return nil, fmt.Errorf("%s: %w; a host of that name would be %s", flag, err, address)
		case err != nil:
			return nil, fmt.Errorf("%s: %w; verbena snapshot -o makes recordings", flag, err)
		}
		return func(context.Context) (snapshot.Window, error) { return w, nil }, nil
	case noHost != nil:
		return nil, fmt.Errorf("%s: no recording of that name is here; as a host: %w", flag, noHost)
	case h.interval > remote.MaxInterval:
		return nil, fmt.Errorf("--interval is %v, must be at most %v with a host that is asked", h.interval, remote.MaxInterval)
	}
	return func(ctx context.Context) (snapshot.Window, error) {
		w, err := fetched(ctx, name, h)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%s: no recording of that name is here; as a host: %w", flag, err)
		}
		return w, err
	}, nil
}

// recordingNamed reports whether a name is that of a recording: a path, or the name of
// something that is here.
func recordingNamed(name string) bool {
	_, err := os.Stat(name)
	return !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, `/\`)
}

// fetched asks a host for a recording of itself.
func fetched(ctx context.Context, name string, h hostFlags) (snapshot.Window, error) {
	rec, err := remote.Fetch(ctx, name, h.interval)
	if err != nil {
		return snapshot.Window{}, err
	}
	defer rec.Close()
	return read.Window(rec, h.options())
}
