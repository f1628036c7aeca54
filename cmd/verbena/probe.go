package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/verbena-rdma/verbena/diag/probe"
)

// probeUsage is the exit status of a command line that cannot be done: 0 to 3
// are verdicts.
const probeUsage = 4

// maxSessions bounds what a listener may be asked to keep: some megabytes each.
const maxSessions = 256

// probeFlags are the options of verbena probe.
type probeFlags struct {
	listen, asJSON, noCapture bool
	v4, v6                    bool
	source, dscps             string
	dscp, port, sessions      int
	probe.Config
}

func (a app) probeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe HOST… | --listen [ADDRESS…]",
		Short: "Find out what the network does to RoCE: UDP 4791, MTU, DSCP, ECN, loss, times",
		Long: "Probes the way to hosts that run \"verbena probe --listen\", each direction apart: is UDP 4791 open, how large a packet passes,\n" +
			"do DSCP and ECN arrive unchanged, how long do packets take by source port, how many are lost or overtaken; and says what\n" +
			"each failure does to a queue pair. Needs no privilege; as root it also hears where a firewall of the host, or an RNIC that\n" +
			"owns the port, keeps packets from a socket. Probes are RoCE packets that no RNIC answers.\n\n" +
			"Exit status: 0 nothing found, 1 warnings, 2 failures, 3 cannot judge, 4 wrong usage. Needs TCP and UDP 14791 to the listener.",
		Example: "  verbena probe --listen                 on one host\n  verbena probe 10.0.0.2                 on the other\n  verbena probe --json --paths 8 hostA hostB",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.listen {
				return a.probeListen(cmd.Context(), &f, cmd.Flags(), args)
			}
			return a.probeHosts(cmd.Context(), &f, cmd.Flags(), args)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &statusError{probeUsage, err} })
	fs := cmd.Flags()
	fs.BoolVar(&f.listen, "listen", false, "be the far end; arguments are the addresses to listen on, none: all")
	fs.BoolVar(&f.asJSON, "json", false, "print one JSON document")
	fs.IntVar(&f.Count, "count", 25, "packets for each source port")
	fs.DurationVar(&f.Interval, "interval", 0, "time between packets, 10µs to 100ms (default 2ms)")
	fs.IntVar(&f.Paths, "paths", 4, "source ports to try, 1 to 16")
	fs.DurationVar(&f.Timeout, "timeout", 0, "how long a packet is waited for, 10ms to 10s (default 1s)")
	fs.IntVar(&f.dscp, "dscp", 26, "DSCP of RoCE, 0 to 63")
	fs.StringVar(&f.dscps, "dscps", "", "code points to try, with commas (default 0,8,10,26,34,46,48)")
	fs.IntVar(&f.Burst, "burst", 32, "packets of a burst, 2 to 512; 0: none")
	fs.IntVar(&f.port, "port", probe.ControlPort, "TCP and UDP port of the listener")
	fs.IntVar(&f.sessions, "max-sessions", 16, "with --listen: hosts served at a time")
	fs.IntVar(&f.Parallel, "parallel", 8, "hosts that are probed at a time, 1 to 64")
	fs.StringVar(&f.source, "source", "", "address to probe from")
	fs.BoolVarP(&f.v4, "ipv4", "4", false, "IPv4 only")
	fs.BoolVarP(&f.v6, "ipv6", "6", false, "IPv6 only")
	fs.BoolVar(&f.noCapture, "no-capture", false, "open no packet socket, even as root")
	return cmd
}

// fill checks the options.
func (f *probeFlags) fill() error {
	if f.port < 1 || f.port > 65535 || f.port == probe.RoCEPort {
		return fmt.Errorf("--port %d: can be 1 to 65535, and not %d", f.port, probe.RoCEPort)
	}
	if f.dscp < 0 || f.dscp > 63 {
		return fmt.Errorf("--dscp %d: can be 0 to 63", f.dscp)
	}
	if f.v4 && f.v6 {
		return errors.New("-4 and -6: one of them")
	}
	f.Config.Port, f.Config.DSCP, f.Config.Class, f.Config.Version = uint16(f.port), uint8(f.dscp), true, buildVersion()
	switch {
	case f.v4:
		f.Family = 4
	case f.v6:
		f.Family = 6
	}
	if f.Burst < 0 {
		return fmt.Errorf("--burst %d: can be 2 to 512, or 0 for none", f.Burst)
	}
	if f.Burst == 0 {
		f.Burst = -1
	}
	for _, v := range []struct {
		name string
		n    int
	}{{"count", f.Count}, {"paths", f.Paths}, {"parallel", f.Parallel}, {"max-sessions", f.sessions}} {
		if v.n < 1 {
			return fmt.Errorf("--%s %d: must be at least 1", v.name, v.n)
		}
	}
	if f.sessions > maxSessions {
		return fmt.Errorf("--max-sessions %d: can be 1 to %d", f.sessions, maxSessions)
	}
	if f.noCapture {
		f.Capture = probe.CaptureNever
	}
	if f.source != "" {
		a, err := netip.ParseAddr(f.source)
		if err != nil {
			return fmt.Errorf("--source %q: not an address", f.source)
		}
		f.Source = a
	}
	if f.dscps == "" {
		return nil
	}
	for s := range strings.SplitSeq(f.dscps, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 6)
		if err != nil {
			return fmt.Errorf("--dscps %q: %q is not a number from 0 to 63", f.dscps, s)
		}
		f.DSCPs = append(f.DSCPs, uint8(n))
	}
	return nil
}

