package explain

import (
	"cmp"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// 1,024 hosts, 10,000 flows of mixed starts, 100,000 stops.
func BenchmarkExplain(b *testing.B) {
	f := spineLeaf(64, 16, 16)
	r := sim.NewRand(7, "explain")
	for i := range 10_000 {
		src := int(r.Uint64() % 1024)
		dst := int((uint64(src) + 1 + r.Uint64()%1023) % 1024)
		f.flow("perm", src, dst, int(r.Uint64()%16), mb, sim.Time(i%50)*20*us, 2*ms)
	}
	for i := range 100_000 {
		leaf := int32(r.Uint64() % 64)
		spine := int32(r.Uint64() % 16)
		at := sim.Time(i) * 100 * sim.Nanosecond
		if i%2 == 0 {
			f.stop(leaf, 16+spine, int32(r.Uint64()%16), false, at, 20*us)
		} else {
			f.stop(64+spine, leaf, int32(r.Uint64()%64), true, at, 20*us)
		}
	}

	slices.SortStableFunc(f.r.Pauses, func(a, b result.Pause) int { return cmp.Compare(a.At, b.At) })
	run := &f.r
	b.ResetTimer()
	for range b.N {
		Explain(run)
	}
}
