package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "127.0.0.31", "127.0.0.32"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`apple: "red", true`, `banana: "yellow", true`, `cherry: "", false`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}

// The store by itself: what was put is found, a full neighbourhood refuses, and
// a slot that is being changed is not believed.
func TestStore(t *testing.T) {
	s := newStore(make([]byte, 64*slotSize))
	held := map[string]string{}
	for i := range 40 {
		k, v := fmt.Sprint("key", i), fmt.Sprint("value", i)
		if s.put(k, v) == nil {
			held[k] = v
		}
	}
	if err := s.put("key0", "new"); err != nil {
		t.Fatal(err)
	}
	held["key0"] = "new"
	for k, v := range held {
		found := false
		for i := slotOf(k, s.slots); i < slotOf(k, s.slots)+probes; i++ {
			key, value, ok := decode(s.slot(i))
			found = found || ok && key == k && value == v
		}
		if !found {
			t.Errorf("%s is lost", k)
		}
	}
	for _, bad := range [][2]string{{"", "x"}, {"k", strings.Repeat("x", room)}} {
		if s.put(bad[0], bad[1]) == nil {
			t.Errorf("put %q was accepted", bad)
		}
	}
	b := s.slot(slotOf("key0", s.slots))
	word(b[slotSize-8:]).Add(1)
	if _, _, ok := decode(b); ok {
		t.Error("a slot that is being changed was believed")
	}
}

// A client that tries to write gets an error, and the store is untouched.
func TestReadOnly(t *testing.T) {
	s, err := newServer("127.0.0.33", 64)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	here, there := net.Pipe()
	accepted := make(chan error, 1)
	go func() { accepted <- s.accept(t.Context(), there) }()
	c, err := newClient(t.Context(), here, "127.0.0.34")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := c.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: c.mr.SGE(0, 8), Remote: c.peer.At(0)}); err != nil {
		t.Fatal(err)
	}
	var wcs [1]ib.WC
	if _, err := c.cq.Wait(t.Context(), wcs[:]); err != nil {
		t.Fatal(err)
	}
	if wcs[0].Status != ib.RemInvReqErr {
		t.Errorf("WRITE: %v", wcs[0].Status)
	}
}
