package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// netdevFacts are those of network interfaces and their data-center bridging.
var netdevFacts = map[string]fact{
	"netdev.name":           netdevFact("name of the interface", func(n *snapshot.Netdev) snapshot.Value[string] { return snapshot.Known(n.Name) }, ""),
	"netdev.mtu":            netdevFact("MTU in bytes", func(n *snapshot.Netdev) snapshot.Value[int] { return n.MTU }, "mtu"),
	"netdev.speed_mbps":     netdevFact("speed in Mb/s, -1 for unknown", func(n *snapshot.Netdev) snapshot.Value[int64] { return n.SpeedMbps }, "speed"),
	"netdev.operstate":      netdevFact("operational state", func(n *snapshot.Netdev) snapshot.Value[string] { return n.OperState }, "operstate"),
	"netdev.carrier":        netdevFact("whether there is a carrier", func(n *snapshot.Netdev) snapshot.Value[bool] { return n.Carrier }, "carrier"),
	"netdev.carrier_downs":  {doc: "times the carrier was lost between the snapshots", each: ofNetdev, get: carrierDowns},
	"netdev.driver":         netdevFact("driver", func(n *snapshot.Netdev) snapshot.Value[string] { return n.Driver }, "device/driver"),
	"netdev.virtual":        {doc: "whether packets leave it without a NIC to finish their checksums: veth, tap, bridge", each: ofNetdev, get: isVirtual},
	"netdev.tx_checksum":    {doc: "whether transmit checksums are left to the device", each: ofNetdev, get: txChecksum},
	"netdev.hash_has_ports": {doc: "whether receive-side scaling hashes the ports of UDP over IPv4", each: ofNetdev, get: hashPorts},
	"netdev.rxq_share":      {doc: "share of the busiest receive queue in all packets, 0 to 1", each: ofNetdev, get: queueShare},
	"netdev.addresses":      {doc: "IP addresses", each: ofNetdev, get: addresses},
	"netdev.ip_count":       {doc: "number of usable IP addresses, link-local ones left out", each: ofNetdev, get: ipCount},
	"netdev.same_subnet":    {doc: "other interfaces with RDMA that have an address of the same subnet", each: ofNetdev, get: sameSubnets},
	"netdev.arp_ignore":     {doc: "sysctl arp_ignore in force, the greater of all and the interface's", each: ofNetdev, get: arpIgnore},
	"netdev.own_rule":       {doc: "whether a routing rule selects a table by a source address of it", each: ofNetdev, get: ownRule},
	"netdev.global_pause":   {doc: "whether 802.3x pause is on, either way", each: ofNetdev, get: globalPause},

	"netdev.prio":             {doc: "the lossless priority: told, or the one with PFC, or where the DSCP of the traffic goes", each: ofNetdev, get: losslessPrio},
	"netdev.pfc":              {doc: "priorities with PFC", each: ofNetdev, get: pfcList},
	"netdev.pfc_count":        {doc: "number of priorities with PFC", each: ofNetdev, get: pfcCount},
	"netdev.pfc_on_prio":      {doc: "whether PFC is on for the lossless priority", each: ofNetdev, get: pfcOnPrio},
	"netdev.trust":            {doc: "what the priority is taken from: dscp or pcp", each: ofNetdev, get: trust},
	"netdev.app_dscp":         {doc: "DSCP of the RDMA traffic, as configured", each: ofNetdev, get: appDSCP},
	"netdev.app_prio":         {doc: "priority that this DSCP maps to", each: ofNetdev, get: appPrio},
	"netdev.cnp_prio":         {doc: "priority of CNPs", each: ofNetdev, get: cnpPrio},
	"netdev.np_on_prio":       {doc: "whether the notification point is on for the lossless priority", each: ofNetdev, get: congestionOn("roce_np")},
	"netdev.rp_on_prio":       {doc: "whether the reaction point is on for the lossless priority", each: ofNetdev, get: congestionOn("roce_rp")},
	"netdev.prio0_byte_share": {doc: "share of priority 0 in the bytes of all priorities, 0 to 1", each: ofNetdev, get: prio0Share},
	"netdev.prio_buffer_size": {doc: "bytes of the receive buffer of the lossless priority", each: ofNetdev, get: prioBuffer},
	"netdev.ets_share":        {doc: "per cent that ETS gives the class of the lossless priority; 100 for a strict one", each: ofNetdev, get: etsShare},
}

func netdevPath(s *scope, rest string) string {
	if s.now.net == nil {
		return ""
	}
	if rest == "" {
		return s.now.net.Name
	}
	return "/sys/class/net/" + s.now.net.Name + "/" + rest
}

func netdevFact[T any](doc string, get func(*snapshot.Netdev) snapshot.Value[T], file string) fact {
	return fact{doc: doc, each: ofNetdev, get: func(s *scope) reading {
		if s.now.net == nil {
			return noNetdev()
		}
		return val(get(s.now.net), netdevPath(s, file))
	}}
}

func noNetdev() reading { return none("", "the network interface of the port is not known") }

func carrierDowns(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := netdevPath(s, "carrier_down_count")
	if s.before == nil || s.before.net == nil {
		return none(place, "it takes two snapshots")
	}
	return val(snapshot.Delta(s.before.net.CarrierDownCount, s.now.net.CarrierDownCount), place)
}

// softDrivers are interfaces that hand a packet on without finishing its checksum.
var softDrivers = []string{"veth", "tun", "bridge", "dummy", "macvlan", "virtio_net"}

func isVirtual(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	if d, ok := s.now.net.Driver.Get(); ok {
		return is(slices.Contains(softDrivers, d), netdevPath(s, "device/driver"))
	}
	return val(s.now.net.Virtual, netdevPath(s, ""))
}

