package fabric

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/explain"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// Causes that are known from the settings are what the explanation names.
func TestKnownCausesAreNamed(t *testing.T) {
	for _, x := range []struct{ name, text, want string }{
		{
			"ACK timeout of 8 us under an incast of 164 us each", `
topology: {kind: star, hosts: 9}
host: {rdma: {timeout_exp: 1}, dcqcn: {preset: off}}
workload: [{kind: incast, src: host1..host8, dst: host0, bytes: 2MB}]
`, "raise the ACK timeout",
		},
		{
			"slow receiver", `
topology: {kind: star, hosts: 3}
hosts: [{match: host0, nic: {pcie_rate: 10Gbps}}]
host: {dcqcn: {preset: off}}
workload: [{kind: incast, src: host1..host2, dst: host0, bytes: 2MB}]
`, "slow receiver host0",
		},
		{
			"link of a sender", `
topology: {kind: star, hosts: 2}
host: {rdma: {timeout_exp: 0}}
workload: [{kind: long, src: host0, dst: host1, bytes: 1MB}]
faults: [{at: 10us, kind: link-down, where: host0}]
`, "the link at host0:eth0 was down",
		},
	} {
		r := loaded(t, x.text)
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		story := explain.Explain(r.Result())
		if err := story.Text(&b, 1000); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ToLower(b.String()), strings.ToLower(x.want)) {
			t.Errorf("%s: no word of %q in\n%s", x.name, x.want, b.String())
		}
	}
}

// The rate limit of a flow's queue pairs is known of it.
func TestFlowsKnowTheirRateLimit(t *testing.T) {
	r := loaded(t, "topology: {kind: star, hosts: 2}\nworkload: [{kind: long, src: host0, dst: host1, bytes: 1MB, rate: 5Gbps, qps: 2}]\n")
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if f := &r.Result().Flows[0]; f.RateLimit != 10*sim.Gbps {
		t.Errorf("limit %v, want 2 queue pairs of 5 Gb/s", f.RateLimit)
	}
}
