package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// justNetdevs is what the listings of interfaces look at.
var justNetdevs = read.Options{NoSystem: true, NoResources: true}

func (a app) ibstatCommand() *cobra.Command {
	var (
		l listFlags
		o listing.IBStatOptions
	)
	cmd := &cobra.Command{
		Use:   "ibstat [CA [PORT]]",
		Short: "Print the state of devices and ports, as ibstat does",
		Args:  cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Device = args[0]
			}
			if len(args) > 1 {
				o.Port = args[1]
			}
			s, err := l.devices(justNetdevs)
			if err != nil {
				return err
			}
			out, err := listing.IBStat(s, o)
			if l.asJSON && err == nil {
				docs := []any{}
				for i := range s.Devices {
					if d := &s.Devices[i]; o.Device == "" || d.Name == o.Device {
						docs = append(docs, ibstatJSON(d))
					}
				}
				return writeJSON(a.out, docs)
			}
			if !o.List && !o.GUIDs {
				a.sayLost(s, o.Device)
			}
			return a.say(out, err)
		},
	}
	l.withOwn(cmd)
	f := cmd.Flags()
	f.BoolVarP(&o.List, "list_of_cas", "l", false, "list all devices")
	f.BoolVarP(&o.Short, "short", "s", false, "short output")
	f.BoolVarP(&o.GUIDs, "port_list", "p", false, "list the ports' GUIDs")
	return cmd
}

func ibstatJSON(d *snapshot.Device) map[string]any {
	ports := []any{}
	for i := range d.Ports {
		p := &d.Ports[i]
		ports = append(ports, map[string]any{
			"port": p.Number, "state": p.State, "phys_state": p.PhysState, "rate": p.Rate, "rate_mbps": p.RateMbps,
			"lid": p.LID, "lmc": p.LMC, "sm_lid": p.SMLID, "cap_mask": p.CapMask, "link_layer": p.LinkLayer,
		})
	}
	return map[string]any{
		"ca": d.Name, "ca_type": d.HCAType, "fw_ver": d.Firmware, "hw_rev": d.HWRev,
		"node_guid": d.NodeGUID, "sys_image_guid": d.SysImageGUID, "ports": ports,
	}
}

func (a app) showGIDsCommand() *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:     "show-gids [DEV [PORT]]",
		Aliases: []string{"show_gids"},
		Short:   "List the GID tables, as show_gids does, in numeric order",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var f listing.GIDFilter
			if len(args) > 0 {
				f.Device = args[0]
			}
			if len(args) > 1 {
				n, err := strconv.Atoi(args[1])
				if err != nil || n < 1 || n > 255 {
					return fmt.Errorf("port %q: ports are 1 to 255", args[1])
				}
				f.Port = n
			}
			return a.allGIDs(&l, f, true)
		},
	}
	l.withOwn(cmd)
	return cmd
}

// allGIDs lists the GID tables of the kernel's and our own devices.
func (a app) allGIDs(l *listFlags, f listing.GIDFilter, layout bool) error {
	s, err := l.devices(justNetdevs)
	if err != nil {
		return err
	}
	rows, err := f.Rows(s)
	switch {
	case l.asJSON && err == nil:
		return writeJSON(a.out, rows)
	case layout && !l.asJSON:
		return a.say(listing.ShowGIDs(s, f))
	case err != nil:
		return a.say(nil, err)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "DEV\tPORT\tINDEX\tGID\tADDRESS\tVER\tNETDEV\tUSABLE")
	for _, r := range rows {
		usable := "yes"
		if !r.Usable {
			usable = "no: " + r.Why
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", r.Device, r.Port, r.Index, r.GID, r.Address, listing.Version(r.Type), r.Netdev, usable)
	}
	return w.Flush()
}

func (a app) perfqueryCommand() *cobra.Command {
	var (
		l        listFlags
		ca       string
		port     int
		extended bool
	)
	cmd := &cobra.Command{
		Use:   "perfquery",
		Short: "Print the counters of a port, as perfquery -x does, on RoCE too",
		Long: "Prints the extended port counters of a local port. The original asks over InfiniBand's management datagrams\n" +
			"and does not work on RoCE; this reads sysfs, and its first line says so. Data counters are in words of 4 bytes.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := l.read(read.Options{NoSystem: true, NoResources: true, NoNetdevs: true})
			if err != nil {
				return err
			}
			if l.asJSON {
				doc, err := listing.PerfCounters(s, ca, port)
				if err != nil {
					return a.say(nil, err)
				}
				return writeJSON(a.out, doc)
			}
			return a.say(listing.PerfQuery(s, ca, port))
		},
	}
	l.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&ca, "Ca", "C", "", "device; default: the first with an active port")
	f.IntVarP(&port, "Port", "P", 0, "port; default: the first")
	f.BoolVarP(&extended, "extended", "x", true, "extended counters: the only ones")
	return cmd
}

