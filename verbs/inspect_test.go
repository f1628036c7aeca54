package verbs_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/diag/control"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/verbs"
)

// What a snapshot says is what the objects themselves say.
func TestSnapshotTellsWhatWasMade(t *testing.T) {
	rules, err := fault.Parse("drop 1%")
	if err != nil {
		t.Fatal(err)
	}
	open := func(addr string) *verbs.Device {
		d, err := verbs.Open(verbs.Config{
			Addr: netip.MustParseAddr(addr), Port: 47911, Control: verbs.ControlOff,
			DCQCN: verbs.DCQCN{Preset: "paper", LineRate: 10e9},
			Wrap: func(l link.Link) link.Link {
				f, err := fault.New(l, fault.Config{Rules: rules, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				return f
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	d, peer := open("127.0.0.91"), open("127.0.0.92")
	make1 := func(d *verbs.Device) (*verbs.PD, *verbs.CQ, *verbs.QP) {
		pd := d.AllocPD()
		cq, err := d.CreateCQ(verbs.CQConfig{Depth: 77})
		if err != nil {
			t.Fatal(err)
		}
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		return pd, cq, qp
	}
	pd, cq, qp := make1(d)
	_, _, far := make1(peer)
	mr, err := pd.RegisterMR(make([]byte, 4096), ib.LocalWrite|ib.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	srq, err := pd.CreateSRQ(verbs.SRQConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := d.Snapshot(true)
	if q := s.QPs.Or(nil); len(q) != 1 || q[0].State != "RESET" || q[0].RQPN.Or(1) != 0 {
		t.Errorf("before it is connected: %+v", q)
	}
	path := func(self, to *verbs.QP, gid ib.GID) verbs.Path {
		return verbs.Path{DestQPN: to.Num(), GID: gid, PSN: 5, LocalPSN: 9, MTU: ib.MTU1024, TrafficClass: 104}
	}
	if err := qp.ToInit(0); err != nil {
		t.Fatal(err)
	}
	p := path(qp, far, peer.GIDs()[0].GID)
	if err := qp.ToRTR(p); err != nil {
		t.Fatal(err)
	}
	if err := qp.ToRTS(p); err != nil {
		t.Fatal(err)
	}
	s = d.Snapshot(true)
	if s.Name != d.Name() || s.Kind != snapshot.Verbena || len(s.Ports) != 1 || len(s.Ports[0].GIDs) != len(d.GIDs()) {
		t.Errorf("device: %+v", s)
	}
	for kind, n := range map[string]uint64{"qp": 1, "cq": 1, "mr": 1, "pd": 1, "srq": 1, "cm_id": 0, "ctx": 1} {
		if s.Resources[kind] != n {
			t.Errorf("resources: %d of %s, want %d", s.Resources[kind], kind, n)
		}
	}
	q := s.QPs.Or(nil)[0]
	at := qp.Query()
	for _, x := range []struct {
		what      string
		got, want any
	}{
		{"state", q.State, "RTS"},
		{"type", q.Type, "RC"},
		{"lqpn", ib.QPN(q.LQPN), qp.Num()},
		{"rqpn", ib.QPN(q.RQPN.Or(0)), far.Num()},
		{"sq_psn", q.SQPSN.Or(0), uint32(9)},
		{"rq_psn", q.RQPSN.Or(0), uint32(5)},
		{"path mtu", q.PathMTU.Or(0), at.PathMTU.Bytes()},
		{"path mtu", q.PathMTU.Or(0), 1024},
		{"traffic class", q.TrafficClass.Or(0), 104},
		{"gid index", q.GIDIndex.Or(-1), at.AV.SGIDIndex},
		{"remote gid", q.RemoteGID.Or(""), "0000:0000:0000:0000:0000:ffff:7f00:005c"},
		{"cq depth", s.CQs.Or(nil)[0].CQE, uint32(cq.Depth())},
		{"cq users", s.CQs.Or(nil)[0].Users.Or(0), uint64(2)},
		{"mr length", s.MRs.Or(nil)[0].Length, uint64(4096)},
		{"mr iova", s.MRs.Or(nil)[0].IOVA.Or(0), mr.Addr()},
		{"srq", s.SRQs.Or(nil)[0].SRQN, srq.Number()},
		{"pd users", s.PDs.Or(nil)[0].Users.Or(0), uint64(3)},
		{"fault", s.Faults[0].Rule, rules[0].String()},
		{"line rate", q.Reaction.LineRate, uint64(10e9)},
		{"rate", q.Reaction.Rc, uint64(10e9)},
		{"phase", q.Reaction.Phase, qp.Congestion().Phase.String()},
	} {
		if x.got != x.want {
			t.Errorf("%s is %v, want %v", x.what, x.got, x.want)
		}
	}
	if port := q.SourcePort.Or(0); port < 0xC000 {
		t.Errorf("source port is %d", port)
	}
	if len(s.MRs.Or(nil)) == 1 && (s.MRs.Or(nil)[0].LKey.IsKnown() || s.MRs.Or(nil)[0].RKey.IsKnown()) {
		t.Error("keys are told")
	}
	// It is the same after a journey as JSON.
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back snapshot.Device
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != string(b) {
		t.Errorf("JSON changes:\n%s\n%s", b, again)
	}
	d.Close()
	if s = d.Snapshot(true); len(s.QPs.Or(nil)) != 0 || s.Ports[0].State.Or(0) != int(verbs.PortDown) {
		t.Errorf("after Close: %+v", s)
	}
}

// A device is seen while it is open, and not if nobody wants that.
func TestControlSocketOfADevice(t *testing.T) {
	find := func(name string) (n int) {
		list, err := control.Devices(control.Query{Resources: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			if d.Name == name {
				n++
			}
		}
		return n
	}
	open := func(name string, c verbs.Control) *verbs.Device {
		d, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.93"), Port: 47912, Name: name, Control: c})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		name string
		env  string
		how  verbs.Control
		want int
	}{
		{"seen_auto", "", verbs.ControlAuto, 1},
		{"seen_env_off", "off", verbs.ControlAuto, 0},
		{"seen_off", "", verbs.ControlOff, 0},
		{"seen_on", "off", verbs.ControlOn, 1},
	} {
		t.Setenv("VERBENA_CONTROL", c.env)
		d := open(c.name, c.how)
		if n := find(c.name); n != c.want {
			t.Errorf("%s: found %d times while open, want %d", c.name, n, c.want)
		}
		d.Close()
		if n := find(c.name); n != 0 {
			t.Errorf("%s: found %d times after Close", c.name, n)
		}
	}
}
