package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/monitor"
	"github.com/verbena-rdma/verbena/diag/serve"
)

// monitorFlags are the flags of verbena monitor.
type monitorFlags struct {
	host    hostFlags
	doctor  doctorFlags
	listen  string
	names   []string
	every   time.Duration
	examine time.Duration
	exclude []string
	noLive  bool
}

func (a app) monitorCommand() *cobra.Command {
	var s monitorFlags
	c := &cobra.Command{
		Use:   "monitor [RECORDING...]",
		Short: "A live page of this host's RDMA traffic and what is wrong with it",
		Long: "Serves a page with the last ten minutes of throughput, pause, ECN, CNPs, retransmissions and order by\n" +
			"device and priority, and the doctor's findings beside them; of this host, and of recorded ones.\n\n" +
			"A RECORDING is a directory that verbena snapshot wrote, one text file of the same (.txtar), or a directory of\n" +
			"such recordings, each of which becomes a host of its name: verbena sim run SCENARIO --snapshots DIR writes\n" +
			"one for every host and switch. The page has a list of hosts to choose from, 64 at most.\n\n" +
			"It reads only, has no password and listens on loopback unless told otherwise. From another machine:\n" +
			"ssh -L 9880:127.0.0.1:9880 HOST, and http://localhost:9880/ there.",
		Example: "  verbena monitor                          this host\n" +
			"  verbena monitor gpu-17/ gpu-18/          and two recorded ones\n" +
			"  verbena sim run pfc-storm --snapshots snaps && verbena monitor --recorded-only snaps",
		RunE: func(cmd *cobra.Command, paths []string) error { return a.monitor(cmd.Context(), &s, paths) },
	}
	f := c.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:9880", "`address` and port to listen on")
	f.StringSliceVar(&s.names, "allow-host", nil, allowHostHelp)
	f.DurationVar(&s.every, "every", time.Second, "time between two looks at the counters")
	f.DurationVar(&s.examine, "examine", 10*time.Second, "time between two looks of the doctor")
	f.StringSliceVar(&s.exclude, "exclude-devices", nil, "`devices` of which not even a file is read, by name with commas")
	f.BoolVar(&s.noLive, "recorded-only", false, "only the recordings, not this host")
	f.StringArrayVar(&s.doctor.rules, "rules", nil, "a `file` of the doctor's rules to add or put in place of others")
	f.StringVar(&s.host.sysfsRoot, "sysfs-root", "/sys", "where sysfs is mounted")
	f.StringVar(&s.host.procRoot, "proc-root", "/proc", "where proc is mounted")
	return c
}

// minEvery is the shortest time between two looks: drivers refresh counters every 10 ms.
const minEvery = 100 * time.Millisecond

func (a app) monitor(ctx context.Context, s *monitorFlags, paths []string) error {
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
	recs, err := a.recordings(paths, monitor.MaxHosts-len(cfg.Hosts))
	if err != nil {
		return err
	}
	defer recs.close()
	cfg.Hosts = append(cfg.Hosts, recs.hosts(cfg.Hosts)...)
	if len(cfg.Hosts) == 0 {
		return errors.New("--recorded-only without a recording: there is no host to show")
	}
	m, err := monitor.New(cfg)
	if err != nil {
		return err
	}
	srv, err := serve.Listen(ctx, s.listen)
	if err != nil {
		return err
	}
	if err := srv.Allow(s.names); err != nil {
		return errors.Join(err, srv.Close())
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
