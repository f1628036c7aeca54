package verbs

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// Control says whether a device has a control socket.
type Control uint8

// The choices.
const (
	// ControlAuto has one for devices of the host's network, not for those with a
	// Link of their own. VERBENA_CONTROL=off in the environment means none.
	ControlAuto Control = iota
	// ControlOff has none.
	ControlOff
	// ControlOn has one whatever the link and the environment.
	ControlOn
)

// offer opens the control socket. Where that is refused the device works without.
func (d *Device) offer(cfg *Config) {
	if cfg.Control == ControlOff || cfg.Control != ControlOn && (cfg.Link != nil || os.Getenv("VERBENA_CONTROL") == "off") {
		return
	}
	if s, err := control.Listen(d.report); err == nil {
		d.control = s
	}
}

// ReportCM says who knows the connection identifiers of the device; nil for nobody.
// f is called by [Device.Snapshot] and must not call back. It is for connection
// managers.
func (d *Device) ReportCM(f func() []snapshot.CMID) {
	if f == nil {
		d.cmIDs.Store(nil)
		return
	}
	d.cmIDs.Store(&f)
}

// Snapshot describes the device as it is now: ports, GIDs, counters, and how many
// objects were made of it; with resources also lists of them, and what each queue
// pair does. Lists have [MaxListed] objects of a kind at most. Keys are left out.
//
// It stops the device for some microseconds at a time. A device that is closed has a
// port that is down, and no counters.
func (d *Device) Snapshot(resources bool) snapshot.Device {
	return d.report(control.Want{Resources: resources})
}

// report describes the device to who asks at the control socket.
func (d *Device) report(w control.Want) snapshot.Device {
	at := d.Attr()
	guid := guidText(at.GUID)
	s := snapshot.Device{
		Name: d.name, Kind: snapshot.Verbena, Driver: snapshot.Known("verbena"), NodeType: snapshot.Known(1),
		Protocol: snapshot.Known("roce"), NodeGUID: snapshot.Known(guid), NodeDesc: snapshot.Known("verbena"), PID: os.Getpid(),
	}
	if !w.Counters {
		s.SysImageGUID, s.Attr = snapshot.Known(guid), snapshot.Known(attributes(&at))
	}
	var cmIDs []snapshot.CMID
	if f := d.cmIDs.Load(); f != nil {
		cmIDs = (*f)()
	}
	tallies, stats := d.tallies()
	var all children
	var n census
	if w.Resources {
		all = d.offspring()
		n = all.census(len(d.shards))
	} else {
		n = d.count(tallies)
		s.QPStates = n.states()
	}
	var links link.Counters
	s.Queues = make([]snapshot.Queue, len(tallies))
	for i := range tallies {
		links.Add(tallies[i].link)
		s.Queues[i] = snapshot.Queue{Index: i, QPs: n.byShard[i], Counters: linkCounters(make(snapshot.Counters, 0, linkCounted), &tallies[i].link)}
	}
	s.Ports = []snapshot.Port{d.portSnapshot(w, stats, &links)}
	s.Resources = map[string]uint64{
		"qp": n.qps, "cq": n.cqs, "mr": n.mrs, "pd": n.pds, "srq": n.srqs, "cm_id": uint64(len(cmIDs)), "ctx": 1,
	}
	s.Faults = d.faultList()
	if w.Resources {
		d.lists(&s, all)
		s.CMIDs = snapshot.Known(cut(cmIDs))
	}
	return s
}

// guidText is a GUID as sysfs has it.
func guidText(guid uint64) string {
	const digits = "0123456789abcdef"
	var b [19]byte
	for i := range b {
		if i%5 == 4 {
			b[i] = ':'
			continue
		}
		b[i] = digits[guid>>60]
		guid <<= 4
	}
	return string(b[:])
}

// tally is what one shard has counted.
type tally struct {
	link link.Counters
	qps  rnic.QPCensus
}

// tallies stops each shard once. The counters are those of all adapters together, nil
// after Close.
func (d *Device) tallies() (all []tally, sum Stats) {
	all = make([]tally, len(d.shards))
	var room Stats
	for i, e := range d.shards {
		t := &all[i]
		t.link = e.link.Counters()
		_ = e.drv.Do(func(clock.Time) {
			sum, room = e.addStats(sum, room)
			t.qps = e.adapter.QPCensus()
		})
	}
	return all, sum
}

// attributes are those of ibv_devinfo -v.
func attributes(at *Attr) snapshot.Attr {
	l := &at.Limits
	return snapshot.Attr{
		"max_mr_size": l.MaxMRSize, "page_size_cap": 0xfffff000,
		"max_qp": uint64(l.MaxQP), "max_qp_wr": uint64(l.MaxQPWR), "max_sge": uint64(l.MaxSGE), "max_sge_rd": uint64(l.MaxSGE),
		"max_cq": uint64(l.MaxCQ), "max_cqe": uint64(l.MaxCQE), "max_mr": uint64(l.MaxMR), "max_mw": uint64(l.MaxMW), "max_pd": uint64(l.MaxPD),
		"max_ah": uint64(l.MaxAH), "max_srq": uint64(l.MaxSRQ), "max_srq_wr": uint64(l.MaxSRQWR), "max_srq_sge": uint64(l.MaxSGE),
		"max_qp_rd_atom": uint64(l.MaxRdAtomic), "max_qp_init_rd_atom": uint64(l.MaxRdAtomic), "max_res_rd_atom": uint64(l.MaxRdAtomic) * uint64(l.MaxQP),
		"max_mcast_grp": uint64(l.MaxMcastGroup), "max_mcast_qp_attach": uint64(l.MaxMcastQP),
		"phys_port_cnt": uint64(at.Ports),
	}
}

