package rnic

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// readyQP returns a queue pair in RTS whose engine is a fake, so that what is
// posted stays in the rings.
func readyQP(t testing.TB, typ ib.QPType, c ib.QPCap) (*host, *QP) {
	h := fakeHost(t, addrA, addrA6, nil)
	q := h.qp(typ, func(cfg *QPConfig) { cfg.Cap = c })
	h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
	return h, q
}

func sgesOf(lengths ...uint32) []ib.SGE {
	var s []ib.SGE
	for i, n := range lengths {
		s = append(s, ib.SGE{Addr: uint64(i) << 32, Length: n, LKey: ib.LKey(i)})
	}
	return s
}

// lender serves inline elements from one pattern.
func lender(sge ib.SGE) ([]byte, bool) { return payload(4096)[:sge.Length], sge.LKey != 99 }

func TestPostValidation(t *testing.T) {
	const g = 1 << 30
	ud := ib.Datagram{AH: 1, QPN: 5}
	tests := []struct {
		name string
		typ  ib.QPType
		wr   ib.SendWR
		want error
		text string
	}{
		{"WRITE", ib.RC, ib.SendWR{Op: ib.Write, SGL: sgesOf(1, 2, 3, 4)}, nil, ""},
		{"one element too many", ib.RC, ib.SendWR{Op: ib.Write, SGL: sgesOf(1, 2, 3, 4, 5)}, ErrInvalid, "number of elements is 5, can be up to 4"},
		{"message of 2^31", ib.RC, ib.SendWR{Op: ib.Write, SGL: sgesOf(g, g)}, nil, ""},
		{"message of 2^31+1", ib.RC, ib.SendWR{Op: ib.Write, SGL: sgesOf(g, g, 1)}, ErrInvalid, "2147483649 bytes, can be up to 2147483648"},
		{"four times 2^30", ib.RC, ib.SendWR{Op: ib.Send, SGL: sgesOf(g, g, g, g)}, ErrInvalid, "4294967296 bytes"},
		{"four times 2^32-1", ib.RC, ib.SendWR{Op: ib.Read, SGL: sgesOf(1<<32-1, 1<<32-1, 1<<32-1, 1<<32-1)}, ErrInvalid, "17179869180"},
		{"undefined flag", ib.RC, ib.SendWR{Op: ib.Send, Flags: 1 << 6}, ErrInvalid, "flags is 0x40"},
		{"unknown opcode", ib.RC, ib.SendWR{Op: 77}, ErrInvalid, "opcode"},
		{"LOCAL_INV", ib.RC, ib.SendWR{Op: ib.LocalInv}, nil, ""},
		{"ATOMIC_WRITE", ib.RC, ib.SendWR{Op: ib.AtomicWrite, SGL: sgesOf(8)}, nil, ""},
		{"ATOMIC_WRITE inline", ib.RC, ib.SendWR{Op: ib.AtomicWrite, Flags: ib.Inline, InlineData: make([]byte, 8)}, nil, ""},
		{"ATOMIC_WRITE of 4", ib.RC, ib.SendWR{Op: ib.AtomicWrite, SGL: sgesOf(4)}, ErrInvalid, "4 bytes, can be 8"},
		{"ATOMIC_WRITE on UC", ib.UC, ib.SendWR{Op: ib.AtomicWrite, SGL: sgesOf(8)}, ErrInvalid, "ATOMIC_WRITE"},
		{"FLUSH", ib.RC, ib.SendWR{Op: ib.Flush, Flush: ib.FlushRange{Len: 1 << 31, Placement: 3, Level: 1}}, nil, ""},
		{"FLUSH to nowhere", ib.RC, ib.SendWR{Op: ib.Flush}, ErrInvalid, "placement 0x0"},
		{"FLUSH beyond 2^31", ib.RC, ib.SendWR{Op: ib.Flush, Flush: ib.FlushRange{Len: 1<<31 + 1, Placement: 1}}, ErrInvalid, "2147483649 bytes"},
		{"FLUSH of no level", ib.RC, ib.SendWR{Op: ib.Flush, Flush: ib.FlushRange{Placement: 1, Level: 2}}, ErrInvalid, "level 2"},
		{"FLUSH with an element", ib.RC, ib.SendWR{Op: ib.Flush, SGL: sgesOf(0), Flush: ib.FlushRange{Placement: 1}}, ErrInvalid, "elements of FLUSH"},
		{"FLUSH on UD", ib.UD, ib.SendWR{Op: ib.Flush, UD: ud, Flush: ib.FlushRange{Placement: 1}}, ErrInvalid, "FLUSH"},
		{"LOCAL_INV on UC", ib.UC, ib.SendWR{Op: ib.LocalInv}, nil, ""},
		{"LOCAL_INV on UD", ib.UD, ib.SendWR{Op: ib.LocalInv, UD: ud}, ErrInvalid, "LOCAL_INV"},
		{"LOCAL_INV with an element", ib.RC, ib.SendWR{Op: ib.LocalInv, SGL: sgesOf(0)}, ErrInvalid, "elements of LOCAL_INV is 1, can be 0"},
		{"LOCAL_INV inline", ib.RC, ib.SendWR{Op: ib.LocalInv, Flags: ib.Inline}, ErrInvalid, "flag Inline"},
		{"BIND_MW", ib.RC, ib.SendWR{Op: ib.BindMW, Bind: &ib.Bind{}}, nil, ""},
		{"BIND_MW without a bind", ib.RC, ib.SendWR{Op: ib.BindMW}, ErrInvalid, "bind is missing"},
		{"a bind with another opcode", ib.RC, ib.SendWR{Op: ib.Send, Bind: &ib.Bind{}}, ErrInvalid, "another opcode than BIND_MW"},
		{"BIND_MW on UD", ib.UD, ib.SendWR{Op: ib.BindMW, UD: ud, Bind: &ib.Bind{}}, ErrInvalid, "BIND_MW"},
		{"READ on UC", ib.UC, ib.SendWR{Op: ib.Read, SGL: sgesOf(1)}, ErrInvalid, "RDMA_READ, can be one of SEND, RDMA WRITE, BIND_MW, LOCAL_INV"},
		{"ATOMIC on UC", ib.UC, ib.SendWR{Op: ib.FetchAdd, SGL: sgesOf(8)}, ErrInvalid, "opcode"},
		{"SEND_WITH_INV on UC", ib.UC, ib.SendWR{Op: ib.SendInv}, ErrInvalid, "opcode"},
		{"WRITE on UC", ib.UC, ib.SendWR{Op: ib.WriteImm, SGL: sgesOf(1)}, nil, ""},
		{"WRITE on UD", ib.UD, ib.SendWR{Op: ib.Write, UD: ud}, ErrInvalid, "opcode"},
		{"SEND on UD", ib.UD, ib.SendWR{Op: ib.SendImm, UD: ud, SGL: sgesOf(4096)}, nil, ""},
		{"SEND on UD beyond the MTU", ib.UD, ib.SendWR{Op: ib.Send, UD: ud, SGL: sgesOf(4000, 97)}, ErrInvalid, "4097 bytes, can be up to 4096"},
		{"UD without a handle", ib.UD, ib.SendWR{Op: ib.Send, UD: ib.Datagram{QPN: 5}}, ErrInvalid, "address handle"},
		{"UD to no QPN", ib.UD, ib.SendWR{Op: ib.Send, UD: ib.Datagram{AH: 1, QPN: 1 << 24}}, ErrInvalid, "destination QPN"},
		{"ATOMIC of 8", ib.RC, ib.SendWR{Op: ib.CompareSwap, SGL: sgesOf(3, 5)}, nil, ""},
		{"ATOMIC of 4", ib.RC, ib.SendWR{Op: ib.FetchAdd, SGL: sgesOf(4)}, ErrInvalid, "4 bytes, can be 8"},
		{"ATOMIC of 16", ib.RC, ib.SendWR{Op: ib.FetchAdd, SGL: sgesOf(8, 8)}, ErrInvalid, "16 bytes"},
		{"unaligned ATOMIC is the peer's to refuse", ib.RC, ib.SendWR{Op: ib.FetchAdd, SGL: sgesOf(8), Remote: ib.Remote{Addr: 3}}, nil, ""},

		{"inline at the limit", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: sgesOf(100)}, nil, ""},
		{"inline of four at the limit", ib.RC, ib.SendWR{Op: ib.Write, Flags: ib.Inline, SGL: sgesOf(50, 0, 49, 1)}, nil, ""},
		{"inline below the limit", ib.RC, ib.SendWR{Op: ib.Write, Flags: ib.Inline, SGL: sgesOf(50, 49)}, nil, ""},
		{"inline above the limit", ib.RC, ib.SendWR{Op: ib.Write, Flags: ib.Inline, SGL: sgesOf(101)}, ErrInvalid, "101 bytes, can be up to 100"},
		{"inline of two above the limit", ib.RC, ib.SendWR{Op: ib.Write, Flags: ib.Inline, SGL: sgesOf(100, 1)}, ErrInvalid, "101 bytes"},
		{"inline of four times 2^30", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: sgesOf(g, g, g, g)}, ErrInvalid, "4294967296 bytes"},
		{"inline that wraps to a little", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: sgesOf(1<<31, 1<<31, 8)}, ErrInvalid, "4294967304 bytes"},
		{"inline of nothing", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline}, nil, ""},
		{"inline data at the limit", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, InlineData: make([]byte, 100)}, nil, ""},
		{"inline data above the limit", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, InlineData: make([]byte, 101)}, ErrInvalid, "101 bytes"},
		{"inline data and an SGL", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, InlineData: make([]byte, 1), SGL: sgesOf(1)}, ErrInvalid, "payload"},
		{"inline data without the flag", ib.RC, ib.SendWR{Op: ib.Send, InlineData: make([]byte, 1)}, ErrInvalid, "inline data"},
		{"inline READ", ib.RC, ib.SendWR{Op: ib.Read, Flags: ib.Inline, SGL: sgesOf(1)}, ErrInvalid, "flag Inline"},
		{"inline ATOMIC", ib.RC, ib.SendWR{Op: ib.FetchAdd, Flags: ib.Inline, SGL: sgesOf(8)}, ErrInvalid, "flag Inline"},
		{"inline under a wrong key", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: []ib.SGE{{Length: 1}, {Length: 1, LKey: 99}}}, ErrInvalid, "inline element 1"},
		{"inline of nothing under a wrong key", ib.RC, ib.SendWR{Op: ib.Send, Flags: ib.Inline, SGL: []ib.SGE{{LKey: 99}}}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, q := readyQP(t, tt.typ, ib.QPCap{MaxSendSGE: 4, MaxInlineData: 100})
			good := ib.SendWR{Op: ib.Send, UD: ud}
			n, err := q.Post([]ib.SendWR{good, tt.wr, good}, lender)
			if !errors.Is(err, tt.want) {
				t.Fatalf("err %v, want %v", err, tt.want)
			}
			want := 3
			if tt.want != nil {
				want = 1
				var pe *PostError
				if !errors.As(err, &pe) || pe.Index != 1 || pe.QPN != q.qpn || !strings.Contains(err.Error(), tt.text) {
					t.Errorf("%v does not say %q", err, tt.text)
				}
			}
			if n != want || q.send.Tail() != uint32(want) {
				t.Errorf("accepted %d, in the ring %d, want %d", n, q.send.Tail(), want)
			}
			if tt.want == nil && tt.wr.Flags&ib.Inline != 0 {
				var all []byte
				for _, s := range tt.wr.SGL {
					all = append(all, payload(4096)[:s.Length]...)
				}
				all = append(all, tt.wr.InlineData...)
				if w := q.send.At(1); !bytes.Equal(w.Inline, all) || int(w.Len) != len(all) || len(w.SGL) != 0 {
					t.Errorf("slot %+v", w)
				}
			}
		})
	}
}

