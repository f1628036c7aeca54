package scenario

import "github.com/verbena-rdma/verbena/fabric/sim"

// Shape names a generator of topologies, or says where else the graph is from.
type Shape string

// The shapes.
const (
	Star       Shape = "star"
	Dumbbell   Shape = "dumbbell"
	ParkingLot Shape = "parking-lot"
	SpineLeaf  Shape = "spine-leaf"
	FatTree    Shape = "fat-tree"
	ThreeTier  Shape = "three-tier"
	Rail       Shape = "rail"
	Ring       Shape = "ring"
	Bounce     Shape = "bounce"
	Explicit   Shape = "explicit"
	FromFile   Shape = "file"
)

// Topology is the graph: a generator with its parameters, lists of nodes and
// links, or a file of another simulator. Hosts are host0, host1, ...; switches
// leaf0, agg0, spine0, core0 or sw0 by tier. Ports are Ethernet0, ... of a
// switch and eth0, ... of a host.
type Topology struct {
	// Kind is the shape.
	Kind Shape `yaml:"kind" enum:"star|dumbbell|parking-lot|spine-leaf|fat-tree|three-tier|rail|ring|bounce|explicit|file"`

	// Rate of the links to hosts, and of all where no other is given.
	Rate sim.Rate `yaml:"rate" min:"1Mbps" max:"10Tbps"`
	// Delay of the links to hosts, one way, and of all where no other is given.
	Delay sim.Time `yaml:"delay" min:"0ns" max:"1s"`
	// Cable is a length in place of the delay, at 5 ns a metre.
	Cable Length `yaml:"cable" min:"0m" max:"200km"`
	// UplinkRate is the rate between switches; 0: the rate. The bottleneck of a
	// dumbbell, the trunks of a parking lot and a ring.
	UplinkRate sim.Rate `yaml:"uplink_rate" min:"0bps" max:"10Tbps"`
	// UplinkDelay is the delay between switches; 0: the delay.
	UplinkDelay sim.Time `yaml:"uplink_delay" min:"0ns" max:"1s"`
	// UplinkCable is a length in place of it.
	UplinkCable Length `yaml:"uplink_cable" min:"0m" max:"200km"`
	// ErrorRate is the share of frames that every link corrupts.
	ErrorRate Ratio `yaml:"error_rate" min:"0" max:"1"`

	// Hosts of a star.
	Hosts int `yaml:"hosts" min:"1" max:"1000000"`
	// Left is the number of hosts on the left of a dumbbell.
	Left int `yaml:"left" min:"1" max:"100000"`
	// Right is the number on its right.
	Right int `yaml:"right" min:"1" max:"100000"`
	// Switches of a parking lot (in a row) or a ring.
	Switches int `yaml:"switches" min:"1" max:"10000"`
	// HostsPerSwitch of a parking lot or a ring.
	HostsPerSwitch int `yaml:"hosts_per_switch" min:"1" max:"100000"`
	// Leaves of a spine-leaf.
	Leaves int `yaml:"leaves" min:"1" max:"10000"`
	// Spines of a spine-leaf or a rail topology.
	Spines int `yaml:"spines" min:"0" max:"10000"`
	// HostsPerLeaf of a spine-leaf, three-tier or bounce topology.
	HostsPerLeaf int `yaml:"hosts_per_leaf" min:"1" max:"100000"`
	// UplinksPerSpine is the number of parallel links from a leaf to a spine.
	UplinksPerSpine int `yaml:"uplinks_per_spine" min:"1" max:"1024"`
	// OneWay routes everything in a ring to the next higher switch, so that its
	// trunks wait for each other: with PFC it can deadlock.
	OneWay bool `yaml:"one_way"`
	// K of a fat-tree, even: K³/4 hosts.
	K int `yaml:"k" min:"2" max:"80"`
	// Oversubscription of a fat-tree's leaves: 2 halves what goes up. It divides K/2.
	Oversubscription int `yaml:"oversubscription" min:"1" max:"128"`
	// Pods of a three-tier topology.
	Pods int `yaml:"pods" min:"1" max:"10000"`
	// LeavesPerPod of a three-tier topology.
	LeavesPerPod int `yaml:"leaves_per_pod" min:"1" max:"10000"`
	// AggsPerPod of a three-tier topology.
	AggsPerPod int `yaml:"aggs_per_pod" min:"1" max:"10000"`
	// Cores of a three-tier topology, in all: a multiple of the aggs per pod.
	Cores int `yaml:"cores" min:"1" max:"10000"`
	// UplinksPerAgg is the number of parallel links from a leaf to an
	// aggregation switch of a three-tier topology.
	UplinksPerAgg int `yaml:"uplinks_per_agg" min:"1" max:"1024"`
	// LinksPerCore is the number of parallel links from an aggregation switch to a core.
	LinksPerCore int `yaml:"links_per_core" min:"1" max:"1024"`
	// CoreRate is the rate of the links to cores of a three-tier topology; 0: the uplink rate.
	CoreRate sim.Rate `yaml:"core_rate" min:"0bps" max:"10Tbps"`
	// CoreDelay is the delay of the links to cores; 0: the uplink delay.
	CoreDelay sim.Time `yaml:"core_delay" min:"0ns" max:"1s"`
	// CoreCable is a length in place of it.
	CoreCable Length `yaml:"core_cable" min:"0m" max:"200km"`
	// NICs of a host of a star, spine-leaf, fat-tree, three-tier or rail topology. NIC r of a rail topology is on rail r.
	NICs int `yaml:"nics" min:"1" max:"64"`
	// Units of a rail topology: groups of hosts with their own rail leaves.
	Units int `yaml:"units" min:"1" max:"10000"`
	// HostsPerUnit of a rail topology.
	HostsPerUnit int `yaml:"hosts_per_unit" min:"1" max:"100000"`

	// Subnets says whether endpoints of different leaves are in different IP
	// subnets: one | per-leaf. RoCEv1 does not cross them.
	Subnets Subnets `yaml:"subnets" enum:"one|per-leaf"`
	// File of another simulator, for kind file.
	File string `yaml:"file"`
	// Format of the file: hpcc (topology.txt) | htsim (.topo) | auto by its name.
	Format string `yaml:"format" enum:"auto|hpcc|htsim"`
	// Nodes of an explicit topology.
	Nodes []Node `yaml:"nodes" items:"1000000"`
	// Links of an explicit topology.
	Links []Link `yaml:"links" items:"1000000"`
	// Routes replace what shortest paths give.
	Routes []Route `yaml:"routes" items:"100000"`
}

