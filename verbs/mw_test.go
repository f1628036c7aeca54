package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/verbs"
)

func allocMW(t testing.TB, pd *verbs.PD, typ verbs.MWType) *verbs.MW {
	t.Helper()
	m, err := pd.AllocMW(typ)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// bind binds and waits for the completion.
func (e *end) bind(t testing.TB, m *verbs.MW, c verbs.BindConfig, want ib.WCStatus) ib.RKey {
	t.Helper()
	c.Flags |= ib.Signaled
	key, err := e.qp.BindMW(m, c)
	if err != nil {
		t.Fatal(err)
	}
	if wc := e.await(t); wc.Status != want || want == ib.Success && wc.Op != ib.WCBindMW {
		t.Fatalf("bind: %+v, want %v", wc, want)
	}
	return key
}

func (e *end) write(t testing.TB, r ib.Remote, n int) ib.WCStatus {
	t.Helper()
	if err := e.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: e.mr.SGE(0, n), Remote: r}); err != nil {
		t.Fatal(err)
	}
	return e.await(t).Status
}

// A window of type 1 is bound anew, to more and to less, and each key opens what
// it was bound to and nothing once the next is.
func TestWindowType1(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	m := allocMW(t, e.a.pd, verbs.MWType1)
	fill(e.b.mr.Bytes()[:4096], 3)
	var keys []ib.RKey
	for i := range 3 {
		off := 4096 * (i + 1)
		keys = append(keys, e.a.bind(t, m, verbs.BindConfig{MR: e.a.mr, Off: off, Len: 4096, Access: ib.RemoteWrite}, ib.Success))
		if m.RKey() != keys[i] || i > 0 && keys[i] == keys[i-1] {
			t.Errorf("keys %x, now 0x%x", keys, m.RKey())
		}
		at := ib.Remote{Addr: e.a.mr.Addr() + uint64(off), RKey: keys[i]}
		if st := e.b.write(t, at, 4096); st != ib.Success {
			t.Fatalf("through the window: %v", st)
		}
		if !bytes.Equal(e.a.mr.Bytes()[off:off+4096], e.b.mr.Bytes()[:4096]) {
			t.Error("other bytes")
		}
	}
	if err := e.a.mr.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("close a region with a window: %v", err)
	}
	if err := e.a.mr.Reregister(verbs.ChangeAccess, nil, verbs.MRConfig{}); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("re-register a region with a window: %v", err)
	}
	if st := e.b.write(t, ib.Remote{Addr: e.a.mr.Addr() + 3*4096, RKey: keys[1]}, 8); st != ib.RemAccessErr {
		t.Errorf("an old key: %v", st)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := e.a.mr.Close(); err != nil {
		t.Error(err)
	}
	if m.RKey() != 0 || m.Close() != nil {
		t.Error("closed twice")
	}
}

// A window of type 2 belongs to the connection that has bound it; its peer takes
// it back with a SEND.
func TestWindowType2(t *testing.T) {
	for _, as2A := range []bool{false, true} {
		t.Run(fmt.Sprintf("2A=%v", as2A), func(t *testing.T) {
			x, y := pair.New(pair.Config{})
			a, b := open(t, verbs.Config{Addr: addrA, Link: x, MWType2A: as2A}), open(t, verbs.Config{Addr: addrB, Link: y})
			if kind := a.MWKind(); (kind == mem.Window2A) != as2A {
				t.Error(kind)
			}
			e := ends{newEnd(t, a, ib.RC), newEnd(t, b, ib.RC)}
			join(t, e.a, e.b)
			other := ends{newEnd(t, a, ib.RC), newEnd(t, b, ib.RC)}
			join(t, other.a, other.b)
			m := allocMW(t, e.a.pd, verbs.MWType2)
			key := e.a.bind(t, m, verbs.BindConfig{MR: e.a.mr, Off: 100, Len: 100, Access: ib.RemoteWrite | ib.ZeroBased}, ib.Success)
			if st := e.b.write(t, ib.Remote{Addr: 0, RKey: key}, 100); st != ib.Success {
				t.Fatal(st)
			}
			if st := other.b.write(t, ib.Remote{Addr: 0, RKey: key}, 100); st != ib.RemAccessErr {
				t.Errorf("through another connection: %v", st)
			}
			e.a.recv(t, 0, 50)
			inv := ib.SendWR{Op: ib.SendInv, Flags: ib.Signaled, SGL: e.b.mr.SGE(0, 10), Imm: uint32(key)}
			if err := e.b.qp.PostSend(inv); err != nil {
				t.Fatal(err)
			}
			if wc := e.b.await(t); wc.Status != ib.Success {
				t.Fatal(wc.Status)
			}
			if wc := e.a.await(t); wc.Flags != ib.WCWithInv || wc.Imm != uint32(key) || wc.Bytes != 10 {
				t.Errorf("%+v", wc)
			}
			again := e.a.bind(t, m, verbs.BindConfig{MR: e.a.mr, Len: 8, Access: ib.RemoteRead}, ib.Success)
			if err := e.a.qp.PostSend(ib.SendWR{Op: ib.LocalInv, Flags: ib.Signaled, Imm: uint32(again)}); err != nil {
				t.Fatal(err)
			}
			if wc := e.a.await(t); wc.Status != ib.Success || wc.Op != ib.WCLocalInv {
				t.Errorf("%+v", wc)
			}
			if st := e.b.write(t, ib.Remote{Addr: e.a.mr.Addr(), RKey: again}, 8); st != ib.RemAccessErr {
				t.Errorf("an invalidated key: %v", st)
			}
		})
	}
}

