//go:build linux

package interop

import (
	"bytes"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// invalidated are the bytes that a SEND with invalidate carries: several packets.
const invalidated = 3000

// rxeWithInv is the flag of a completion with an invalidated key in the kernel's numbering, which rdma_rxe passes to
// programs unchanged.
const rxeWithInv ib.WCFlags = 1 << 2

// TestSendWithInvalidate gives a window to the other end, has it written through, and taken back by a SEND: the receiver
// is told the key, and what is written through it afterwards is refused. Then the same for a key that is none.
func TestSendWithInvalidate(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	t.Run("by the guest", func(t *testing.T) {
		h := newHost(t, 2*dataBytes, nil)
		ctx := within(t, patience)
		region := make([]byte, 1<<14)
		mr, err := h.pd.RegisterMR(region, ib.AccessAll)
		if err != nil {
			t.Fatal(err)
		}
		c := newPair(ctx, h, ib.RC, ipv4, settings{}, 1<<16)
		w, err := h.pd.AllocMW(verbs.MWType2)
		if err != nil {
			t.Fatal(err)
		}
		key, err := c.q.BindMW(w, verbs.BindConfig{MR: mr, Off: 4096, Len: 5000, Access: ib.RemoteWrite, Flags: ib.Signaled})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte("verbena "), invalidated/8)
		c.p.fill(0, want)
		to := ib.Remote{Addr: mr.Addr() + 4096, RKey: key}
		c.p.send(request{op: ib.Write, n: len(want), to: to})
		c.p.good(1)
		if err := c.q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(0, invalidated)}); err != nil {
			t.Fatal(err)
		}
		c.p.raw(request{op: ib.SendInv, n: len(want), to: ib.Remote{RKey: key}})
		wcs, err := h.await(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		if wc := wcs[0]; wc.Flags&ib.WCWithInv == 0 || wc.Imm != uint32(key) || wc.Bytes != invalidated {
			t.Errorf("we received %+v, want the key %#x", wc, key)
		}
		c.p.good(1)
		if !bytes.Equal(h.buf[:invalidated], want) || !bytes.Equal(region[4096:4096+invalidated], want) {
			t.Error("other bytes have come")
		}
		c.p.send(request{op: ib.Write, n: 1, to: to})
		if wc := c.p.poll(1)[0]; wc.status != ib.RemAccessErr {
			t.Errorf("the guest's WRITE through the key that is no more: %v", wc.status)
		}
		h.clean()
	})
	t.Run("by the guest, a key that is none", func(t *testing.T) {
		h := newHost(t, 2*dataBytes, nil)
		c := newPair(within(t, patience), h, ib.RC, ipv4, settings{}, 1<<16)
		if err := c.q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(0, invalidated)}); err != nil {
			t.Fatal(err)
		}
		c.p.raw(request{op: ib.SendInv, n: invalidated, to: ib.Remote{RKey: 0x12345600}})
		same(t, outcome{
			requester: int(c.p.poll(1)[0].status), responder: int(h.status(c.q)), requesterState: c.p.state(), responderState: c.q.State(),
		}, outcome{int(ib.RemAccessErr), int(ib.RemInvReqErr), ib.Error, ib.Error})
	})
	t.Run("by us", func(t *testing.T) {
		h := newHost(t, 2*dataBytes, nil)
		ctx := within(t, patience)
		c := newPair(ctx, h, ib.RC, ipv4, settings{}, 1<<16)
		key := c.p.window(4096, 5000)
		want := bytes.Repeat([]byte("verbena "), invalidated/8)
		copy(h.buf, want)
		write := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: h.mr.SGE(0, invalidated), Remote: ib.Remote{Addr: c.p.at(4096).Addr, RKey: key}}
		c.p.recv(16384, invalidated, 1)
		for _, wr := range []ib.SendWR{write, {Op: ib.SendInv, Flags: ib.Signaled, SGL: h.mr.SGE(0, invalidated), Imm: uint32(key)}} {
			if err := c.q.PostSend(wr); err != nil {
				t.Fatal(err)
			}
			if _, err := h.await(ctx, 1); err != nil {
				t.Fatal(err)
			}
		}
		if wc := c.p.good(1)[0]; wc.flags&rxeWithInv == 0 || wc.imm != uint32(key) || wc.n != invalidated {
			t.Errorf("the guest received %+v, want the key %#x", wc, key)
		}
		if !bytes.Equal(c.p.dump(4096, invalidated), want) || !bytes.Equal(c.p.dump(16384, invalidated), want) {
			t.Error("other bytes have come to the guest")
		}
		h.clean()
		if err := c.q.PostSend(write); err != nil {
			t.Fatal(err)
		}
		if s := h.status(c.q); s != ib.RemAccessErr {
			t.Errorf("our WRITE through the key that is no more: %v", s)
		}
	})
	// rdma_rxe acknowledges the message and goes to Error: only its own end hears of it. Ours above tells the sender, too.
	t.Run("by us, a key that is none", func(t *testing.T) {
		h := newHost(t, 2*dataBytes, nil)
		c := newPair(within(t, patience), h, ib.RC, ipv4, settings{}, 1<<16)
		c.p.recv(0, invalidated, 1)
		if err := c.q.PostSend(ib.SendWR{Op: ib.SendInv, Flags: ib.Signaled, SGL: h.mr.SGE(0, invalidated), Imm: 0x12345600}); err != nil {
			t.Fatal(err)
		}
		same(t, outcome{
			requester: int(h.status(c.q)), responder: int(c.p.poll(1)[0].status), requesterState: c.q.State(), responderState: c.p.state(),
		}, outcome{int(ib.Success), int(ib.RemInvReqErr), ib.RTS, ib.Error})
	})
	complaints(t, network(t).Guest(1))
}
