package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs"
)

// faulty returns middleware that follows rules.
func faulty(t testing.TB, rules string, seed uint64) func(link.Link) link.Link {
	t.Helper()
	r, err := fault.Parse(rules)
	must(t, err)
	return func(l link.Link) link.Link {
		f, err := fault.New(l, fault.Config{Rules: r, Seed: seed})
		must(t, err)
		return f
	}
}

// quickTimeout makes losses cheap: 17 ms until a retry, which a busy machine
// still answers within seven of.
func quickTimeout(t testing.TB, e *end) {
	t.Helper()
	must(t, e.qp.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrCurState, CurState: ib.RTS, State: ib.SQD}))
	must(t, e.qp.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrTimeout, State: ib.SQD, TimeoutExp: 12}))
	must(t, e.qp.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.RTS}))
}

// A storage-like load, 128 requests deep, of mixed sizes and operations, with a
// lossy and untidy link under it: everything completes in order, and every byte
// arrives.
func TestSoak(t *testing.T) {
	messages := 2000
	if testing.Short() {
		messages = 600
	}
	const depth, slot = 128, 64 << 10
	const rules = "loss 1%; loss 1% out; dup 0.5%; reorder 3 0.5%"
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort, Wrap: faulty(t, rules, 42)}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
	for _, e := range []*end{a, b} {
		must(t, e.mr.Close())
		var err error
		e.mr, err = e.pd.RegisterMR(make([]byte, (depth+1)*slot), ib.AccessAll)
		must(t, err)
	}
	join(t, a, b)

	type job struct {
		op   ib.WROp
		slot int
		n    int
	}
	r := rand.New(rand.NewPCG(7, 7))
	jobs := make([]job, messages)
	var next, done int
	adds := uint64(0)
	counter := depth * slot // behind the last slot
	post := func() bool {
		j := &jobs[next]
		j.slot, j.n = next%depth, 512+r.IntN(slot-512+1)
		j.op = []ib.WROp{ib.Write, ib.Read, ib.Send, ib.Write, ib.Read, ib.FetchAdd}[r.IntN(6)]
		off := j.slot * slot
		wr := ib.SendWR{ID: uint64(next), Op: j.op, Flags: ib.Signaled, SGL: a.mr.SGE(off, j.n), Remote: a.peer.At(off)}
		mine, theirs := a.mr.Bytes()[off:off+j.n], b.mr.Bytes()[off:off+j.n]
		switch j.op {
		case ib.Read:
			fill(theirs, uint64(next))
			clear(mine)
		case ib.FetchAdd:
			wr.SGL, wr.Remote, wr.SwapAdd = a.mr.SGE(off, 8), a.peer.At(counter), 1
			adds++
		case ib.Send:
			fill(mine, uint64(next))
			must(t, b.qp.PostRecv(ib.RecvWR{ID: uint64(next), SGL: b.mr.SGE(off, j.n)}))
		default:
			fill(mine, uint64(next))
		}
		if err := a.qp.PostSend(wr); err != nil {
			t.Fatalf("message %d: %v", next, err)
		}
		next++
		return next < messages
	}
	check := func(wc *ib.WC) {
		if wc.Status != ib.Success || wc.ID != uint64(done) {
			t.Logf("requester: %v %+v", a.dev.Stats(), a.dev.LinkCounters())
			t.Logf("responder: %v %+v", b.dev.Stats(), b.dev.LinkCounters())
			t.Fatalf("completion %d: %+v", done, wc)
		}
		j := jobs[done]
		off := j.slot * slot
		if j.op != ib.FetchAdd && !bytes.Equal(a.mr.Bytes()[off:off+j.n], b.mr.Bytes()[off:off+j.n]) {
			t.Fatalf("message %d: %v of %d bytes: data differs", done, j.op, j.n)
		}
		if j.op == ib.FetchAdd {
			if got := binary.NativeEndian.Uint64(a.mr.Bytes()[off:]); got >= adds {
				t.Fatalf("message %d: fetched %d after %d additions", done, got, adds)
			}
		}
		done++
	}
	for next < depth-1 && post() {
	}
	var wcs [16]ib.WC
	for done < messages {
		n, err := a.cq.Wait(t.Context(), wcs[:])
		must(t, err)
		for i := range n {
			check(&wcs[i])
			if next < messages {
				post()
			}
		}
		for b.cq.Poll(wcs[:]) > 0 { // receives
		}
	}
	if got := binary.NativeEndian.Uint64(b.mr.Bytes()[counter:]); got != adds {
		t.Errorf("counter is %d after %d additions", got, adds)
	}
	t.Logf("retransmitted %d packets of %d", a.dev.Stats().Get("retransmitted"), a.dev.Stats().Get("sent_pkts"))
}

