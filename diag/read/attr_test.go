package read_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/diag/read"
)

// Attributes of the two netlink answers and of uverbs stand together; MTUs are codes
// or bytes there and bytes here.
func TestAttributes(t *testing.T) {
	s := read.Host(memory{
		"nl/rdma/dev":    `[{"name":"a","attr":{"cap_flags":5}}]`,
		"nl/rdma/link":   `{"a":[{"port":1,"attr":{"subnet_prefix":7}},{"port":2}]}`,
		"nl/rdma/attr/a": `{"device":{"max_qp":100},"ports":{"1":{"max_mtu":5,"active_mtu":3,"active_width":2},"2":{"active_mtu":2048}}}`,
	}, read.Options{})
	d := s.Device("a")
	if d == nil || len(d.Ports) != 2 {
		t.Fatal(s.Devices)
	}
	attr, _ := d.Attr.Get()
	if attr["cap_flags"] != 5 || attr["max_qp"] != 100 {
		t.Errorf("device %v", attr)
	}
	if d.Ports[0].Attr["subnet_prefix"] != 7 || d.Ports[0].Attr["max_mtu"] != 5 {
		t.Errorf("port %v", d.Ports[0].Attr)
	}
	known(t, "max MTU", d.Ports[0].MaxMTU, 4096)
	known(t, "active MTU", d.Ports[0].ActiveMTU, 1024)
	known(t, "width", d.Ports[0].Width, 2)
	known(t, "active MTU in bytes", d.Ports[1].ActiveMTU, 2048)
}
