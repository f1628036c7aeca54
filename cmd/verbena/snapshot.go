package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/remote"
	"github.com/verbena-rdma/verbena/diag/serve"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
	"github.com/verbena-rdma/verbena/diag/source/anonymise"
)

type snapshotFlags struct {
	host      hostFlags
	devices   []string
	exclude   []string
	out       string
	interval  time.Duration
	anonymise bool
	key       string
	json      bool
	listen    string
	limit     int64 // bytes of the recording, 0 for what source allows
}

func (a app) snapshotCommand() *cobra.Command {
	var f snapshotFlags
	cmd := &cobra.Command{
		Use:   "snapshot -o DIR",
		Short: "Record what decides whether RDMA works on this host",
		Long: "Records the RDMA devices of this host, their ports, GIDs, counters and objects, the network interfaces\n" +
			"with statistics and data-center bridging, routes, settings and firewall, at two instants, into a new\n" +
			"directory that listings and doctor read anywhere. Nothing on the host is changed. What cannot be read is\n" +
			"recorded as that; without root some of it is (keys of memory, firewall).\n\n" +
			"With --listen nothing is written: verbena doctor --peer HOST elsewhere asks for a recording. Whoever reaches\n" +
			"the address can read what a recording has, without a password; nothing can be changed.",
		Example: "  verbena snapshot -o node7\n" +
			"  verbena snapshot -o node7 --anonymise --log job.log --app python3\n" +
			"  verbena snapshot -o node7 --interval 0\n" +
			"  verbena snapshot --listen 10.0.0.7:9881",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.snapshot(cmd.Context(), f) },
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "directory to write, new or empty")
	cmd.Flags().DurationVar(&f.interval, "interval", 10*time.Second, "time between the two instants; 0 records one")
	cmd.Flags().BoolVar(&f.anonymise, "anonymise", false, "replace IP and MAC addresses, GUIDs and host names")
	cmd.Flags().StringVar(&f.key, "anonymise-key", "", "replace by this word, so that hosts recorded with it still fit each other")
	cmd.Flags().StringVar(&f.listen, "listen", "", "hand recordings to who asks at this `address:port` instead of writing one (the usual port is 9881)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().StringVar(&f.host.sysfsRoot, "sysfs-root", "/sys", "read sysfs here, such as /host/sys in a container")
	cmd.Flags().StringVar(&f.host.procRoot, "proc-root", "/proc", "read proc here")
	cmd.Flags().IntVar(&f.host.pid, "pid", 0, "process whose limits and environment belong to the snapshot")
	cmd.Flags().StringVar(&f.host.app, "app", "", "the program, as all processes of this `name` (64 at most), instead of --pid")
	cmd.Flags().StringVar(&f.host.log, "log", "", "file with what the program printed")
	cmd.Flags().StringSliceVar(&f.devices, "devices", nil, "only these RDMA devices")
	cmd.Flags().StringSliceVar(&f.exclude, "exclude-devices", nil, "not these RDMA devices, not even a file of theirs")
	return cmd
}

// snapshotJSON is what snapshot --json prints.
type snapshotJSON struct {
	Directory string             `json:"directory"`
	Times     int                `json:"times"`
	Devices   []string           `json:"devices"`
	Netdevs   int                `json:"netdevs"`
	Problems  []snapshot.Problem `json:"problems"`
}

func (a app) snapshot(ctx context.Context, f snapshotFlags) error {
	switch {
	case f.listen != "" && (f.out != "" || f.json):
		return errors.New("--listen writes no recording: without -o and --json")
	case f.listen != "":
		return a.serveSnapshots(ctx, f)
	case f.out == "":
		return errors.New("say where to record: -o DIR, a new or empty directory")
	case f.interval < 0 || f.interval > 24*time.Hour:
		return fmt.Errorf("--interval %v: from 0 to 24h", f.interval)
	}
	snap, err := record(ctx, f)
	if err != nil {
		return err
	}
	return a.tellSnapshot(snap, f)
}

// serveSnapshots records for whoever asks, until the context ends.
func (a app) serveSnapshots(ctx context.Context, f snapshotFlags) error {
	f.host.later = true
	live, err := f.host.live() // flags that are wrong are so at once
	if err != nil {
		return err
	}
	live.Close()
	srv, err := serve.Listen(ctx, f.listen)
	if err != nil {
		return err
	}
	srv.Announce(a.err, "recordings of this host")
	return srv.Serve(ctx, remote.Handler(func(ctx context.Context, interval time.Duration, dir string) error {
		g := f
		g.out, g.interval, g.limit = dir, interval, source.MaxArchive
		_, err := record(ctx, g)
		return err
	}))
}

// record writes the recording that the flags ask for and returns its last instant.
func record(ctx context.Context, f snapshotFlags) (*snapshot.Snapshot, error) {
	live, err := f.host.live()
	if err != nil {
		return nil, err
	}
	defer live.Close()
	var src source.Source = live
	if f.anonymise || f.key != "" {
		src = anonymise.New(live, f.key)
	}
	rec, err := source.NewRecorder(src, f.out)
	if err != nil {
		return nil, err
	}
	if f.limit > 0 {
		rec.Limit(f.limit)
	}
	snap, err := instants(ctx, rec, f)
	if err != nil {
		rec.Abort()
		return nil, err
	}
	return snap, rec.Commit()
}

// instants records one or two instants and returns the last.
func instants(ctx context.Context, rec *source.Recorder, f snapshotFlags) (*snapshot.Snapshot, error) {
	opt := f.host.options()
	opt.Devices, opt.Exclude = f.devices, f.exclude
	s := read.Host(rec, opt)
	if f.interval > 0 {
		wait := time.NewTimer(f.interval)
		defer wait.Stop()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wait.C:
		}
		rec.Next()
		s = read.Host(rec, opt)
	}
	return s, ctx.Err()
}

func (a app) tellSnapshot(s *snapshot.Snapshot, f snapshotFlags) error {
	j := snapshotJSON{Directory: f.out, Times: 1, Devices: []string{}, Netdevs: len(s.Netdevs), Problems: s.Problems}
	if f.interval > 0 {
		j.Times = 2
	}
	for _, d := range s.Devices {
		j.Devices = append(j.Devices, d.Name)
	}
	for _, name := range f.devices {
		if !slices.Contains(j.Devices, name) {
			fmt.Fprintf(a.err, "--devices: there is no device %s\n", name)
		}
	}
	if j.Problems == nil {
		j.Problems = []snapshot.Problem{}
	}
	if f.json {
		return writeJSON(a.out, j)
	}
	for _, p := range s.Problems {
		fmt.Fprintf(a.err, "%s: %s\n", p.Place, p.Why)
	}
	fmt.Fprintf(a.out, "%s: %s, %s, %s", f.out, count(j.Times, "instant"), count(len(j.Devices), "RDMA device"), count(j.Netdevs, "interface"))
	if n := len(s.Problems); n > 0 {
		fmt.Fprintf(a.out, ", %s not readable", count(n, "place"))
	}
	_, err := fmt.Fprintln(a.out)
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
