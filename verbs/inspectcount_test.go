package verbs_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Counts that are kept are the counts of lists, whatever is made, changed, refused and
// closed, of every type, in every state and shard.
func TestCountsAreThoseOfLists(t *testing.T) {
	dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.93"), Port: 47912, Shards: 3, Control: verbs.ControlOff})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(verbs.CQConfig{Vector: verbs.SpreadVectors})
	if err != nil {
		t.Fatal(err)
	}
	var qps []*verbs.QP
	var others []interface{ Close() error }
	seen := map[string]bool{}
	check := func() {
		t.Helper()
		counted, listed := dev.Snapshot(false), dev.Snapshot(true)
		group := map[snapshot.QPCount]uint64{}
		for _, q := range listed.QPs.Or(nil) {
			group[snapshot.QPCount{Type: q.Type, State: q.State}]++
			seen[q.Type+" "+q.State] = true
		}
		for _, g := range counted.QPStates {
			key := snapshot.QPCount{Type: g.Type, State: g.State}
			if group[key] != g.N {
				t.Fatalf("%d of %s in %s are counted, %d listed", g.N, g.Type, g.State, group[key])
			}
			delete(group, key)
		}
		if len(group) > 0 {
			t.Fatalf("not counted: %v", group)
		}
		if diff := cmp.Diff(listed.Resources, counted.Resources); diff != "" {
			t.Fatalf("objects (-listed +counted):\n%s", diff)
		}
		for i := range listed.Queues {
			if listed.Queues[i].QPs != counted.Queues[i].QPs {
				t.Fatalf("shard %d: %d queue pairs listed, %d counted", i, listed.Queues[i].QPs, counted.Queues[i].QPs)
			}
		}
	}
	mtu := ib.MTU1024
	for range 600 {
		switch n := r.IntN(10); {
		case n < 3:
			typ := []ib.QPType{ib.RC, ib.UC, ib.UD}[r.IntN(3)]
			q, err := pd.CreateQP(verbs.QPConfig{Type: typ, SendCQ: cq, RecvCQ: cq})
			if err != nil {
				t.Fatal(err)
			}
			qps = append(qps, q)
		case n < 4:
			o, err := pd.CreateSRQ(verbs.SRQConfig{})
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, o)
			m, err := pd.RegisterMR(make([]byte, 64), ib.LocalWrite)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, m, dev.AllocPD())
		case n < 5 && len(others) > 0:
			i := r.IntN(len(others))
			_ = others[i].Close()
			_ = others[i].Close() // a second time changes nothing
			others = append(others[:i], others[i+1:]...)
		case n < 6 && len(qps) > 0:
			i := r.IntN(len(qps))
			_ = qps[i].Close()
			_ = qps[i].Close()
			qps = append(qps[:i], qps[i+1:]...)
		case len(qps) > 0:
			q := qps[r.IntN(len(qps))]
			next := q.State() + 1 // on to RTS, mostly
			if next > ib.RTS || r.IntN(6) == 0 {
				next = ib.QPState(r.IntN(7))
			}
			a := ib.QPAttr{State: next, Port: 1, PathMTU: mtu, DestQPN: 77, QKey: 1, TimeoutExp: 14, MaxDestRdAtomic: 1, MaxRdAtomic: 1}
			a.AV.DGID = ib.GIDFromAddr(netip.MustParseAddr("127.0.0.94"))
			for _, mask := range []ib.AttrMask{ // those that fit the type and the step are taken, others refused
				ib.AttrState, ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess, ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrQKey,
				ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN | ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer,
				ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN,
				ib.AttrState | ib.AttrSQPSN, ib.AttrState | ib.AttrSQPSN | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic,
			} {
				a.Mask = mask
				_ = q.Modify(a)
			}
		}
		check()
	}
	for _, want := range []string{"RESET", "INIT", "RTR", "RTS", "ERR"} {
		if !seen["RC "+want] && !seen["UC "+want] && !seen["UD "+want] {
			t.Errorf("no queue pair was ever in %s: %v", want, seen)
		}
	}
	for _, q := range qps {
		_ = q.Close()
	}
	check()
	if n := dev.Snapshot(false).Resources["qp"]; n != 0 {
		t.Errorf("%d queue pairs of none", n)
	}
}
