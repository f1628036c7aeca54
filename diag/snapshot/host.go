package snapshot

// Route is a route of the kernel.
type Route struct {
	Dst    string `json:"dst"` // 10.0.0.0/8, default
	Via    string `json:"via,omitempty"`
	Dev    string `json:"dev,omitempty"`
	Src    string `json:"src,omitempty"`
	Table  int    `json:"table,omitempty"`
	Metric int    `json:"metric,omitempty"`
	MTU    int    `json:"mtu,omitempty"`
	Type   string `json:"type,omitempty"` // unicast, local, unreachable, blackhole, prohibit
}

// PolicyRule is a rule of routing policy.
type PolicyRule struct {
	Priority int    `json:"priority"`
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	IIF      string `json:"iif,omitempty"`
	OIF      string `json:"oif,omitempty"`
	Table    int    `json:"table,omitempty"`
}

// Neighbour is a row of the ARP or neighbour-discovery table.
type Neighbour struct {
	IP    string `json:"ip"`
	MAC   string `json:"lladdr,omitempty"`
	Dev   string `json:"dev"`
	State string `json:"state"` // REACHABLE, STALE, DELAY, PROBE, FAILED, INCOMPLETE, PERMANENT, NOARP
}

// HugePages is a pool of huge pages, of the host or of one NUMA node.
type HugePages struct {
	SizeKB   int           `json:"size_kb"`
	Node     int           `json:"node"` // -1 for the host
	Total    Value[uint64] `json:"total,omitzero"`
	Free     Value[uint64] `json:"free,omitzero"`
	Reserved Value[uint64] `json:"reserved,omitzero"`
}

// Softnet is a row of /proc/net/softnet_stat.
type Softnet struct {
	CPU       int    `json:"cpu"`
	Processed uint64 `json:"processed"`
	Dropped   uint64 `json:"dropped"`
	Squeezed  uint64 `json:"time_squeeze"`
}

// PCINIC is a network function of PCI whose driver could make an RDMA device.
type PCINIC struct {
	Address string        `json:"address"`
	Vendor  string        `json:"vendor"` // 0x15b3
	Device  string        `json:"device"`
	Driver  Value[string] `json:"driver,omitzero"`
	Netdevs []string      `json:"netdevs,omitempty"`
	RDMA    []string      `json:"rdma,omitempty"` // its RDMA devices
}

// Chardev is a character device under /dev/infiniband.
type Chardev struct {
	Name string `json:"name"` // uverbs0, rdma_cm, umad0
	Mode string `json:"mode"` // 0666
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	// Open says whether this user may open it for reading and writing; unreadable
	// with the errno if not.
	Open Value[bool] `json:"open,omitzero"`
}

// Firewall is what may drop packets of UDP port 4791 on their way through the
// kernel.
type Firewall struct {
	NFT       Value[[]NFTChain] `json:"nft,omitzero"`
	IPTables  Value[string]     `json:"iptables,omitzero"`  // text of iptables-save, where recorded
	IP6Tables Value[string]     `json:"ip6tables,omitzero"` // text of ip6tables-save, where recorded
}

// NFTChain is a chain of nftables.
type NFTChain struct {
	Family string    `json:"family"` // ip, ip6, inet, bridge, netdev
	Table  string    `json:"table"`
	Name   string    `json:"chain"`
	Hook   string    `json:"hook,omitempty"` // prerouting, input, forward, output, postrouting, ingress; empty for a chain that others jump to
	Prio   int       `json:"prio,omitempty"`
	Policy string    `json:"policy,omitempty"` // accept, drop
	Dev    string    `json:"dev,omitempty"`
	Rules  []NFTRule `json:"rules,omitempty"`
}

// NFTRule is a rule as far as it matters here. Matches that are not understood are
// listed as such, so that a judgement can say that it does not know. A rule with a
// verdict map, or with a set of several fields, is there once for each element.
type NFTRule struct {
	Handle  uint64        `json:"handle,omitempty"`
	Family  string        `json:"family,omitempty"`  // ip or ip6 where the rule is for one of them
	Text    string        `json:"text"`              // as nft would print it, as far as known
	Proto   string        `json:"proto,omitempty"`   // udp, tcp; empty for any
	DPort   [][2]int      `json:"dport,omitempty"`   // ranges, inclusive; none for any
	SPort   [][2]int      `json:"sport,omitempty"`   // ranges, inclusive
	Saddr   []string      `json:"saddr,omitempty"`   // prefixes
	Daddr   []string      `json:"daddr,omitempty"`   // prefixes
	IIF     string        `json:"iif,omitempty"`     // interface, perhaps with *
	OIF     string        `json:"oif,omitempty"`     // interface
	CTState []string      `json:"ctstate,omitempty"` // new, established, related, invalid, untracked
	Unknown []string      `json:"unknown,omitempty"` // expressions that are not understood
	Verdict string        `json:"verdict,omitempty"` // accept, drop, reject, jump X, goto X, return; empty to go on
	Packets Value[uint64] `json:"packets,omitzero"`  // of its counter
	Bytes   Value[uint64] `json:"bytes,omitzero"`
}