// Subnets says how endpoints are divided into IP subnets.
type Subnets string

// The divisions.
const (
	OneSubnet     Subnets = "one"
	SubnetPerLeaf Subnets = "per-leaf"
)

// Node is a host or a switch of an explicit topology.
type Node struct {
	// Name is what the other keys call it.
	Name string `yaml:"name"`
	// Kind is host or switch.
	Kind string `yaml:"kind" enum:"host|switch"`
	// Tier of a switch: 1 leaf, 2 above it, ...; 0: from its links to hosts.
	Tier int `yaml:"tier" min:"0" max:"15"`
	// Pod it belongs to.
	Pod int `yaml:"pod" min:"0" max:"1000000"`
}

// Link joins two nodes of an explicit topology. Ports are numbered at each
// node in the order of the list.
type Link struct {
	// A is one end.
	A string `yaml:"a"`
	// B is the other.
	B string `yaml:"b"`
	// Rate; 0: the topology's.
	Rate sim.Rate `yaml:"rate" min:"0bps" max:"10Tbps"`
	// Delay, one way; 0: the topology's.
	Delay sim.Time `yaml:"delay" min:"0ns" max:"1s"`
	// Cable is a length in place of the delay.
	Cable Length `yaml:"cable" min:"0m" max:"200km"`
	// ErrorRate is the share of frames that it corrupts; added to the topology's.
	ErrorRate Ratio `yaml:"error_rate" min:"0" max:"1"`
	// Count is the number of parallel links.
	Count int `yaml:"count" min:"1" max:"1024"`
}

func (l *Link) setDefaults() { l.Count = 1 }

// Route is an explicit next hop.
type Route struct {
	// Switch is the one that forwards.
	Switch string `yaml:"switch"`
	// To is where: hosts, or a leaf for all hosts there.
	To Select `yaml:"to"`
	// Via lists the neighbours, or ports (Ethernet3), among which it chooses.
	Via Select `yaml:"via"`
}

// LinkDelay returns the delay of host links.
func (t *Topology) LinkDelay() sim.Time { return orCable(t.Delay, t.Cable) }

// TrunkDelay returns the delay between switches.
func (t *Topology) TrunkDelay() sim.Time {
	if t.UplinkDelay == 0 && t.UplinkCable == 0 {
		return t.LinkDelay()
	}
	return orCable(t.UplinkDelay, t.UplinkCable)
}

// TrunkRate returns the rate between switches.
func (t *Topology) TrunkRate() sim.Rate {
	if t.UplinkRate == 0 {
		return t.Rate
	}
	return t.UplinkRate
}

func orCable(d sim.Time, l Length) sim.Time {
	if l > 0 {
		return l.Delay()
	}
	return d
}
