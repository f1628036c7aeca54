package truth

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/work"
)

// murmur3 is MurmurHash3_x86_32 (public domain) of whole words.
func murmur3(words []uint32, seed uint32) uint32 {
	h := seed
	for _, k := range words {
		k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	h ^= uint32(4 * len(words))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// hpccSpine is the uplink of n that HPCC's simulator takes for flow k between
// two hosts: murmur3 over source, destination and ports, with the number of the
// leaf's node for a seed.
func hpccSpine(src, dst, k, leafNode uint32, n uint32) int {
	addr := func(node uint32) uint32 { return 0x0b000001 + node/256<<16 + node%256<<8 }
	return int(murmur3([]uint32{addr(src), addr(dst), (10000 + k) | 100<<16}, leafNode) % n)
}

// The hash is the published one.
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint32
		want uint32
	}{{"", 0, 0}, {"", 1, 0x514E28B7}, {"test", 0, 0xba6bd213}, {"test", 0x9747b28c, 0x704b81dc}} {
		var w []uint32
		if c.text != "" {
			w = append(w, binary.LittleEndian.Uint32([]byte(c.text)))
		}
		if got := murmur3(w, c.seed); got != c.want {
			t.Errorf("murmur3(%q, %#x) = %#x, want %#x", c.text, c.seed, got, c.want)
		}
	}
}

// pin gives flows across leaves the source port with which they take the wanted
// spine, of those that a run with a byte for each port shows.
func (r rig) pin(t testing.TB, flows []work.Flow, spine func(i int, f *work.Flow) int) {
	t.Helper()
	const tries = 128
	var probes []work.Flow
	for _, f := range flows {
		for k := range tries {
			p := write(f.Src, f.Dst, 1, "probe")
			p.SrcPort = uint16(0xC000 + k)
			probes = append(probes, p)
		}
	}
	res := r.run(t, probes)
	perLeaf := int32(r.sc.Topology.HostsPerLeaf)
	for i := range flows {
		f := &flows[i]
		if f.Src/perLeaf == f.Dst/perLeaf {
			continue
		}
		want := spine(i, f)
		for k := range tries {
			p := &res.Flows[i*tries+k]
			if int(p.Path[1].Port-perLeaf) == want {
				f.SrcPort = p.SrcPort
				break
			}
		}
		if f.SrcPort == 0 {
			t.Fatalf("no source port takes flow %d by spine %d", i, want)
		}
	}
}
