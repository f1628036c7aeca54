package verbs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// plan reads the rules of a plan, each on a line of its own.
func plan(t testing.TB, rules ...string) *faultplan.Plan {
	t.Helper()
	p, err := faultplan.Parse("plan", []byte("seed: 5\nrules:\n- {"+strings.Join(rules, "}\n- {")+"}\n"))
	must(t, err)
	return p
}

// planned connects two devices in memory; a follows a plan.
func planned(t testing.TB, rules ...string) ends {
	t.Helper()
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x, Faults: plan(t, rules...)}), ib.RC)
	b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y}), ib.RC)
	join(t, a, b)
	quickTimeout(t, a)
	quickTimeout(t, b)
	return ends{a, b}
}

func hits(t testing.TB, d *verbs.Device) uint64 {
	t.Helper()
	r, ok := d.Faults()
	if !ok {
		t.Fatal("the device has no plan")
	}
	var n uint64
	for _, x := range r.Rules {
		if x.Hits > x.Met {
			t.Errorf("%+v: acted on more than it met", x)
		}
		n += x.Hits
	}
	return n
}

// traffic writes messages of several packets from a to b and reads them back;
// every byte must be right, and each request completes once with success.
func (p ends) traffic(t testing.TB, messages int) {
	t.Helper()
	const n = 20_000
	for i := range messages {
		src, sink := p.a.mr.Bytes()[:n], p.a.mr.Bytes()[n:2*n]
		fill(src, uint64(i))
		clear(sink)
		for _, wr := range []ib.SendWR{
			{Op: ib.Write, SGL: p.a.mr.SGE(0, n), Remote: p.a.peer.At(0)},
			{Op: ib.Read, SGL: p.a.mr.SGE(n, n), Remote: p.a.peer.At(0)},
		} {
			wr.Flags, wr.ID = ib.Signaled, uint64(i)
			must(t, p.a.qp.PostSend(wr))
			if wc := p.a.await(t); wc.Status != ib.Success || wc.ID != uint64(i) {
				t.Fatalf("message %d: %+v", i, wc)
			}
		}
		if !bytes.Equal(src, sink) {
			t.Fatalf("message %d came back changed", i)
		}
	}
}

// Whatever a plan does to packets, a reliable connection delivers exact bytes,
// and a counter tells.
func TestPlanOfPackets(t *testing.T) {
	for _, c := range []struct{ rule, tells string }{
		{"inject: lose, probability: 2%, direction: both", "retransmitted"},
		{"inject: lose, opcode: ack, every: 3", "local_ack_timeout_err"},
		{"inject: lose, opcode: read-response, position: middle, every: 10", "implied_nak_seq_err"},
		{"inject: lose, position: middle, direction: out, opcode: write, every: 10", "packet_seq_err"},
		{"inject: duplicate, every: 3", ""},
		{"inject: duplicate, every: 3, direction: out", ""},
		{"inject: reorder, every: 7, direction: both, count: 20", ""},
		{"inject: delay, delay: 2ms, every: 20", ""},
		{"inject: corrupt, every: 50, direction: both", "retransmitted"},
		{"inject: lose, qp: 1, direction: out, nth: 3", "packet_seq_err"},
		{"inject: partition, peer: 127.0.0.2, after: 50, for: 30", "local_ack_timeout_err"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			e := planned(t, c.rule)
			e.traffic(t, 12)
			if n := hits(t, e.a.dev); n == 0 {
				t.Error("the plan did nothing")
			}
			if c.tells == "" {
				return
			}
			now := e.a.qp.Counters()
			if n, _ := now.Get(c.tells); n == 0 {
				t.Errorf("%s is 0", c.tells)
			}
		})
	}
}

// A rule for another queue pair, peer or device does nothing.
func TestPlanForOthers(t *testing.T) {
	e := planned(t, "inject: lose, qp: 2, direction: both", "inject: partition, peer: 10.9.9.9", "inject: lose, device: other", "inject: kill, call: post_send, qp: 2")
	e.traffic(t, 2)
	if n := hits(t, e.a.dev); n != 0 {
		t.Errorf("%d injected", n)
	}
}

// A mark makes no difference to a program; the counter is that of the receiver.
func TestPlanMarks(t *testing.T) {
	e := planned(t, "inject: mark")
	e.traffic(t, 2)
	now := e.a.dev.Counters()
	if n, _ := now.Get("ecn_marked_rx"); n != hits(t, e.a.dev) {
		t.Errorf("%d marked packets counted, %d injected", n, hits(t, e.a.dev))
	}
}