// probeDoc is what --json prints.
type probeDoc struct {
	Program string         `json:"program"`
	Version int            `json:"version"` // of this document: raised when a field changes its meaning
	Status  probe.Status   `json:"status"`
	Hosts   []probe.Result `json:"hosts"`
}

// wrongWith returns an option that was given and is one of names; "" if none.
func wrongWith(fs *pflag.FlagSet, names ...string) string {
	for _, n := range names {
		if fs.Changed(n) {
			return n
		}
	}
	return ""
}

func (a app) probeHosts(ctx context.Context, f *probeFlags, fs *pflag.FlagSet, hosts []string) error {
	if err := f.fill(); err != nil {
		return &statusError{probeUsage, err}
	}
	if len(hosts) == 0 {
		return &statusError{probeUsage, errors.New("name hosts that run \"verbena probe --listen\", or use --listen")}
	}
	for _, h := range hosts {
		if strings.TrimSpace(h) == "" {
			return &statusError{probeUsage, errors.New("the host is empty")}
		}
	}
	if flag := wrongWith(fs, "max-sessions"); flag != "" {
		return &statusError{probeUsage, fmt.Errorf("--%s: only with --listen", flag)}
	}
	results, err := probe.Run(ctx, f.Config, hosts)
	if err != nil && ctx.Err() == nil {
		return &statusError{probeUsage, err}
	}
	if ctx.Err() != nil && f.asJSON {
		return ctx.Err()
	}
	doc := probeDoc{Program: "verbena probe", Version: 1, Hosts: results}
	for i := range results {
		doc.Status = max(doc.Status, results[i].Status)
	}
	if f.asJSON {
		if err := writeJSON(a.out, doc); err != nil {
			return err
		}
	} else {
		for i := range results {
			if ctx.Err() != nil && results[i].Error != "" {
				continue
			}
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			if err := results[i].Print(a.out, a.columns()); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := doc.Status.ExitCode(); code != 0 {
		return &quietError{code}
	}
	return nil
}

func (a app) probeListen(ctx context.Context, f *probeFlags, fs *pflag.FlagSet, args []string) error {
	if flag := wrongWith(fs, "json", "count", "interval", "paths", "timeout", "dscp", "dscps", "burst", "parallel", "source", "ipv4", "ipv6"); flag != "" {
		return &statusError{probeUsage, fmt.Errorf("--%s: not with --listen, the probing host decides it", flag)}
	}
	if err := f.fill(); err != nil {
		return &statusError{probeUsage, err}
	}
	cfg := probe.ListenConfig{
		Port: f.Config.Port, MaxSessions: f.sessions, Capture: f.Capture, Version: f.Version,
		Logf: func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) },
	}
	for _, s := range args {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return &statusError{probeUsage, fmt.Errorf("--listen %q: not an address", s)}
		}
		cfg.Addrs = append(cfg.Addrs, addr)
	}
	l, err := probe.Listen(cfg)
	if err != nil {
		return err
	}
	for _, h := range l.Hears() {
		how := "hears UDP 4791 by a socket"
		switch {
		case h.Host.Socket && h.Host.Capture:
			how += " and at the interface"
		case h.Host.Socket:
			how += fmt.Sprintf(" only (packet socket: %s)", h.Host.CaptureWhy)
		case h.Host.Capture:
			how = fmt.Sprintf("hears UDP 4791 at the interface only: %s", h.Host.SocketWhy)
		case !h.Host.Socket:
			how = fmt.Sprintf("cannot hear UDP 4791: %s; packet socket: %s", h.Host.SocketWhy, h.Host.CaptureWhy)
		}
		fmt.Fprintf(a.out, "listening on %v; %s\n", h.Control, how)
	}
	if len(cfg.Addrs) == 0 {
		fmt.Fprintln(a.out, "anybody who reaches this host may probe it: give addresses after --listen to listen on those only")
	}
	return l.Serve(ctx)
}

// columns is the width of the terminal that out is; 0 if it is none.
func (a app) columns() int {
	f, ok := a.terminal()
	if !ok {
		return 0
	}
	width, _, _ := terminalSize(f)
	return width
}
