package read

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

const classNet = "sys/class/net"

// netdevs joins the interfaces of sysfs and of netlink.
func (r *reader) netdevs() {
	ours := r.interfaces()
	names, asked := ours.names, ours.asked
	if r.opt.Counters {
		r.counted(ours)
		return
	}
	addrs := ask[map[string][]snapshot.Address](r, source.QueryAddresses).Or(nil)
	if len(names) == 0 && !ours.known {
		names = r.mentioned(addrs)
	}
	agent := r.lldpAgent()
	for _, n := range names {
		d := r.netdev(n, asked[n], ours.strange[n])
		d.Addresses = addrs[n]
		d.DCB.LLDPAgent = agent
		r.snap.Netdevs = append(r.snap.Netdevs, d)
	}
	slices.SortStableFunc(r.snap.Netdevs, func(a, b snapshot.Netdev) int {
		return cmp.Or(cmp.Compare(a.Index.Or(1<<30), b.Index.Or(1<<30)), snapshot.Natural(a.Name, b.Name))
	})
}

// trafficStatistics are the files of statistics/ that are counted.
var trafficStatistics = []string{"rx_bytes", "rx_dropped", "rx_errors", "rx_packets", "tx_bytes", "tx_dropped", "tx_errors", "tx_packets"}

// counted reads the counters of interfaces that carry RDMA: those of ports, and what is
// below a bond or VLAN of theirs, where the hardware counts.
func (r *reader) counted(all *interfaces) {
	names, asked := all.names, all.asked
	ours := map[string]bool{}
	for i := range r.snap.Devices {
		for j := range r.snap.Devices[i].Ports {
			if n := r.snap.Devices[i].Ports[j].Netdev.Or(""); n != "" {
				ours[n] = true
			}
		}
	}
	below := map[string]bool{}
	for _, n := range names {
		d := asked[n]
		below[n] = ours[d.Master.Or("")]
		if p := d.Parent.Or(""); ours[n] && p != "" {
			ours[p] = true
		}
	}
	for _, n := range names {
		if !ours[n] && !below[n] {
			continue
		}
		d := asked[n]
		d.Name = n
		if all.strange[n] == "" {
			r.fillCounted(&d)
		}
		stats := ask[snapshot.Counters](r, fmt.Sprintf(source.QueryEthtool, n))
		d.Ethtool = stats.Or(nil)
		if !stats.IsKnown() && !stats.IsZero() {
			d.Why = stats.Why()
		}
		v := ask[snapshot.DCB](r, fmt.Sprintf(source.QueryPFC, n))
		if v.IsZero() {
			v = ask[snapshot.DCB](r, fmt.Sprintf(source.QueryDCB, n))
		}
		d.DCB.PFC = v.Or(snapshot.DCB{}).PFC
		r.snap.Netdevs = append(r.snap.Netdevs, d)
	}
}

// fillCounted reads what netlink has not told of an interface.
func (r *reader) fillCounted(d *snapshot.Netdev) {
	dir := classNet + "/" + d.Name + "/"
	if !d.CarrierChanges.IsKnown() {
		d.CarrierChanges = value(r, dir+"carrier_changes", unsigned)
	}
	if !d.Carrier.IsKnown() {
		d.Carrier = quiet(r, dir+"carrier", flag)
	}
	if !d.MTU.IsKnown() {
		d.MTU = value(r, dir+"mtu", number)
	}
	if len(d.Statistics) > 0 {
		return
	}
	for _, s := range trafficStatistics {
		if v := value(r, dir+"statistics/"+s, unsigned); !v.IsZero() {
			d.Statistics = append(d.Statistics, snapshot.Counter{Name: s, Value: v})
		}
	}
}

