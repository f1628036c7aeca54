package rc_test

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

func lossless() options {
	return options{
		psnA: 0xFFFFF0, psnB: 0xFFFFFE, rd: 4, timeout: 14, retry: 7, rnrRetry: 7, rnrTimer: 1,
		access: ib.RemoteAll, sigAll: true, window: true, mem: 1 << 18,
	}
}

// sizes around the borders of packets of mtu bytes.
func sizes(mtu int) []int {
	s := []int{0, 1, 2, 3, 4, 5, 31, 64}
	for _, k := range []int{1, 2, 3, 17, 40} {
		s = append(s, k*mtu-1, k*mtu, k*mtu+1)
	}
	return s
}

// TestLossless: every operation at every MTU moves its bytes, completes on both
// ends, and leaves nothing in flight.
// rule: segmentation
func TestLossless(t *testing.T) {
	for mtu := ib.MTU256; mtu <= ib.MTU4096; mtu++ {
		for _, op := range []ib.WROp{ib.Write, ib.WriteImm, ib.Send, ib.SendImm, ib.Read} {
			t.Run(op.String()+"/"+mtu.String(), func(t *testing.T) {
				o := lossless()
				o.mtu, o.mem = mtu, 8192+42*mtu.Bytes()
				for _, size := range sizes(mtu.Bytes()) {
					one(t, o, op, size)
				}
			})
		}
	}
}

func one(t *testing.T, o options, op ib.WROp, size int) {
	t.Helper()
	a, b := connect(t, o)
	pattern(a.buf, 1)
	pattern(b.buf, 99)
	wantA, wantB := bytes.Clone(a.buf), bytes.Clone(b.buf)
	// Odd pieces: the middle third stands first in the list.
	third := size / 3
	sgl := []ib.SGE{a.sge(5000+third, third), {}, a.sge(5000, third), a.sge(5000+2*third, size-2*third)}
	order := append(append(bytes.Clone(a.buf[5000+third:5000+2*third]), a.buf[5000:5000+third]...), a.buf[5000+2*third:5000+size]...)
	b.recv(0, ib.RecvWR{ID: 7, SGL: []ib.SGE{b.sge(300, size/2), b.sge(300+size/2, size-size/2)}})
	a.wr(0, ib.SendWR{ID: 42, Op: op, SGL: sgl, Imm: 0xABCD, Remote: b.remote(300), Flags: ib.Solicited})
	exchange(t, 0, a, b)
	if op == ib.Read {
		src := b.buf[300 : 300+size]
		copy(wantA[5000+third:], src[:third])
		copy(wantA[5000:], src[third:2*third])
		copy(wantA[5000+2*third:], src[2*third:])
	} else {
		copy(wantB[300:], order)
	}
	if !bytes.Equal(a.buf, wantA) || !bytes.Equal(b.buf, wantB) {
		t.Errorf("size %d: wrong bytes", size)
	}
	if len(a.sent) != 1 || a.sent[0].Status != ib.Success || a.sent[0].ID != 42 {
		t.Fatalf("size %d: sender's completions %+v", size, a.sent)
	}
	takes := op != ib.Write && op != ib.Read
	if takes != (len(b.recvd) == 1) {
		t.Fatalf("size %d: receiver's completions %+v", size, b.recvd)
	}
	if takes {
		w := b.recvd[0]
		if w.Status != ib.Success || w.ID != 7 || int(w.Bytes) != size || !b.sol[0] || (w.Imm == 0xABCD) != op.HasImm() {
			t.Errorf("size %d: receive %+v solicited %v", size, w, b.sol[0])
		}
	}
	if n := a.win.InFlight() + b.win.InFlight(); n != 0 {
		t.Errorf("size %d: %d bytes still in flight", size, n)
	}
	if a.cnt.Events[transport.Retransmitted] != 0 {
		t.Errorf("size %d: %d retransmitted", size, a.cnt.Events[transport.Retransmitted])
	}
}

func TestAtomics(t *testing.T) {
	a, b := connect(t, lossless())
	binary.NativeEndian.PutUint64(b.buf[64:], 40)
	a.wr(0, ib.SendWR{ID: 1, Op: ib.FetchAdd, SGL: []ib.SGE{a.sge(0, 8)}, Remote: b.remote(64), SwapAdd: 2})
	a.wr(0, ib.SendWR{ID: 2, Op: ib.CompareSwap, SGL: []ib.SGE{a.sge(8, 8)}, Remote: b.remote(64), Compare: 42, SwapAdd: 7})
	a.wr(0, ib.SendWR{ID: 3, Op: ib.CompareSwap, SGL: []ib.SGE{a.sge(16, 8)}, Remote: b.remote(64), Compare: 42, SwapAdd: 9})
	exchange(t, 0, a, b)
	for i, want := range []uint64{40, 42, 7} {
		if got := binary.NativeEndian.Uint64(a.buf[8*i:]); got != want {
			t.Errorf("atomic %d fetched %d, want %d", i+1, got, want)
		}
	}
	if got := binary.NativeEndian.Uint64(b.buf[64:]); got != 7 {
		t.Errorf("memory is %d, want 7", got)
	}
	if len(a.sent) != 3 {
		t.Errorf("completions %+v", a.sent)
	}
}
