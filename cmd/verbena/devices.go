package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/perf"
	"github.com/verbena-rdma/verbena/perf/report"
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
	Netdev string   `json:"netdev"`
	GUID   string   `json:"node_guid,omitempty"`
	Addrs  []string `json:"addresses"`
	MTU    int      `json:"link_mtu"`
	Up     bool     `json:"up"`
	Why    string   `json:"unusable,omitempty"`
}

func (a app) devicesCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices, as ibv_devices does",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.devices(asJSON, all) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list interfaces that cannot be opened too, with the reason")
	return cmd
}

func (a app) devices(asJSON, all bool) error {
	list, err := verbs.ListDevices()
	if err != nil {
		return err
	}
	out := []byte(report.DevicesHead)
	docs := []deviceJSON{}
	usable := 0
	for _, d := range list {
		j := deviceJSON{Name: d.Name, Netdev: d.Netdev, Addrs: []string{}, MTU: d.MTU, Up: d.Up, Why: d.Why}
		for _, x := range d.Addrs {
			j.Addrs = append(j.Addrs, x.String())
		}
		if d.Why == "" {
			usable++
			dev, err := inspect(verbs.Config{Netdev: d.Netdev})
			if err != nil {
				j.Why = oneLine(err.Error())
			} else {
				j.GUID = fmt.Sprintf("%016x", dev.Attr().GUID)
				out = report.AppendDevice(out, d.Name, dev.Attr().GUID)
				dev.Close()
			}
		}
		if j.Why != "" && all && !asJSON {
			out = fmt.Appendf(out, "    %-16s\t(%s)\n", d.Name, j.Why)
		}
		if j.Why == "" || all {
			docs = append(docs, j)
		}
	}
	if asJSON {
		return writeJSON(a.out, docs)
	}
	if usable == 0 && !all {
		fmt.Fprintln(a.err, "no device: "+whyNone(list))
	}
	_, err = a.out.Write(out)
	return err
}