// portSnapshot describes port 1; stats is nil after Close.
func (d *Device) portSnapshot(w control.Want, stats Stats, links *link.Counters) snapshot.Port {
	at := d.Port()
	phys := 3 // Disabled
	if at.State == PortActive {
		phys = 5 // LinkUp
	}
	p := snapshot.Port{
		Number: 1, State: snapshot.Known(int(at.State)), PhysState: snapshot.Known(phys), LinkLayer: snapshot.Known(at.LinkLayer),
		MaxMTU: snapshot.Known(at.MaxMTU.Bytes()), ActiveMTU: snapshot.Known(at.ActiveMTU.Bytes()),
	}
	if d.netdev != "" {
		p.Netdev = snapshot.Known(d.netdev)
	}
	if at.SpeedMbps > 0 {
		p.RateMbps = snapshot.Known(int64(at.SpeedMbps))
		p.Rate = snapshot.Known(fmt.Sprintf("%g Gb/sec", float64(at.SpeedMbps)/1000))
	}
	if !w.Counters {
		d.fixed(&p, &at)
	}
	if stats == nil {
		return p
	}
	p.HWCounters = make(snapshot.Counters, 0, len(stats)+linkCounted)
	for _, c := range stats {
		p.HWCounters = append(p.HWCounters, snapshot.Counter{Name: c.Name, Value: snapshot.Known(c.Value)})
	}
	p.HWCounters = byName(linkCounters(p.HWCounters, links))
	p.Counters = make(snapshot.Counters, 0, 5)
	count := func(name string, v uint64) {
		p.Counters = append(p.Counters, snapshot.Counter{Name: name, Value: snapshot.Known(v)})
	}
	count("port_rcv_data", stats.Get("rcvd_bytes")/4)
	count("port_rcv_packets", stats.Get("rcvd_pkts"))
	count("port_xmit_data", stats.Get("sent_bytes")/4)
	count("port_xmit_discards", links.TxDropped+links.TxTooLong+links.TxRefused+links.TxNoPort+links.TxUnresolved)
	count("port_xmit_packets", stats.Get("sent_pkts"))
	return p
}

// fixed fills in what does not change.
func (d *Device) fixed(p *snapshot.Port, at *PortAttr) {
	p.LID, p.LMC, p.SMLID, p.SMSL = snapshot.Known(0), snapshot.Known(0), snapshot.Known(0), snapshot.Known(0)
	p.GIDSlots = snapshot.Known(at.GIDs)
	p.Attr = snapshot.Attr{"max_msg_sz": ib.MaxMessage, "gid_tbl_len": uint64(at.GIDs), "pkey_tbl_len": uint64(at.PKeys)}
	for _, k := range d.adapter.PKeys() {
		p.PKeys = append(p.PKeys, uint16(k))
	}
	for _, g := range d.gids {
		row := snapshot.GID{Index: g.Index, GID: sysfsGID(g.GID), Type: snapshot.Known(gidTypeName(g.Type))}
		if g.Netdev != "" {
			row.Netdev = snapshot.Known(g.Netdev)
			p.NetIndex = snapshot.Known(g.IfIndex)
		}
		p.GIDs = append(p.GIDs, row)
	}
}

// linkCounted is how many counters a link has.
const linkCounted = 11

// linkCounters appends what a link has counted.
func linkCounters(out snapshot.Counters, c *link.Counters) snapshot.Counters {
	all := [linkCounted]struct {
		name string
		v    uint64
	}{
		{"link_recv_calls", c.RecvCalls},
		{"link_rx_dropped", c.RxDropped},
		{"link_rx_foreign", c.RxForeign},
		{"link_send_calls", c.SendCalls},
		{"link_tx_dropped", c.TxDropped},
		{"link_tx_no_port", c.TxNoPort},
		{"link_tx_refused", c.TxRefused},
		{"link_tx_split", c.TxSplit},
		{"link_tx_too_long", c.TxTooLong},
		{"link_tx_unresolved", c.TxUnresolved},
		{"link_wait_calls", c.WaitCalls},
	}
	for _, x := range all {
		out = append(out, snapshot.Counter{Name: x.name, Value: snapshot.Known(x.v)})
	}
	return out
}

func byName(c snapshot.Counters) snapshot.Counters {
	slices.SortFunc(c, func(a, b snapshot.Counter) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// faultList lists the rules of the device's fault plan, and of links that lose packets
// on purpose, where those are the outermost ones.
func (d *Device) faultList() []snapshot.Fault {
	var out []snapshot.Fault
	if r, ok := d.Faults(); ok {
		for _, c := range r.Rules {
			out = append(out, snapshot.Fault{Rule: faultName(&c), Met: c.Met, Hits: c.Hits})
		}
	}
	for _, e := range d.shards {
		f, ok := e.link.(*fault.Link)
		if !ok || d.faults != nil {
			continue
		}
		texts := f.Texts()
		for i, c := range f.Rules() {
			out = append(out, snapshot.Fault{Rule: texts[i], Met: c.Met, Hits: c.Hits})
		}
	}
	return out
}

// faultName is a rule of a plan in a few words.
func faultName(r *faultplan.RuleReport) string {
	s := fmt.Sprintf("rule %d: %s", r.Rule, r.Inject)
	if r.Call != "" {
		s += " at " + r.Call
	}
	if r.Name != "" {
		s += " (" + r.Name + ")"
	}
	return s
}

// sysfsGID formats a GID as sysfs does.
func sysfsGID(g ib.GID) string {
	return netip.AddrFrom16(g).WithZone("").StringExpanded()
}

// gidTypeName is the type of a GID as sysfs has it.
func gidTypeName(t ib.GIDType) string {
	if t == ib.GIDTypeRoCEv2 {
		return "RoCE v2"
	}
	return "IB/RoCE v1"
}
