package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/perf"
	"github.com/verbena-rdma/verbena/verbs"
)

// inspect opens a device to look at it, at a spare UDP port, so that it does
// not matter who has the port of RoCE.
func inspect(cfg verbs.Config) (*verbs.Device, error) {
	port, err := sparePort()
	if err != nil {
		return nil, err
	}
	if !cfg.Ethernet { // such a one has no other port
		cfg.Port = port
	}
	return verbs.Open(cfg)
}

// sparePort returns a UDP port that is free at the moment.
func sparePort() (uint16, error) {
	c, err := net.ListenPacket("udp", ":0")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Port(), nil
}

// deviceByName returns how to open what -d names: an address, an interface or
// a device, with packet: before it an Ethernet device there; by default the first
// device that can be opened.
func deviceByName(name string) (verbs.Config, error) {
	if of, ok := strings.CutPrefix(name, perf.EthernetPrefix); ok {
		cfg, err := deviceByName(of)
		cfg.Ethernet = true
		return cfg, err
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return verbs.Config{Addr: a}, nil
	}
	list, err := verbs.ListDevices()
	if err != nil {
		return verbs.Config{}, err
	}
	var names []string
	for _, d := range list {
		if name == "" && d.Why == "" || name == d.Name || name == d.Netdev {
			return verbs.Config{Netdev: d.Netdev}, nil
		}
		names = append(names, d.Name)
	}
	if name == "" {
		return verbs.Config{}, errors.New("no device: " + whyNone(list))
	}
	return verbs.Config{}, fmt.Errorf("no device %s: there are %s, and an address of theirs will do", name, strings.Join(names, ", "))
}

// whyNone says why there is no device.
func whyNone(list []verbs.DeviceInfo) string {
	if len(list) == 0 {
		return "this host has no network interface"
	}
	var why []string
	for _, d := range list {
		why = append(why, d.Netdev+": "+d.Why)
	}
	return strings.Join(why, "; ")
}

type deviceJSON struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind,omitempty"`
	Netdev string   `json:"netdev"`
	GUID   string   `json:"node_guid,omitempty"`
	Addrs  []string `json:"addresses"`
	MTU    int      `json:"link_mtu"`
	Up     bool     `json:"up"`
	Why    string   `json:"unusable,omitempty"`
}

func (a app) devicesCommand() *cobra.Command {
	var (
		l   listFlags
		all bool
	)
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices, as ibv_devices does",
		Long: "Lists the devices that the kernel has, those that processes hold, and our own that could be opened\n" +
			"on the interfaces of this host.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.devices(&l, all) },
	}
	l.withOwn(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list interfaces that cannot be opened too, with the reason")
	return cmd
}

func (a app) devices(l *listFlags, all bool) error {
	s, err := l.devices(justDevices)
	if err != nil {
		return err
	}
	var list []verbs.DeviceInfo
	if l.dir == "" && !l.kernel {
		if list, err = verbs.ListDevices(); err != nil {
			return err
		}
	}
	docs := []deviceJSON{}
	for i := range s.Devices {
		docs = append(docs, deviceDoc(s, &s.Devices[i]))
	}
	out := listing.Devices(s)
	for _, d := range list {
		if s.Device(d.Name) != nil || !all {
			continue
		}
		why := d.Why
		if why == "" {
			why = "it could not be opened"
		}
		j := deviceJSON{Name: d.Name, Netdev: d.Netdev, Addrs: []string{}, MTU: d.MTU, Up: d.Up, Why: why}
		for _, x := range d.Addrs {
			j.Addrs = append(j.Addrs, x.String())
		}
		docs = append(docs, j)
		out = fmt.Appendf(out, "    %-16s\t(%s)\n", d.Name, why)
	}
	if l.asJSON {
		return writeJSON(a.out, docs)
	}
	if len(s.Devices) == 0 && !all && list != nil {
		fmt.Fprintln(a.err, "no device: "+whyNone(list))
	}
	_, err = a.out.Write(out)
	return err
}

// deviceDoc is a device in JSON.
func deviceDoc(s *snapshot.Snapshot, d *snapshot.Device) deviceJSON {
	j := deviceJSON{Name: d.Name, Kind: string(d.Kind), GUID: strings.ReplaceAll(d.NodeGUID.Or(""), ":", ""), Addrs: []string{}}
	if len(d.Ports) == 0 {
		return j
	}
	p := &d.Ports[0]
	j.Netdev, j.Up = p.Netdev.Or(""), p.State.Or(0) == 4
	for _, g := range p.GIDs {
		if a, err := netip.ParseAddr(g.GID); err == nil && p.LinkLayer.Or("") == "Ethernet" {
			j.Addrs = append(j.Addrs, a.Unmap().String())
		}
	}
	if n := s.Netdev(j.Netdev); n != nil {
		j.MTU = n.MTU.Or(0)
	} else {
		j.MTU = int(p.Attr["link_mtu"])
	}
	return j
}
