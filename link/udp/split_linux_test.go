package udp

import (
	"net/netip"
	"os"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ring"
	"github.com/verbena-rdma/verbena/link/internal/roce"
	"github.com/verbena-rdma/verbena/wire"
)

// A run that the kernel will not cut leaves packet by packet, each with
// Identification 0 and an ICRC for that.
func TestSplitRunsHaveRightICRCs(t *testing.T) {
	src, dst := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	port := uint16(31000 + os.Getpid()%500)
	a, err := openSystem(Config{Addrs: []netip.Addr{src}, Port: port, RecvBuffer: 1 << 20, SendBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := openSystem(Config{Addrs: []netip.Addr{dst}, Port: port, RecvBuffer: 1 << 20, SendBuffer: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p, err := a.Path(src, dst, 0xC001)
	if err != nil {
		t.Fatal(err)
	}
	a.(*system).makeOdd(dst).whole = true
	const segs = 20
	tx := make([]frame.Run, 1)
	a.Reserve(tx)
	tx[0].Src, tx[0].Dst, tx[0].SrcPort = src, dst, p.SrcPort
	for i := range segs {
		roce.Append(&tx[0], wire.RCSendMiddle, 0x11, ib.PSN(i), 1024)
	}
	if err := a.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
	f := roce.Flow(src, dst, p.SrcPort)
	rx := make([]frame.Rx, 8)
	for got := 0; got < segs; {
		if err := b.Wait(0, clock.Never); err != nil {
			t.Fatal(err)
		}
		n, err := b.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rx[:n] {
			if r.Seg != 0 || r.Data[11] != byte(got) || !f.Verify(0, true, r.Data) {
				t.Errorf("packet %d: PSN %d, Seg %d, ICRC right: %v", got, r.Data[11], r.Seg, f.Verify(0, true, r.Data))
			}
			got++
		}
		b.Release(rx[:n])
	}
	if c := a.Counters(); c != (link.Counters{TxSplit: 1, SendCalls: segs}) {
		t.Errorf("counters %+v", c)
	}
}

// What is left of a run whose first packets have left is a run.
func TestShiftKeepsICRCsRight(t *testing.T) {
	src, dst := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for n := range 7 {
		r := frame.Run{Buf: make([]byte, ring.BufLen), Src: src, Dst: dst, SrcPort: 0xC001}
		for i := range 6 {
			roce.Append(&r, wire.RCSendMiddle, 0x11, ib.PSN(i), 256)
		}
		roce.Append(&r, wire.RCSendLast, 0x11, 6, 3)
		(&system{}).shift(&r, n)
		if !ring.Sane(&r, 64) || r.Segs != 7-n {
			t.Fatalf("shift by %d: %d bytes, %d packets of %d", n, r.N, r.Segs, r.Seg)
		}
		f := roce.Flow(src, dst, r.SrcPort)
		for i := range r.Segs {
			b := r.Buf[i*r.Seg : min((i+1)*r.Seg, r.N)]
			if b[11] != byte(n+i) || !f.Verify(uint16(i), true, b) {
				t.Errorf("shift by %d: packet %d has PSN %d, ICRC right: %v", n, i, b[11], f.Verify(uint16(i), true, b))
			}
		}
	}
}
