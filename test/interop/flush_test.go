//go:build linux

package interop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// TestFlushAndAtomicWrite holds FLUSH and ATOMIC WRITE against the kernel that knows them, as requester and as responder,
// with the requests that a responder must refuse. See flushLink for the one thing that is not compared.
func TestFlushAndAtomicWrite(t *testing.T) {
	judge.Need(t, "rxe-backports", "rdma-core")
	on := guest.ForTest(t, guest.Config{Kernel: guest.Backports})
	rxeFlush := func(l link.Link) link.Link { return flushLink{l} }
	// 17 s: what rdma_rxe sends again of these requests goes to address 0.
	patient := settings{timeout: 22}
	const n = 5000
	data := bytes.Repeat([]byte("verbena "), n/8)
	global := ib.FlushRange{Len: n, Placement: ib.FlushGlobal}
	region := ib.FlushRange{Placement: ib.FlushGlobal, Level: ib.FlushRegion}
	const value = 0x1122334455667788

	t.Run("by us", func(t *testing.T) {
		h := openHost(t, on, 1<<16, verbs.Config{Wrap: rxeFlush})
		ctx := within(t, patience)
		c := newPair(ctx, h, ib.RC, ipv4, patient, 1<<16)
		copy(h.buf, data)
		binary.NativeEndian.PutUint64(h.buf[8192:], value)
		wrs := []ib.SendWR{
			{Op: ib.Write, SGL: h.mr.SGE(0, n), Remote: c.p.at(0)},
			{Op: ib.Flush, Remote: c.p.at(0), Flush: global},
			{Op: ib.AtomicWrite, SGL: h.mr.SGE(8192, 8), Remote: c.p.at(8192)},
			{Op: ib.Flush, Remote: c.p.at(0), Flush: region},
			{Op: ib.Read, SGL: h.mr.SGE(16384, n), Remote: c.p.at(0)},
		}
		for i := range wrs {
			wrs[i].Flags = ib.Signaled
			if err := c.q.PostSend(wrs[i]); err != nil {
				t.Fatal(err)
			}
		}
		wcs, err := h.await(ctx, len(wrs))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []ib.WCOp{ib.WCWrite, ib.WCFlush, ib.WCAtomicWrite, ib.WCFlush, ib.WCRead} {
			if wcs[i].Op != want {
				t.Errorf("completion %d is of %v, want %v", i, wcs[i].Op, want)
			}
		}
		if !bytes.Equal(c.p.dump(0, n), data) || !bytes.Equal(h.buf[16384:16384+n], data) {
			t.Error("other bytes have come")
		}
		if got := binary.LittleEndian.Uint64(c.p.dump(8192, 8)); got != value {
			t.Errorf("the guest has %#x, want %#x", got, value)
		}
		h.clean()
	})
	for _, bad := range []struct {
		name string
		wr   func(c *pair) ib.SendWR
		want ib.WCStatus
	}{
		{"FLUSH with a key that is none", func(c *pair) ib.SendWR {
			return ib.SendWR{Op: ib.Flush, Remote: ib.Remote{Addr: c.p.addr, RKey: c.p.rkey ^ 0x5500}, Flush: global}
		}, ib.RemAccessErr},
		{"FLUSH beyond the region", func(c *pair) ib.SendWR {
			return ib.SendWR{Op: ib.Flush, Remote: c.p.at(1<<16 - 10), Flush: global}
		}, ib.RemAccessErr},
		{"FLUSH to persistence that is not there", func(c *pair) ib.SendWR {
			return ib.SendWR{Op: ib.Flush, Remote: c.p.at(0), Flush: ib.FlushRange{Len: n, Placement: ib.FlushPersistent}}
		}, ib.RemInvReqErr}, // no queue pair of either end allows it
		{"ATOMIC WRITE with a key that is none", func(c *pair) ib.SendWR {
			return ib.SendWR{Op: ib.AtomicWrite, SGL: c.h.mr.SGE(0, 8), Remote: ib.Remote{Addr: c.p.addr, RKey: c.p.rkey ^ 0x5500}}
		}, ib.RemAccessErr},
		{"ATOMIC WRITE at an address that is not aligned", func(c *pair) ib.SendWR {
			return ib.SendWR{Op: ib.AtomicWrite, SGL: c.h.mr.SGE(0, 8), Remote: c.p.at(4)}
		}, ib.RemInvReqErr},
	} {
		t.Run("by us, "+bad.name, func(t *testing.T) {
			h := openHost(t, on, 1<<16, verbs.Config{Wrap: rxeFlush})
			c := newPair(within(t, patience), h, ib.RC, ipv4, patient, 1<<16)
			wr := bad.wr(c)
			wr.Flags = ib.Signaled
			if err := c.q.PostSend(wr); err != nil {
				t.Fatal(err)
			}
			if s := h.status(c.q); s != bad.want {
				t.Errorf("completion %v, want %v", s, bad.want)
			}
		})
	}

	t.Run("by the guest", func(t *testing.T) {
		h := openHost(t, on, 1<<16, verbs.Config{Wrap: rxeFlush})
		ctx := within(t, patience)
		c := newPair(ctx, h, ib.RC, ipv6, patient, 1<<16)
		c.p.fill(0, data)
		c.p.fill(8192, binary.LittleEndian.AppendUint64(nil, value))
		c.p.send(request{op: ib.Write, n: n, to: h.mr.Remote(0)})
		c.p.raw(request{op: ib.Flush, n: n, to: h.mr.Remote(0), placement: ib.FlushGlobal})
		c.p.raw(request{op: ib.AtomicWrite, off: 8192, n: 8, to: h.mr.Remote(8192)})
		c.p.raw(request{op: ib.Flush, to: h.mr.Remote(0), placement: ib.FlushGlobal, level: ib.FlushRegion})
		wcs := c.p.good(4)
		for i, want := range []ib.WCOp{ib.WCWrite, ib.WCFlush, ib.WCAtomicWrite, ib.WCFlush} {
			if wcs[i].op != want {
				t.Errorf("completion %d of the guest is of %v, want %v", i, wcs[i].op, want)
			}
		}
		// A message orders our memory for this goroutine.
		if err := c.q.PostRecv(ib.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		c.p.send(request{op: ib.Send})
		if _, err := h.await(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(h.buf[:n], data) {
			t.Error("other bytes have come")
		}
		if got := binary.LittleEndian.Uint64(h.buf[8192:]); got != value {
			t.Errorf("we have %#x, want %#x", got, value)
		}
		h.clean()
	})
	for i, bad := range []struct {
		r      request // to is relative to a region that allows everything but FLUSH
		access ib.Access
		want   ib.WCStatus
	}{
		{request{op: ib.Flush, n: n, placement: ib.FlushGlobal}, ib.AccessAll, ib.RemAccessErr},
		{request{op: ib.Flush, n: n, placement: ib.FlushPersistent}, ib.AccessAll | ib.RemoteFlush, ib.RemInvReqErr},
		{request{op: ib.Flush, n: 1 << 15, placement: ib.FlushGlobal}, ib.AccessAll | ib.RemoteFlush, ib.RemAccessErr},
		{request{op: ib.AtomicWrite, n: 8}, ib.LocalWrite | ib.RemoteRead, ib.RemAccessErr},
		{request{op: ib.AtomicWrite, n: 8, to: ib.Remote{Addr: 4}}, ib.AccessAll, ib.RemInvReqErr},
	} {
		t.Run(fmt.Sprintf("by the guest, refused %d", i+1), func(t *testing.T) {
			h := openHost(t, on, 1<<16, verbs.Config{Wrap: rxeFlush})
			mr, err := h.pd.RegisterMR(make([]byte, 1<<14), bad.access)
			if err != nil {
				t.Fatal(err)
			}
			c := newPair(within(t, patience), h, ib.RC, ipv4, patient, 1<<16)
			bad.r.to = mr.Remote(int(bad.r.to.Addr))
			c.p.raw(bad.r)
			if wc := c.p.poll(1)[0]; wc.status != bad.want {
				t.Errorf("the guest's %v: %v, want %v", bad.r.op, wc.status, bad.want)
			}
		})
	}
	complaints(t, on.Guest(1))
}
