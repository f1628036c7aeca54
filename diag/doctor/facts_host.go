package doctor

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// hostFacts are those of the host as a whole.
var hostFacts = map[string]fact{
	"window.seconds": {doc: "seconds between the two snapshots", get: func(s *scope) reading {
		if d := s.window.Length(); d > 0 {
			return is(d.Seconds(), "")
		}
		return none("", "it takes two snapshots")
	}},
	"host.devices": {doc: "number of RDMA devices", get: devices},
	"host.is_switch": {doc: "whether ports of a switch were recorded with it", get: func(s *scope) reading {
		return is(s.now.host.Switch != nil && len(s.now.host.Switch.Ports) > 0, "switch")
	}},
	"host.nics_without":     {doc: "network cards that could be RDMA devices and are none", get: nicsWithout},
	"host.netns_mode":       hostFact("mode of network namespaces: shared or exclusive", func(h *snapshot.Snapshot) snapshot.Value[string] { return h.RDMA.NetnsMode }, "rdma system"),
	"host.copy_on_fork":     hostFact("whether the kernel copies pinned pages on fork", func(h *snapshot.Snapshot) snapshot.Value[bool] { return h.RDMA.CopyOnFork }, "rdma system"),
	"host.hugepages":        {doc: "huge pages reserved, of all sizes", get: hugePages(func(p *snapshot.HugePages) snapshot.Value[uint64] { return p.Total })},
	"host.hugepages_free":   {doc: "huge pages that are free, of all sizes", get: hugePages(func(p *snapshot.HugePages) snapshot.Value[uint64] { return p.Free })},
	"host.firewall":         {doc: "what the firewall does with UDP 4791 from outside: accept, drop, unsure; drop-ipv4 or drop-ipv6 if the port has GIDs of both families", get: firewall(func(v verdict) reading { return is(v.what, v.by) })},
	"host.firewall_by":      {doc: "the rule or policy that decides so", get: firewall(func(v verdict) reading { return is(v.by, "") })},
	"host.firewall_hits":    {doc: "packets that the deciding rule has counted", get: firewall(func(v verdict) reading { return val(v.hits, v.by) })},
	"host.chardevs":         {doc: "uverbs devices in /dev/infiniband", get: chardevs},
	"host.chardevs_denied":  {doc: "uverbs devices that this user may not open", get: chardevsDenied},
	"host.csum_errors":      {doc: "UDP packets with a wrong checksum, between the snapshots or since boot", get: snmp("Udp.InCsumErrors")},
	"host.rcvbuf_errors":    {doc: "UDP packets dropped for a full socket buffer", get: snmp("Udp.RcvbufErrors")},
	"host.frag_fails":       {doc: "IP packets that would not fit and must not be fragmented", get: snmp("Ip.FragFails")},
	"host.unreachable":      {doc: "neighbours of RDMA interfaces that do not answer", get: once("host.unreachable", deadNeighbours)},
	"host.peer_unreachable": {doc: "whether one of them is the far end that the program or its log names", get: deadPeer},
	"host.peer_memory":      {doc: "whether a module that gives RDMA devices the memory of a GPU is loaded", get: peerMemory},
	"host.all_zero_errors":  {doc: "whether every error counter of every RDMA device is 0", get: once("host.all_zero_errors", allZero)},
}

func hostFact[T any](doc string, get func(*snapshot.Snapshot) snapshot.Value[T], place string) fact {
	return fact{doc: doc, get: func(s *scope) reading { return val(get(s.now.host), place) }}
}

// devices counts the RDMA devices. None is a fact only where their directory could be
// listed, or is not there.
func devices(s *scope) reading {
	const place = "/sys/class/infiniband"
	for _, p := range s.now.host.Problems {
		if "/"+p.Place == place {
			return none(place, "%s", p.Why)
		}
	}
	return is(len(s.now.host.Devices), place)
}

func nicsWithout(s *scope) reading {
	if s.now.host.NICs == nil {
		return none("/sys/bus/pci", "PCI devices were not recorded")
	}
	out := []string{}
	for i := range s.now.host.NICs {
		if n := &s.now.host.NICs[i]; len(n.RDMA) == 0 {
			out = append(out, n.Address)
		}
	}
	return is(out, "/sys/bus/pci")
}