// Window, region and queue pair of different domains do not come together,
// whichever of the three it is, on RC and UC.
func TestWindowsOfOtherDomains(t *testing.T) {
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		for _, wrong := range []string{"window", "region", "queue pair"} {
			e := newPairMem(t, typ, nil)
			pd := e.a.dev.AllocPD()
			foreign, err := pd.RegisterMR(make([]byte, 4096), ib.AccessAll)
			if err != nil {
				t.Fatal(err)
			}
			m, mr := allocMW(t, e.a.pd, verbs.MWType1), e.a.mr
			if wrong != "region" {
				m = allocMW(t, pd, verbs.MWType1)
			}
			if wrong != "window" {
				mr = foreign
			}
			e.a.bind(t, m, verbs.BindConfig{MR: mr, Len: 8, Access: ib.RemoteRead}, ib.MWBindErr)
			if s := e.a.qp.State(); s != map[ib.QPType]ib.QPState{ib.RC: ib.Error, ib.UC: ib.SQE}[typ] {
				t.Errorf("%v: %v", typ, s)
			}
		}
	}
}

// A region is re-registered under the traffic of others, and inline posts find
// its bytes, old or new, and no others.
func TestReregister(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	old := e.a.mr
	lkey, rkey := old.LKey(), old.RKey()
	fresh, err := verbs.Alloc(8192)
	if err != nil {
		t.Fatal(err)
	}
	fill(fresh.Bytes(), 9)
	if err := old.Reregister(verbs.ChangeTranslation, nil, verbs.MRConfig{Buf: fresh.Bytes(), IOVA: 0x5000}); err != nil {
		t.Fatal(err)
	}
	if old.LKey() != lkey || old.RKey() != rkey || old.Addr() != 0x5000 || old.Len() != 8192 || old.Access() != ib.AccessAll || &old.Bytes()[0] != &fresh.Bytes()[0] {
		t.Errorf("0x%x 0x%x at 0x%x, %d bytes, %v", lkey, rkey, old.Addr(), old.Len(), old.Access())
	}
	if err := fresh.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("memory under the region: %v", err)
	}
	if st := e.b.write(t, ib.Remote{Addr: 0x5000, RKey: rkey}, 100); st != ib.Success || !bytes.Equal(fresh.Bytes()[:100], e.b.mr.Bytes()[:100]) {
		t.Errorf("a peer's WRITE: %v", st)
	}
	wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled | ib.Inline, SGL: old.SGE(1000, 64), Remote: e.a.peer.At(0)}
	if err := e.a.qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	if wc := e.a.await(t); wc.Status != ib.Success || !bytes.Equal(e.b.mr.Bytes()[:64], fresh.Bytes()[1000:1064]) {
		t.Error(wc.Status)
	}

	pd := e.a.dev.AllocPD()
	for name, err := range map[string]error{
		"nothing":     old.Reregister(0, nil, verbs.MRConfig{}),
		"undefined":   old.Reregister(8, nil, verbs.MRConfig{}),
		"no domain":   old.Reregister(verbs.ChangePD, nil, verbs.MRConfig{}),
		"other one's": old.Reregister(verbs.ChangePD, e.b.pd, verbs.MRConfig{}),
		"access":      old.Reregister(verbs.ChangeAccess, nil, verbs.MRConfig{Access: ib.RemoteWrite}),
		"wrap":        old.Reregister(verbs.ChangeTranslation|verbs.ChangePD, pd, verbs.MRConfig{Buf: make([]byte, 16), IOVA: 1<<64 - 8}),
	} {
		if !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if old.Addr() != 0x5000 || old.PD() != e.a.pd || !errors.Is(fresh.Close(), verbs.ErrBusy) {
		t.Error("a refused change has changed something")
	}
	if err := old.Reregister(verbs.ChangePD|verbs.ChangeAccess|verbs.ChangeTranslation, pd, verbs.MRConfig{Buf: make([]byte, 64), Access: ib.LocalWrite}); err != nil {
		t.Fatal(err)
	}
	if old.PD() != pd || fresh.Close() != nil || !errors.Is(pd.Close(), verbs.ErrBusy) {
		t.Error("the region is not of its new domain")
	}
	if err := e.a.qp.PostSend(wr); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("inline from another domain: %v", err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := old.Reregister(verbs.ChangeAccess, nil, verbs.MRConfig{}); !errors.Is(err, verbs.ErrClosed) {
		t.Error(err)
	}
}

func TestReregisterWhileOthersPost(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	ones, twos := bytes.Repeat([]byte{1}, 4096), bytes.Repeat([]byte{2}, 4096)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			buf := ones
			if i%2 == 0 {
				buf = twos
			}
			if err := e.a.mr.Reregister(verbs.ChangeTranslation, nil, verbs.MRConfig{Buf: buf, IOVA: 0x10000}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled | ib.Inline, SGL: []ib.SGE{{Addr: 0x10000, Length: 64, LKey: e.a.mr.LKey()}}, Remote: e.a.peer.At(0)}
		if err := e.a.qp.PostSend(wr); err != nil {
			continue // the first memory lies elsewhere
		}
		if wc := e.a.await(t); wc.Status != ib.Success {
			t.Fatal(wc.Status)
		}
		if b := e.b.mr.Bytes()[:64]; !bytes.Equal(b, ones[:64]) && !bytes.Equal(b, twos[:64]) {
			t.Fatalf("% x", b)
		}
	}
	wg.Wait()
}