// Sockets with the smallest buffers there are lose a lot; everything arrives.
func TestTinyBuffers(t *testing.T) {
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort, RecvBuffer: 1}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort, RecvBuffer: 1}), ib.RC)
	join(t, a, b)
	quickTimeout(t, a)
	quickTimeout(t, b)
	for i, op := range []ib.WROp{ib.Write, ib.Read, ib.Send} {
		transfer(t, ends{a, b}, op, 400_000, uint64(i))
		transfer(t, ends{b, a}, op, 400_000, uint64(10+i))
	}
	t.Logf("dropped by the sockets: %d, %d", a.dev.LinkCounters().RxDropped, b.dev.LinkCounters().RxDropped)
}

// A lost response of an ATOMIC is answered again from what was saved: memory
// changes once.
func TestLostAtomicResponse(t *testing.T) {
	for _, op := range []ib.WROp{ib.FetchAdd, ib.CompareSwap} {
		a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort, Wrap: faulty(t, "drop 1st atomic-ack", 1)}), ib.RC)
		b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
		join(t, a, b)
		quickTimeout(t, a)
		word := b.word(64)
		word.Store(10)
		must(t, a.qp.PostSend(ib.SendWR{Op: op, Flags: ib.Signaled, SGL: a.mr.SGE(0, 8), Remote: a.peer.At(64), Compare: 10, SwapAdd: 1}))
		if wc := a.await(t); wc.Status != ib.Success {
			t.Fatalf("%v: %+v", op, wc)
		}
		want := map[ib.WROp]uint64{ib.FetchAdd: 11, ib.CompareSwap: 1}[op]
		if got := binary.NativeEndian.Uint64(a.mr.Bytes()); got != 10 || word.Load() != want {
			t.Errorf("%v: fetched %d, left %d", op, got, word.Load())
		}
		if n := b.dev.Stats().Get("duplicate_request"); n == 0 {
			t.Errorf("%v: no duplicate arrived; the fault did nothing", op)
		}
		must(t, a.dev.Close())
		must(t, b.dev.Close())
	}
}

// A dead peer is noticed by its silence.
func TestSilentPeer(t *testing.T) {
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
	join(t, a, b)
	quickTimeout(t, a)
	must(t, b.dev.Close())
	must(t, a.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, 10_000), Remote: a.peer.At(0)}))
	if wc := a.await(t); wc.Status != ib.RetryExcErr {
		t.Errorf("%+v", wc)
	}
}

// Ends with different path MTUs: small messages pass, larger ones end with a
// definite status, never with a hang.
func TestMTUMismatch(t *testing.T) {
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Port: testPort}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Port: testPort}), ib.RC)
	up := func(e, peer *end, mtu ib.MTU, psn, local ib.PSN) {
		path := verbs.Path{DestQPN: peer.qp.Num(), PSN: psn, LocalPSN: local, GID: peer.dev.GIDs()[0].GID, MTU: mtu}
		must(t, e.qp.ToInit(ib.RemoteAll))
		must(t, e.qp.ToRTR(path))
		must(t, e.qp.ToRTS(path))
	}
	up(a, b, ib.MTU4096, 1, 2)
	up(b, a, ib.MTU1024, 2, 1)
	write := func(n int) ib.WCStatus {
		must(t, a.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: a.mr.SGE(0, n), Remote: b.mr.Remote(0)}))
		return a.await(t).Status
	}
	if s := write(1024); s != ib.Success {
		t.Errorf("1,024 bytes: %v", s)
	}
	if s := write(1025); s != ib.RemInvReqErr {
		t.Errorf("1,025 bytes: %v", s)
	}
}

// An address that somebody holds is refused, and the error says so.
func TestAddressInUse(t *testing.T) {
	open(t, verbs.Config{Addr: addrA, Port: testPort})
	_, err := verbs.Open(verbs.Config{Addr: addrA, Port: testPort})
	if !errors.Is(err, addrInUse) {
		t.Errorf("%v", err)
	}
	t.Log(err)
}
