package rc_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// The compare value of a work request is no part of a FetchAdd: what a program left in the field stays here.
func TestAtomicOperandsOnTheWire(t *testing.T) {
	a, _ := connect(t, options{rd: 2, timeout: 14, access: ib.RemoteAll})
	for _, c := range []struct {
		op   ib.WROp
		want uint64
	}{{ib.FetchAdd, 0}, {ib.CompareSwap, 5}} {
		a.wr(0, ib.SendWR{Op: c.op, SGL: []ib.SGE{a.sge(0, 8)}, Remote: ib.Remote{Addr: baseB, RKey: 1}, Compare: 5, SwapAdd: 6})
		pkt, ok := a.pull(0)
		if !ok {
			t.Fatalf("%v: nothing to send", c.op)
		}
		var p wire.Packet
		if reason := p.Decode(pkt.b); reason != wire.ReasonNone {
			t.Fatalf("%v: %v", c.op, reason)
		}
		if p.Atomic.Compare != c.want || p.Atomic.SwapAdd != 6 {
			t.Errorf("%v: the packet compares with %d and has %d, want %d and 6", c.op, p.Atomic.Compare, p.Atomic.SwapAdd, c.want)
		}
	}
}
