package read

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// system reads what else decides whether RDMA works.
func (r *reader) system() {
	s := r.snap
	s.Routes = askRows[snapshot.Route](r, source.QueryRoutes)
	s.Rules = askRows[snapshot.PolicyRule](r, source.QueryRules)
	s.Neighbours = askRows[snapshot.Neighbour](r, source.QueryNeighbours)
	s.Firewall.NFT = ask[[]snapshot.NFTChain](r, source.QueryNFT)
	s.Firewall.IPTables = ask[string](r, source.QueryIPTables)
	s.Firewall.IP6Tables = ask[string](r, source.QueryIP6Tables)
	r.sysctls()
	r.hugePages()
	r.snmp()
	r.softnet()
	s.Modules = r.modules()
	s.Cmdline = value(r, "proc/cmdline", text)
	if names, reason := r.tryList("sys/kernel/iommu_groups", 1<<16); reason == "" && names != nil {
		s.IOMMU = snapshot.Known(len(names))
	}
	r.nics()
}

// settings are read by name; those under conf also for each interface.
var (
	settings = []string{
		"net.core.rmem_max", "net.core.rmem_default", "net.core.wmem_max", "net.core.netdev_max_backlog",
		"net.ipv4.tcp_ecn", "net.ipv4.ip_forward", "net.ipv4.ip_no_pmtu_disc", "net.ipv4.fib_multipath_hash_policy",
		"vm.nr_hugepages", "vm.max_map_count", "vm.overcommit_memory", "kernel.numa_balancing",
	}
	settingsOfIPv4 = []string{"rp_filter", "arp_ignore", "arp_announce", "arp_filter", "accept_local"}
	settingsOfIPv6 = []string{"disable_ipv6", "addr_gen_mode"}
)

func (r *reader) sysctls() {
	r.snap.Sysctl = map[string]snapshot.Value[string]{}
	for _, name := range settings {
		r.sysctl(name, "proc/sys/"+strings.ReplaceAll(name, ".", "/"))
	}
	for _, family := range []struct {
		name string
		keys []string
	}{{"ipv4", settingsOfIPv4}, {"ipv6", settingsOfIPv6}} {
		dir := "proc/sys/net/" + family.name + "/conf"
		for _, dev := range r.list(dir, maxNetdevs) {
			for _, key := range family.keys {
				r.sysctl("net."+family.name+".conf."+dev+"."+key, dir+"/"+dev+"/"+key)
			}
		}
	}
	if len(r.snap.Sysctl) == 0 {
		r.snap.Sysctl = nil
	}
}

// sysctl reads one setting. An address generation that needs a secret says EIO.
func (r *reader) sysctl(name, file string) {
	if v := quiet(r, file, text); !v.IsZero() {
		r.snap.Sysctl[name] = v
	}
}

func (r *reader) hugePages() {
	r.hugePagesIn("sys/kernel/mm/hugepages", -1)
	const nodes = "sys/devices/system/node"
	for _, n := range r.list(nodes, 4096) {
		id, ok := strings.CutPrefix(n, "node")
		node, err := strconv.Atoi(id)
		if ok && err == nil && node >= 0 {
			r.hugePagesIn(nodes+"/"+n+"/hugepages", node)
		}
	}
}

func (r *reader) hugePagesIn(dir string, node int) {
	for _, n := range r.list(dir, 64) {
		kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(n, "hugepages-"), "kB"))
		if err != nil {
			r.problem(dir, fmt.Sprintf("%.40q is no size of pages", n))
			continue
		}
		at := dir + "/" + n + "/"
		r.snap.HugePages = append(r.snap.HugePages, snapshot.HugePages{
			SizeKB: kb, Node: node,
			Total:    value(r, at+"nr_hugepages", unsigned),
			Free:     value(r, at+"free_hugepages", unsigned),
			Reserved: value(r, at+"resv_hugepages", unsigned),
		})
	}
}

// snmp reads the counters of IP and UDP: pairs of lines, names and numbers, and for
// IPv6 a name and a number in each line.
func (r *reader) snmp() {
	all := map[string]snapshot.Value[uint64]{}
	for _, name := range []string{"proc/net/snmp", "proc/net/netstat"} {
		r.table(name, all)
	}
	b, reason, ok := r.file("proc/net/snmp6")
	if reason != "" {
		r.problem("proc/net/snmp6", reason)
	}
	if ok {
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) != 2 || len(all) > maxCounters {
				continue
			}
			proto, name, found := strings.Cut(f[0], "6")
			if found && (proto == "Ip" || proto == "Udp") {
				r.put(all, "proc/net/snmp6", proto+"6."+name, f[1])
			}
		}
	}
	if len(all) > 0 {
		r.snap.SNMP = all
	}
}

func (r *reader) table(name string, all map[string]snapshot.Value[uint64]) {
	b, reason, ok := r.file(name)
	if reason != "" {
		r.problem(name, reason)
	}
	if !ok {
		return
	}
	var heads []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if heads == nil || heads[0] != f[0] || len(heads) != len(f) {
			heads = f
			continue
		}
		proto := strings.TrimSuffix(heads[0], ":")
		if proto == "Ip" || proto == "Udp" || proto == "IpExt" || proto == "Icmp" {
			for i := 1; i < len(f) && len(all) < maxCounters; i++ {
				r.put(all, name, proto+"."+heads[i], f[i])
			}
		}
		heads = nil
	}
}

func (r *reader) put(all map[string]snapshot.Value[uint64], place, name, word string) {
	name = clean(name)
	if strings.HasPrefix(word, "-") { // Tcp.MaxConn is -1
		return
	}
	n, err := unsigned(clean(word))
	if err != nil {
		r.problem(place, name+": "+err.Error())
		all[name] = snapshot.Unreadable[uint64](clean(err.Error()))
		return
	}
	all[name] = snapshot.Known(n)
}

// softnet reads hexadecimal columns: packets, dropped, squeezed, …; the 13th is the
// CPU where the kernel has it, else rows are CPUs.
func (r *reader) softnet() {
	const name = "proc/net/softnet_stat"
	b, reason, ok := r.file(name)
	if reason != "" {
		r.problem(name, reason)
	}
	if !ok {
		return
	}
	row := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3 || row >= maxCounters {
			continue
		}
		s := snapshot.Softnet{CPU: row}
		row++
		bad := false
		for i, to := range []*uint64{&s.Processed, &s.Dropped, &s.Squeezed} {
			n, err := strconv.ParseUint(f[i], 16, 64)
			bad = bad || err != nil
			*to = n
		}
		if bad {
			r.problem(name, fmt.Sprintf("row %d has %.60q, which are no hexadecimal numbers", row, line))
			continue
		}
		if len(f) > 12 {
			if n, err := strconv.ParseUint(f[12], 16, 16); err == nil {
				s.CPU = int(n)
			}
		}
		r.snap.Softnet = append(r.snap.Softnet, s)
	}
}

func (r *reader) modules() snapshot.Value[[]string] {
	b, reason, ok := r.file("proc/modules")
	if !ok {
		if reason == "" {
			return snapshot.Value[[]string]{}
		}
		r.problem("proc/modules", reason)
		return snapshot.Unreadable[[]string](reason)
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		n, _, _ := strings.Cut(clean(line), " ")
		if n != "" && len(names) < maxCounters {
			names = append(names, n)
		}
	}
	return snapshot.Known(names)
}
