package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/export"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/serve"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// allowHostHelp is what --allow-host of servers means.
const allowHostHelp = "`names` by which requests may call this server, such as that of a proxy, beside those of loopback"

// exporterFlags are the flags of verbena exporter.
type exporterFlags struct {
	host    hostFlags
	listen  string
	names   []string
	exclude []string
	perQP   int
	compat  bool
	once    bool
}

func (a app) exporterCommand() *cobra.Command {
	var s exporterFlags
	c := &cobra.Command{
		Use:   "exporter",
		Short: "RDMA metrics of this host for Prometheus",
		Long: "Serves the RDMA counters of this host and of Verbena's devices on it at /metrics, under names without\n" +
			"vendors and with units; the driver's own name is the label raw. It reads only, changes nothing and has no\n" +
			"password: it listens on loopback unless told otherwise.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.exporter(cmd.Context(), &s) },
	}
	f := c.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:9879", "`address` and port to listen on")
	f.StringSliceVar(&s.names, "allow-host", nil, allowHostHelp)
	f.StringSliceVar(&s.exclude, "exclude-devices", nil, "`devices` of which not even a file is read, by name with commas")
	f.IntVar(&s.perQP, "per-qp", 0, "export the counters of so many queue pairs of each device too")
	f.BoolVar(&s.compat, "compat", false, "also export under node_exporter's names, node_infiniband_*")
	f.BoolVar(&s.once, "once", false, "print the metrics once and end")
	f.StringVar(&s.host.sysfsRoot, "sysfs-root", "/sys", "where sysfs is mounted")
	f.StringVar(&s.host.procRoot, "proc-root", "/proc", "where proc is mounted")
	return c
}

// options say what of a host a scrape needs.
func (s *exporterFlags) options() read.Options {
	return read.Options{Exclude: s.exclude, NoSystem: true, NoApp: true, NoAttr: true, Counters: true, OwnCounts: s.perQP == 0}
}

func (a app) exporter(ctx context.Context, s *exporterFlags) error {
	if s.perQP < 0 || s.perQP > export.MaxQPs {
		return fmt.Errorf("--per-qp is %d, must be 0 to %d", s.perQP, export.MaxQPs)
	}
	live, err := s.host.live()
	if err != nil {
		return err
	}
	defer live.Close()
	opt := s.options()
	c := export.New(func() *snapshot.Snapshot { return read.Host(live, opt) },
		export.Options{Compat: s.compat, PerQP: s.perQP, Version: buildVersion()})
	if s.once {
		return export.Text(c, a.out)
	}
	srv, err := serve.Listen(ctx, s.listen)
	if err != nil {
		return err
	}
	if err := srv.Allow(s.names); err != nil {
		return errors.Join(err, srv.Close())
	}
	srv.Announce(a.err, "metrics")
	return srv.Serve(ctx, export.Handler(c))
}
