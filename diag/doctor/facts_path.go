package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// pathFacts are those of the way to the peer: routes, bonds, VLANs, the switch.
var pathFacts = map[string]fact{
	"netdev.route_mtu":     {doc: "smallest MTU of the routes through the interface, in bytes; that of the interface where no route has one", each: ofNetdev, get: routeMTU},
	"netdev.rp_filter":     {doc: "sysctl rp_filter in force, the greater of all and the interface's: 0 off, 1 strict, 2 loose", each: ofNetdev, get: rpFilter},
	"netdev.bond":          {doc: "bond that the interface is or belongs to, empty for none", each: ofNetdev, get: bondName},
	"netdev.bond_mode":     {doc: "mode of this bond, empty for none", each: ofNetdev, get: bondWord(func(b *snapshot.Bond) snapshot.Value[string] { return b.Mode })},
	"netdev.bond_hash":     {doc: "what this bond chooses a link by, empty for none", each: ofNetdev, get: bondWord(func(b *snapshot.Bond) snapshot.Value[string] { return b.HashPolicy })},
	"netdev.bond_failover": {doc: "whether this bond changed to another link between the snapshots", each: ofNetdev, get: bondFailover},
	"netdev.dcb_changed":   {doc: "whether PFC or ETS changed between the snapshots", each: ofNetdev, get: dcbChanged},
	"netdev.dcbx_firmware": {doc: "whether firmware answers the peer's DCBX and may overwrite settings", each: ofNetdev, get: dcbxFirmware},
	"netdev.lldp_agent":    netdevFact("program that may overwrite settings, empty for none", func(n *snapshot.Netdev) snapshot.Value[string] { return n.DCB.LLDPAgent }, ""),
	"netdev.cnp_gap_us":    param("microseconds between two CNPs of a flow at least", "roce_np", "min_time_between_cnps"),
	"netdev.rp_ai_rate":    param("step of additive increase of the reaction point in Mb/s", "roce_rp", "rpg_ai_rate", "ai_rate"),
	"netdev.rp_min_rate":   param("rate below which the reaction point does not go, in Mb/s", "roce_rp", "rpg_min_rate", "min_rate"),
	"netdev.app_ecn":       {doc: "ECN bits of the RDMA traffic, as configured: 0 not capable, 1 or 2 capable", each: ofNetdev, get: appECN},
	"netdev.tx_prio_share": {doc: "share of the lossless priority in the bytes sent between the snapshots, 0 to 1", each: ofNetdev, get: prioShare("tx")},
	"netdev.rx_prio_share": {doc: "share of the lossless priority in the bytes received between the snapshots, 0 to 1", each: ofNetdev, get: prioShare("rx")},
	"port.vlans_unmapped":  {doc: "VLAN interfaces with GIDs of the port that map no priority to a VLAN priority", each: ofPort, get: vlansUnmapped},
	"port.gid_index_env":   {doc: "whether the GID index comes from an environment variable, the same for all hosts", each: ofPort, get: gidIndexEnv},
	"port.index_at_peer":   {doc: "index at which the far end has a GID of the type and kind of the one in use here", each: ofPort, get: indexAtPeer},
	"device.is_vf":         {doc: "whether it is a virtual function, seen from its host or by its PCI id", each: ofDevice, get: isVF},
	"app.route_dev":        {doc: "interface by which the kernel reaches the far end", get: appRoute},
	"app.route_rdma":       {doc: "whether an RDMA device uses that interface, or one below it", get: appRouteRDMA},
	"host.rdma_interfaces": {doc: "number of interfaces that RDMA devices use", get: func(s *scope) reading { return is(len(s.work.index(s.now.host).users), "/sys/class/infiniband") }},
	"host.gpu":             {doc: "whether the driver of NVIDIA's GPUs is loaded", get: module("nvidia")},
	"host.peermem":         {doc: "whether the module is loaded that lets NICs reach memory of these GPUs", get: module("nvidia_peermem", "nv_peer_mem")},
	"switch.min_mtu":       {doc: "smallest MTU of the ports of the switch, in bytes", get: once("switch.min_mtu", switchMTU)},
	"switch.ecn_late":      {doc: "whether a profile of the switch begins to mark at XOFF or above", get: once("switch.ecn_late", ecnLate)},
	"switch.headroom":      {doc: "headroom of a lossless priority of the port, in bytes", each: []Each{EachSwitchPort}, get: switchAttr("headroom")},
	"switch.headroom_need": {doc: "twice what is in flight on the cable and two frames, in bytes", each: []Each{EachSwitchPort}, get: headroomNeed},
	"switch.alpha":         {doc: "share of the free buffer that a queue of the port may take", each: []Each{EachSwitchPort}, get: switchAttr("alpha")},
}

