package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// A flap is two outages, whichever end reports it; repeated reports are one.
func TestOutages(t *testing.T) {
	f := star(2)
	sw := f.leaf[0]
	f.r.Links = []result.LinkChange{
		{At: us, Node: sw, Port: 1},
		{At: us, Node: f.host[1], Port: 0},
		{At: 3 * us, Node: f.host[1], Port: 0, Up: true},
		{At: 3 * us, Node: sw, Port: 1, Up: true},
		{At: 5 * us, Node: sw, Port: 1},
		{At: 6 * us, Node: 99, Port: 1},
	}
	a, b := Place{sw, 1, "leaf0:Ethernet1"}, Place{f.host[1], 0, "host1:eth0"}
	want := []Outage{{a, b, us, 3 * us}, {a, b, 5 * us, sim.Never}}
	if d := cmp.Diff(want, Explain(&f.r).Outages); d != "" {
		t.Error(d)
	}
}

// Without a route because the link is down: the link is the cause.
func TestNoRouteBecauseLinkIsDown(t *testing.T) {
	f := dropping(50, 3, result.DropNoRoute)
	f.r.Links = []result.LinkChange{{At: 50 * us, Node: f.leaf[0], Port: 4}}
	s := Explain(&f.r)
	if s.Verdict.Main != MainLinkDown || s.Verdict.At.Name != "leaf0:Ethernet4" || !strings.Contains(s.Advice[0].Do, "mend the link at leaf0:Ethernet4") {
		t.Errorf("main %v at %s, advice %+v", s.Verdict.Main, s.Verdict.At, s.Advice)
	}
	if out := text(t, s); !strings.Contains(out, "leaf0:Ethernet4 – spine0:Ethernet0 from 50 us to the end of the run") {
		t.Error(out)
	}
}
