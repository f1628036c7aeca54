package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
)

// A flow that can go on no more says what for, also where the run ends before
// anybody had looked at it for long.
func TestSilenceHasACause(t *testing.T) {
	const base = "topology: {kind: star, hosts: 3, rate: 100Gbps, delay: 100ns}\n"
	for _, x := range []struct{ name, text, want string }{
		{"sender without link", "workload: [{kind: long, src: host0, dst: host1, bytes: 1MB}]\nfaults: [{at: 0, kind: link-down, where: host0}]\n", "link down"},
		{
			"... from the middle on",
			"workload: [{kind: long, src: host0, dst: host1, bytes: 1MB}]\nhost: {rdma: {timeout_exp: 0}}\nfaults: [{at: 3us, kind: link-down, where: host0}]\n", "link down",
		},
		{
			"lost for ever", "workload: [{kind: long, src: host0, dst: host1, bytes: 100B}]\nhost: {rdma: {timeout_exp: 0}}\nfaults: [{at: 0, kind: drop-next, where: host0}]\n",
			"waits for an acknowledgement",
		},
		{
			"a READ's request lost for ever", "workload: [{kind: long, src: host0, dst: host1, bytes: 100B, op: read}]\nhost: {rdma: {timeout_exp: 0}}\nfaults: [{at: 0, kind: drop-next, where: host0}]\n",
			"waits for an acknowledgement",
		},
	} {
		r := loaded(t, base+x.text)
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		res := r.Result()
		for _, b := range res.Breaches {
			t.Errorf("%s: %s: %s", x.name, b.Rule, b.Detail)
		}
		if f := &res.Flows[0]; f.State != result.Running || f.Silent != x.want {
			t.Errorf("%s: state %d, silent: %q, want %q", x.name, f.State, f.Silent, x.want)
		}
	}
}

// When a queue pair fails, all that was to go over it fails: what is posted, what
// waits for room, and what starts later; nothing waits for ever.
func TestFailedQueuePairsFailAllTheirFlows(t *testing.T) {
	for _, more := range []string{
		"one_qp: true", "one_qp: true, message: 1000B", "one_qp: true, op: read", "one_qp: true, op: send, qps: 3",
		"message: 1000B", "op: read, message: 1000B, qps: 2",
	} {
		r := loaded(t, `
topology: {kind: star, hosts: 2, delay: 100ns}
host: {dcqcn: {preset: off}, rdma: {timeout_exp: 1, retry_cnt: 1}}
faults: [{at: 2us, kind: errors, where: host1, error_rate: 1}]
workload: [{kind: bursts, src: host0, dst: host1, bytes: 100KB, every: 10ns, count: 60, `+more+"}]\n")
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		res := r.Result()
		for _, b := range res.Breaches {
			t.Errorf("%s: %s: %s", more, b.Rule, b.Detail)
		}
		for i := range res.Flows {
			if f := &res.Flows[i]; f.State != result.Failed || f.Status == "" {
				t.Errorf("%s: flow %d: state %d %q", more, i, f.State, f.Status)
			}
		}
	}
}
