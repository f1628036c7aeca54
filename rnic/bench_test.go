package rnic

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
)

// pair is two hosts with a connected queue pair each.
type pair struct {
	*cable
	a, b   *host
	qa, qb *QP
	bufA   []byte
	bufB   []byte
	keyA   ib.LKey
	remote ib.Remote
	wcs    [64]ib.WC
	wr     [64]ib.SendWR
	sge    [64]ib.SGE
}

const testBase = 1 << 20 // address of the first byte of every region

func newPair(t testing.TB, typ ib.QPType, mode cableMode, mtu ib.MTU, size int, edit func(*Config)) *pair {
	p := &pair{}
	p.a = newHost(t, addrA, addrA6, edit)
	p.b = newHost(t, addrB, addrB6, edit)
	p.cable = newCable(t, p.a.Adapter, p.b.Adapter, mode)
	cap := func(c *QPConfig) {
		c.Cap = ib.QPCap{MaxSendWR: 256, MaxRecvWR: 512, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 256}
	}
	p.qa, p.qb = p.a.qp(typ, cap), p.b.qp(typ, cap)
	if typ == ib.UD {
		for _, x := range []struct {
			h *host
			q *QP
		}{{p.a, p.qa}, {p.b, p.qb}} {
			x.h.modify(x.q, initAttr(typ))
			x.h.modify(x.q, rtrAttr(typ, ib.GID{}, 0, 0, 0))
			x.h.modify(x.q, rtsAttr(typ))
		}
	} else {
		p.a.connect(p.qa, ib.GIDFromAddr(addrB), 0, p.qb.qpn, mtu)
		p.b.connect(p.qb, ib.GIDFromAddr(addrA), 0, p.qa.qpn, mtu)
	}
	ra, bufA := p.a.mr(size)
	rb, bufB := p.b.mr(size)
	p.bufA, p.bufB = bufA, bufB
	p.keyA = ra.LKey
	p.remote = ib.Remote{Addr: rb.Base, RKey: rb.RKey}
	return p
}

// write posts n WRITEs of size bytes.
func (p *pair) write(n, size int) {
	for i := range n {
		p.sge[i] = ib.SGE{Addr: testBase, Length: uint32(size), LKey: p.keyA}
		p.wr[i] = ib.SendWR{ID: uint64(i), Op: ib.Write, Flags: ib.Signaled, SGL: p.sge[i : i+1], Remote: p.remote}
	}
	k, err := p.qa.Post(p.wr[:n], nil)
	if err != nil || k != n {
		p.t.Fatalf("posted %d of %d: %v", k, n, err)
	}
}

// drain counts completions that succeed.
func (p *pair) drain() int {
	n := p.a.cq.Poll(p.wcs[:])
	for i := range n {
		if p.wcs[i].Status != ib.Success {
			p.t.Fatalf("completion %+v", p.wcs[i])
		}
	}
	return n
}

// BenchmarkLoop is the whole processing of WRITEs in two adapters, without a
// kernel between: post, segment, copy and CRC, verify, copy, acknowledge,
// complete.
func BenchmarkLoop(b *testing.B) {
	for _, mtu := range []ib.MTU{ib.MTU4096, ib.MTU1024} {
		for _, c := range []struct{ size, batch int }{{64, 64}, {4096, 16}, {64 << 10, 4}, {1 << 20, 1}} {
			b.Run(fmt.Sprintf("mtu=%v/size=%d", mtu, c.size), func(b *testing.B) {
				p := newPair(b, ib.RC, asRuns, mtu, 1<<20, nil)
				b.SetBytes(int64(c.size * c.batch))
				b.ReportAllocs()
				for b.Loop() {
					p.write(c.batch, c.size)
					for done := 0; done < c.batch; done += p.drain() {
						p.settle()
					}
				}
				b.ReportMetric(float64(c.batch)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmsg/s")
			})
		}
	}
}

// BenchmarkEgressWrite64K is the sending side alone. The peer's side, which is
// needed to have something to send, is not timed.
func BenchmarkEgressWrite64K(b *testing.B) {
	const size = 64 << 10
	p := newPair(b, ib.RC, asRuns, ib.MTU4096, size, nil)
	b.SetBytes(size)
	b.ReportAllocs()
	runs := make([]frame.Run, 8)
	for i := range runs {
		runs[i].Buf = make([]byte, 1<<16)
	}
	for range b.N {
		p.write(1, size)
		n := 0
		for ; p.a.Egress(0, &runs[n]); n++ {
		}
		b.StopTimer()
		for i := range n {
			p.deliver(0, &runs[i])
			runs[i].Reset()
		}
		p.settle()
		if p.drain() != 1 {
			b.Fatal("no completion")
		}
		b.StartTimer()
	}
}
