package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// await waits for the next completion of an end.
func await(e *end) ib.WC {
	wcs := make([]ib.WC, 1)
	_, err := e.cq.Wait(context.Background(), wcs)
	check(err)
	return wcs[0]
}

// A window of type 2 lends a part of a region to one peer. The peer gives it back with
// its last message: SEND with invalidate.
func ExampleQP_BindMW() {
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	a, b := p.a, p.b

	mw, err := b.pd.AllocMW(verbs.MWType2)
	check(err)
	key, err := b.qp.BindMW(mw, verbs.BindConfig{MR: b.mr, Off: 1024, Len: 16, Access: ib.RemoteWrite, Flags: ib.Signaled})
	check(err)
	wc := await(b) // a program tells the peer key and address now, by a SEND for instance
	fmt.Println(wc.Op, wc.Status)
	window := ib.Remote{Addr: b.mr.Addr() + 1024, RKey: key}

	check(b.qp.PostRecv(ib.RecvWR{SGL: b.mr.SGE(0, 64)}))
	n := copy(a.mr.Bytes(), "lent")
	check(a.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, n), Remote: window}))
	check(a.qp.PostSend(ib.SendWR{Op: ib.SendInv, Imm: uint32(key), Flags: ib.Signaled | ib.Inline, InlineData: []byte("done")}))
	wc = await(a)
	fmt.Println(wc.Op, wc.Status)
	wc = await(b)
	fmt.Printf("%v %v: %q; invalidated the window: %v\n", wc.Op, wc.Status, b.mr.Bytes()[1024:1024+n], wc.Flags&ib.WCWithInv != 0 && wc.Imm == uint32(key))

	check(a.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, n), Remote: window, Flags: ib.Signaled}))
	fmt.Println("the same key again:", await(a).Status)
	// Output:
	// BIND_MW SUCCESS
	// SEND SUCCESS
	// RECV SUCCESS: "lent"; invalidated the window: true
	// the same key again: REM_ACCESS_ERR
}

// Queue pairs that share their receives, and the event that says when to post more.
func ExamplePD_CreateSRQ() {
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	a, b := p.a, p.b
	srq, err := b.pd.CreateSRQ(verbs.SRQConfig{MaxWR: 64})
	check(err)
	for i := range 4 {
		check(srq.PostRecv(ib.RecvWR{ID: uint64(i), SGL: b.mr.SGE(64*i, 64)}))
	}
	check(srq.SetLimit(3)) // one event when fewer than 3 wait
	shared, err := b.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: b.cq, RecvCQ: b.cq, SRQ: srq})
	check(err)
	from, err := a.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: a.cq, RecvCQ: a.cq})
	check(err)
	joinPair(from, a.mr, shared, b.mr)

	for range 2 {
		check(from.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled | ib.Inline, InlineData: []byte("hello")}))
		await(a)
		wc := await(b)
		fmt.Printf("receive %d: %v, %d bytes\n", wc.ID, wc.Status, wc.Bytes)
	}
	ev, err := b.dev.NextEvent(context.Background())
	check(err)
	fmt.Println(ev.Type, ev.Element == srq.Number())
	// Output:
	// receive 0: SUCCESS, 5 bytes
	// receive 1: SUCCESS, 5 bytes
	// SRQ_LIMIT_REACHED true
}

// Datagrams to a multicast group: members attach their UD queue pairs, senders send to
// an address handle with the group's GID.
func ExampleQP_Attach() {
	const key = 0x1234 // all know it
	group := netip.MustParseAddr("239.1.2.3")
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	datagrams := func(e *end) *verbs.QP {
		qp, err := e.pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: e.cq, RecvCQ: e.cq})
		check(err)
		check(qp.ToInitUD(key))
		check(qp.ToRTR(verbs.Path{}))
		check(qp.ToRTS(verbs.Path{}))
		return qp
	}
	member := datagrams(p.b)
	check(member.PostRecv(ib.RecvWR{SGL: p.b.mr.SGE(0, 40+64)})) // the GRH, then the message
	check(member.Attach(group))

	sender := datagrams(p.a)
	ah, err := p.a.pd.CreateAH(ib.AV{DGID: ib.GIDFromAddr(group)})
	check(err)
	check(sender.PostSend(ib.SendWR{
		Op: ib.Send, Flags: ib.Inline, InlineData: []byte("to all"),
		UD: ib.Datagram{AH: ah.Handle(), QPN: ib.QPMulticast, QKey: key},
	}))
	wc := await(p.b)
	fmt.Printf("%v: %q, from the sender: %v\n", wc.Status, p.b.mr.Bytes()[40:wc.Bytes], wc.SrcQPN == sender.Num())
	check(member.Detach(group)) // before it is closed
	// Output:
	// SUCCESS: "to all", from the sender: true
}