func txChecksum(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "ethtool -k " + s.now.net.Name
	if s.now.net.Features == nil {
		return none(place, "features were not recorded")
	}
	on, known := false, false
	for name, set := range s.now.net.Features {
		if strings.HasPrefix(name, "tx-checksum-") && !strings.Contains(name, "sctp") && !strings.Contains(name, "fcoe") {
			on, known = on || set, true
		}
	}
	if !known {
		return none(place, "no transmit checksum is among the recorded features")
	}
	return is(on, place)
}

func hashPorts(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "ethtool -n " + s.now.net.Name + " rx-flow-hash udp4"
	h, ok := s.now.net.FlowHash["udp4"].Get()
	if !ok {
		return none(place, "%s", s.now.net.FlowHash["udp4"].Why())
	}
	ports := snapshot.HashL4Src | snapshot.HashL4Dst
	return is(h&ports == ports, place)
}

// queueShare finds counters of receive queues by their names: rx_queue_0_packets,
// rx0_packets, rx-0.packets, queue_0_rx_cnt.
func queueShare(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "ethtool -S " + s.now.net.Name
	var sum, most float64
	n := 0
	for i := range s.now.net.Ethtool {
		c := &s.now.net.Ethtool[i]
		if !isQueueCounter(c.Name) {
			continue
		}
		v, ok := c.Value.Get()
		if !ok {
			continue
		}
		if s.before != nil && s.before.net != nil {
			d, ok := snapshot.Delta(s.before.net.Ethtool.Get(c.Name), c.Value).Get()
			if !ok {
				return none(place, "packets of %s cannot be compared: the counter was reset, or the queue is new", c.Name)
			}
			v = d
		}
		n++
		sum += float64(v)
		most = max(most, float64(v))
	}
	switch {
	case n < 2:
		return none(place, "no packets by receive queue, or one queue")
	case sum < 1000:
		return none(place, "only %v packets in all queues: too few to judge", sum)
	}
	return is(most/sum, place)
}

func isQueueCounter(name string) bool {
	rest, ok := strings.CutPrefix(name, "rx")
	if !ok {
		return false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "_queue_"), "-")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	return digits > 0 && (rest[digits:] == "_packets" || rest[digits:] == ".packets" || rest[digits:] == ".rx_packets")
}

func addresses(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	if s.now.net.Addresses == nil {
		return none("ip addr", "addresses of %s were not recorded", s.now.net.Name)
	}
	var out []string
	for _, a := range s.now.net.Addresses {
		out = append(out, a.Prefix)
	}
	return is(out, "ip addr show dev "+s.now.net.Name)
}

func ipCount(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	if s.now.net.Addresses == nil {
		return none("ip addr", "addresses of %s were not recorded", s.now.net.Name)
	}
	n := 0
	for _, p := range prefixes(s.now.net) {
		if !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback() {
			n++
		}
	}
	return is(n, "ip addr show dev "+s.now.net.Name)
}

func prefixes(n *snapshot.Netdev) []netip.Prefix {
	if n == nil {
		return nil
	}
	var out []netip.Prefix
	for _, a := range n.Addresses {
		if p, err := netip.ParsePrefix(a.Prefix); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// subnets are the networks that an interface has addresses of, link-local ones apart.
func subnets(n *snapshot.Netdev) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range prefixes(n) {
		if !p.Addr().IsLinkLocalUnicast() {
			out = append(out, p.Masked())
		}
	}
	return out
}

func sameSubnets(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	if s.now.net.Addresses == nil {
		return none("ip addr", "addresses of %s were not recorded", s.now.net.Name)
	}
	out := []string{}
	own := subnets(s.now.net)
	ix := s.work.index(s.now.host)
	for i := range s.now.host.Devices {
		for j := range s.now.host.Devices[i].Ports {
			n := ix.netdevOf(&s.now.host.Devices[i].Ports[j])
			if n == nil || n.Name == s.now.net.Name || slices.Contains(out, n.Name) {
				continue
			}
			if slices.ContainsFunc(subnets(n), func(p netip.Prefix) bool { return slices.Contains(own, p) }) {
				out = append(out, n.Name)
			}
		}
	}
	return is(out, "ip addr")
}

func arpIgnore(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	place := "net.ipv4.conf." + s.now.net.Name + ".arp_ignore"
	most, ok := -1, false
	for _, name := range []string{"net.ipv4.conf.all.arp_ignore", place} {
		if v, known := s.now.host.Sysctl[name].Get(); known {
			n := 0
			if _, err := fmt.Sscanf(v, "%d", &n); err == nil {
				most, ok = max(most, n), true
			}
		}
	}
	if !ok {
		return none(place, "not recorded")
	}
	return is(most, place)
}

func ownRule(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	rules, ok := s.now.host.Rules.Get()
	if !ok {
		return none("ip rule", "%s", s.now.host.Rules.Why())
	}
	for i := range rules {
		from, err := netip.ParsePrefix(rules[i].From)
		if err != nil {
			if a, err2 := netip.ParseAddr(rules[i].From); err2 == nil {
				from = netip.PrefixFrom(a, a.BitLen())
			} else {
				continue
			}
		}
		for _, p := range prefixes(s.now.net) {
			if from.Contains(p.Addr()) && from.Bits() > 0 {
				return is(true, "ip rule")
			}
		}
	}
	return is(false, "ip rule")
}

func globalPause(s *scope) reading {
	if s.now.net == nil {
		return noNetdev()
	}
	p, ok := s.now.net.Pause.Get()
	if !ok {
		return none("ethtool -a "+s.now.net.Name, "%s", s.now.net.Pause.Why())
	}
	return is(p.RX || p.TX, "ethtool -a "+s.now.net.Name)
}