func hugePages(get func(*snapshot.HugePages) snapshot.Value[uint64]) func(*scope) reading {
	return func(s *scope) reading {
		const place = "/sys/kernel/mm/hugepages"
		sum, ok := 0.0, false
		for i := range s.now.host.HugePages {
			p := &s.now.host.HugePages[i]
			if v, known := get(p).Get(); known && p.Node < 0 {
				sum, ok = sum+float64(v), true
			}
		}
		if !ok {
			return none(place, "not recorded")
		}
		return is(sum, place)
	}
}

func firewall(get func(verdict) reading) func(*scope) reading {
	return func(s *scope) reading {
		iif := ""
		if s.now.net != nil {
			iif = s.now.net.Name
		}
		v, why := firewallVerdict(&s.now.host.Firewall, iif, s.now.port)
		if v.what == "" {
			return none("nft list ruleset", "%s", why)
		}
		return get(v)
	}
}

func chardevs(s *scope) reading {
	list, ok := s.now.host.Chardevs.Get()
	if !ok {
		return none("/dev/infiniband", "%s", s.now.host.Chardevs.Why())
	}
	n := 0
	for i := range list {
		if strings.HasPrefix(list[i].Name, "uverbs") {
			n++
		}
	}
	return is(n, "/dev/infiniband")
}

func chardevsDenied(s *scope) reading {
	list, ok := s.now.host.Chardevs.Get()
	if !ok {
		return none("/dev/infiniband", "%s", s.now.host.Chardevs.Why())
	}
	out := []string{}
	for i := range list {
		c := &list[i]
		if strings.HasPrefix(c.Name, "uverbs") && !c.Open.Or(true) || !c.Open.IsKnown() && !c.Open.IsZero() {
			out = append(out, c.Name)
		}
	}
	return is(out, "/dev/infiniband")
}

// snmp is a counter of /proc/net/snmp: what it rose by, else its value.
func snmp(name string) func(*scope) reading {
	return func(s *scope) reading {
		place := "/proc/net/snmp " + name
		now := s.now.host.SNMP[name]
		if s.before != nil {
			return val(snapshot.Delta(s.before.host.SNMP[name], now), place)
		}
		return val(now, place)
	}
}

func deadNeighbours(s *scope) reading {
	list, ok := s.now.host.Neighbours.Get()
	if !ok {
		return none("ip neigh", "%s", s.now.host.Neighbours.Why())
	}
	out := []string{}
	for i := range list {
		n := &list[i]
		if n.State != "FAILED" && n.State != "INCOMPLETE" {
			continue
		}
		if s.work.index(s.now.host).users[n.Dev].dev != nil {
			out = append(out, n.IP+" on "+n.Dev)
		}
	}
	return is(out, "ip neigh")
}

// deadPeer reports whether the far end of the program is a neighbour that does not
// answer.
func deadPeer(s *scope) reading {
	list, ok := s.now.host.Neighbours.Get()
	if !ok {
		return none("ip neigh", "%s", s.now.host.Neighbours.Why())
	}
	a := s.app()
	if a == nil {
		return noApp()
	}
	peers := map[string]bool{}
	if p, ok := a.Peer.Get(); ok {
		peers[p] = true
	}
	for i := range a.Events {
		if p := a.Events[i].Peer; p != "" {
			peers[p] = true
		}
	}
	if len(peers) == 0 {
		return none("log", "neither the program nor its log names the far end")
	}
	for i := range list {
		if n := &list[i]; peers[n.IP] && (n.State == "FAILED" || n.State == "INCOMPLETE") {
			return is(true, "ip neigh: "+n.IP+" "+n.State)
		}
	}
	return is(false, "ip neigh")
}

// peerMemoryModules register the memory of GPUs with the RDMA subsystem.
var peerMemoryModules = []string{"nvidia_peermem", "nv_peer_mem", "amdgpu"}

func peerMemory(s *scope) reading {
	all, ok := s.now.host.Modules.Get()
	if !ok {
		return none("/proc/modules", "%s", s.now.host.Modules.Why())
	}
	return is(slices.ContainsFunc(all, func(m string) bool { return slices.Contains(peerMemoryModules, m) }), "/proc/modules")
}
