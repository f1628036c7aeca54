package verbs_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// BenchmarkShards measures WRITEs of 64 KiB on two connections whose ends are in
// different shards, if there are two: of a device to itself, where the work of
// both ends is one shard's, and between two devices, which keep two processors
// busy already. A goroutine polls for each connection.
func BenchmarkShards(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("self/%d", n), func(b *testing.B) {
			dev := openShards(b, shardA, n)
			benchmarkShards(b, dev, dev, n)
		})
		b.Run(fmt.Sprintf("two devices/%d", n), func(b *testing.B) {
			benchmarkShards(b, openShards(b, shardA, n), openShards(b, shardB, n), n)
		})
	}
}

func benchmarkShards(b *testing.B, from, to *verbs.Device, shards int) {
	const conns, size, depth = 2, 64 << 10, 8
	pda, pdb := from.AllocPD(), to.AllocPD()
	var ends []*end
	for i := range conns {
		v := verbs.VectorOf(i % shards)
		cqa, cqb := newCQ(b, from, verbs.CQConfig{Vector: v}), newCQ(b, to, verbs.CQConfig{Vector: v})
		x, y := endOn(b, from, pda, ib.RC, cqa, cqa, nil), endOn(b, to, pdb, ib.RC, cqb, cqb, nil)
		join(b, x, y)
		ends = append(ends, x)
	}
	b.SetBytes(conns * size)
	b.ResetTimer()
	var work sync.WaitGroup
	for _, x := range ends {
		work.Go(func() {
			wcs := make([]ib.WC, depth)
			for posted, done := 0, 0; done < b.N; {
				for ; posted < b.N && posted-done < depth; posted++ {
					if err := x.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: x.mr.SGE(0, size), Remote: x.peer.At(0)}); err != nil {
						b.Error(err)
						return
					}
				}
				n := x.cq.Poll(wcs)
				for _, wc := range wcs[:n] {
					if wc.Status != ib.Success {
						b.Errorf("%+v", wc)
						return
					}
				}
				done += n
			}
		})
	}
	work.Wait()
}
