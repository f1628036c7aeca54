package rdmacm_test

import (
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// Connections are made over QP 1 of shard 0 for queue pairs in every shard, and
// carry data both ways.
func TestConnectionsOfAShardedDevice(t *testing.T) {
	const shards = 3
	open := func(addr string, n int) *side {
		s := &side{t: t, addr: netip.MustParseAddr(addr)}
		var err error
		if s.dev, err = verbs.Open(verbs.Config{Addr: s.addr, Port: 14793, Shards: n}); err != nil {
			t.Fatal(err)
		}
		s.equip()
		return s
	}
	a, b := open("127.0.5.21", shards), open("127.0.5.22", 2)
	used := map[int]bool{}
	for range shards {
		x, y, _ := connect(t, a, b, ib.RC, rdmacm.Options{}, rdmacm.Options{})
		used[int(x.QP().Num())%shards] = true
		exchange(t, a, b, x, y)
		exchange(t, b, a, y, x)
		if err := x.Disconnect(within(t), nil); err != nil {
			t.Fatal(err)
		}
		<-y.Done()
	}
	if len(used) != shards {
		t.Errorf("queue pairs were in shards %v", used)
	}
}
