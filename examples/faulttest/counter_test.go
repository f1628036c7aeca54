package faulttest

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs"
)

// Whatever happens to single packets, each Add counts once and returns the right
// value.
func TestCounterCountsOnce(t *testing.T) {
	for _, rules := range []string{
		"",                        // a good network
		"drop 1st atomic out",     // the request is lost: it is sent again
		"drop 1st atomic-ack",     // the response is lost: the request comes twice, and must not count twice
		"drop atomic-ack times 3", // … three times over
		"dup atomic out",          // every request arrives twice anyway
		"loss 10%; loss 10% out",  // an awful network
		"reorder 2 20%; reorder 2 20% out",
	} {
		t.Run("rules "+rules, func(t *testing.T) {
			word, counter, stats := rig(t, rules)
			for i := range uint64(50) {
				before, err := counter.Add(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if before != i {
					t.Fatalf("addition %d found %d", i, before)
				}
			}
			if n := word.Load(); n != 50 {
				t.Errorf("50 additions made %d", n)
			}
			t.Logf("duplicates that the other host answered: %d", stats().Get("duplicate_request"))
		})
	}
}

// rig returns a counter behind a network that follows rules, the word that it
// counts in, and the statistics of the host that has the word.
func rig(t *testing.T, rules string) (*atomic.Uint64, *Counter, func() verbs.Stats) {
	t.Helper()
	parsed, err := fault.Parse(rules)
	check(t, err)
	open := func(addr string, wrap func(link.Link) link.Link) (*verbs.Device, *verbs.CQ, *verbs.QP, *verbs.MR) {
		dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr(addr), Wrap: wrap})
		check(t, err)
		t.Cleanup(func() { check(t, dev.Close()) })
		pd := dev.AllocPD()
		cq, err := dev.CreateCQ(verbs.CQConfig{})
		check(t, err)
		mr, err := pd.RegisterMR(make([]byte, 8), ib.AccessAll)
		check(t, err)
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
		check(t, err)
		return dev, cq, qp, mr
	}
	_, cq, qp, result := open("127.0.0.41", func(l link.Link) link.Link {
		f, err := fault.New(l, fault.Config{Rules: parsed, Seed: 1})
		check(t, err)
		return f
	})
	server, _, serverQP, mr := open("127.0.0.42", nil)

	here, there := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := verbs.Connect(t.Context(), there, serverQP, mr); err != nil {
			t.Error(err)
		}
	})
	peer, err := verbs.Connect(t.Context(), here, qp, result)
	wg.Wait()
	check(t, err)
	word := (*atomic.Uint64)(unsafe.Pointer(&mr.Bytes()[0]))
	return word, &Counter{CQ: cq, QP: qp, Result: result, At: peer.At(0)}, server.Stats
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
