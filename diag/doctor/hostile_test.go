package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// large is a host of 16 devices with 10,000 queue pairs and regions each, and a peer of
// the same size.
func large(devices, qps int) *world {
	w := newWorld()
	for _, h := range []*snapshot.Snapshot{w.before, w.after, w.peerBefore, w.peerAfter} {
		h.Devices, h.Netdevs = h.Devices[:1], h.Netdevs[:1]
		for i := range devices {
			if i > 0 {
				h.Devices = append(h.Devices, goodDevice(i, 1))
				h.Netdevs = append(h.Netdevs, goodNetdev(i, 1))
			}
			q := make([]snapshot.QP, qps)
			m := make([]snapshot.MR, qps)
			for j := range q {
				q[j] = snapshot.QP{Port: 1, LQPN: uint32(j + 16), Type: "RC", State: "INIT", PathMTU: snapshot.Known(4096), GIDIndex: snapshot.Known(3)}
				m[j] = snapshot.MR{MRN: uint32(j), Length: 4096}
			}
			h.Devices[i].QPs, h.Devices[i].MRs = snapshot.Known(q), snapshot.Known(m)
		}
	}
	return w
}

// The work of an examination grows with the queue pairs, not with their square: ten
// times as many cost about ten times as many readings.
func TestManyQueuePairs(t *testing.T) {
	rules := builtin(t)
	r := doctor.Examine(large(16, 10_000).input(), rules)
	passed := 0
	for _, f := range r.Passed {
		if f.Rule == "L13" && strings.Contains(f.Where, " QP ") {
			passed++
		}
	}
	if passed != 160_000 {
		t.Errorf("%d queue pairs judged, want 160,000", passed)
	}
}

func BenchmarkExamine(b *testing.B) {
	rules, err := doctor.Builtin()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("16x%d", n), func(b *testing.B) {
			in := large(16, n).input()
			for b.Loop() {
				doctor.Examine(in, rules)
			}
		})
	}
}