func routeMTU(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	routes, ok := s.now.host.Routes.Get()
	if !ok {
		return none("ip route", "%s", s.now.host.Routes.Why())
	}
	least := 0
	for i := range routes {
		if r := &routes[i]; r.Dev == s.now.net.Name && r.MTU > 0 && (least == 0 || r.MTU < least) {
			least = r.MTU
		}
	}
	if least > 0 {
		return is(least, "ip route show dev "+s.now.net.Name)
	}
	return val(s.now.net.MTU, netdevPath(s, "mtu"))
}

func rpFilter(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "net.ipv4.conf." + s.now.net.Name + ".rp_filter"
	own, ok := s.now.host.Sysctl[place].Get()
	if !ok {
		return none(place, "not recorded")
	}
	most := 0
	for _, v := range []string{own, s.now.host.Sysctl["net.ipv4.conf.all.rp_filter"].Or("0")} {
		n, err := strconv.Atoi(v)
		if err != nil {
			return none(place, "%.40q is no number", v)
		}
		most = max(most, n)
	}
	return is(most, place)
}

// bondOf is the bond that an interface is or belongs to, and its name. An interface
// that was read whole (its index is known) and has no master is in none.
func bondOf(s *scope, m *moment) (*snapshot.Bond, string, reading) {
	switch {
	case m.net == nil:
		return nil, "", noNetdev()
	case m.net.Bond != nil:
		return m.net.Bond, m.net.Name, reading{place: netdevPath(s, "bonding")}
	}
	master, ok := m.net.Master.Get()
	if !ok {
		if !m.net.Index.IsKnown() || !m.net.Master.IsZero() {
			return nil, "", none(netdevPath(s, "master"), "%s", m.net.Master.Why())
		}
		return nil, "", reading{place: netdevPath(s, "master")}
	}
	n := s.work.index(m.host).netdevs[master]
	if n == nil {
		return nil, "", none("/sys/class/net/"+master, "the interface %s was not recorded", master)
	}
	if n.Bond == nil { // a bridge or VRF
		return nil, "", reading{place: netdevPath(s, "master")}
	}
	return n.Bond, master, reading{place: "/sys/class/net/" + master + "/bonding"}
}

func bondName(s *scope) reading {
	_, name, r := bondOf(s, &s.now)
	if r.why != "" {
		return r
	}
	return is(name, r.place)
}

func bondWord(get func(*snapshot.Bond) snapshot.Value[string]) func(*scope) reading {
	return func(s *scope) reading {
		b, _, r := bondOf(s, &s.now)
		switch {
		case r.why != "":
			return r
		case b == nil:
			return is("", r.place)
		}
		return val(get(b), r.place)
	}
}

func bondFailover(s *scope) reading {
	b, _, r := bondOf(s, &s.now)
	switch {
	case r.why != "":
		return r
	case b == nil || b.Mode.Or("active-backup") != "active-backup":
		return is(false, r.place)
	case s.before == nil:
		return none(r.place, "it takes two snapshots")
	}
	old, _, r2 := bondOf(s, s.before)
	if r2.why != "" || old == nil || !old.Active.IsKnown() || !b.Active.IsKnown() {
		return none(r.place, "the active link is not recorded at both instants")
	}
	return is(old.Active.Or("") != b.Active.Or(""), r.place+"/active_slave")
}