// The n-th post fails as the plan says, is not carried out, and loses nothing
// else: those before and after it complete.
func TestPlanFailsPosts(t *testing.T) {
	e := planned(t, "inject: fail, call: post_send, error: ENOMEM, nth: 3")
	wrs := make([]ib.SendWR, 5)
	for i := range wrs {
		fill(e.a.mr.Bytes()[i*1000:][:1000], uint64(i))
		wrs[i] = ib.SendWR{ID: uint64(i), Op: ib.Write, Flags: ib.Signaled, SGL: e.a.mr.SGE(i*1000, 1000), Remote: e.a.peer.At(i * 1000)}
	}
	n, err := e.a.qp.PostSendBatch(wrs)
	var pe *verbs.PostError
	if n != 2 || !errors.Is(err, syscall.ENOMEM) || !errors.Is(err, verbs.ErrInjected) || !errors.Is(err, verbs.ErrQueueFull) || !errors.As(err, &pe) || pe.Index != 2 {
		t.Fatalf("posted %d, error %v", n, err)
	}
	if n, err := e.a.qp.PostSendBatch(wrs[3:]); n != 2 || err != nil {
		t.Fatalf("posted %d, error %v", n, err)
	}
	for _, id := range []uint64{0, 1, 3, 4} {
		if wc := e.a.await(t); wc.ID != id || wc.Status != ib.Success {
			t.Errorf("completion %+v, want of %d", wc, id)
		}
	}
	b := e.b.mr.Bytes()
	if !bytes.Equal(b[:2000], e.a.mr.Bytes()[:2000]) || !bytes.Equal(b[3000:5000], e.a.mr.Bytes()[3000:5000]) || !bytes.Equal(b[2000:3000], make([]byte, 1000)) {
		t.Error("the memory is not what was posted")
	}
	e.traffic(t, 2)
}

func TestPlanFailsReceives(t *testing.T) {
	e := planned(t, "inject: fail, call: post_recv, error: EINVAL, every: 2")
	for i := range 4 {
		err := e.a.qp.PostRecv(ib.RecvWR{ID: uint64(i), SGL: e.a.mr.SGE(i*100, 100)})
		if want := i%2 == 1; errors.Is(err, verbs.ErrInvalid) != want || errors.Is(err, verbs.ErrInjected) != want {
			t.Errorf("receive %d: %v", i, err)
		}
	}
	for _, id := range []uint64{0, 2} {
		fill(e.b.mr.Bytes()[:100], id)
		e.b.send(t, 0, 100)
		if wc := e.a.await(t); wc.ID != id || wc.Status != ib.Success || !bytes.Equal(e.a.mr.Bytes()[id*100:][:100], e.b.mr.Bytes()[:100]) {
			t.Errorf("receive of %d: %+v", id, wc)
		}
		e.b.await(t)
	}
}

// The n-th completion says what the plan says, and the queue pair goes to Error
// as that of an RNIC; with keep_qp nothing else is changed.
func TestPlanFailsCompletions(t *testing.T) {
	e := planned(t, "inject: fail, call: poll, opcode: write, nth: 2, status: RETRY_EXC_ERR, keep_qp: true")
	for i := range 3 {
		fill(e.a.mr.Bytes()[:5000], uint64(i))
		must(t, e.a.qp.PostSend(ib.SendWR{ID: uint64(i), Op: ib.Write, Flags: ib.Signaled, SGL: e.a.mr.SGE(0, 5000), Remote: e.a.peer.At(0)}))
		want := ib.Success
		if i == 1 {
			want = ib.RetryExcErr
		}
		if wc := e.a.await(t); wc.Status != want || wc.ID != uint64(i) {
			t.Errorf("completion %d: %+v, want %v", i, wc, want)
		}
		if !bytes.Equal(e.a.mr.Bytes()[:5000], e.b.mr.Bytes()[:5000]) {
			t.Errorf("write %d did not arrive", i)
		}
	}
	if s := e.a.qp.State(); s != ib.RTS {
		t.Errorf("state %v", s)
	}
	e.traffic(t, 2)

	e = planned(t, "inject: fail, call: poll, status: REM_ACCESS_ERR, nth: 1")
	must(t, e.a.qp.PostSend(ib.SendWR{ID: 1, Op: ib.Write, Flags: ib.Signaled, SGL: e.a.mr.SGE(0, 10), Remote: e.a.peer.At(0)}))
	if wc := e.a.await(t); wc.Status != ib.RemAccessErr {
		t.Errorf("completion %+v", wc)
	}
	if s := e.a.qp.State(); s != ib.Error {
		t.Errorf("state %v", s)
	}
	must(t, e.a.qp.PostSend(ib.SendWR{ID: 2, Op: ib.Write, SGL: e.a.mr.SGE(0, 10), Remote: e.a.peer.At(0)}))
	if wc := e.a.await(t); wc.Status != ib.WRFlushErr || wc.ID != 2 {
		t.Errorf("completion %+v", wc)
	}
}

