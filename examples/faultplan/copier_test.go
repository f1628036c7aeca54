package faultplan

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

const (
	blocks     = 40
	blockBytes = 10_000
)

// run copies all blocks under a plan, checks every byte at the other host, and
// returns what the program saw and the device.
func run(t *testing.T, plan string) (map[string]int, *verbs.Device) {
	t.Helper()
	p, err := faultplan.Load(plan)
	check(t, err)
	dev, server := open(t, verbs.Config{Addr: netip.MustParseAddr("127.0.0.43"), Faults: p}), open(t, verbs.Config{Addr: netip.MustParseAddr("127.0.0.44"), Faults: &faultplan.Plan{}})
	pd, serverPD := dev.AllocPD(), server.AllocPD()
	cq, err := dev.CreateCQ(verbs.CQConfig{})
	check(t, err)
	serverCQ, err := server.CreateCQ(verbs.CQConfig{})
	check(t, err)
	block, err := pd.RegisterMR(make([]byte, blockBytes), ib.LocalWrite)
	check(t, err)
	memory, err := serverPD.RegisterMR(make([]byte, blocks*blockBytes), ib.AccessAll)
	check(t, err)

	c := &Copier{CQ: cq, Block: block, Tries: 5, Dial: func(ctx context.Context) (*verbs.QP, *verbs.Peer, error) {
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
		if err != nil {
			return nil, nil, err
		}
		other, err := serverPD.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: serverCQ, RecvCQ: serverCQ})
		if err != nil {
			return nil, nil, err
		}
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := verbs.Connect(ctx, there, other, memory); err != nil {
				t.Error(err)
			}
		})
		peer, err := verbs.Connect(ctx, here, qp, nil)
		wg.Wait()
		return qp, peer, err
	}}
	for i := range blocks {
		for j := range block.Bytes() {
			block.Bytes()[j] = byte(i*31 + j)
		}
		check(t, c.Copy(t.Context(), i*blockBytes))
		if !bytes.Equal(memory.Bytes()[i*blockBytes:][:blockBytes], block.Bytes()) {
			t.Fatalf("block %d is not what was copied", i)
		}
	}
	r, _ := dev.Faults()
	t.Logf("the program saw %v; the plan did\n%s", c.Seen, r.String())
	for _, x := range r.Rules {
		if x.Hits == 0 {
			t.Errorf("rule %d (%s) did nothing", x.Rule, x.Name)
		}
	}
	return c.Seen, dev
}

// The network disconnects: retries bridge what is short, and the program what is
// not.
func TestDisconnects(t *testing.T) {
	seen, dev := run(t, "disconnects.yaml")
	if len(seen) != 1 || seen["WR_FLUSH_ERR"] != 1 {
		t.Errorf("the program saw %v, want one WR_FLUSH_ERR", seen)
	}
	tells(t, dev, "retransmitted")
}

// Calls and completions fail: the program is told each time, in the words of an
// RNIC.
func TestCompletions(t *testing.T) {
	seen, _ := run(t, "completions.yaml")
	if seen["queue full"] != 2 || seen["RETRY_EXC_ERR"] != 1 || seen["REM_ACCESS_ERR"] != 1 || len(seen) != 4 {
		t.Errorf("the program saw %v", seen)
	}
}

// A bad network is not seen at all, but for the time it takes: the counters tell.
func TestImpairment(t *testing.T) {
	seen, dev := run(t, "impairment.yaml")
	if len(seen) != 0 {
		t.Errorf("the program saw %v", seen)
	}
	tells(t, dev, "retransmitted")
}

// tells fails the test if a counter is 0.
func tells(t *testing.T, dev *verbs.Device, name string) {
	t.Helper()
	c := dev.Counters()
	if n, ok := c.Get(name); !ok || n == 0 {
		t.Errorf("%s is %d", name, n)
	}
}

func open(t *testing.T, cfg verbs.Config) *verbs.Device {
	t.Helper()
	dev, err := verbs.Open(cfg)
	check(t, err)
	t.Cleanup(func() { check(t, dev.Close()) })
	return dev
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
