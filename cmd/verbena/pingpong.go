package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf"
	"github.com/verbena-rdma/verbena/perf/report"
)

func (a app) pingpongCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pingpong rc|uc|ud",
		Short: "Exchange messages with ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong or ourselves",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return errors.New("name a transport: rc, uc or ud") },
	}
	for _, t := range []struct {
		name string
		qp   ib.QPType
	}{{"rc", ib.RC}, {"uc", ib.UC}, {"ud", ib.UD}} {
		cmd.AddCommand(a.pingpongOf(t.qp, t.name))
	}
	return cmd
}

// pingpongOf makes the command of one transport under the name use.
func (a app) pingpongOf(qp ib.QPType, use string) *cobra.Command {
	cfg := perf.PingpongDefaults(qp)
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use + " [host]",
		Short: fmt.Sprintf("Ping and pong over %v: without a host be the server", qp),
		Args:  oneHost,
	}
	f := cmd.Flags()
	f.IntVarP(&cfg.Port, "port", "p", cfg.Port, "TCP port of the handshake")
	f.StringVarP(&cfg.Device, "ib-dev", "d", "", "device: vrb_<interface> or an address, with packet: before it on AF_PACKET; default: the one that routes to the peer")
	f.IntVarP(&cfg.IBPort, "ib-port", "i", cfg.IBPort, "port of the device; there is only 1")
	f.IntVarP(&cfg.Size, "size", "s", cfg.Size, "bytes of a message")
	if qp != ib.UD {
		f.IntVarP(&cfg.MTU, "mtu", "m", cfg.MTU, "path MTU: 256, 512, 1024, 2048 or 4096; the same on both ends")
	}
	f.IntVarP(&cfg.RxDepth, "rx-depth", "r", cfg.RxDepth, "receives posted at a time")
	f.IntVarP(&cfg.Iters, "iters", "n", cfg.Iters, "number of exchanges; the same on both ends")
	f.IntVarP(&cfg.SL, "sl", "l", cfg.SL, "service level")
	f.BoolVarP(&cfg.Events, "events", "e", false, "sleep on completion events instead of polling")
	f.IntVarP(&cfg.GIDIndex, "gid-idx", "g", cfg.GIDIndex, "row of the GID table; -1: chosen by the peer's address")
	f.BoolVarP(&cfg.Check, "chk", "c", false, "compare the data; the client needs it too")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			cfg.Peer = args[0]
		}
		cfg.Out, cfg.Notes = a.out, a.err
		if asJSON {
			cfg.Out = io.Discard
		}
		o, err := perf.Pingpong(cmd.Context(), cfg)
		if !asJSON {
			return err
		}
		doc := map[string]any{
			"program": fmt.Sprintf("%v_pingpong", qp), "version": buildVersion(), "device": o.Device, "bytes": cfg.Size, "iterations": o.Iters,
			"local_gid": report.GIDText(o.Local.GID), "remote_gid": report.GIDText(o.Remote.GID), "seconds": o.Elapsed.Seconds(), "verified": o.Verified,
		}
		if o.Iters > 0 {
			doc["t_round_trip_us"] = report.Usec(o.Elapsed) / float64(o.Iters)
			doc["gbps"] = float64(o.Bytes) * 8 / float64(max(o.Elapsed, 1))
		}
		if err != nil {
			doc["error"] = oneLine(err.Error())
		}
		return errors.Join(writeJSON(a.out, doc), err)
	}
	return cmd
}

// oneHost accepts no argument or one. An empty one, of a variable that is not
// set for instance, does not make the client a server.
func oneHost(_ *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] == "" {
		return errors.New("the host is empty")
	}
	if len(args) > 1 {
		return fmt.Errorf("one host at most, not %q", args)
	}
	return nil
}
