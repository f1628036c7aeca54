package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// A flow's NAKs and timeouts say why it sent something again: a gap that a later
// packet shows is told by a NAK; a loss that nothing follows, and packets that
// never get through, are found by the timer (IBA vol.1 9.7.6.1.3).
func TestWhyFlowsRetry(t *testing.T) {
	const base = `
topology: {kind: star, hosts: 2}
packet: {payload: 1000}
host: {dcqcn: {preset: off}, rdma: {ack_every: 1, timeout_exp: 6, retry_cnt: 3}}
workload: [{kind: long, src: host0, dst: host1, bytes: 20KB}]
duration: 50ms
`
	for _, x := range []struct {
		name, text           string
		naks, timeouts, more uint64 // more packets than the 20
		state                result.FlowState
	}{
		{"nothing lost", "", 0, 0, 0, result.Finished},
		// The first is lost, the second draws the NAK; all that left meanwhile goes again: the
		// whole message, as it is shorter than a round trip.
		{"a gap", "faults: [{at: 0s, kind: drop-next, where: host1, what: data, count: 1}]\n", 1, 0, 20, result.Finished},
		// Seven have arrived by then: 2 us, two packets, and one every 84 ns.
		{"the end", "faults: [{at: 2.7us, kind: drop-next, where: host1, what: data, count: 13}]\n", 0, 1, 13, result.Finished},
		{"the acknowledgements", "faults: [{at: 0s, kind: drop-next, where: host1, what: ack, count: 20}]\n", 0, 1, 20, result.Finished},
		{"everything", "switch: {mtu: 600}\n", 0, 4, 60, result.Failed},
	} {
		r := loaded(t, base+x.text)
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		f := &r.Result().Flows[0]
		if f.NAKs != x.naks || f.Timeouts != x.timeouts || f.State != x.state {
			t.Errorf("%s: %d NAKs, %d timeouts, state %d; want %d, %d, %d", x.name, f.NAKs, f.Timeouts, f.State, x.naks, x.timeouts, x.state)
		}
		if f.Packets != 20+x.more || f.Retransmitted != x.more {
			t.Errorf("%s: %d packets, %d again; want %d, %d", x.name, f.Packets, f.Retransmitted, 20+x.more, x.more)
		}
	}
}
