package rc_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// TestWindowIsBoundAnewBehindARead: another shard binds a window of type 1 anew
// while this one answers a READ through it. The response packet that is described
// already has what the memory held before; the next one is a NAK.
func TestWindowIsBoundAnewBehindARead(t *testing.T) {
	const mtu = 256
	a, b := connect(t, options{access: ib.RemoteAll, rd: 4})
	other := b.mem.Share(&sync.Mutex{})
	old := bytes.Repeat([]byte{'a'}, 3*mtu)
	mr, err := b.mem.Register(pd, old, 0x9000, ib.LocalWrite|ib.RemoteAll|ib.MWBind)
	if err != nil {
		t.Fatal(err)
	}
	w := b.mem.AllocWindow(pd, mem.Window1)
	bind := ib.Bind{RKey: w.RKey(), LKey: mr.LKey, Addr: mr.Base, Len: mr.Len, Access: ib.RemoteRead}
	if f := other.Bind(pd, qpnB, &bind); f != mem.FaultNone {
		t.Fatal(f)
	}
	a.wr(0, ib.SendWR{Op: ib.Read, Flags: ib.Signaled, SGL: []ib.SGE{a.sge(0, 3*mtu)}, Remote: ib.Remote{Addr: mr.Base, RKey: w.RKey()}})
	request, ok := a.pull(0)
	if !ok {
		t.Fatal("no request")
	}
	b.give(0, request)
	first, ok := b.pull(0)
	if !ok || !bytes.Contains(first.b, old[:mtu]) {
		t.Fatalf("the first response: % x", first.b)
	}
	if _, ok := b.eng.Next(0); !ok {
		t.Fatal("no second response")
	}
	bind.Addr, bind.Len = mr.Base, 1
	if f := other.Bind(pd, qpnB, &bind); f != mem.FaultNone {
		t.Fatal(f)
	}
	for i := range old {
		old[i] = 'b' // the program's again, whose bind has completed
	}
	var out transport.Out
	b.eng.Emit(0, &out)
	var got []byte
	for _, f := range out.Frags {
		got = append(got, f.Data...)
	}
	if out.Op != wire.RCReadRespMiddle || !bytes.Equal(got, bytes.Repeat([]byte{'a'}, mtu)) {
		t.Errorf("%v: %q", out.Op, got)
	}
	if _, ok := b.eng.Next(0); !ok {
		t.Fatal("no answer behind the bind")
	}
	out = transport.Out{}
	b.eng.Emit(0, &out)
	if out.Op != wire.RCAck || out.AETH.Syndrome != wire.NAKSyndrome(wire.NAKRemoteAccess) {
		t.Errorf("behind the bind: %v, syndrome %#x", out.Op, out.AETH.Syndrome)
	}
}