// mentioned are the interfaces of a recording without a list of them: those that have
// addresses or GIDs.
func (r *reader) mentioned(addrs map[string][]snapshot.Address) []string {
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && name == clean(name) && fs.ValidPath(name) && !strings.Contains(name, "/") && len(seen) < maxNetdevs {
			seen[name] = true
		}
	}
	for name := range addrs {
		add(name)
	}
	for i := range r.snap.Devices {
		for j := range r.snap.Devices[i].Ports {
			for _, g := range r.snap.Devices[i].Ports[j].GIDs {
				add(g.Netdev.Or(""))
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (r *reader) netdev(name string, asked snapshot.Netdev, strange string) snapshot.Netdev {
	d := asked
	d.Name = name
	if strange == "" {
		r.fromSysfs(&d)
	} else {
		d.SpeedMbps = snapshot.Unreadable[int64](strange)
		d.Duplex = snapshot.Unreadable[string](strange)
		d.Virtual = snapshot.Unreadable[bool](strange)
	}
	r.ethtool(&d)
	r.dcb(&d, strange == "")
	return d
}

func (r *reader) fromSysfs(d *snapshot.Netdev) {
	dir := classNet + "/" + d.Name + "/"
	d.Index = either(value(r, dir+"ifindex", number), d.Index)
	d.OperState = either(value(r, dir+"operstate", text), d.OperState)
	d.Carrier = either(quiet(r, dir+"carrier", flag), d.Carrier)
	d.CarrierChanges = value(r, dir+"carrier_changes", unsigned)
	d.CarrierDownCount = value(r, dir+"carrier_down_count", unsigned)
	d.MTU = either(value(r, dir+"mtu", number), d.MTU)
	d.SpeedMbps = quiet(r, dir+"speed", number64)
	d.Duplex = quiet(r, dir+"duplex", text)
	d.MAC = either(value(r, dir+"address", text), d.MAC)
	d.PCI = r.pci(dir + "device")
	d.Virtual = snapshot.Known(r.link(dir+"device") == "")
	if driver := r.link(dir + "device/driver"); driver != "" {
		d.Driver = snapshot.Known(driver)
	}
	if master := r.link(dir + "master"); master != "" {
		d.Master = snapshot.Known(master)
	}
	if all, _ := r.counters(dir + "statistics"); len(all) > 0 {
		d.Statistics = all
	}
	r.bond(d, dir+"bonding")
	r.vlan(d)
}

func (r *reader) bond(d *snapshot.Netdev, dir string) {
	mode := value(r, dir+"/mode", firstWord)
	if mode.IsZero() {
		return
	}
	b := &snapshot.Bond{Mode: mode}
	b.Slaves = strings.Fields(value(r, dir+"/slaves", text).Or(""))
	b.HashPolicy = value(r, dir+"/xmit_hash_policy", firstWord)
	b.Active = nonEmpty(value(r, dir+"/active_slave", text))
	d.Bond = b
}

// firstWord reads "802.3ad 4".
func firstWord(s string) (string, error) {
	w, _, _ := strings.Cut(s, " ")
	return w, nil
}

// vlan reads what proc has about a VLAN interface, to root:
//
//	eth0.100  VID: 100  REORDER_HDR: 1  dev->priv_flags: 1021
//	Device: eth0
//	EGRESS priority mappings: 3:3 4:4
func (r *reader) vlan(d *snapshot.Netdev) {
	if d.VLAN.IsZero() && !strings.Contains(d.Name, ".") {
		return
	}
	b, _, ok := r.file("proc/net/vlan/" + d.Name)
	if !ok {
		return
	}
	for line := range strings.Lines(string(b)) {
		line = clean(line)
		if _, after, ok := strings.Cut(line, "VID: "); ok {
			word, _, _ := strings.Cut(after, " ")
			if n, err := strconv.Atoi(strings.TrimRight(word, "?\t")); err == nil && n >= 0 && n < 4096 {
				d.VLAN = snapshot.Known(n)
			}
		}
		if after, ok := strings.CutPrefix(line, "Device: "); ok {
			d.Parent = snapshot.Known(after)
		}
		if after, ok := strings.CutPrefix(line, "EGRESS priority mappings:"); ok {
			d.VLANEgressQoS = snapshot.Known(strings.TrimSpace(after))
		}
	}
}

func (r *reader) ethtool(d *snapshot.Netdev) {
	stats := ask[snapshot.Counters](r, fmt.Sprintf(source.QueryEthtool, d.Name))
	d.Ethtool = stats.Or(nil)
	if !stats.IsKnown() && !stats.IsZero() {
		d.Why = stats.Why()
	}
	if driver := ask[string](r, fmt.Sprintf(source.QueryDriver, d.Name)); driver.IsKnown() {
		d.Driver = driver
	}
	d.Features = ask[map[string]bool](r, fmt.Sprintf(source.QueryFeatures, d.Name)).Or(nil)
	d.Rings = ask[map[string]uint64](r, fmt.Sprintf(source.QueryRings, d.Name)).Or(nil)
	d.Channels = ask[map[string]uint64](r, fmt.Sprintf(source.QueryChannels, d.Name)).Or(nil)
	d.Pause = ask[snapshot.Pause](r, fmt.Sprintf(source.QueryPause, d.Name))
	d.FEC = ask[string](r, fmt.Sprintf(source.QueryFEC, d.Name))
	for _, flow := range []string{"udp4", "udp6"} {
		h := ask[snapshot.Hash](r, fmt.Sprintf(source.QueryHash, d.Name, flow))
		if h.IsZero() {
			continue
		}
		if d.FlowHash == nil {
			d.FlowHash = map[string]snapshot.Value[snapshot.Hash]{}
		}
		d.FlowHash[flow] = h
	}
}