func TestInlineWithoutASourceIsRefused(t *testing.T) {
	_, q := readyQP(t, ib.RC, ib.QPCap{})
	if _, err := q.Post([]ib.SendWR{{Op: ib.Send, Flags: ib.Inline, SGL: sgesOf(1)}}, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("err %v", err)
	}
	short := func(ib.SGE) ([]byte, bool) { return nil, true }
	if _, err := q.Post([]ib.SendWR{{Op: ib.Send, Flags: ib.Inline, SGL: sgesOf(1)}}, short); !errors.Is(err, ErrInvalid) {
		t.Errorf("err %v", err)
	}
}

func TestPostCopiesWhatItTakes(t *testing.T) {
	_, q := readyQP(t, ib.RC, ib.QPCap{MaxSendSGE: 2, MaxRecvSGE: 2})
	wr := []ib.SendWR{{ID: 5, Op: ib.WriteImm, Imm: 6, SGL: sgesOf(7, 8), Remote: ib.Remote{Addr: 9, RKey: 10}}}
	rr := []ib.RecvWR{{ID: 11, SGL: sgesOf(12)}}
	for range 3 {
		if _, err := q.Post(wr, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := q.PostRecv(rr); err != nil {
			t.Fatal(err)
		}
	}
	clear(wr[0].SGL)
	clear(rr[0].SGL)
	w, r := q.send.At(1), q.recv.Peek()
	if w.ID != 5 || w.Imm != 6 || w.Len != 15 || len(w.SGL) != 2 || w.SGL[1].Length != 8 || w.Remote.RKey != 10 {
		t.Errorf("%+v", w)
	}
	if r.ID != 11 || r.SGL[0].Length != 12 {
		t.Errorf("%+v", r)
	}
}

func TestBatchPostSaysHowManyFit(t *testing.T) {
	h, q := readyQP(t, ib.RC, ib.QPCap{MaxSendWR: 5, MaxRecvWR: 3})
	for want := 5; want >= 0; want -= 5 {
		n, err := q.Post(make([]ib.SendWR, 7), nil)
		if n != want || !errors.Is(err, ErrQueueFull) || !strings.Contains(err.Error(), "5, all in use") {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n, err := q.PostRecv(make([]ib.RecvWR, 4)); n != 3 || !errors.Is(err, ErrQueueFull) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := q.Post(nil, nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	q.send.Retire()
	if n, err := q.Post(make([]ib.SendWR, 1), nil); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := q.PostRecv([]ib.RecvWR{{SGL: sgesOf(1, 2)}}); n != 0 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	h.Advance(0)
	if f := fakeOf(q); f.posts != 1 {
		t.Errorf("the engine heard %d times of several posts", f.posts)
	}
	if h.Rung() {
		t.Error("still rung")
	}
}

func TestPostByState(t *testing.T) {
	type row struct {
		state      ib.QPState
		send, recv error
	}
	for _, r := range []row{
		{ib.Reset, ErrState, ErrState},
		{ib.Init, ErrState, nil},
		{ib.RTR, ErrState, nil},
		{ib.RTS, nil, nil},
		{ib.SQD, nil, nil},
		{ib.SQE, nil, nil},
		{ib.Error, nil, nil},
	} {
		h := fakeHost(t, addrA, addrA6, nil)
		q := h.qp(ib.RC, nil)
		fakeOf(q).state = r.state
		h.look(0, q)
		if n, err := q.Post(make([]ib.SendWR, 1), nil); !errors.Is(err, r.send) || (n == 1) != (r.send == nil) {
			t.Errorf("Post in %v: %d, %v", r.state, n, err)
		}
		if n, err := q.PostRecv(make([]ib.RecvWR, 1)); !errors.Is(err, r.recv) || (n == 1) != (r.recv == nil) {
			t.Errorf("PostRecv in %v: %d, %v", r.state, n, err)
		}
	}
}

// Posts after Error flush, also those that cross the change of state.
func TestReceivesPostedWhileTheQPFailsAreFlushed(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		h := newHost(t, addrA, addrA6, nil)
		q := h.qp(typ, func(c *QPConfig) { c.Cap = ib.QPCap{MaxSendWR: 512, MaxRecvWR: 1024} })
		h.connect(q, ib.GIDFromAddr(addrB), 0, 77, ib.MTU1024)
		const n = 500
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				if _, err := q.PostRecv([]ib.RecvWR{{ID: uint64(i)}}); err != nil {
					t.Error(err)
				}
			}
		})
		h.modify(q, ib.QPAttr{Mask: ib.AttrState, State: ib.Error})
		wg.Wait()
		h.Advance(0)
		wcs := h.poll()
		if len(wcs) != n {
			t.Errorf("%v: %d of %d receives flushed", typ, len(wcs), n)
		}
		for i, wc := range wcs {
			if wc.Status != ib.WRFlushErr || wc.ID != uint64(i) {
				t.Fatalf("%v: completion %d: %+v", typ, i, wc)
			}
		}
		if _, err := q.Post(make([]ib.SendWR, 2), nil); err != nil && typ != ib.UD {
			t.Error(err)
		}
	}
}