func dcbChanged(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "dcb pfc show dev " + s.now.net.Name
	if s.before == nil || s.before.net == nil {
		return none(place, "it takes two snapshots")
	}
	was, now := &s.before.net.DCB, &s.now.net.DCB
	p, ok := was.PFC.Get()
	q, ok2 := now.PFC.Get()
	e, ok3 := was.ETS.Get()
	f, ok4 := now.ETS.Get()
	if ok && ok2 && p.Enabled != q.Enabled || ok3 && ok4 && e != f {
		return is(true, place)
	}
	if !ok || !ok2 || !ok3 || !ok4 {
		return none(place, "PFC and ETS are not recorded at both instants")
	}
	return is(false, place)
}

func dcbxFirmware(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "dcb dcbx show dev " + s.now.net.Name
	modes, ok := s.now.net.DCB.DCBX.Get()
	if !ok {
		return none(place, "%s", s.now.net.DCB.DCBX.Why())
	}
	return is(slices.Contains(modes, "lld-managed"), place)
}

// param is a number of DCQCN's parameters under one of its names.
func param(doc, end string, keys ...string) fact {
	return fact{doc: doc, each: ofNetdev, get: func(s *scope) reading {
		if s.now.net == nil {
			return noNetdev()
		}
		v := s.now.net.DCB.NP
		if end == "roce_rp" {
			v = s.now.net.DCB.RP
		}
		place := netdevPath(s, "ecn/"+end+"/"+keys[0])
		c, ok := v.Get()
		if !ok {
			return none(place, "%s", v.Why())
		}
		for _, k := range keys {
			if n, ok := c.Params[k]; ok {
				return is(n, place)
			}
		}
		return none(place, "not recorded")
	}}
}

func appECN(s *scope) reading {
	r := appTrafficClass(s)
	if tc, ok := r.value.(int); ok {
		r.value = tc & 3
	}
	return r
}

// prioShare is by the counters DIR_prioN_bytes.
func prioShare(dir string) func(*scope) reading {
	return func(s *scope) reading {
		if s.now.net == nil {
			return noNetdev()
		}
		place := "ethtool -S " + s.now.net.Name
		prio := losslessPrio(s)
		lossless, ok := prio.value.(int)
		if !ok {
			return prio
		}
		if s.before == nil || s.before.net == nil {
			return none(place, "it takes two snapshots")
		}
		own, all := 0.0, 0.0
		for p := range 8 {
			name := fmt.Sprintf("%s_prio%d_bytes", dir, p)
			d, ok := snapshot.Delta(s.before.net.Ethtool.Get(name), s.now.net.Ethtool.Get(name)).Get()
			if !ok {
				return none(place, "no bytes by priority")
			}
			all += float64(d)
			if p == lossless {
				own = float64(d)
			}
		}
		if all < 1e6 {
			return none(place, "only %v bytes in all priorities: too few to judge", all)
		}
		return is(own/all, place)
	}
}

func vlansUnmapped(s *scope) reading {
	if s.now.port == nil {
		return none("", "no RDMA port on it")
	}
	place := portPath(s, "gid_attrs/ndevs")
	seen := []string{}
	out := []string{}
	ix := s.work.index(s.now.host)
	for i := range s.now.port.GIDs {
		name, ok := s.now.port.GIDs[i].Netdev.Get()
		if !ok {
			return none(place, "the interface of GID %d: %s", s.now.port.GIDs[i].Index, s.now.port.GIDs[i].Netdev.Why())
		}
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		n := ix.netdevs[name]
		if n == nil {
			return none("/sys/class/net/"+name, "the interface %s was not recorded", name)
		}
		id, ok := n.VLAN.Get()
		if !ok && (!n.VLAN.IsZero() || !n.Index.IsKnown() || strings.Contains(name, ".")) {
			return none("/proc/net/vlan/"+name, "%s", n.VLAN.Why())
		}
		if id == 0 {
			continue
		}
		qos, ok := n.VLANEgressQoS.Get()
		if !ok {
			return none("/proc/net/vlan/"+name, "priorities of %s: %s", name, n.VLANEgressQoS.Why())
		}
		if qos == "" {
			out = append(out, name)
		}
	}
	if len(seen) == 0 {
		return none(place, "no GIDs were recorded")
	}
	return is(out, place)
}

