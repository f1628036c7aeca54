package rtnl

import (
	"testing"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
)

func join(all ...[]byte) (b []byte) {
	for _, a := range all {
		b = append(b, a...)
	}
	return b
}

func attr(t *testing.F, kind uint16, data ...byte) []byte {
	b, err := netlink.MarshalAttributes([]netlink.Attribute{{Type: kind, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzAnswers feeds any bytes to all readers of answers: no panic, no more rows than the
// bytes can hold, and no name of an interface that is not in them.
func FuzzAnswers(f *testing.F) {
	f.Add(join(make([]byte, 16), attr(f, 3, 'e', 0), attr(f, 1, 1, 2, 3, 4, 5, 6), attr(f, 18, join(attr(f, 1, []byte("vlan\x00")...), attr(f, 2, attr(f, 1, 100, 0)...))...)))
	f.Add(join([]byte{2, 24, 0, 0, 2, 0, 0, 0}, attr(f, 1, 10, 0, 0, 1), attr(f, 2, 10, 0, 0, 1), attr(f, 8, 0x80, 0, 0, 0)))
	f.Add(join([]byte{2, 24, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0}, attr(f, 1, 10, 0, 0, 0), attr(f, 9, 16, 0, 0, 0, 2, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1), attr(f, 8, attr(f, 2, 0, 5, 0, 0)...)))
	f.Add(join([]byte{10, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0}, attr(f, 1, make([]byte, 16)...), attr(f, 2, 1, 2, 3, 4, 5, 6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
			return nlfake.Answers(q, q.Header.Type-2, b)
		}}
		c := New(k.Dial(nlask.Limits{}))
		defer c.Close()
		links, err := c.Links()
		if err == nil && len(links) != 1 {
			t.Errorf("%d links of one message", len(links))
		}
		addrs, _ := c.Addresses()
		routes, _ := c.Routes()
		rules, _ := c.Rules()
		neighbours, _ := c.Neighbours()
		if n := len(addrs) + len(routes) + len(rules) + len(neighbours); n > 8+len(b)/4 {
			t.Errorf("%d rows of %d bytes", n, len(b))
		}
	})
}
