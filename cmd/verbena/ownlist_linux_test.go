package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// lineOf is a queue pair in the layout of rdma resource show qp, from what the device says.
func lineOf(dev *verbs.Device, q *verbs.QP) string {
	a := q.Query()
	link, peer := fmt.Sprintf("%s/%d", dev.Name(), a.Port), ""
	if a.Port == 0 {
		link = dev.Name() + "/-"
	}
	mig := ""
	if q.Type() != ib.UD {
		peer = fmt.Sprintf("rqpn %d ", a.DestQPN)
		mig = fmt.Sprintf("rq-psn %d sq-psn %d path-mig-state MIGRATED ", a.RQPSN, a.SQPSN)
	} else {
		mig = fmt.Sprintf("sq-psn %d ", a.SQPSN)
	}
	word := map[ib.QPState]string{ib.Reset: "RESET", ib.Init: "INIT", ib.RTR: "RTR", ib.RTS: "RTS", ib.SQD: "SQD", ib.SQE: "SQE", ib.Error: "ERR"}[a.State]
	return fmt.Sprintf("link %s lqpn %d %stype %v state %s %spdn ", link, q.Num(), peer, q.Type(), word, mig)
}

// The listings show the devices that a process holds: several of them, queue pairs in
// all states, memory regions, shared receive queues.
func TestListingsOfOwnDevices(t *testing.T) {
	p := newOwnPair(t, 14837, "127.0.0.173", "127.0.0.174")
	dev, pd := p.dev[0], p.qp[0].PD()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all := []*verbs.QP{p.qp[0]}
	make := func(typ ib.QPType) *verbs.QP {
		q, err := pd.CreateQP(verbs.QPConfig{Type: typ, SendCQ: p.cq[0], RecvCQ: p.cq[0]})
		must(err)
		all = append(all, q)
		return q
	}
	path := verbs.Path{GID: p.dev[1].GIDs()[0].GID, DestQPN: 77, PSN: 5, LocalPSN: 6}
	state := func(a ib.QPAttr) ib.QPAttr { a.Mask |= ib.AttrState; return a }
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, to := range []ib.QPState{ib.Reset, ib.Init, ib.RTR, ib.RTS, ib.SQD, ib.Error} {
			q := make(typ)
			if to == ib.Reset {
				continue
			}
			must(q.ToInit(ib.AccessAll))
			if to == ib.Error {
				must(q.ToError())
				continue
			}
			if to >= ib.RTR && to != ib.Init {
				must(q.ToRTR(path))
			}
			if to == ib.RTS || to == ib.SQD {
				must(q.ToRTS(path))
			}
			if to == ib.SQD {
				must(q.Modify(state(ib.QPAttr{State: ib.SQD})))
			}
		}
	}
	srq, err := pd.CreateSRQ(verbs.SRQConfig{})
	must(err)

	b, err := os.ReadFile("/proc/self/comm")
	must(err)
	owner := fmt.Sprintf("pid %d comm %s ", os.Getpid(), strings.TrimSuffix(string(b), "\n"))
	out := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), app{in: strings.NewReader(""), out: &stdout, err: &stderr}, args); status != 0 {
			t.Errorf("%v: status %d, %s", args, status, stderr.String())
		}
		return stdout.String()
	}
	lines := func(text string, of string) (kept []string) {
		for l := range strings.Lines(text) {
			if strings.Contains(l, of) {
				kept = append(kept, strings.TrimSuffix(l, "\n"))
			}
		}
		return kept
	}

	slices.SortFunc(all, func(a, b *verbs.QP) int { // without a port first, then by number
		if x, y := a.Query().Port, b.Query().Port; x != y {
			return int(x) - int(y)
		}
		return int(a.Num()) - int(b.Num())
	})
	var want []string
	for _, q := range all {
		want = append(want, lineOf(dev, q))
	}
	var got []string
	for _, l := range lines(out("rdma", "res", "show", "qp"), "link "+dev.Name()+"/") {
		if strings.Contains(l, " type GSI ") {
			continue
		}
		i := strings.Index(l, "pdn ")
		got = append(got, l[:i+4])
		if rest := l[i+4:]; !strings.HasSuffix(rest, " "+owner) {
			t.Errorf("%q does not end with %q", l, owner)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rdma res show qp: -device +listing\n%s", diff)
	}
	if n := len(lines(out("rdma", "res", "show", "qp", "state", "RTR"), "link "+dev.Name()+"/")); n != 3 {
		t.Errorf("%d queue pairs in RTR, want 3", n)
	}
	if l := lines(out("rdma", "res", "show", "mr"), "dev "+dev.Name()+" "); len(l) != 1 || !strings.Contains(l[0], " mrlen 65536 ") {
		t.Errorf("memory regions: %q", l)
	}
	if l := lines(out("rdma", "res", "show", "srq"), "dev "+dev.Name()+" "); len(l) != 1 || !strings.HasPrefix(l[0], fmt.Sprintf("dev %s srqn %d type BASIC ", dev.Name(), srq.Number())) {
		t.Errorf("shared receive queues: %q", l)
	}
	if l := lines(out("rdma", "res", "show", "cq"), "dev "+dev.Name()+" "); len(l) != 1 || !strings.Contains(l[0], " cqe 64 ") {
		t.Errorf("completion queues: %q", l)
	}
	for _, d := range p.dev {
		if l := lines(out("rdma", "link"), "link "+d.Name()+"/1 "); len(l) != 1 || !strings.Contains(l[0], " state ACTIVE physical_state LINK_UP ") {
			t.Errorf("link of %s: %q", d.Name(), l)
		}
		if l := lines(out("ibv_devices", "--kernel"), "    "+d.Name()+" "); len(l) != 1 {
			t.Errorf("ibv_devices: %s: %q", d.Name(), l)
		}
		if s := out("ibstat", "--kernel", d.Name(), "1"); !strings.HasPrefix(s, "CA: '"+d.Name()+"'\nPort 1:\nState: Active\nPhysical state: LinkUp\n") {
			t.Errorf("ibstat %s 1: %q", d.Name(), s)
		}
	}
	for _, what := range []string{"qp", "cq", "mr", "pd", "cm_id", "ctx", "srq"} {
		if s := out("rdma", "-j", "res", "show", what); !json.Valid([]byte(s)) {
			t.Errorf("rdma -j res show %s: %q", what, s)
		}
	}
}
