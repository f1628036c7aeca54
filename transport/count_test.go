package transport

import (
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// Of all statuses those of a local error alone say that a request could not be
// sent; the others are of the peer, of the network, or of a flush.
func TestCountFailure(t *testing.T) {
	local := map[ib.WCStatus]bool{ib.LocLenErr: true, ib.LocQPOpErr: true, ib.LocProtErr: true, ib.LocAccessErr: true, ib.MWBindErr: true}
	for st := range ib.WCStatus(64) {
		var sum Counters
		c := Config{Counters: &Counters{Sum: &sum}}
		c.CountFailure(st)
		want := uint64(0)
		if local[st] {
			want = 1
		}
		if n, m := c.Counters.Events[SendErr], sum.Events[SendErr]; n != want || m != want {
			t.Errorf("%v: %d of the queue pair, %d of the adapter, want %d", st, n, m, want)
		}
	}
}
