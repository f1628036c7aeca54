package freeport

import (
	"fmt"
	"net"
	"testing"
)

// No two have the same port, what is in use is not given, and what was given back is
// given again.
func TestGet(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		p := Get(t)
		if seen[p] || p < first || p > last {
			t.Errorf("port %d, twice or out of range", p)
		}
		seen[p] = true
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", p))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	p, release, err := get(most())
	if err != nil {
		t.Fatal(err)
	}
	release()
	for _, network := range []string{"tcp", "udp"} {
		var closed interface{ Close() error }
		if network == "tcp" {
			closed, err = net.Listen(network, fmt.Sprintf("127.0.0.7:%d", p))
		} else {
			closed, err = net.ListenPacket(network, fmt.Sprintf("127.0.0.7:%d", p))
		}
		if err != nil {
			t.Fatal(err)
		}
		if free(p) == nil {
			t.Errorf("%s port %d is in use at one address, and free", network, p)
		}
		closed.Close()
		if err := free(p); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}
