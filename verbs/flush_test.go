package verbs_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// WRITE, FLUSH and ATOMIC WRITE, as a log that is replicated uses them: the data,
// its placement, and then the word that says it is there.
func TestWriteFlushAtomicWrite(t *testing.T) {
	e := newPairMem(t, ib.RC, nil)
	mr, err := e.b.pd.RegisterMR(make([]byte, 8192), ib.AccessAll|ib.RemoteFlush)
	must(t, err)
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], 0x1122334455667788)
	for i, wr := range []ib.SendWR{
		{Op: ib.Write, SGL: e.a.mr.SGE(0, 4096), Remote: mr.Remote(4096)},
		{Op: ib.Flush, Remote: mr.Remote(4096), Flush: ib.FlushRange{Len: 4096, Placement: ib.FlushGlobal}},
		{Op: ib.AtomicWrite, Flags: ib.Inline, InlineData: word[:], Remote: mr.Remote(64)},
		{Op: ib.Flush, Remote: mr.Remote(0), Flush: ib.FlushRange{Placement: ib.FlushGlobal, Level: ib.FlushRegion}},
	} {
		wr.ID, wr.Flags = uint64(i), wr.Flags|ib.Signaled
		must(t, e.a.qp.PostSend(wr))
	}
	for i, op := range []ib.WCOp{ib.WCWrite, ib.WCFlush, ib.WCAtomicWrite, ib.WCFlush} {
		if wc := e.a.await(t); wc.ID != uint64(i) || wc.Op != op || wc.Status != ib.Success {
			t.Fatalf("%+v", wc)
		}
	}
	if got := binary.NativeEndian.Uint64(mr.Bytes()[64:]); got != 0x1122334455667788 {
		t.Errorf("0x%x", got)
	}
	must(t, e.a.qp.PostSend(ib.SendWR{Op: ib.Flush, Flags: ib.Signaled, Remote: e.a.peer.At(0), Flush: ib.FlushRange{Len: 8, Placement: ib.FlushGlobal}}))
	if wc := e.a.await(t); wc.Status != ib.RemAccessErr {
		t.Errorf("a region that is not to be flushed: %v", wc.Status)
	}
	if _, err := e.b.pd.RegisterMR(nil, ib.RemotePersist); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("memory as persistent: %v", err)
	}
}
