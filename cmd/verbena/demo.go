package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/internal/demo"
)

func (a app) demoCommand() *cobra.Command {
	cfg := demo.Config{Out: a.out, Status: a.err}
	var client, server string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Two software RNICs on this host beside a TCP socket, then with loss, then in a simulated fabric",
		Long: "Two software RNICs in this process talk RoCEv2 over UDP on this host: no root, no set-up. WRITE, READ, SEND and\n" +
			"ATOMIC are measured beside a TCP socket that does the same work; then packets are lost and the data arrive intact; then\n" +
			"the same RNICs are in a simulated fabric, where one ECN threshold decides between a tenth of the line and all of it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, p := range []struct {
				flag, text string
				addr       *netip.Addr
			}{{"client", client, &cfg.Client}, {"server", server, &cfg.Server}} {
				addr, err := netip.ParseAddr(p.text)
				if err != nil {
					return fmt.Errorf("--%s %q: not an IP address", p.flag, p.text)
				}
				*p.addr = addr
			}
			if cfg.Client == cfg.Server {
				return fmt.Errorf("--client and --server are both %v: the two RNICs need an address each", cfg.Client)
			}
			if cfg.Measure <= 0 || cfg.Measure > time.Minute {
				return fmt.Errorf("--measure %v: more than 0 and at most 1m", cfg.Measure)
			}
			return demo.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "127.0.0.1", "address of the first RNIC")
	f.StringVar(&server, "server", "127.0.0.2", "address of the second RNIC")
	f.Uint16Var(&cfg.Port, "udp-port", 4791, "UDP port of both")
	f.DurationVar(&cfg.Measure, "measure", time.Second, "time for each bandwidth row; latency rows take half")
	f.StringVar(&cfg.Capture, "capture", "verbena-demo.pcapng", "file for the capture of the lossy transfer; empty for none")
	f.Uint64Var(&cfg.Seed, "seed", 1, "seed of the loss")
	cmd.AddCommand(a.demoQueuesCommand())
	return cmd
}

func (a app) demoQueuesCommand() *cobra.Command {
	cfg := demo.QueuesConfig{Out: a.out, Client: netip.MustParseAddr("127.0.0.1"), Server: netip.MustParseAddr("127.0.0.2")}
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "Which receive queue packets come to: by addresses, by UDP ports, by queue pair",
		Long: "Two software RNICs on this host, one of them with several receive queues (a UDP socket each). Many connections send; the\n" +
			"queue of a packet is chosen by a hash of the addresses, of addresses and UDP ports, and by the destination queue pair.\n" +
			"Linux only; no root, no set-up.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := demo.Queues(cmd.Context(), cfg)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Queues, "queues", 4, "receive queues")
	f.IntVar(&cfg.QPs, "qps", 16, "connections")
	f.IntVar(&cfg.Messages, "messages", 400, "messages on each connection")
	f.Uint16Var(&cfg.Port, "udp-port", 4791, "UDP port of both")
	return cmd
}
