package source

import (
	"time"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Queries of [Source.Ask], and the type of their answers. A query with a %s is
// asked with the name of a device or interface in its place. An answer that the
// kernel does not have is an error that matches [fs.ErrNotExist].
const (
	QueryMeta       = "meta"             // Meta
	QuerySubsystem  = "rdma/system"      // snapshot.Subsystem
	QueryDevices    = "rdma/dev"         // []snapshot.Device: name, index, protocol, node type, guids, firmware
	QueryLinks      = "rdma/link"        // map[device][]snapshot.Port: number, states, netdev, LIDs, cap flags
	QuerySummary    = "rdma/res"         // map[device]map[kind]uint64
	QueryQPs        = "rdma/res/qp/%s"   // []snapshot.QP
	QueryCQs        = "rdma/res/cq/%s"   // []snapshot.CQ
	QueryMRs        = "rdma/res/mr/%s"   // []snapshot.MR
	QueryPDs        = "rdma/res/pd/%s"   // []snapshot.PD
	QueryCMIDs      = "rdma/res/cm/%s"   // []snapshot.CMID
	QuerySRQs       = "rdma/res/srq/%s"  // []snapshot.SRQ
	QueryContexts   = "rdma/res/ctx/%s"  // []snapshot.Context
	QueryStatistics = "rdma/stat/%s"     // map[port number]snapshot.Counters
	QueryStatModes  = "rdma/statmode/%s" // map[port number]snapshot.StatMode
	QueryBound      = "rdma/statqp/%s"   // []snapshot.BoundCounter
	QueryAttr       = "rdma/attr/%s"     // AttrAnswer, of uverbs
	QueryChardevs   = "rdma/chardev"     // []snapshot.Chardev: what is under /dev/infiniband

	QueryEthtool  = "ethtool/%s/stats"    // snapshot.Counters in the order of the driver
	QueryFeatures = "ethtool/%s/features" // map[string]bool
	QueryRings    = "ethtool/%s/rings"    // map[string]uint64
	QueryChannels = "ethtool/%s/channels" // map[string]uint64
	QueryPause    = "ethtool/%s/pause"    // snapshot.Pause
	QueryDriver   = "ethtool/%s/driver"   // string
	QueryFEC      = "ethtool/%s/fec"      // string
	QueryHash     = "ethtool/%s/hash/%s"  // snapshot.Hash; the second is a flow type, udp4 or udp6

	QueryDCB = "dcb/%s" // snapshot.DCB
	// The same of which only PFC matters, for those who ask every second. Who has no answer
	// to it is asked for QueryDCB.
	QueryPFC = "dcb/%s/pfc"

	QueryNetdevs    = "ip/link"  // []snapshot.Netdev: name, index, states, MTU, MAC, master, parent, VLAN
	QueryAddresses  = "ip/addr"  // map[interface][]snapshot.Address
	QueryRoutes     = "ip/route" // []snapshot.Route
	QueryRules      = "ip/rule"  // []snapshot.PolicyRule
	QueryNeighbours = "ip/neigh" // []snapshot.Neighbour

	QueryNFT       = "nft"       // []snapshot.NFTChain
	QueryIPTables  = "iptables"  // string: the filter table of legacy iptables, IPv4, as iptables-save writes it
	QueryIP6Tables = "ip6tables" // string: the same for IPv6, as ip6tables-save writes it

	// []snapshot.Device: those that processes of this host hold, from their control
	// sockets. One without a name is a process that has not answered; Attr says why.
	QueryVerbena = "verbena/dev"
	// The same without lists of objects: how many there are, for those who ask every
	// second. Who has no answer to it is asked for QueryVerbena.
	QueryVerbenaCounts = "verbena/count"
	// Of them only what is counted, and what names it. Who has no answer to it is asked for
	// QueryVerbenaCounts.
	QueryVerbenaCounters = "verbena/counters"

	QueryApp    = "app"    // snapshot.App
	QuerySwitch = "switch" // snapshot.Switch
)

// AttrAnswer are the attributes of a device and of its ports, as ibv_query_device
// and ibv_query_port give them; names are those of ibv_devinfo -v. The port's max_mtu
// and active_mtu are codes or bytes, active_width and active_speed codes.
type AttrAnswer struct {
	Device snapshot.Attr         `json:"device"`
	Ports  map[int]snapshot.Attr `json:"ports,omitempty"`
}

// Meta is what a recording says about itself, meta.json, and the answer to
// QueryMeta, then with the one instant of the source. A live source has no host name
// or kernel here: they are files under proc/sys/kernel.
type Meta struct {
	Version    int         `json:"version"`
	Taken      []time.Time `json:"taken"`
	Host       string      `json:"host,omitempty"`
	Anonymised bool        `json:"anonymised"`
}

// MetaVersion is the version of the format of recordings that this package writes and
// the newest that it reads.
const MetaVersion = 1