func (a app) roceModeCommand() *cobra.Command {
	var (
		l      listFlags
		device string
		port   int
		mode   int
	)
	cmd := &cobra.Command{
		Use:     "cma-roce-mode -d DEVICE",
		Aliases: []string{"cma_roce_mode"},
		Short:   "Show or set the RoCE version of the connection manager, as cma_roce_mode does",
		Long: "Shows which version of RoCE the kernel's connection manager takes for a port, or sets it with -m 1 or -m 2.\n" +
			"Showing changes nothing: where configfs has no entry, it says that the default holds.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("mode") {
				if mode != 1 && mode != 2 {
					return fmt.Errorf("-m is %d, must be 1 (RoCE v1) or 2 (RoCE v2)", mode)
				}
				if l.dir != "" {
					return fmt.Errorf("-m sets this host; --host %s is a recording", l.dir)
				}
				if err := setRoCEMode(l.sysfsRoot, device, port, mode); err != nil {
					return err
				}
				_, err := fmt.Fprintln(a.out, roceModes[mode])
				return err
			}
			s, err := l.read(read.Options{NoSystem: true, NoResources: true, NoNetdevs: true})
			if err != nil {
				return err
			}
			out, err := listing.RoCEMode(s, device, port)
			if l.asJSON && err == nil {
				p := s.Device(device)
				return writeJSON(a.out, map[string]any{"device": device, "port": port, "default_roce_mode": string(out[:len(out)-1]), "kind": p.Kind})
			}
			return a.say(out, err)
		},
	}
	l.flags(cmd)
	f := cmd.Flags()
	f.StringVarP(&device, "device", "d", "", "device")
	f.IntVarP(&port, "port", "p", 1, "port")
	f.IntVarP(&mode, "mode", "m", 0, "1 for RoCE v1, 2 for RoCE v2: set it")
	_ = cmd.MarkFlagRequired("device")
	return cmd
}

var roceModes = map[int]string{1: "IB/RoCE v1", 2: "RoCE v2"}

// setRoCEMode writes the version into configfs. The kernel keeps it when the entry
// that was made for it goes again.
func setRoCEMode(sysfs, device string, port, mode int) error {
	if device != filepath.Base(device) || device == "." || device == ".." {
		return fmt.Errorf("%q is no device", device)
	}
	at := filepath.Join(sysfs, "class/infiniband", device)
	if !isDir(at) {
		return fmt.Errorf("there is no device %s in %s", device, filepath.Dir(at))
	}
	if !isDir(filepath.Join(at, "ports", strconv.Itoa(port))) {
		return fmt.Errorf("%s has no port %d", device, port)
	}
	root := filepath.Join(sysfs, "kernel/config/rdma_cm")
	if !isDir(root) {
		return fmt.Errorf("the connection manager has no settings here: mount configfs at %s/kernel/config and load rdma_cm", sysfs)
	}
	dir := filepath.Join(root, device)
	if err := os.Mkdir(dir, 0o755); err == nil {
		defer os.Remove(dir)
	} else if !os.IsExist(err) {
		return fmt.Errorf("the settings of %s: %w", device, err)
	}
	file := filepath.Join(dir, "ports", strconv.Itoa(port), "default_roce_mode")
	if err := os.WriteFile(file, []byte(roceModes[mode]+"\n"), 0); err != nil {
		return fmt.Errorf("%s port %d takes no %s: %w", device, port, roceModes[mode], err)
	}
	return nil
}

