package rnic

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// phantomPair is two hosts back to back, as a simulator has them: no bytes, no
// bursts, DCQCN on.
type phantomPair struct {
	t      testing.TB
	hosts  [2]*host
	qps    [2]*QP
	mrs    [2]*mem.Region
	run    *frame.Run
	rx     frame.Rx
	now    clock.Time
	mark   bool // data packets carry Congestion Experienced
	packet int  // data packets so far
	wcs    [16]ib.WC
	wr     [1]ib.SendWR
	sge    [1]ib.SGE
}

const lineRate = 100_000_000_000

func newPhantomPair(t testing.TB, mtu ib.MTU, edit func(*Config)) *phantomPair {
	params, err := dcqcn.Preset("mlx5")
	if err != nil {
		t.Fatal(err)
	}
	set := func(c *Config) {
		c.Wire = WireCaps{MTU: 9000, Phantom: true}
		c.NoLossWindow, c.AckEvery, c.Pacing = true, 16, Pacing{Burst: -1}
		c.DCQCN, c.LineRate, c.CNPPrio, c.CNPTOS = &params, lineRate, params.CNPPrio, params.CNPDSCP<<2
		if edit != nil {
			edit(c)
		}
	}
	p := &phantomPair{t: t, run: &frame.Run{Buf: make([]byte, 256)}}
	p.hosts = [2]*host{newHost(t, addrA, addrA6, set), newHost(t, addrB, addrB6, set)}
	for i, h := range p.hosts {
		var err error
		p.qps[i] = h.qp(ib.RC, func(c *QPConfig) { c.Cap = ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1} })
		p.mrs[i], err = h.RegisterPhantomMR(h.pd, 1<<30, testBase, ib.LocalWrite|ib.RemoteAll)
		if err != nil {
			t.Fatal(err)
		}
	}
	p.hosts[0].connect(p.qps[0], ib.GIDFromAddr(addrB), 0, p.qps[1].qpn, mtu)
	p.hosts[1].connect(p.qps[1], ib.GIDFromAddr(addrA), 0, p.qps[0].qpn, mtu)
	return p
}

// write posts one WRITE at an end.
func (p *phantomPair) write(from, size int) {
	p.sge[0] = ib.SGE{Addr: testBase, Length: uint32(size), LKey: p.mrs[from].LKey}
	p.wr[0] = ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: p.sge[:], Remote: ib.Remote{Addr: testBase, RKey: p.mrs[1-from].RKey}}
	if _, err := p.qps[from].Post(p.wr[:], nil); err != nil {
		p.t.Fatal(err)
	}
	p.hosts[from].Advance(p.now)
}

// step moves one packet from an end; false if it has none now.
func (p *phantomPair) step(from int) bool {
	p.run.Reset()
	r := p.run
	if !p.hosts[from].Egress(p.now, r) {
		return false
	}
	if from == 0 {
		p.packet++
	}
	x := &p.rx
	x.Data, x.Phantom, x.Src, x.Dst, x.SrcPort, x.TOS, x.TTL = r.Buf[:r.N], r.Phantom, r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL
	if p.mark && x.TOS&3 != 0 {
		x.TOS |= 3
	}
	p.hosts[1-from].Ingress(p.now, x)
	return true
}

// finish runs until end 0 has a completion.
func (p *phantomPair) finish() {
	for p.hosts[0].cq.Poll(p.wcs[:]) == 0 {
		moved := p.step(0)
		if p.step(1) || moved {
			continue
		}
		next := min(p.hosts[0].Deadline(), p.hosts[1].Deadline())
		if next == clock.Never {
			p.t.Fatal("nothing moves")
		}
		p.now = max(p.now, next)
		p.hosts[0].Advance(p.now)
		p.hosts[1].Advance(p.now)
	}
}

// BenchmarkPhantom is what a data packet costs a simulator in two adapters: its
// way out and in, and its share of the ACKs.
func BenchmarkPhantom(b *testing.B) {
	for _, mark := range []bool{false, true} {
		for _, mtu := range []ib.MTU{ib.MTU1024, ib.MTU4096} {
			b.Run(fmt.Sprintf("mtu=%v/marked=%v", mtu, mark), func(b *testing.B) {
				p := newPhantomPair(b, mtu, nil)
				p.mark = mark
				b.ReportAllocs()
				for b.Loop() {
					p.write(0, 256*mtu.Bytes())
					p.finish()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(p.packet), "ns/packet")
			})
		}
	}
}

// BenchmarkPhantomMany is BenchmarkPhantom with 512 pairs of hosts that take
// turns packet by packet, as in a large network: what a packet needs is in no
// cache.
func BenchmarkPhantomMany(b *testing.B) {
	const n, size = 512, 64 << 10
	pairs := make([]*phantomPair, n)
	scratch := new(Scratch)
	run := &frame.Run{Buf: make([]byte, 128)}
	for i := range pairs {
		pairs[i] = newPhantomPair(b, ib.MTU1024, func(c *Config) { c.Scratch = scratch })
		pairs[i].run = run
	}
	b.ReportAllocs()
	packets := 0
	for b.Loop() {
		for _, p := range pairs {
			p.write(0, size)
		}
		for k := 0; k < size/1024; k++ {
			for _, p := range pairs {
				p.step(0)
				p.step(1)
			}
			packets += n
		}
		for _, p := range pairs {
			p.finish()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}
