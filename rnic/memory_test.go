package rnic

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
	"github.com/verbena-rdma/verbena/wire"
)

// smallHost is a host as a simulator has it, and what one of its queue pairs is
// made from.
func smallHost(t testing.TB, who int, params *dcqcn.Params) (*host, QPConfig) {
	h := newHost(t, []netip.Addr{addrA, addrB}[who], []netip.Addr{addrA6, addrB6}[who], func(c *Config) {
		c.Wire = WireCaps{MTU: 4200, Phantom: true}
		c.NoLossWindow, c.Pacing = true, Pacing{Burst: -1}
		c.DCQCN, c.LineRate, c.CNPPrio = params, lineRate, 6
	})
	return h, QPConfig{
		Type: ib.RC, PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq,
		Cap: ib.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 8},
	}
}

// A simulated queue pair takes at most 1 KiB, all that belongs to it counted:
// engine, rings, its places in tables, the message under way, and the reaction
// point of one that was told to slow down or the notification point of one that
// has told. Ten thousand of each side.
func TestSimulatedQueuePairIsSmall(t *testing.T) {
	const n, most = 10_000, 1 << 10
	params := preset(t, "paper")
	run := &frame.Run{Buf: make([]byte, 128)}
	a, cfgA := smallHost(t, 0, &params)
	b, cfgB := smallHost(t, 1, &params)
	mr, err := a.RegisterPhantomMR(a.pd, 1<<20, testBase, ib.LocalWrite|ib.RemoteAll)
	if err != nil {
		t.Fatal(err)
	}
	mrB, err := b.RegisterPhantomMR(b.pd, 1<<20, testBase, ib.LocalWrite|ib.RemoteAll)
	if err != nil {
		t.Fatal(err)
	}
	create := func(h *host, cfg *QPConfig) *QP {
		q, err := h.CreateQP(0, *cfg)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	// Numbers are known before the peers are there: they follow each other.
	first := func(h *host) ib.QPN { return h.qpn.last + 1 }
	toA, toB := first(a), first(b)
	senders, receivers := make([]*QP, 0, n), make([]*QP, 0, n)
	headers := make([][]byte, 0, n)

	sender := bytesPer(n, func() any {
		q := create(a, &cfgA)
		i := len(senders)
		senders = append(senders, q)
		a.connect(q, ib.GIDFromAddr(addrB), 0, toB+ib.QPN(i), ib.MTU4096)
		return q
	})
	sge := []ib.SGE{{Addr: testBase, Length: 4096, LKey: mr.LKey}}
	wr := []ib.SendWR{{Op: ib.Write, Flags: ib.Signaled, SGL: sge, Remote: ib.Remote{Addr: testBase, RKey: mrB.RKey}}}
	for range n {
		headers = append(headers, make([]byte, 0, 32))
	}
	k := 0
	sender += bytesPer(n, func() any { // the message under way, its timer, and the reaction point
		q := senders[k]
		if _, err := q.Post(wr, nil); err != nil {
			t.Fatal(err)
		}
		run.Reset()
		if !a.Egress(0, run) {
			t.Fatal("nothing to send")
		}
		headers[k] = append(headers[k], run.Buf[:run.N]...)
		k++
		return nil
	})
	cnp := make([]byte, 28)
	pkt := wire.Packet{BECN: true, PKey: ib.DefaultPKey}
	k = 0
	sender += bytesPer(n, func() any {
		pkt.SetOp(wire.CNP)
		pkt.DestQPN = senders[k].qpn
		pkt.EncodeHeaders(cnp)
		a.Ingress(0, &frame.Rx{Data: cnp, Src: addrB, Dst: addrA})
		if senders[k].rp == nil {
			t.Fatal("no reaction point")
		}
		k++
		return nil
	})
	receiver := bytesPer(n, func() any {
		q := create(b, &cfgB)
		i := len(receivers)
		receivers = append(receivers, q)
		b.connect(q, ib.GIDFromAddr(addrA), 0, toA+ib.QPN(i), ib.MTU4096)
		return q
	})
	k = 0
	receiver += bytesPer(n, func() any {
		b.Ingress(0, &frame.Rx{Data: headers[k], Phantom: 4096, Src: addrA, Dst: addrB, TOS: 3})
		if receivers[k].np == nil || !receivers[k].np.due {
			t.Fatal("no CNP due")
		}
		k++
		return nil
	})
	runtime.KeepAlive(headers)
	t.Logf("a sender takes %d bytes, a receiver %d", sender, receiver)
	if sender > most || receiver > most {
		t.Errorf("a sender takes %d bytes, a receiver %d; may be %d", sender, receiver, most)
	}

	// They go as they came, in any order, and leave nothing behind.
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { senders[i], senders[j] = senders[j], senders[i] })
	for _, q := range senders {
		if err := a.DestroyQP(0, q); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range receivers {
		if err := b.DestroyQP(0, q); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []*host{a, b} {
		if h.qps.len() != 0 || h.Pending() || h.Deadline() != clock.Never || h.cq.users != 0 || len(h.timers.h) != 0 {
			t.Errorf("left: %d queue pairs, pending %v, deadline %d, %d users", h.qps.len(), h.Pending(), h.Deadline(), h.cq.users)
		}
		if err := h.DestroyCQ(h.cq); err != nil {
			t.Error(err)
		}
	}
}

// An idle adapter of a simulator takes at most 16 KiB, with the objects that a
// host makes first.
func TestIdleSimulatedAdapterIsSmall(t *testing.T) {
	params := preset(t, "paper")
	n := bytesPer(50, func() any {
		h, _ := smallHost(t, 0, &params)
		if _, err := h.RegisterPhantomMR(h.pd, 1<<40, 0, ib.LocalWrite|ib.RemoteAll); err != nil {
			t.Fatal(err)
		}
		return h
	})
	t.Logf("%d bytes", n)
	if n > 16<<10 {
		t.Errorf("%d bytes", n)
	}
}

// However many queue pairs there are, and however they came and went: neither
// finding one, nor finding that there is none, nor a removal walks far.
func TestQPTableWalksAreShort(t *testing.T) {
	const limit = 32
	var tab qpTable
	rnd := rand.New(rand.NewPCG(3, 4))
	alloc := qpnAllocator{last: 0xFFC000} // around the end of the numbers
	var live []*QP
	check := func() {
		mask := len(tab.slots) - 1
		for i := range tab.slots {
			n := 0
			for ; tab.slots[(i+n)&mask] != nil; n++ {
				if n > limit {
					t.Fatalf("with %d queue pairs in %d slots a walk from %d takes more than %d steps", tab.n, len(tab.slots), i, limit)
				}
			}
		}
	}
	for range 10_000 {
		q := &QP{qpn: alloc.next(&tab, 0, 1)}
		tab.put(q)
		live = append(live, q)
	}
	check()
	for range 10_000 { // some leave, others come
		i := rnd.IntN(len(live))
		tab.remove(live[i])
		q := &QP{qpn: alloc.next(&tab, 0, 1)}
		tab.put(q)
		live[i] = q
	}
	for _, q := range live {
		if tab.get(q.qpn) != q {
			t.Fatalf("%v is lost", q.qpn)
		}
	}
}

// BenchmarkQueuePairLife is what a simulated flow costs besides its packets.
func BenchmarkQueuePairLife(b *testing.B) {
	params := preset(b, "paper")
	h, cfg := smallHost(b, 0, &params)
	for range 10_000 {
		if _, err := h.CreateQP(0, cfg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		q, err := h.CreateQP(0, cfg)
		if err != nil {
			b.Fatal(err)
		}
		h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU4096)
		if err := h.DestroyQP(0, q); err != nil {
			b.Fatal(err)
		}
	}
}
