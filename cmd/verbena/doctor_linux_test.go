package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// connected makes another queue pair at each end, connected with a traffic class and a
// path MTU.
func (p *ownPair) connected(t *testing.T, class uint8, mtu ib.MTU) (num ib.QPN) {
	t.Helper()
	var qps [2]*verbs.QP
	for i := range qps {
		var err error
		if qps[i], err = p.dev[i].AllocPD().CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: p.cq[i], RecvCQ: p.cq[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range qps {
		far := p.dev[1-i].GIDs()[0]
		path := verbs.Path{DestQPN: qps[1-i].Num(), GID: far.GID, MTU: mtu, TrafficClass: class}
		if err := errors.Join(q.ToInit(ib.AccessAll), q.ToRTR(path), q.ToRTS(path)); err != nil {
			t.Fatal(err)
		}
	}
	return qps[0].Num()
}

// What a device of ours tells by its control socket of each queue pair is what rules
// need that the kernel's list of queue pairs does not have.
func TestDoctorOwnDevice(t *testing.T) {
	p := newOwnPair(t, 14827, "127.0.0.175", "127.0.0.176")
	h := hostFlags{sysfsRoot: "/sys", procRoot: "/proc", pid: os.Getpid()}
	live, err := h.live()
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	look := func(change func(*snapshot.Snapshot, *snapshot.Device)) *doctor.Report {
		t.Helper()
		s := read.Host(live, read.Options{})
		i := slices.IndexFunc(s.Devices, func(d snapshot.Device) bool {
			return d.Kind == snapshot.Verbena && d.PID == os.Getpid() && len(d.Ports[0].GIDs) > 0 && strings.HasSuffix(d.Ports[0].GIDs[0].GID, "7f00:00af")
		})
		if i < 0 {
			t.Fatalf("no device with 127.0.0.175 in %d devices", len(s.Devices))
		}
		s.Devices = s.Devices[i : i+1]
		change(s, &s.Devices[0])
		return doctor.Examine(doctor.Input{Host: snapshot.Window{After: s}, Prio: -1}, rules)
	}
	// The interface below gets a network card's settings: PFC on priority 3, DSCP 26 to it.
	lossless := func(s *snapshot.Snapshot, d *snapshot.Device) {
		d.Ports[0].Netdev = snapshot.Known("eth0")
		s.Netdevs = []snapshot.Netdev{{Name: "eth0", MTU: snapshot.Known(9000), DCB: snapshot.DCB{
			PFC: snapshot.Known(snapshot.PFC{Cap: 8, Enabled: [8]bool{3: true}}), Apps: snapshot.Known([]snapshot.DCBApp{{Selector: "dscp", Protocol: 26, Priority: 3}}),
		}}}
	}
	want := func(r *doctor.Report, rule, where, evidence string) {
		t.Helper()
		for _, f := range r.Findings {
			if f.Rule != rule || !strings.Contains(f.Where, where) {
				continue
			}
			for _, e := range f.Evidence {
				if e.What+"="+e.Value == evidence {
					return
				}
			}
		}
		t.Errorf("no finding of %s at %q by %s: %+v", rule, where, evidence, r.Findings)
	}
	// The pair of newOwnPair has traffic class 0: nothing but its queue pair tells so.
	want(look(lossless), "L05", "/1", "netdev.app_dscp=0")
	// A second one that is right: the first is the odd one and is named.
	good := p.connected(t, 106, ib.MTU4096)
	r := look(lossless)
	want(r, "L05", "QP", "qp.traffic_class=0")
	for _, f := range r.Findings {
		if f.Rule == "L05" && slices.ContainsFunc(f.Places, func(s string) bool { return strings.HasSuffix(s, " "+good.String()) }) {
			t.Errorf("L05 at the queue pair with traffic class 106: %+v", f)
		}
	}
	// The path MTU against what the port says now: the interface was made smaller.
	want(look(func(s *snapshot.Snapshot, d *snapshot.Device) {
		lossless(s, d)
		d.Ports[0].ActiveMTU = snapshot.Known(1024)
	}), "L13", "QP", "qp.path_mtu=4096")
	// The row that they use, by what the table says of it.
	want(look(func(s *snapshot.Snapshot, d *snapshot.Device) {
		lossless(s, d)
		d.Ports[0].GIDs[0].Type = snapshot.Known("IB/RoCE v1")
	}), "L14", "/1", "port.gid_index=0")
}
