package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/diag/listing"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/verbs"
)

func (a app) devinfoCommand() *cobra.Command {
	var (
		l listFlags
		o listing.DevInfoOptions
	)
	cmd := &cobra.Command{
		Use:   "devinfo",
		Short: "Print the attributes of devices, as ibv_devinfo does",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("ib-port") && (o.Port < 1 || o.Port > 255) {
				return fmt.Errorf("-i %d: ports are 1 to 255", o.Port)
			}
			return a.devinfo(&l, o)
		},
	}
	l.withOwn(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.Device, "ib-dev", "d", "", "device, such as mlx5_0 or vrb_<interface>, or an address, with packet: before it on AF_PACKET; default: all")
	f.IntVarP(&o.Port, "ib-port", "i", 0, "port; default: all")
	f.BoolVarP(&o.List, "list", "l", false, "print only the names")
	f.BoolVarP(&o.Verbose, "verbose", "v", false, "print all attributes")
	f.IntVar(&l.shards, "shards", 1, "open devices of ours with so many engines, with a socket each")
	return cmd
}

func (a app) devinfo(l *listFlags, o listing.DevInfoOptions) error {
	s, err := l.devices(justDevices)
	if err != nil {
		return err
	}
	if o.Device != "" && s.Device(o.Device) == nil && l.dir == "" && !l.kernel {
		cfg, err := deviceByName(o.Device)
		if err != nil {
			return &statusError{status: 255, err: err}
		}
		cfg.Shards = l.shards
		d, queues, err := inspected(cfg)
		if err != nil {
			return err
		}
		s.Devices, o.Device = []snapshot.Device{d}, d.Name
		l.queues = map[string][]verbs.Queue{d.Name: queues}
	}
	if len(s.Devices) == 0 && l.dir == "" && !l.kernel && !o.List {
		list, err := verbs.ListDevices()
		if err != nil {
			return err
		}
		return fmt.Errorf("no device: %s", whyNone(list))
	}
	out, err := listing.DevInfo(s, o)
	if l.asJSON && err == nil {
		docs := []any{}
		for i := range s.Devices {
			if d := &s.Devices[i]; o.Device == "" || d.Name == o.Device {
				doc := devinfoJSON(d)
				if qs := l.queues[d.Name]; qs != nil {
					doc["queues"] = queuesJSON(qs)
				}
				docs = append(docs, doc)
			}
		}
		return writeJSON(a.out, docs)
	}
	if o.Verbose && err == nil && o.Device == "" && len(l.queues) > 0 {
		out = out[:0:0]
		for i := range s.Devices {
			name := s.Devices[i].Name
			one, _ := listing.DevInfo(s, listing.DevInfoOptions{Device: name, Port: o.Port, Verbose: true}) // it worked for all
			out = append(out, one...)
			if qs, ours := l.queues[name]; ours {
				out = report.AppendQueues(out, qs)
			}
		}
	} else if qs, ours := l.queues[o.Device]; ours && o.Verbose && err == nil {
		out = report.AppendQueues(out, qs)
	}
	if !o.List {
		a.sayLost(s, o.Device)
	}
	return a.say(out, err)
}

func queuesJSON(qs []verbs.Queue) []map[string]any {
	rows := []map[string]any{}
	for i := range qs {
		q := &qs[i]
		rows = append(rows, map[string]any{
			"index": q.Index, "sockets": q.Socket, "qps": q.QPs, "socket_packets": q.SocketPackets,
			"rcvd_packets": q.RcvdPackets, "rcvd_bytes": q.RcvdBytes, "sent_packets": q.SentPackets, "sent_bytes": q.SentBytes,
			"dropped": q.Dropped, "misdirected": q.Misdirected,
		})
	}
	return rows
}

// limitNames are the attributes that the JSON has under limits.
var limitNames = []string{
	"max_qp", "max_qp_wr", "max_sge", "max_cq", "max_cqe", "max_mr", "max_mr_size", "max_pd", "max_ah", "max_qp_rd_atom", "max_inline_data",
	"max_srq", "max_srq_wr", "max_mw", "max_mcast_grp", "num_comp_vectors", "device_cap_flags",
}

func devinfoJSON(d *snapshot.Device) map[string]any {
	attr := d.Attr.Or(nil)
	limits := map[string]any{}
	for _, n := range limitNames {
		if v, ok := attr[n]; ok {
			limits[n] = v
		}
	}
	doc := map[string]any{
		"hca_id": d.Name, "kind": d.Kind, "fw_ver": d.Firmware, "node_guid": strings.ReplaceAll(d.NodeGUID.Or(""), ":", ""),
		"transport": "InfiniBand (0)", "limits": limits,
	}
	if d.Attr.IsZero() || !d.Attr.IsKnown() {
		doc["limits_why"] = d.Attr.Why()
	}
	ports := []any{}
	for i := range d.Ports {
		p := &d.Ports[i]
		j := portJSON(p)
		if i == 0 {
			doc["port"], doc["netdev"] = j, p.Netdev.Or("")
		}
		ports = append(ports, j)
	}
	doc["ports"] = ports
	return doc
}

func portJSON(p *snapshot.Port) map[string]any {
	rows := []map[string]any{}
	for _, g := range p.GIDs {
		rows = append(rows, map[string]any{"index": g.Index, "gid": g.GID, "address": listing.GIDText(g.GID), "type": g.Type.Or(""), "netdev": g.Netdev.Or("")})
	}
	state := map[int]string{1: "PORT_DOWN", 2: "PORT_INIT", 3: "PORT_ARMED", 4: "PORT_ACTIVE"}[p.State.Or(0)]
	return map[string]any{
		"number": p.Number, "state": state, "max_mtu": p.MaxMTU, "active_mtu": p.ActiveMTU, "link_layer": p.LinkLayer, "netdev": p.Netdev,
		"link_mtu": p.Attr["link_mtu"], "speed_mbps": p.RateMbps, "max_message_size": p.Attr["max_msg_sz"], "gids": rows,
	}
}

// devicesNamed returns the device of a name, or all of ours that can be opened.
func devicesNamed(name string) ([]verbs.Config, error) {
	if name != "" {
		cfg, err := deviceByName(name)
		return []verbs.Config{cfg}, err
	}
	list, err := verbs.ListDevices()
	if err != nil {
		return nil, err
	}
	var configs []verbs.Config
	for _, d := range list {
		if d.Why == "" {
			configs = append(configs, verbs.Config{Netdev: d.Netdev})
		}
	}
	if len(configs) == 0 {
		return nil, fmt.Errorf("no device: %s", whyNone(list))
	}
	return configs, nil
}