// What a program sees when things go wrong: a plan in Go, for a test. The same plan as a
// YAML file is for any program: VERBENA_FAULTS=plan.yaml.
func ExampleConfig_faults() {
	plan := &faultplan.Plan{Name: "example", Seed: 7, Rules: []faultplan.Rule{
		{Name: "lossy", Action: faultplan.Lose, Direction: faultplan.Both, Nth: 2}, // the second packet each way
		{Name: "no memory", Action: faultplan.Fail, Call: faultplan.RegMR, Nth: 2, Errno: syscall.ENOMEM},
		{Name: "dying", Action: faultplan.Kill, Call: faultplan.PostSend, Nth: 2},
	}}
	check(plan.Validate())
	p := connectedBy(verbs.Config{Addr: netip.MustParseAddr("127.0.0.13"), Faults: plan}, verbs.Config{Addr: netip.MustParseAddr("127.0.0.14")})
	defer p.close()
	a := p.a

	_, err := a.pd.RegisterMR(make([]byte, 64), 0)
	fmt.Println("register:", errors.Is(err, verbs.ErrInjected), errors.Is(err, syscall.ENOMEM))
	write := ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, 4096), Remote: a.peer.At(0), Flags: ib.Signaled}
	check(a.qp.PostSend(write))
	fmt.Println("first WRITE:", await(a).Status)
	check(a.qp.PostSend(write))
	fmt.Println("second WRITE:", await(a).Status, a.qp.State())
	report, _ := a.dev.Faults()
	fmt.Println("killed:", report.Hits("dying"))
	// Output:
	// register: true true
	// first WRITE: SUCCESS
	// second WRITE: WR_FLUSH_ERR ERR
	// killed: 1
}

// Other timeouts and retries than those of Connect: the send queue is drained for it.
// Here the peer is cut off afterwards, so that the retries run out.
func ExampleQP_Modify() {
	cut := &faultplan.Plan{Name: "cut", Seed: 1, Rules: []faultplan.Rule{{Name: "cut", Action: faultplan.Partition, AfterCount: 2}}}
	p := connectedBy(verbs.Config{Addr: netip.MustParseAddr("127.0.0.13"), Faults: cut}, verbs.Config{Addr: netip.MustParseAddr("127.0.0.14")})
	defer p.close()
	a := p.a

	check(a.qp.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrEnSQDAsyncNotify, State: ib.SQD, SQDAsyncNotify: true}))
	for { // SQ_DRAINED: all that was sent has been acknowledged
		ev, err := a.dev.NextEvent(context.Background())
		check(err)
		if ev.Type == ib.EventSQDrained {
			break
		}
	}
	check(a.qp.Modify(ib.QPAttr{Mask: ib.AttrTimeout | ib.AttrRetryCnt, TimeoutExp: 12, RetryCnt: 1})) // 4.096 µs · 2^12
	check(a.qp.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.RTS}))

	for i := 1; ; i++ {
		check(a.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: a.mr.SGE(0, 64), Remote: a.peer.At(0), Flags: ib.Signaled}))
		if wc := await(a); wc.Status != ib.Success {
			fmt.Println(wc.Status, a.qp.State())
			break
		}
	}
	c := a.dev.Counters()
	given, _ := c.Get("retry_exceeded")
	fmt.Println("given up:", given)
	// Output:
	// RETRY_EXC_ERR ERR
	// given up: 1
}

// Waiting no longer than one wants to.
func ExampleCQ_Wait() {
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	n, err := p.b.cq.Wait(ctx, make([]ib.WC, 4)) // nobody sends
	fmt.Println(n, errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 0 true
}
