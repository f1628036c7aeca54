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
