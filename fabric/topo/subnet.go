package topo

import (
	"fmt"
	"math/bits"
	"net/netip"
)

// SetSubnets gives every endpoint the subnet that of returns, from 0 upwards
// without great gaps, and an address in it. Until then every leaf has its own.
// It is called before anybody uses the graph; a failed call changes nothing.
func (g *Graph) SetSubnets(of func(endpoint int32) int) error {
	subnet := make([]int, len(g.Endpoints))
	last := 0
	for i := range subnet {
		subnet[i] = of(int32(i))
		if subnet[i] < 0 || subnet[i] >= 1<<addrBits {
			return fmt.Errorf("subnet %d of %s: 0 to %d are possible", subnet[i], g.EndpointName(int32(i)), 1<<addrBits-1)
		}
		last = max(last, subnet[i])
	}
	used := make([]uint32, last+1) // addresses, by subnet
	most := uint32(0)
	for _, s := range subnet {
		used[s]++
		most = max(most, used[s])
	}
	hostBits := bits.Len32(most + reservedHosts - 1)
	if hostBits < usualHostBits && uint64(last+1) <= 1<<(addrBits-usualHostBits) {
		hostBits = usualHostBits
	}
	if uint64(last+1)<<hostBits > 1<<addrBits {
		return fmt.Errorf("%d subnets of up to %d endpoints do not fit into 10.0.0.0/8", last+1, most)
	}
	clear(used)
	for i, s := range subnet {
		used[s]++
		a := uint32(s)<<hostBits | used[s]
		e := &g.Endpoints[i]
		e.Subnet = s
		e.Addr = netip.AddrFrom4([4]byte{10, byte(a >> 16), byte(a >> 8), byte(a)})
	}
	return nil
}

// OneSubnet puts all endpoints into one.
func (g *Graph) OneSubnet() error { return g.SetSubnets(func(int32) int { return 0 }) }

// subnetPerLeaf numbers leaves in the order of their first endpoints; those
// without a leaf share one.
func (g *Graph) subnetPerLeaf() error {
	number := make([]int, len(g.Nodes)+1) // by leaf, 0: not yet
	n := 0
	return g.SetSubnets(func(endpoint int32) int {
		at := &number[g.Endpoints[endpoint].Leaf+1]
		if *at == 0 {
			n++
			*at = n
		}
		return *at - 1
	})
}
