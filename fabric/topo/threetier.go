package topo

import (
	"fmt"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// ThreeTier is a Clos network of three tiers. In a pod every leaf has links to
// every aggregation switch. Cores are divided into as many planes as a pod has
// aggregation switches: switch j of every pod has links to the cores of plane j.
type ThreeTier struct {
	Pods          int
	LeavesPerPod  int
	AggsPerPod    int
	Cores         int // in all: a multiple of AggsPerPod
	HostsPerLeaf  int
	NICs          int      // ports of a host, all to its leaf; 0: 1
	UplinksPerAgg int      // links between a leaf and an aggregation switch; 0: 1
	LinksPerCore  int      // between an aggregation switch and a core; 0: 1
	Rate          sim.Rate // of the hosts' links
	UplinkRate    sim.Rate // between leaf and aggregation; 0: Rate
	CoreRate      sim.Rate // between aggregation and core; 0: UplinkRate
	Delay         sim.Time // of the hosts' links, one way
	UplinkDelay   sim.Time // 0: Delay
	CoreDelay     sim.Time // 0: UplinkDelay
}

// Validate implements Shape.
func (s ThreeTier) Validate() error {
	c := checks{shape: "three-tier"}
	s.check(&c)
	return c.err
}

func (s ThreeTier) check(c *checks) {
	c.count("Pods", s.Pods, 1, MaxPorts)
	c.count("LeavesPerPod", s.LeavesPerPod, 1, MaxPorts)
	c.count("AggsPerPod", s.AggsPerPod, 1, MaxPorts)
	c.count("Cores", s.Cores, 1, MaxNodes)
	c.count("HostsPerLeaf", s.HostsPerLeaf, 1, MaxPorts)
	c.count("NICs", or(s.NICs, 1), 1, MaxHostPorts)
	c.count("UplinksPerAgg", or(s.UplinksPerAgg, 1), 1, MaxPorts)
	c.count("LinksPerCore", or(s.LinksPerCore, 1), 1, MaxPorts)
	c.rate("Rate", s.Rate)
	c.rate("UplinkRate", or(s.UplinkRate, s.Rate))
	c.rate("CoreRate", or(s.CoreRate, s.Rate))
	c.delay("Delay", s.Delay)
	c.delay("UplinkDelay", s.UplinkDelay)
	c.delay("CoreDelay", s.CoreDelay)
	if c.err != nil {
		return
	}
	if s.Cores%s.AggsPerPod != 0 {
		c.fail("Cores", "%d is no multiple of the %d aggregation switches of a pod", s.Cores, s.AggsPerPod)
		return
	}
	c.atMost("leaves", s.Pods*s.LeavesPerPod, MaxNodes)
	c.atMost("aggregation switches", s.Pods*s.AggsPerPod, MaxNodes)
	c.atMost("ports of a leaf", s.HostsPerLeaf*or(s.NICs, 1)+s.AggsPerPod*or(s.UplinksPerAgg, 1), MaxPorts)
	c.atMost("ports of an aggregation switch", s.aggPorts(), MaxPorts)
	c.atMost("ports of a core", s.Pods*or(s.LinksPerCore, 1), MaxPorts)
	if c.err == nil {
		c.atMost("nodes", s.nodes(), MaxNodes)
	}
	if c.err == nil {
		c.atMost("links", s.links(), MaxLinks)
	}
}

func (s ThreeTier) hosts() int { return s.Pods * s.LeavesPerPod * s.HostsPerLeaf }

func (s ThreeTier) nodes() int {
	return s.hosts() + s.Pods*(s.LeavesPerPod+s.AggsPerPod) + s.Cores
}

func (s ThreeTier) aggPorts() int {
	return s.LeavesPerPod*or(s.UplinksPerAgg, 1) + s.Cores/s.AggsPerPod*or(s.LinksPerCore, 1)
}

func (s ThreeTier) links() int {
	return s.hosts()*or(s.NICs, 1) + s.Pods*s.AggsPerPod*s.aggPorts()
}

// Build implements Shape. Host i hangs on leaf i/HostsPerLeaf, leaf i is in pod
// i/LeavesPerPod.
func (s ThreeTier) Build() (*Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.build(fmt.Sprintf("three-tier, %d hosts", s.hosts()))
}

func (s ThreeTier) build(name string) (*Graph, error) {
	nics, up, down := or(s.NICs, 1), or(s.UplinksPerAgg, 1), or(s.LinksPerCore, 1)
	leaves, aggs, plane := s.Pods*s.LeavesPerPod, s.Pods*s.AggsPerPod, s.Cores/s.AggsPerPod
	b := newBuilder(name, s.nodes(), s.links())
	for i := range s.hosts() {
		b.host(i, i/(s.HostsPerLeaf*s.LeavesPerPod), nics)
	}
	leaf := int32(s.hosts())
	agg := leaf + int32(leaves)
	core := agg + int32(aggs)
	for i := range leaves {
		b.sw("leaf", i, 1, i/s.LeavesPerPod, s.HostsPerLeaf*nics+s.AggsPerPod*up)
	}
	for i := range aggs {
		b.sw("agg", i, 2, i/s.AggsPerPod, s.aggPorts())
	}
	for i := range s.Cores {
		b.sw("core", i, 3, -1, s.Pods*down)
	}
	for i := range s.hosts() {
		for range nics {
			b.link(int32(i), leaf+int32(i/s.HostsPerLeaf), s.Rate, s.Delay)
		}
	}
	rate, delay := or(s.UplinkRate, s.Rate), or(s.UplinkDelay, s.Delay)
	for p := range s.Pods {
		b.mesh(leaf+int32(p*s.LeavesPerPod), s.LeavesPerPod, agg+int32(p*s.AggsPerPod), s.AggsPerPod, up, rate, delay)
	}
	rate, delay = or(s.CoreRate, rate), or(s.CoreDelay, delay)
	for i := range aggs {
		b.mesh(agg+int32(i), 1, core+int32(i%s.AggsPerPod*plane), plane, down, rate, delay)
	}
	return b.finish()
}

// FatTree is the k-ary fat tree (SIGCOMM'08 Al-Fares §3): k pods of k/2 leaves
// and k/2 aggregation switches, (k/2)² cores, k³/4 hosts, every switch with k
// ports.
type FatTree struct {
	K int // even, 2 to 80
	// Oversubscription of the leaves: 2 halves what goes up, by leaving out
	// every second aggregation switch and its cores. 0: 1. It divides K/2.
	Oversubscription int
	NICs             int      // ports of a host, all to its leaf; 0: 1
	Rate             sim.Rate // of the hosts' links
	UplinkRate       sim.Rate // of the others; 0: Rate
	Delay            sim.Time // of the hosts' links, one way
	UplinkDelay      sim.Time // of the others; 0: Delay
}

const maxK = 80 // 128,000 hosts, 384,000 links

// Validate implements Shape.
func (f FatTree) Validate() error {
	c := checks{shape: "fat tree"}
	c.count("K", f.K, 2, maxK)
	if f.K%2 != 0 {
		c.fail("K", "%d is odd", f.K)
	}
	c.count("Oversubscription", or(f.Oversubscription, 1), 1, maxK/2)
	if c.err == nil && f.K/2%or(f.Oversubscription, 1) != 0 {
		c.fail("Oversubscription", "%d does not divide K/2 = %d", f.Oversubscription, f.K/2)
	}
	if c.err == nil {
		t := f.tiers()
		t.check(&c)
	}
	return c.err
}

func (f FatTree) tiers() ThreeTier {
	half := f.K / 2
	aggs := half / or(f.Oversubscription, 1)
	return ThreeTier{
		Pods: f.K, LeavesPerPod: half, AggsPerPod: aggs, Cores: aggs * half, HostsPerLeaf: half, NICs: f.NICs,
		Rate: f.Rate, UplinkRate: f.UplinkRate, Delay: f.Delay, UplinkDelay: f.UplinkDelay,
	}
}

// Build implements Shape. Names and order are those of a ThreeTier.
func (f FatTree) Build() (*Graph, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	t := f.tiers()
	return t.build(fmt.Sprintf("fat tree k=%d, %d hosts", f.K, t.hosts()))
}
