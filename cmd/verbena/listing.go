package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/verbs"
)

// listFlags say which host a listing is about, and in which form.
type listFlags struct {
	hostFlags
	asJSON bool
	kernel bool
	shards int                      // of devices of ours that are opened; 0 for 1
	queues map[string][]verbs.Queue // theirs, by name, once read
}

func (l *listFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.dir, "host", "", "a recorded host: a `directory` of verbena snapshot, or one text file (txtar); default: this host")
	f.StringVar(&l.sysfsRoot, "sysfs-root", "/sys", "where sysfs is mounted")
	f.StringVar(&l.procRoot, "proc-root", "/proc", "where proc is mounted")
	f.BoolVar(&l.asJSON, "json", false, "print JSON")
}

// withOwn adds the flag of listings that show devices which nobody has opened.
func (l *listFlags) withOwn(c *cobra.Command) {
	l.flags(c)
	c.Flags().BoolVar(&l.kernel, "kernel", false, "only devices that the kernel has, or that a process holds; not those that could be opened")
}

// read reads the host that the flags name, the last instant of a recording.
func (l *listFlags) read(opt read.Options) (*snapshot.Snapshot, error) {
	opt.NoApp = true
	if l.dir != "" {
		w, err := recordedWindow(l.dir, opt)
		return w.After, err
	}
	live, err := l.live()
	if err != nil {
		return nil, err
	}
	defer live.Close()
	return read.Host(live, opt), nil
}

// devices is read with the devices that could be opened beside.
func (l *listFlags) devices(opt read.Options) (*snapshot.Snapshot, error) {
	s, err := l.read(opt)
	if l.dir != "" || l.kernel {
		return s, err
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	if err != nil { // no live host on this system: our own devices are all there is
		s = &snapshot.Snapshot{Version: snapshot.Version, Origin: snapshot.Live}
	}
	own, queues, err := ownDevices(l.shards)
	if err != nil {
		return nil, err
	}
	l.queues = queues
	for _, d := range own {
		if s.Device(d.Name) == nil {
			s.Devices = append(s.Devices, d)
		}
	}
	return s, nil
}

// justDevices is what ibv_devices and its like look at.
var justDevices = read.Options{NoSystem: true}

// say writes what a listing printed, and turns its refusal into an exit status.
func (a app) say(out []byte, err error) error {
	if _, werr := a.out.Write(out); werr != nil {
		return werr
	}
	var e *listing.Error
	if errors.As(err, &e) {
		return &statusError{status: e.Status, err: e}
	}
	return err
}

// maxLost is how many values are told one by one.
const maxLost = 16

// sayLost says which values of a listing stand for files that could not be read.
func (a app) sayLost(s *snapshot.Snapshot, device string) {
	lines := listing.Lost(s, device)
	for i, l := range lines {
		if i == maxLost {
			fmt.Fprintf(a.err, "not read: %d more values\n", len(lines)-i)
			return
		}
		fmt.Fprintf(a.err, "not read: %s\n", l)
	}
}

// wrongFlags gives the exit status of the original to command lines that are wrong.
func wrongFlags(c *cobra.Command, status int) *cobra.Command {
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &statusError{status: status, err: err} })
	return c
}

// hostOptions takes --host, --sysfs-root and --proc-root out of the arguments of a
// tool that reads its command line itself.
func (l *listFlags) hostOptions(args []string) (rest []string, err error) {
	l.sysfsRoot, l.procRoot = "/sys", "/proc"
	into := map[string]*string{"--host": &l.dir, "--sysfs-root": &l.sysfsRoot, "--proc-root": &l.procRoot}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		to := into[name]
		if to == nil {
			rest = append(rest, args[i])
			continue
		}
		if !has {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s wants a directory", name)
			}
			value = args[i]
		}
		if value == "" {
			return nil, fmt.Errorf("%s is given and empty", name)
		}
		*to = value
	}
	return rest, nil
}

// rdmaCommand is the rdma tool. It reads its command line as the original does.
func (a app) rdmaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rdma [--host DIR] [-j|-p|-d] OBJECT [COMMAND …]",
		Short: "Show links, devices, resources and counters, as rdma does",
		Long: "Shows dev, link, resource, system and statistic in the layout of iproute2 6.1, and gid show, which that\n" +
			"does not have. Nothing is changed: objects are shown only. --host DIR shows a recorded host.\n" +
			"-j is JSON as the original's, -p pretty, -d details; --json is JSON also where the original has none.",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			var l listFlags
			rest, err := l.hostOptions(args)
			if err != nil {
				return err
			}
			if slices.Contains(rest, "--help") || slices.Contains(rest, "-h") {
				return cmd.Help()
			}
			asJSON, gids := gidShow(rest)
			l.asJSON = asJSON
			if gids {
				return a.allGIDs(&l, listing.GIDFilter{}, false)
			}
			opt := read.Options{NoNetdevs: true, NoSystem: true, NoResources: !asksObjects(rest)}
			s, err := l.read(opt)
			if err != nil {
				return err
			}
			return a.say(listing.RDMA(s, rest))
		},
	}
}

// gidShow reports whether a command line is rdma gid [show], and whether in JSON.
func gidShow(args []string) (asJSON, is bool) {
	var words []string
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			asJSON = asJSON || a == "--json" || !strings.HasPrefix(a, "--") && strings.Contains(a, "j")
			continue
		}
		words = append(words, a)
	}
	return asJSON, len(words) > 0 && words[0] == "gid" && (len(words) == 1 || len(words) == 2 && strings.HasPrefix("show", words[1]))
}

// asksObjects reports whether a command line of rdma may need the tables of objects,
// which can be long.
func asksObjects(args []string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		return strings.HasPrefix("resource", a) || strings.HasPrefix("statistic", a)
	}
	return false
}
