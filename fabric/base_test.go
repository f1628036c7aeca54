package fabric

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Where answers come another way than the data go, the completion time on an
// idle network counts the links of both. In a one-way ring of four the data of
// host0 pass a trunk on the way to host1, and the answer three.
func TestBaseOfOneWayRoutes(t *testing.T) {
	// At 10 Gb/s, 0.8 ns a byte: 1,024 + 62 B, with a RETH 16 and with an AETH 4
	// more; an acknowledgement of 62 + 4 B and a READ's request of 62 + 16 B.
	for _, x := range []struct {
		op           string
		there, back  int // links
		frame, reply sim.Time
	}{
		{"write", 3, 5, 881_600, 52_800},
		{"send", 3, 5, 868_800, 52_800},
		{"read", 5, 3, 872_000, 62_400},
	} {
		r := loaded(t, fmt.Sprintf(`
topology: {kind: ring, switches: 4, hosts_per_switch: 1, one_way: true, rate: 10Gbps, delay: 5us}
packet: {mtu: 1024}
host: {dcqcn: {preset: off}}
workload: [{kind: long, src: host0, dst: host1, bytes: 1024B, op: %s}]
`, x.op))
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		f := &r.Result().Flows[0]
		want := sim.Time(x.there)*(x.frame+5*sim.Microsecond) + sim.Time(x.back)*(x.reply+5*sim.Microsecond)
		if f.State != result.Finished || f.Base != want || f.FCT() < f.Base || f.FCT() > f.Base+sim.Nanosecond {
			t.Errorf("%s: took %d ps, base %d, want %d", x.op, f.FCT(), f.Base, want)
		}
	}
}

// Messages that are shorter than a packet are a packet each, with all of its
// headers.
func TestBaseOfShortMessages(t *testing.T) {
	for op, first := range map[string]int{"write": 16, "send": 0} {
		r := loaded(t, fmt.Sprintf(`
topology: {kind: star, hosts: 2, rate: 10Gbps, delay: 0}
host: {dcqcn: {preset: off}, rdma: {message: 100B}}
workload: [{kind: long, src: host0, dst: host1, bytes: 1000B, op: %s}]
`, op))
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		// Ten frames of 100 + 62 B and the RETH on the first link, the last of them
		// and an acknowledgement of 66 B on the second and back: 0.8 ns a byte.
		want := sim.Time(800 * (11*(162+first) + 2*66))
		if f := &r.Result().Flows[0]; f.Base != want || f.FCT() < want || f.FCT() > want+want/10 {
			t.Errorf("%s: took %d ps, base %d, want %d", op, f.FCT(), f.Base, want)
		}
	}
}

// What arrives for a READ that has failed is nobody's.
func TestReadsThatFailTakeNothing(t *testing.T) {
	r := loaded(t, `
topology: {kind: star, hosts: 2, rate: 1Gbps, delay: 20us}
host: {rdma: {timeout_exp: 1, retry_cnt: 1}}
workload: [{kind: bursts, src: host0, dst: host1, bytes: 8333B, every: 10us, count: 20, op: read, one_qp: true}]
duration: 5ms
`)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	res := r.Result()
	for _, b := range res.Breaches {
		t.Errorf("%s: %s", b.Rule, b.Detail)
	}
	for i := range res.Flows {
		if f := &res.Flows[i]; f.State != result.Failed || f.Delivered > f.Bytes {
			t.Errorf("flow %d: state %d, %d bytes of %d", i, f.State, f.Delivered, f.Bytes)
		}
	}
}