// Any number of goroutines ring, each for its own queue pair; the owner hears
// of every post.
func TestDoorbellsOfManyGoroutines(t *testing.T) {
	h := fakeHost(t, addrA, addrA6, nil)
	const qps, posts = 4, 300
	var wg sync.WaitGroup
	all := make([]*QP, qps)
	for i := range all {
		q := h.qp(ib.RC, func(c *QPConfig) { c.Cap.MaxRecvWR = posts })
		h.modify(q, initAttr(ib.RC))
		all[i] = q
	}
	for _, q := range all {
		wg.Go(func() {
			for range posts {
				if _, err := q.PostRecv(make([]ib.RecvWR, 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		h.Advance(0)
	}
	if h.Rung() || h.bell.take() != nil {
		t.Error("still rung")
	}
	for _, q := range all {
		if q.recv.Posted() != posts || fakeOf(q).posts == 0 {
			t.Errorf("%d posted, heard %d times", q.recv.Posted(), fakeOf(q).posts)
		}
	}
}

func TestDestroyedQueuePairIsNotAnswered(t *testing.T) {
	h, q := readyQP(t, ib.RC, ib.QPCap{})
	if _, err := q.Post(make([]ib.SendWR, 1), nil); err != nil {
		t.Fatal(err)
	}
	f := fakeOf(q)
	f.deadline = 5
	h.look(0, q)
	if err := h.DestroyQP(0, q); err != nil {
		t.Fatal(err)
	}
	h.Advance(10)
	if f.posts != 0 || len(f.advanced) != 0 || h.Pending() || q.State() != ib.Reset {
		t.Errorf("posts %d, advanced %v", f.posts, f.advanced)
	}
	if _, err := q.Post(make([]ib.SendWR, 1), nil); !errors.Is(err, ErrState) {
		t.Errorf("post on a destroyed queue pair: %v", err)
	}
}
