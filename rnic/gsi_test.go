package rnic

import (
	"bytes"
	"errors"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// gsi makes QP1 of a host, in RTS with one receive.
func gsi(h *host) *QP {
	h.t.Helper()
	q, err := h.CreateGSI(0, QPConfig{PD: h.pd, SendCQ: h.cq, RecvCQ: h.cq, Cap: ib.QPCap{MaxInlineData: 256}})
	if err != nil {
		h.t.Fatal(err)
	}
	up := initAttr(ib.UD)
	up.QKey = GSIQKey
	h.modify(q, up)
	h.modify(q, rtrAttr(ib.UD, ib.GID{}, 0, 0, 0))
	h.modify(q, rtsAttr(ib.UD))
	return q
}

// A datagram goes from QP1 to QP1 under the well-known Q_Key, and one with any
// other key is dropped (IBA vol.1 10.2.5).
func TestQP1(t *testing.T) {
	a, b := newHost(t, addrA, addrA6, nil), newHost(t, addrB, addrB6, nil)
	qa, qb := gsi(a), gsi(b)
	if qa.Number() != ib.QPGSI || qb.Number() != ib.QPGSI {
		t.Fatalf("numbers %v, %v", qa.Number(), qb.Number())
	}
	r, buf := b.mr(296)
	if _, err := qb.PostRecv([]ib.RecvWR{{SGL: []ib.SGE{{Addr: r.Base, Length: 296, LKey: r.LKey}}}}); err != nil {
		t.Fatal(err)
	}
	ah, err := a.CreateAH(a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	c := newCable(t, a.Adapter, b.Adapter, asRuns)
	data := bytes.Repeat([]byte{0x5A}, 256)
	send := func(key ib.QKey) {
		t.Helper()
		wr := ib.SendWR{Op: ib.Send, Flags: ib.Inline, InlineData: data, UD: ib.Datagram{AH: ah, QPN: ib.QPGSI, QKey: key}}
		if _, err := qa.Post([]ib.SendWR{wr}, nil); err != nil {
			t.Fatal(err)
		}
		c.settle()
	}
	send(0x1234)
	if got := b.poll(); len(got) != 0 || b.Stats().Get("drop_qkey") != 1 {
		t.Errorf("a datagram under another Q_Key: %+v", got)
	}
	send(GSIQKey)
	got := b.poll()
	if len(got) != 1 || got[0].Status != ib.Success || got[0].SrcQPN != ib.QPGSI || got[0].Bytes != 296 || !bytes.Equal(buf[40:], data) {
		t.Errorf("%+v", got)
	}
}

// There is one QP1; while there is none, what is sent to it is counted.
func TestOneQP1AtATime(t *testing.T) {
	a, b := newHost(t, addrA, addrA6, nil), newHost(t, addrB, addrB6, nil)
	cfg := QPConfig{PD: a.pd, SendCQ: a.cq, RecvCQ: a.cq}
	qa := gsi(a)
	if _, err := a.CreateGSI(0, cfg); !errors.Is(err, ErrBusy) {
		t.Errorf("second QP1: %v", err)
	}
	ah, err := a.CreateAH(a.pd, &ib.AV{DGID: ib.GIDFromAddr(addrB)})
	if err != nil {
		t.Fatal(err)
	}
	wr := ib.SendWR{Op: ib.Send, Flags: ib.Inline, InlineData: make([]byte, 256), UD: ib.Datagram{AH: ah, QPN: ib.QPGSI, QKey: GSIQKey}}
	if _, err := qa.Post([]ib.SendWR{wr}, nil); err != nil {
		t.Fatal(err)
	}
	newCable(t, a.Adapter, b.Adapter, asRuns).settle()
	if n := b.Stats().Get("drop_management"); n != 1 {
		t.Errorf("drop_management is %d", n)
	}
	if err := a.DestroyQP(0, qa); err != nil {
		t.Fatal(err)
	}
	if q := gsi(a); q.Number() != ib.QPGSI {
		t.Errorf("the next QP1 has the number %v", q.Number())
	}
}