func isDir(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

// netdevTool makes a command about one interface.
func (a app) netdevTool(use, short, long string, more func(*cobra.Command), show func(s *snapshot.Snapshot, l *listFlags, args []string) ([]byte, any, error), args cobra.PositionalArgs) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: args,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := l.read(justNetdevs)
			if err != nil {
				return err
			}
			out, doc, err := show(s, &l, args)
			if l.asJSON && err == nil && doc != nil {
				return writeJSON(a.out, doc)
			}
			return a.say(out, err)
		},
	}
	l.flags(cmd)
	if more != nil {
		more(cmd)
	}
	return cmd
}

func (a app) nicStatsCommand() *cobra.Command {
	var all bool
	return a.netdevTool("nic-stats IF", "Print the counters of an interface about pause, PFC, ECN, CNPs and discards, as ethtool -S does",
		"Prints ethtool's statistics of an interface, or of the interface of a device: the lines about flow control,\nmarks and drops, or all of them with --all.",
		func(c *cobra.Command) { c.Flags().BoolVarP(&all, "all", "a", false, "all statistics") },
		func(s *snapshot.Snapshot, _ *listFlags, args []string) ([]byte, any, error) {
			out, err := listing.Statistics(s, args[0], !all)
			return out, listing.StatisticsMap(s, args[0], !all), err
		}, cobra.ExactArgs(1))
}

func (a app) flowHashCommand() *cobra.Command {
	return a.netdevTool("flow-hash udp4|udp6 IF", "Print what receive-side scaling hashes, as ethtool -n IF rx-flow-hash does", "", nil,
		func(s *snapshot.Snapshot, _ *listFlags, args []string) ([]byte, any, error) {
			out, err := listing.FlowHash(s, args[1], args[0])
			return out, map[string]any{"interface": args[1], "flow": args[0], "text": string(out)}, err
		}, cobra.ExactArgs(2))
}

func (a app) qosCommand() *cobra.Command {
	var netdev string
	return a.netdevTool("qos -i IF", "Print trust, buffers, PFC and ETS of an interface, as mlnx_qos -i does",
		"Prints the quality of service of an interface in the layout of mlnx_qos, for any driver with DCB.\nIt shows; dcb or mlnx_qos change.",
		func(c *cobra.Command) {
			c.Flags().StringVarP(&netdev, "interface", "i", "", "interface, or a device with one")
			_ = c.MarkFlagRequired("interface")
		},
		func(s *snapshot.Snapshot, _ *listFlags, _ []string) ([]byte, any, error) {
			out, err := listing.MlnxQoS(s, netdev)
			if err != nil {
				return out, nil, err
			}
			n, err := listing.Interface(s, netdev)
			if err != nil {
				return nil, nil, err
			}
			return out, n.DCB, nil
		}, cobra.NoArgs)
}

func (a app) pfcCommand() *cobra.Command {
	var statistics bool
	return a.netdevTool("pfc IF", "Print priority flow control of an interface, as dcb pfc show does", "",
		func(c *cobra.Command) {
			c.Flags().BoolVarP(&statistics, "statistics", "s", false, "frames sent and received by priority too")
		},
		func(s *snapshot.Snapshot, l *listFlags, args []string) ([]byte, any, error) {
			out, err := listing.DCBPFC(s, args[0], statistics, l.asJSON)
			return out, nil, err
		}, cobra.ExactArgs(1))
}