func gidIndexEnv(s *scope) reading {
	a := s.app()
	if a == nil || a.Env == nil {
		return none("", "the environment of the program is not known (--pid, --app)")
	}
	for _, name := range gidIndexNames {
		if n, err := strconv.Atoi(a.Env[name]); err == nil && n >= 0 {
			return is(true, "environment: "+name)
		}
	}
	return is(false, "environment")
}

func indexAtPeer(s *scope) reading {
	own, r := chosenGID(s)
	switch {
	case r.why != "":
		return r
	case own == nil || !own.Type.IsKnown():
		return none(r.place, "the row in use is not recorded, or is empty")
	case s.peer == nil:
		return none("peer", "no snapshot of the other end was given")
	case s.peer.now.port == nil || len(s.peer.now.port.GIDs) == 0:
		return none("peer", "the GID table of the other end was not recorded")
	}
	for i := range s.peer.now.port.GIDs {
		g := &s.peer.now.port.GIDs[i]
		kind, ok := g.Type.Get()
		if !ok {
			return none("peer: "+portPath(s.peer, "gid_attrs/types"), "the type of GID %d: %s", g.Index, g.Type.Why())
		}
		if kind == own.Type.Or("") && scopeOf(g.GID) == scopeOf(own.GID) {
			return is(g.Index, "peer: "+portPath(s.peer, "gids"))
		}
	}
	return none("peer", "the other end has no GID of this type and kind")
}

// virtualIDs are PCI ids of NVIDIA's virtual functions, vendor 0x15b3: inside a guest
// nothing else tells.
var virtualIDs = []string{"0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e"}

func isVF(s *scope) reading {
	if s.now.dev == nil || s.now.dev.PCI == nil {
		return none("", "no PCI device behind it, or not recorded")
	}
	p := s.now.dev.PCI
	if p.Vendor.Or("") == "0x15b3" && slices.Contains(virtualIDs, p.Device.Or("")) {
		return is(true, devicePath(s.now.dev, "device/device"))
	}
	return val(p.Virtual, devicePath(s.now.dev, "device/physfn"))
}

// mainTables are the tables that are asked without a rule of one's own: default, main
// and local; 0 where the recording has none.
var mainTables = []int{0, 253, 254, 255}

// appRoute follows the kernel's routes to the far end by the longest prefix.
func appRoute(s *scope) reading {
	const place = "ip route"
	a := s.app()
	if a == nil {
		return noApp()
	}
	peer, err := netip.ParseAddr(a.Peer.Or(""))
	if err != nil {
		return none("", "the address of the far end is not known")
	}
	routes, ok := s.now.host.Routes.Get()
	if !ok {
		return none(place, "%s", s.now.host.Routes.Why())
	}
	rules, ok := s.now.host.Rules.Get()
	if !ok {
		return none("ip rule", "%s", s.now.host.Rules.Why())
	}
	if slices.ContainsFunc(rules, func(r snapshot.PolicyRule) bool { return !slices.Contains(mainTables, r.Table) }) {
		return none("ip rule", "rules select other tables: ip route get %s says it", peer)
	}
	best, bits, metric := "", -1, 0
	for i := range routes {
		r := &routes[i]
		n := 0
		if r.Dst != "default" {
			p, err := netip.ParsePrefix(r.Dst)
			if err != nil || !p.Contains(peer) {
				continue
			}
			n = p.Bits()
		}
		if r.Dev != "" && slices.Contains(mainTables, r.Table) && (n > bits || n == bits && r.Metric < metric) {
			best, bits, metric = r.Dev, n, r.Metric
		}
	}
	if best == "" {
		return none(place, "no route to %s was recorded", peer)
	}
	return is(best, place)
}