// A queue pair that is killed at a call has posted what was before, and what is
// posted afterwards is flushed.
func TestPlanKillsAtPost(t *testing.T) {
	e := planned(t, "inject: kill, call: post_send, qp: 1, nth: 3")
	for i := range 5 {
		must(t, e.a.qp.PostSend(ib.SendWR{ID: uint64(i), Op: ib.Write, Flags: ib.Signaled, SGL: e.a.mr.SGE(0, 100), Remote: e.a.peer.At(0)}))
	}
	for i := range uint64(5) {
		wc := e.a.await(t)
		if wc.ID != i || i >= 3 && wc.Status != ib.WRFlushErr || wc.Status != ib.Success && wc.Status != ib.WRFlushErr {
			t.Errorf("completion %d: %+v", i, wc)
		}
	}
	if s := e.a.qp.State(); s != ib.Error {
		t.Errorf("state %v", s)
	}
}

// A kill at an instant flushes what is posted; a program that waits hears of it.
func TestPlanKillsAtInstant(t *testing.T) {
	e := planned(t, "inject: kill, after: 300ms, qp: 1")
	must(t, e.a.qp.PostRecv(ib.RecvWR{ID: 9, SGL: e.a.mr.SGE(0, 100)}))
	if wc := e.a.await(t); wc.Status != ib.WRFlushErr || wc.ID != 9 {
		t.Errorf("completion %+v", wc)
	}
	if s, n := e.a.qp.State(), hits(t, e.a.dev); s != ib.Error || n != 1 {
		t.Errorf("state %v, %d kills", s, n)
	}
}

// Every control call fails when the plan says so, once, and works then.
func TestPlanFailsControlCalls(t *testing.T) {
	x, _ := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	var rules []string
	for _, call := range []string{"alloc_pd", "reg_mr", "create_cq", "create_qp", "create_srq", "create_ah", "modify_qp"} {
		rules = append(rules, "inject: fail, error: ENOMEM, nth: 1, call: "+call)
	}
	var report bytes.Buffer
	dev, err := verbs.Open(verbs.Config{Addr: addrA, Link: x, Faults: plan(t, rules...), FaultReport: &report})
	must(t, err)
	pd := dev.AllocPD()
	var cq *verbs.CQ
	var qp *verbs.QP
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"alloc_pd", func() (err error) {
			_, err = pd.RegisterMR(nil, ib.LocalWrite) // tells why there is no PD
			pd = dev.AllocPD()
			return err
		}},
		{"reg_mr", func() error { _, err := pd.RegisterMR(make([]byte, 10), ib.LocalWrite); return err }},
		{"create_cq", func() (err error) { cq, err = dev.CreateCQ(verbs.CQConfig{}); return err }},
		{"create_qp", func() (err error) {
			qp, err = pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq})
			return err
		}},
		{"create_srq", func() error { _, err := pd.CreateSRQ(verbs.SRQConfig{}); return err }},
		{"create_ah", func() error { _, err := pd.CreateAH(ib.AV{DGID: ib.GIDFromAddr(addrB)}); return err }},
		{"modify_qp", func() error { return qp.ToInitUD(5) }},
	} {
		if c.name == "create_qp" && cq == nil {
			t.Fatal("no CQ")
		}
		err := c.call()
		if !errors.Is(err, verbs.ErrInjected) || !errors.Is(err, syscall.ENOMEM) || !errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.name == "alloc_pd" {
			continue
		}
		if err := c.call(); err != nil {
			t.Errorf("second %s: %v", c.name, err)
		}
	}
	must(t, dev.Close())
	if s := report.String(); strings.Count(s, ": 1 of ") != len(rules) || !strings.Contains(s, "seed 5") {
		t.Errorf("the report says\n%s", s)
	}
}

func TestPlanFailsOpen(t *testing.T) {
	_, err := verbs.Open(verbs.Config{Addr: addrA, Port: testPort, Faults: plan(t, "inject: fail, call: open, error: ENODEV")})
	if !errors.Is(err, verbs.ErrInjected) || !errors.Is(err, syscall.ENODEV) || !errors.Is(err, verbs.ErrNoDevice) {
		t.Errorf("error %v", err)
	}
}

// The environment gives a plan to every device without one.
func TestPlanOfTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	must(t, os.WriteFile(file, []byte("rules: [{inject: fail, call: open, error: EIO}]"), 0o600))
	t.Setenv(verbs.FaultsEnv, file)
	if _, err := verbs.Open(verbs.Config{Addr: addrA, Port: testPort}); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	must(t, os.WriteFile(file, []byte("rules: [{inject: nonsense}]"), 0o600))
	if _, err := verbs.Open(verbs.Config{Addr: addrA, Port: testPort}); !errors.Is(err, faultplan.ErrPlan) || !strings.Contains(err.Error(), file+":1:18") {
		t.Errorf("error %v", err)
	}
	// A plan of its own goes before.
	dev := open(t, verbs.Config{Addr: addrA, Port: testPort, Faults: &faultplan.Plan{}})
	if r, ok := dev.Faults(); !ok || len(r.Rules) != 0 {
		t.Errorf("report %+v", r)
	}
}
