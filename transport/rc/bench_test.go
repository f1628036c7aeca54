package rc_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// BenchmarkEngine moves messages between two engines whose payload is phantom:
// the cost of the protocol alone, per message and, as a metric, per packet of
// both ends together.
func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		name string
		op   ib.WROp
		mtu  ib.MTU
		size uint32
	}{
		{"WRITE/64", ib.Write, ib.MTU4096, 64},
		{"SEND/64", ib.Send, ib.MTU4096, 64},
		{"READ/64", ib.Read, ib.MTU4096, 64},
		{"WRITE/64K", ib.Write, ib.MTU4096, 64 << 10},
		{"SEND/64K", ib.Send, ib.MTU4096, 64 << 10},
		{"READ/64K", ib.Read, ib.MTU4096, 64 << 10},
		{"FAA", ib.FetchAdd, ib.MTU4096, 8},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := lossless()
			o.mtu, o.phantom, o.mem, o.rd, o.depth = c.mtu, true, 1<<20, 16, 128
			cp, done, _ := newCouple(b, o)
			packets := 0
			b.ReportAllocs()
			b.ResetTimer()
			posted := 0
			for posted < b.N {
				for range min(64, b.N-posted) {
					if c.op == ib.Send {
						cp.b.fastRecv(cp.now, 1, c.size)
					}
					cp.a.fastPost(cp.now, 1, c.op, c.size, cp.b.remote(0))
					posted++
				}
				packets += cp.pump()
			}
			if done.done != b.N {
				b.Fatalf("%d of %d", done.done, b.N)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(1, packets)), "ns/packet")
		})
	}
}