func appRouteRDMA(s *scope) reading {
	r := appRoute(s)
	dev, ok := r.value.(string)
	if !ok {
		return r
	}
	ix := s.work.index(s.now.host)
	for range 4 { // a VLAN on a bond of interfaces
		if ix.users[dev].dev != nil {
			return is(true, r.place)
		}
		n := ix.netdevs[dev]
		if n == nil {
			break
		}
		if n.Bond != nil && slices.ContainsFunc(n.Bond.Slaves, func(x string) bool { return ix.users[x].dev != nil }) {
			return is(true, r.place)
		}
		if dev, ok = n.Parent.Get(); !ok {
			break
		}
	}
	for i := range s.now.host.Devices {
		for j := range s.now.host.Devices[i].Ports {
			p := &s.now.host.Devices[i].Ports[j]
			if ix.netdevOf(p) == nil && p.LinkLayer.Or("Ethernet") == "Ethernet" && len(p.GIDs) > 0 {
				return none(r.place, "the interface of %s is not known", s.now.host.Devices[i].Name)
			}
		}
	}
	if len(ix.users) == 0 {
		return none(r.place, "no interface of an RDMA device is known")
	}
	return is(false, r.place)
}

func module(any ...string) func(*scope) reading {
	return func(s *scope) reading {
		list, ok := s.now.host.Modules.Get()
		if !ok {
			return none("/proc/modules", "%s", s.now.host.Modules.Why())
		}
		return is(slices.ContainsFunc(any, func(m string) bool { return slices.Contains(list, m) }), "/proc/modules")
	}
}

func switchMTU(s *scope) reading {
	sw := s.now.host.Switch
	if sw == nil || len(sw.Ports) == 0 {
		return none("switch", "nothing is known of the switches on the way; verbena probe PEER measures the path")
	}
	least := 0
	for i := range sw.Ports {
		m, ok := sw.Ports[i].MTU.Get()
		if !ok {
			return none("switch", "MTU of %s: %s", sw.Ports[i].Name, sw.Ports[i].MTU.Why())
		}
		if least == 0 || m < least {
			least = m
		}
	}
	return is(least, "switch")
}

func ecnLate(s *scope) reading {
	sw := s.now.host.Switch
	if sw == nil || len(sw.Profiles) == 0 {
		return none("switch", "no ECN profiles of the switch are known")
	}
	known := false
	for i := range sw.Profiles {
		if p := &sw.Profiles[i]; p.XOFF > 0 {
			known = true
			if p.Kmin >= p.XOFF {
				return is(true, "switch: "+p.Name)
			}
		}
	}
	if !known {
		return none("switch", "XOFF is not known")
	}
	return is(false, "switch")
}

func switchAttr(name string) func(*scope) reading {
	return func(s *scope) reading {
		v, ok := s.now.swPort.Attrs[name]
		if !ok {
			return none("switch", "%s of %s is not recorded", name, s.now.swPort.Name)
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return none("switch", "%s of %s: %.40q is no number", name, s.now.swPort.Name, v)
		}
		return is(n, "switch, "+s.now.swPort.Name)
	}
}

// headroomNeed is what comes after XOFF was sent: twice the cable at five
// nanoseconds a metre, and a frame in flight at each end (802.1Qbb annex O).
func headroomNeed(s *scope) reading {
	p := s.now.swPort
	rate, ok := p.RateBps.Get()
	mtu, ok2 := p.MTU.Get()
	if !ok || !ok2 {
		return none("switch", "rate or MTU of %s are not recorded", p.Name)
	}
	cable := switchAttr("cable_m")(s)
	m, ok := cable.value.(float64)
	if !ok {
		return cable
	}
	return is(2*float64(rate)/8*m*5e-9+2*float64(mtu), "switch, "+p.Name)
}
