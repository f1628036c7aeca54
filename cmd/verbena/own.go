package main

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/report"
	"github.com/verbena-rdma/verbena/verbs"
)

// Identity of our devices. There is no vendor to name: the numbers say so.
const (
	vendorID = 0xffffff
	partID   = 0
	ackDelay = 15
)

// Capability bits that our devices set (ibv_device_cap_flags).
const deviceCaps = 1<<2 /* bad Q_Key counter */ | 1<<10 /* port active event */ | 1<<11 /* system image GUID */ | 1<<12 /* RNR NAK */

// ownDevices are the devices of this host that could be opened.
func ownDevices(shards int) ([]snapshot.Device, map[string][]verbs.Queue, error) {
	list, err := verbs.ListDevices()
	if err != nil {
		return nil, nil, err
	}
	var all []snapshot.Device
	queues := map[string][]verbs.Queue{}
	for _, info := range list {
		if info.Why != "" {
			continue
		}
		d, qs, err := inspected(verbs.Config{Netdev: info.Netdev, Shards: shards})
		if err != nil {
			continue // it went meanwhile, or may not be opened: ListDevices' word was of before
		}
		all = append(all, d)
		queues[d.Name] = qs
	}
	return all, queues, nil
}

// inspected opens a device to look at it.
func inspected(cfg verbs.Config) (snapshot.Device, []verbs.Queue, error) {
	dev, err := inspect(cfg)
	if err != nil {
		return snapshot.Device{}, nil, err
	}
	defer dev.Close()
	return describe(dev), dev.Queues(), nil
}

// describe turns a device of ours into the model of listings.
func describe(dev *verbs.Device) snapshot.Device {
	at, port := dev.Attr(), dev.Port()
	l := at.Limits
	guid := fmt.Sprintf("%04x:%04x:%04x:%04x", at.GUID>>48, at.GUID>>32&0xffff, at.GUID>>16&0xffff, at.GUID&0xffff)
	d := snapshot.Device{
		Name: dev.Name(), Kind: snapshot.Verbena, Driver: snapshot.Known("verbena"), NodeType: snapshot.Known(1),
		NodeGUID: snapshot.Known(guid), SysImageGUID: snapshot.Known(guid), Firmware: snapshot.Known(buildVersion()),
		Attr: snapshot.Known(snapshot.Attr{
			"vendor_id": vendorID, "vendor_part_id": partID, "hw_ver": 0, "phys_port_cnt": 1,
			"max_mr_size": l.MaxMRSize, "page_size_cap": 0xfffff000, "max_qp": uint64(l.MaxQP), "max_qp_wr": uint64(l.MaxQPWR),
			"device_cap_flags": deviceCaps, "max_sge": uint64(l.MaxSGE), "max_sge_rd": uint64(l.MaxSGE),
			"max_cq": uint64(l.MaxCQ), "max_cqe": uint64(l.MaxCQE), "max_mr": uint64(l.MaxMR), "max_pd": uint64(l.MaxPD),
			"max_qp_rd_atom": uint64(l.MaxRdAtomic), "max_res_rd_atom": uint64(l.MaxRdAtomic) * uint64(l.MaxQP), "max_qp_init_rd_atom": uint64(l.MaxRdAtomic),
			"atomic_cap": 1, "max_ah": uint64(l.MaxAH), "max_pkeys": uint64(port.PKeys), "local_ca_ack_delay": ackDelay, "num_comp_vectors": uint64(at.CompVectors),
			"max_inline_data": uint64(l.MaxInline),
		}),
	}
	width, speed := report.LinkRate(port.SpeedMbps)
	state, phys := int(port.State), 3
	if port.State == verbs.PortActive {
		phys = 5
	}
	p := snapshot.Port{
		Number: 1, State: snapshot.Known(state), PhysState: snapshot.Known(phys), LinkLayer: snapshot.Known(port.LinkLayer),
		CapMask: snapshot.Known(uint32(0x00010000)), MaxMTU: snapshot.Known(port.MaxMTU.Bytes()), ActiveMTU: snapshot.Known(port.ActiveMTU.Bytes()),
		Width: snapshot.Known(width), Speed: snapshot.Known(speed), GIDSlots: snapshot.Known(port.GIDs),
		RateMbps: snapshot.Known(int64(max(port.SpeedMbps, 2500))),
		Attr:     snapshot.Attr{"max_msg_sz": uint64(at.MaxMessage), "port_cap_flags": 0x00010000, "max_vl_num": 1, "pkey_tbl_len": uint64(port.PKeys), "link_mtu": uint64(port.LinkMTU)},
	}
	if at.Netdev != "" {
		p.Netdev = snapshot.Known(at.Netdev)
	}
	for _, k := range dev.PKeys() {
		p.PKeys = append(p.PKeys, uint16(k))
	}
	for _, g := range dev.GIDs() {
		kind := "RoCE v2"
		if g.Type != ib.GIDTypeRoCEv2 {
			kind = "IB/RoCE v1"
		}
		p.GIDs = append(p.GIDs, snapshot.GID{Index: g.Index, GID: g.GID.String(), Type: snapshot.Known(kind), Netdev: snapshot.Known(g.Netdev)})
	}
	d.Ports = []snapshot.Port{p}
	return d
}
