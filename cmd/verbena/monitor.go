package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/serve"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// monitorFlags are the flags of verbena monitor.
type monitorFlags struct {
	host    hostFlags
	doctor  doctorFlags
	listen  string
	every   time.Duration
	examine time.Duration
	exclude []string
	noLive  bool
}

func (a app) monitorCommand() *cobra.Command {
	var s monitorFlags
	c := &cobra.Command{
		Use:   "monitor [DIRECTORY...]",
		Short: "A live page of this host's RDMA traffic and what is wrong with it",
		Long: "Serves a page with the last ten minutes of throughput, pause, ECN, CNPs, retransmissions and order by\n" +
			"device and priority, and the doctor's findings beside them; of this host, and of recorded ones that are\n" +
			"named (verbena snapshot makes them). It reads only, has no password and listens on loopback unless told\n" +
			"otherwise.",
		RunE: func(cmd *cobra.Command, dirs []string) error { return a.monitor(cmd.Context(), &s, dirs) },
	}
	f := c.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:9880", "`address` and port to listen on")
	f.DurationVar(&s.every, "every", time.Second, "time between two looks at the counters")
	f.DurationVar(&s.examine, "examine", 10*time.Second, "time between two looks of the doctor")
	f.StringSliceVar(&s.exclude, "exclude-devices", nil, "`devices` of which not even a file is read, by name with commas")
	f.BoolVar(&s.noLive, "recorded-only", false, "not this host")
	f.StringArrayVar(&s.doctor.rules, "rules", nil, "a `file` of the doctor's rules to add or put in place of others")
	f.StringVar(&s.host.sysfsRoot, "sysfs-root", "/sys", "where sysfs is mounted")
	f.StringVar(&s.host.procRoot, "proc-root", "/proc", "where proc is mounted")
	return c
}

// minEvery is the shortest time between two looks: drivers refresh counters every 10 ms.
const minEvery = 100 * time.Millisecond

func (a app) monitor(ctx context.Context, s *monitorFlags, dirs []string) error {
	for _, d := range []struct {
		flag string
		v    time.Duration
	}{{"--every", s.every}, {"--examine", s.examine}} {
		if d.v < minEvery || d.v > maxInterval {
			return fmt.Errorf("%s is %v, must be %v to %v", d.flag, d.v, minEvery, maxInterval)
		}
	}
	rules, err := s.doctor.load()
	if err != nil {
		return err
	}
	cfg := monitor.Config{Rules: rules, Every: s.every, Examine: s.examine}
	if !s.noLive {
		live, err := s.host.live()
		if err != nil {
			return err
		}
		defer live.Close()
		cfg.Hosts = append(cfg.Hosts, liveHost(live, s.exclude))
	}
	for _, dir := range dirs {
		rec, err := source.Open(dir)
		if err != nil {
			return err
		}
		defer rec.Close()
		cfg.Hosts = append(cfg.Hosts, recordedHost(rec, dir, cfg.Hosts))
	}
	m, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	srv, err := serve.Listen(ctx, s.listen)
	if err != nil {
		return err
	}
	srv.Announce(a.err, "monitor")
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	err = srv.Serve(ctx, m.Handler())
	stop()
	<-done
	return err
}

// liveHost is this host: counters at every look, all of it for the doctor.
func liveHost(live *source.Live, exclude []string) monitor.Host {
	counters := read.Options{Exclude: exclude, NoResources: true, NoSystem: true, NoApp: true, Counters: true}
	return monitor.Host{
		Name: "this host",
		Look: func() *snapshot.Snapshot { return read.Host(live, counters) },
		Full: func() *snapshot.Snapshot { return read.Host(live, read.Options{Exclude: exclude, NoApp: true}) },
	}
}

// recordedHost is a recording, under the host's name or that of its directory.
func recordedHost(rec *source.Recording, dir string, others []monitor.Host) monitor.Host {
	base := rec.Meta().Host
	if base == "" {
		base = filepath.Base(dir)
	}
	name := base
	for n := 2; ; n++ {
		taken := false
		for _, h := range others {
			taken = taken || h.Name == name
		}
		if !taken {
			break
		}
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	return monitor.Host{Name: name, Times: rec.Times(), Past: func(i int) *snapshot.Snapshot { return read.Host(rec.At(i), read.Options{}) }}
}
