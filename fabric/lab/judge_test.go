package lab

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

func TestJudge(t *testing.T) {
	r := &result.Run{
		End:   10 * sim.Microsecond,
		Nodes: []result.Node{{Name: "sw0", Switch: true, Ports: []result.Port{{Name: "Ethernet0", Prio: [8]result.PortPrio{3: {PeakQueue: 5000}}}}}},
		Flows: []result.Flow{{Group: "f", State: result.Finished, Finish: 10 * sim.Microsecond, Bytes: 1000, Delivered: 1000, Marks: 7}},
	}
	for _, x := range []struct {
		expect string
		ok     bool
		fails  string
	}{
		{"{what: end, min: 10us}", true, ""},
		{"{what: end, min: 10.001us}", false, ""},
		{"{what: end, max: 0.01ms}", true, ""},
		{"{what: end, max: 9.999us}", false, ""},
		{"{what: end, near: 9us, within: 12%}", true, ""},
		{"{what: end, near: 9us, within: 11%}", false, ""},
		{"{what: end, near: 10us}", true, ""},
		{"{what: end, near: 10us, within: 5%, max: 9us}", false, ""},
		{"{what: flow.f.goodput, near: 800Mbps}", true, ""},
		{"{what: queue.sw0.Ethernet0.p3.max, min: 5KB, max: 5KB}", true, ""},
		{"{what: marks, max: 0}", true, ""},
		{"{what: flow.f.marks, max: 0}", false, ""},
		{"{what: end, min: 0}", true, ""}, // 0 needs no unit
		{"{what: end, min: 3KB}", false, "end is expected to be 3KB, which has another unit"},
		{"{what: flow.f.marks, max: 7us}", false, "flow.f.marks is expected to be 7us, which has another unit"},
		{"{what: flow.g.marks, max: 7}", false, `metric "flow.g.marks": no flow is of workload "g"`},
	} {
		sc, err := scenario.Parse("x.yaml", []byte("expect: ["+x.expect+"]"))
		if err != nil {
			t.Fatal(err)
		}
		o := Judge(r, &sc.Expect[0])
		if fails := o.Err != nil; o.OK != x.ok || fails != (x.fails != "") || fails && o.Err.Error() != x.fails {
			t.Errorf("%s: %v, %v; want %v, %q", x.expect, o.OK, o.Err, x.ok, x.fails)
		}
	}
}
