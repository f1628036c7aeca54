package rnic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// Many queue pairs of two adapters share narrow windows over a cable that loses
// packets: everything completes once, in order, with the right bytes, and
// nothing waits for ever.
func TestManyQueuePairsUnderLossFinish(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { soak(t, seed) })
	}
}

const (
	soakQPs  = 6
	soakOps  = 25
	soakSlot = 40000 // bytes of each queue pair in each region
)

type soakEnd struct {
	*host
	buf  []byte
	lkey ib.LKey
	qps  []*QP
	done [soakQPs]int
}

func soak(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	edit := func(c *Config) { c.Wire.RxBytes = 24 << 10 }
	ends := [2]*soakEnd{{host: newHost(t, addrA, addrA6, edit)}, {host: newHost(t, addrB, addrB6, edit)}}
	gids := [2]ib.GID{ib.GIDFromAddr(addrA), ib.GIDFromAddr(addrB)}
	for _, e := range ends {
		mr, buf := e.mr(2 * soakQPs * soakSlot)
		e.buf, e.lkey = buf, mr.LKey
		for range soakQPs {
			e.qps = append(e.qps, e.qp(ib.RC, nil))
		}
	}
	for i, e := range ends {
		for k, q := range e.qps {
			e.connect(q, gids[1-i], 0, ends[1-i].qps[k].qpn, ib.MTU1024)
		}
	}
	c := newCable(t, ends[0].Adapter, ends[1].Adapter, asRuns)
	var late []byte
	c.tap = func(from int, b []byte) bool {
		switch r := rng.IntN(100); {
		case r < 6:
			return false
		case r < 9: // again, later
			late = slices.Clone(b)
		case r < 12 && len(late) > 0:
			rx := *rxOf(&c.run)
			rx.Data, rx.Seg = late, 0
			ends[1-from].Ingress(c.now, &rx)
			late = nil
		}
		return true
	}

	// Each queue pair works in its own slot of both regions, the first half of
	// a region being the sources, the second the targets. Whoever moves them,
	// target k of an end gets the first bytes of the peer's source k.
	posted, moved := [2][soakQPs]int{}, [2][soakQPs]int{}
	post := func(i, k int) {
		e := ends[i]
		n := rng.IntN(soakSlot)
		src := uint64(testBase + k*soakSlot)
		dst := uint64(testBase + (soakQPs+k)*soakSlot)
		w := ib.SendWR{ID: uint64(posted[i][k]), Flags: ib.Signaled, Op: ib.Write, SGL: []ib.SGE{{Addr: src, Length: uint32(n), LKey: e.lkey}}}
		w.Remote = ib.Remote{Addr: dst, RKey: ib.RKey(ends[1-i].lkey)}
		if rng.IntN(3) == 0 {
			w.Op, w.SGL[0].Addr, w.Remote.Addr = ib.Read, dst, src
			moved[i][k] = max(moved[i][k], n)
		} else {
			moved[1-i][k] = max(moved[1-i][k], n)
		}
		if _, err := e.qps[k].Post([]ib.SendWR{w}, nil); err != nil {
			t.Fatal(err)
		}
		posted[i][k]++
	}
	for _, e := range ends {
		for j := range e.buf {
			e.buf[j] = byte(rng.Uint32())
		}
	}
	before := [2][]byte{slices.Clone(ends[0].buf), slices.Clone(ends[1].buf)}
	finished := func() bool {
		for i, e := range ends {
			for _, wc := range e.poll() {
				k := slices.IndexFunc(e.qps, func(q *QP) bool { return q.qpn == wc.QPN })
				if wc.Status != ib.Success || wc.ID != uint64(e.done[k]) {
					t.Fatalf("end %d QP %d: %+v, want number %d", i, k, wc, e.done[k])
				}
				e.done[k]++
			}
			for k := range soakQPs {
				if posted[i][k] < soakOps && posted[i][k]-e.done[k] < 3 {
					post(i, k)
				}
			}
		}
		for _, e := range ends {
			for k := range soakQPs {
				if e.done[k] < soakOps {
					return false
				}
			}
		}
		return true
	}
	for steps := 0; !finished(); steps++ {
		c.settle()
		if ends[0].Rung() || ends[1].Rung() {
			continue
		}
		next := clock.Min(ends[0].Deadline(), ends[1].Deadline())
		if steps > 200000 || next == clock.Never && ends[0].cq.Len()+ends[1].cq.Len() == 0 {
			t.Fatalf("stuck after %d steps: done %v and %v of %d", steps, ends[0].done, ends[1].done, soakOps)
		}
		if next != clock.Never && ends[0].cq.Len()+ends[1].cq.Len() == 0 {
			c.now = max(c.now, next)
		}
	}
	for i, e := range ends {
		for d := range e.dests {
			if w := e.dests[d].window; w.InFlight() != 0 || e.dests[d].stalled.head != nil {
				t.Errorf("end %d: %d bytes in flight at the end", i, w.InFlight())
			}
		}
	}
	for i, e := range ends {
		want := before[i]
		for k := range soakQPs {
			copy(want[(soakQPs+k)*soakSlot:], before[1-i][k*soakSlot:k*soakSlot+moved[i][k]])
		}
		if !bytes.Equal(e.buf, want) {
			t.Errorf("end %d: wrong bytes", i)
		}
	}
}
