package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/verbs"
)

func (a app) devinfoCommand() *cobra.Command {
	var (
		name                  string
		port, shards          int
		verbose, list, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "devinfo",
		Short: "Print the attributes of devices, as ibv_devinfo does",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if port != 0 && port != 1 {
				return fmt.Errorf("-i %d: our devices have port 1 only", port)
			}
			return a.devinfo(name, shards, verbose, list, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&name, "ib-dev", "d", "", "device: vrb_<interface>, or an address, with packet: before it on AF_PACKET; default: all")
	f.IntVarP(&port, "ib-port", "i", 0, "port; there is only 1")
	f.BoolVarP(&list, "list", "l", false, "print only the names")
	f.BoolVarP(&verbose, "verbose", "v", false, "print all attributes")
	f.IntVar(&shards, "shards", 1, "open devices with so many engines, with a socket each")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a app) devinfo(name string, shards int, verbose, list, asJSON bool) error {
	configs, err := devicesNamed(name)
	if err != nil {
		return err
	}
	var out []byte
	docs := []any{}
	if list {
		plural := "s"
		if len(configs) == 1 {
			plural = ""
		}
		out = fmt.Appendf(out, "%d HCA%s found:\n", len(configs), plural)
	}
	for _, cfg := range configs {
		cfg.Shards = shards
		dev, err := inspect(cfg)
		if err != nil {
			return err
		}
		switch d := describe(dev); {
		case asJSON:
			docs = append(docs, devinfoJSON(dev, d))
		case list:
			out = fmt.Appendf(out, "\t%s\n", dev.Name())
		default:
			out = d.Append(out, verbose)
			if verbose {
				out = report.AppendQueues(out, dev.Queues())
			}
		}
		dev.Close()
	}
	if asJSON {
		return writeJSON(a.out, docs)
	}
	if list {
		out = append(out, '\n')
	}
	_, err = a.out.Write(out)
	return err
}

// devicesNamed returns the device of a name, or all that can be opened.
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

// Identity of our devices. There is no vendor to name: the numbers say so.
const (
	vendorID = 0xffffff
	partID   = 0
	ackDelay = 15
)

// describe collects what ibv_devinfo shows.
func describe(dev *verbs.Device) report.Device {
	at, port := dev.Attr(), dev.Port()
	l := at.Limits
	d := report.Device{
		Name: dev.Name(), Firmware: buildVersion(), GUID: at.GUID, VendorID: vendorID, PartID: partID,
		MaxMRSize: l.MaxMRSize, PageSizes: 0xfffff000, MaxQP: l.MaxQP, MaxQPWR: l.MaxQPWR,
		CapFlags: report.CapBadQKeyCounter | report.CapPortActive | report.CapSysImageGUID | report.CapRNRNak,
		MaxSGE:   l.MaxSGE, MaxCQ: l.MaxCQ, MaxCQE: l.MaxCQE, MaxMR: l.MaxMR, MaxPD: l.MaxPD,
		MaxRdAtomic: l.MaxRdAtomic, MaxResRdAtomic: l.MaxRdAtomic * l.MaxQP, MaxAH: l.MaxAH, MaxPKey: port.PKeys,
		AckDelay: ackDelay, CompVectors: at.CompVectors,
		Port: report.Port{
			Active: port.State == verbs.PortActive, MaxMTU: port.MaxMTU, ActiveMTU: port.ActiveMTU, MaxMessage: at.MaxMessage,
			PKeys: port.PKeys, GIDs: port.GIDs,
		},
	}
	d.Port.Width, d.Port.Speed = report.LinkRate(port.SpeedMbps)
	for _, g := range dev.GIDs() {
		d.Port.Table = append(d.Port.Table, report.GIDRow{Index: g.Index, GID: g.GID, Type: g.Type})
	}
	return d
}

func devinfoJSON(dev *verbs.Device, d report.Device) map[string]any {
	at, port := dev.Attr(), dev.Port()
	rows := []map[string]any{}
	for _, g := range dev.GIDs() {
		rows = append(rows, gidJSON(g))
	}
	return map[string]any{
		"hca_id": d.Name, "netdev": at.Netdev, "fw_ver": d.Firmware, "node_guid": fmt.Sprintf("%016x", d.GUID), "transport": "InfiniBand (0)",
		"limits": map[string]any{
			"max_qp": d.MaxQP, "max_qp_wr": d.MaxQPWR, "max_sge": d.MaxSGE, "max_cq": d.MaxCQ, "max_cqe": d.MaxCQE, "max_mr": d.MaxMR,
			"max_mr_size": d.MaxMRSize, "max_pd": d.MaxPD, "max_ah": d.MaxAH, "max_qp_rd_atom": d.MaxRdAtomic, "max_inline_data": at.Limits.MaxInline,
		},
		"queues": queuesJSON(dev.Queues()),
		"port": map[string]any{
			"number": 1, "state": port.State.String(), "max_mtu": port.MaxMTU.Bytes(), "active_mtu": port.ActiveMTU.Bytes(),
			"link_layer": port.LinkLayer, "link_mtu": port.LinkMTU, "speed_mbps": port.SpeedMbps, "max_message_size": at.MaxMessage, "gids": rows,
		},
	}
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
