//go:build linux

package interop

import (
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// rxe knows no CNPs, and takes no harm: our link marks what it sends, as a switch
// would, we answer with CNPs, and the data of both ways stays right.
func TestDCQCNTowardsLinux(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	rules, err := fault.Parse("ce 50%")
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, patience)
	h := newHost(t, 2*dataBytes, func(l link.Link) link.Link {
		l, err = fault.New(capable{l}, fault.Config{Rules: rules, Seed: seed(t)})
		if err != nil {
			t.Error(err)
		}
		return l
	})
	if err := h.dev.SetDCQCN(verbs.DCQCN{Preset: "paper", LineRate: 1e9}); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []ib.QPType{ib.RC, ib.UC} {
		var c *pair
		h.unlessLost(typ, func() {
			c = h.pairThatMayLose(ctx, typ, ipv4, settings{mtu: ib.MTU1024})
			d := &mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), 9))}
			for _, n := range []int{1, 5000, 40_000} {
				d.writeBack(n)
				d.sendBack(n)
				d.write(n)
				d.send(n)
			}
		})
		// rxe says nothing of congestion: the marks on its packets are all that we hear.
		if q := c.q.Congestion(); q.Marked == 0 || q.CNPsSent == 0 || q.CNPsSent > q.Marked || q.CNPsHandled != 0 {
			t.Errorf("%v: %d packets marked, %d CNPs sent, %d handled", typ, q.Marked, q.CNPsSent, q.CNPsHandled)
		}
	}
	h.clean()
	complaints(t, network(t).Guest(1))
}

// capable makes what comes in ECN-capable: rxe's packets are not, unless its
// program asks for it.
type capable struct{ link.Link }

func (l capable) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := l.Link.Recv(now, rx)
	for i := range rx[:n] {
		rx[i].TOS = rx[i].TOS&^3 | 2
	}
	return n, err
}
