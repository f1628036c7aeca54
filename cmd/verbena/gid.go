package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/verbs"
)

func (a app) gidCommand() *cobra.Command {
	var (
		l          listFlags
		name, peer string
	)
	cmd := &cobra.Command{
		Use:   "gid [show]",
		Short: "List the GID table and say which row would be used",
		Long: "Lists the rows of each device's GID table: index, GID, RoCE version, interface, and whether it can be\n" +
			"used or why not. With --peer it says which device and row would be used towards that host, and why.\n\n" +
			"The rule: of the rows that are usable, of the peer's address family, and link-local exactly if the\n" +
			"peer is, the one whose address the host's routing would send from; then RoCE v2; then the lowest index.\n\n" +
			"verbena gid show lists the tables of all devices, the kernel's too; --host those of a recorded host.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "show" {
				return fmt.Errorf("unknown argument %q: verbena gid show", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || l.dir != "" || l.kernel {
				if name != "" || peer != "" {
					return errors.New("-d and --peer go with verbena gid of this host, without show, --host and --kernel")
				}
				return a.allGIDs(&l, listing.GIDFilter{}, false)
			}
			return a.gids(cmd.Context(), name, peer, l.asJSON)
		},
	}
	l.withOwn(cmd)
	f := cmd.Flags()
	f.StringVarP(&name, "ib-dev", "d", "", "device: vrb_<interface>, or an address, with packet: before it on AF_PACKET; default: all")
	f.StringVar(&peer, "peer", "", "a host: say which row would be used to reach it")
	return cmd
}

// gidJSON is a row in JSON documents.
func gidJSON(g verbs.GIDEntry) map[string]any {
	m := map[string]any{
		"index": g.Index, "gid": g.GID.String(), "address": report.GIDText(g.GID), "type": g.Type.String(), "netdev": g.Netdev, "usable": g.Unusable == "",
	}
	if g.Unusable != "" {
		m["why_not"] = g.Unusable
	}
	return m
}

func (a app) gids(ctx context.Context, name, peer string, asJSON bool) error {
	configs, err := devicesNamed(name)
	if err != nil {
		return err
	}
	var to netip.Addr
	if peer != "" {
		if to, err = resolve(ctx, peer); err != nil {
			return err
		}
	}
	docs := []any{}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	if !asJSON {
		fmt.Fprintln(w, "DEV\tINDEX\tGID\tADDRESS\tVER\tNETDEV\tUSABLE")
	}
	var choices []string
	for _, cfg := range configs {
		dev, err := inspect(cfg)
		if err != nil {
			return err
		}
		choice, index := "", -1
		if name != "" || routes(dev, to) {
			choice, index = choose(dev, to)
		}
		rows := []map[string]any{}
		for _, g := range dev.GIDs() {
			rows = append(rows, gidJSON(g))
			usable := "yes"
			if g.Unusable != "" {
				usable = "no: " + g.Unusable
			}
			if g.Index == index {
				usable += "  <- chosen"
			}
			if !asJSON {
				fmt.Fprintf(w, "%s\t%d\t%v\t%s\t%s\t%s\t%s\n", dev.Name(), g.Index, g.GID, report.GIDText(g.GID), version(g), g.Netdev, usable)
			}
		}
		doc := map[string]any{"device": dev.Name(), "gids": rows}
		if choice != "" {
			choices = append(choices, choice)
			doc["chosen"], doc["why"] = nil, choice
			if index >= 0 {
				doc["chosen"] = index
			}
		}
		docs = append(docs, doc)
		dev.Close()
	}
	if asJSON {
		return writeJSON(a.out, docs)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range choices {
		fmt.Fprintln(a.out, c)
	}
	if to.IsValid() && len(choices) == 0 {
		fmt.Fprintf(a.out, "No device has the address that this host sends from towards %v (%v).\n", to, sourceFor(to))
	}
	if !to.IsValid() {
		fmt.Fprintln(a.out, "Which row is used depends on the peer: --peer HOST says which, and why.")
	}
	return nil
}

func version(g verbs.GIDEntry) string {
	s := g.Type.String()
	if len(s) > 5 {
		return s[5:] // "v2" of "RoCE v2", as show_gids prints it
	}
	return s
}

// choose says which row of a device reaches a peer, and why; -1 if none does.
func choose(dev *verbs.Device, peer netip.Addr) (string, int) {
	if !peer.IsValid() {
		return "", -1
	}
	i, err := dev.SelectGID(peer)
	if err != nil {
		return oneLine(err.Error()), -1
	}
	for _, g := range dev.GIDs() {
		if g.Index != i {
			continue
		}
		why := "the first usable row of the peer's family"
		if sourceFor(peer) == g.Addr.Unmap().WithZone("") {
			why = "its address is the one that this host sends from towards the peer"
		}
		return fmt.Sprintf("%s: row %d (%v) towards %v: %s", dev.Name(), i, g.Addr, peer, why), i
	}
	return "", -1
}

// sourceFor returns the address that the host's routing sends from towards a
// peer, or an invalid one. No packet is sent.
func sourceFor(peer netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, verbs.DefaultPort)))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
}

// routes reports whether a device has the address that the host's routing sends
// from towards a peer: then it is the device that a program takes without -d.
func routes(dev *verbs.Device, peer netip.Addr) bool {
	if !peer.IsValid() {
		return false
	}
	src := sourceFor(peer)
	for _, g := range dev.GIDs() {
		if g.Addr.Unmap().WithZone("") == src {
			return true
		}
	}
	return false
}

// resolve returns the first address of a host.
func resolve(ctx context.Context, host string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return a, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--peer %s: %w", host, err)
	}
	return addrs[0].Unmap(), nil
}
