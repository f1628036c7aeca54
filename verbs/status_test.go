package verbs_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/verbs"
)

// What goes wrong ends with the statuses and states that real RNICs report.
func TestErrorStatuses(t *testing.T) {
	const none = ib.EventType(255)
	type row struct {
		name string
		// wr changes a good WRITE of 64 bytes into the faulty request.
		wr func(p ends, wr *ib.SendWR)
		// recv is what the responder posts first; nil for nothing.
		recv func(p ends) *ib.RecvWR
		// setUp changes the responder first.
		setUp func(t *testing.T, p ends)

		status    ib.WCStatus
		responder ib.QPState
		recvGets  ib.WCStatus // of the posted receive, when the responder is in Error
		event     ib.EventType
	}
	goodRecv := func(p ends) *ib.RecvWR { return &ib.RecvWR{SGL: p.b.mr.SGE(0, 4096)} }
	badKey := func(p ends, wr *ib.SendWR) { wr.Remote.RKey ^= 0x5555 }
	beyond := func(p ends, wr *ib.SendWR) { wr.Remote.Addr += regionBytes - 32 }
	as := func(op ib.WROp, f func(p ends, wr *ib.SendWR)) func(p ends, wr *ib.SendWR) {
		return func(p ends, wr *ib.SendWR) {
			wr.Op = op
			if op.IsAtomic() {
				wr.SGL[0].Length = 8
			}
			if f != nil {
				f(p, wr)
			}
		}
	}
	rows := []row{
		{
			name: "SGE beyond the MR", wr: func(p ends, wr *ib.SendWR) { wr.SGL = p.a.mr.SGE(regionBytes-8, 64) },
			status: ib.LocProtErr, responder: ib.RTS, event: none,
		},
		{
			name: "bad lkey", wr: func(p ends, wr *ib.SendWR) { wr.SGL[0].LKey ^= 0x5555 },
			status: ib.LocProtErr, responder: ib.RTS, event: none,
		},
		{
			name: "SEND with bad lkey", wr: as(ib.Send, func(p ends, wr *ib.SendWR) { wr.SGL[0].LKey ^= 0x5555 }),
			status: ib.LocProtErr, responder: ib.RTS, event: none,
		},
		{name: "READ into an MR without local write", wr: as(ib.Read, func(p ends, wr *ib.SendWR) {
			mr, err := p.a.pd.RegisterMR(make([]byte, 64), 0)
			if err != nil {
				panic(err)
			}
			wr.SGL = mr.SGE(0, 64)
		}), status: ib.LocProtErr, responder: ib.RTS, event: none},
		{
			name: "SEND longer than the receive", wr: as(ib.Send, nil),
			recv:   func(p ends) *ib.RecvWR { return &ib.RecvWR{SGL: p.b.mr.SGE(0, 63)} },
			status: ib.RemInvReqErr, responder: ib.Error, recvGets: ib.LocLenErr, event: none,
		},
		{
			name: "receive with bad lkey", wr: as(ib.Send, nil),
			recv: func(p ends) *ib.RecvWR {
				wr := goodRecv(p)
				wr.SGL[0].LKey ^= 0x5555
				return wr
			}, status: ib.RemOpErr, responder: ib.Error, recvGets: ib.LocProtErr, event: none,
		},
		{
			name: "unaligned FETCH_ADD", wr: as(ib.FetchAdd, func(p ends, wr *ib.SendWR) { wr.Remote.Addr += 4 }), recv: goodRecv,
			status: ib.RemInvReqErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPReqErr,
		},
		{
			name: "unaligned CMP_SWAP", wr: as(ib.CompareSwap, func(p ends, wr *ib.SendWR) { wr.Remote.Addr++ }), recv: goodRecv,
			status: ib.RemInvReqErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPReqErr,
		},
		{name: "no receive posted", wr: as(ib.Send, nil), status: ib.RNRRetryExcErr, responder: ib.RTS, event: none},
		{name: "no receive posted for an immediate", wr: as(ib.WriteImm, nil), status: ib.RNRRetryExcErr, responder: ib.RTS, event: none},
		{
			name: "peer in Error", setUp: func(t *testing.T, p ends) { must(t, p.b.qp.ToError()) }, wr: as(ib.Write, nil),
			status: ib.RetryExcErr, responder: ib.Error, event: none,
		},
		{
			name: "peer in Reset", setUp: func(t *testing.T, p ends) { must(t, p.b.qp.ToReset()) }, wr: as(ib.Write, nil),
			status: ib.RetryExcErr, responder: ib.Reset, event: none,
		},
		{
			name: "peer gone", setUp: func(t *testing.T, p ends) { must(t, p.b.qp.Close()) }, wr: as(ib.Write, nil),
			status: ib.RetryExcErr, responder: ib.Reset, event: none,
		},
	}
	for _, op := range []ib.WROp{ib.Write, ib.WriteImm, ib.Read, ib.FetchAdd, ib.CompareSwap} {
		rows = append(rows,
			row{
				name: fmt.Sprintf("%v with bad rkey", op), wr: as(op, badKey), recv: goodRecv,
				status: ib.RemAccessErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPAccessErr,
			},
			row{
				name: fmt.Sprintf("%v beyond the MR", op), wr: as(op, func(p ends, wr *ib.SendWR) {
					beyond(p, wr)
					if op.IsAtomic() {
						wr.Remote.Addr += 32
					}
				}), recv: goodRecv,
				status: ib.RemAccessErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPAccessErr,
			},
			row{
				name: fmt.Sprintf("%v to a QP that does not allow it", op), wr: as(op, nil), recv: goodRecv,
				setUp: func(t *testing.T, p ends) {
					must(t, p.b.qp.Modify(ib.QPAttr{Mask: ib.AttrAccess, Access: 0}))
				},
				status: ib.RemInvReqErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPReqErr,
			},
			row{
				name: fmt.Sprintf("%v to an MR that does not allow it", op), wr: as(op, func(p ends, wr *ib.SendWR) {
					mr, err := p.b.pd.RegisterMR(make([]byte, 64), ib.LocalWrite)
					if err != nil {
						panic(err)
					}
					wr.Remote = mr.Remote(0)
				}), recv: goodRecv,
				status: ib.RemAccessErr, responder: ib.Error, recvGets: ib.WRFlushErr, event: ib.EventQPAccessErr,
			},
		)
	}
	for _, place := range []string{"in memory", "two addresses"} {
		for _, r := range rows {
			t.Run(place+"/"+r.name, func(t *testing.T) {
				var p ends
				if place == "in memory" {
					p = newPairMem(t, ib.RC, nil)
				} else {
					p = newPairUDP(t, ib.RC)
				}
				// Quick retries: 7 of 131 µs, and RNR retries that end.
				must(t, p.a.qp.Modify(ib.QPAttr{Mask: ib.AttrState | ib.AttrCurState, CurState: ib.RTS, State: ib.SQD}))
				must(t, p.a.qp.Modify(ib.QPAttr{
					Mask:  ib.AttrState | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry,
					State: ib.SQD, TimeoutExp: 10, RetryCnt: 3, RNRRetry: 2,
				}))
				must(t, p.a.qp.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.RTS}))
				must(t, p.b.qp.Modify(ib.QPAttr{Mask: ib.AttrMinRNRTimer, MinRNRTimer: 1}))

				wr := ib.SendWR{ID: 1, Op: ib.Write, SGL: p.a.mr.SGE(0, 64), Remote: p.a.peer.At(0)}
				r.wr(p, &wr)
				if r.recv != nil {
					must(t, p.b.qp.PostRecv(*r.recv(p)))
				}
				if r.setUp != nil {
					r.setUp(t, p)
				}
				must(t, p.a.qp.PostRecv(ib.RecvWR{ID: 3, SGL: p.a.mr.SGE(0, 64)}))
				// The faulty request is not signaled: an error is reported anyway.
				if _, err := p.a.qp.PostSendBatch([]ib.SendWR{wr, {ID: 2, Op: ib.Send}}); err != nil {
					t.Fatal(err)
				}
				if wc := p.a.await(t); wc.ID != 1 || wc.Status != r.status || wc.QPN != p.a.qp.Num() {
					t.Errorf("requester's completion: %+v, want %v", wc, r.status)
				}
				for _, id := range []uint64{2, 3} { // what stood behind it, and the receives
					if wc := p.a.await(t); wc.Status != ib.WRFlushErr || (wc.ID != 2 && wc.ID != 3) {
						t.Errorf("completion %d: %+v, want WR_FLUSH_ERR", id, wc)
					}
				}
				if s := p.a.qp.State(); s != ib.Error {
					t.Errorf("requester is in %v", s)
				}
				// What the peer refused or did not answer was sent well.
				var sendErr uint64
				if r.status == ib.LocProtErr || r.status == ib.LocLenErr || r.status == ib.LocQPOpErr || r.status == ib.MWBindErr {
					sendErr = 1
				}
				c := p.a.qp.Counters()
				if n, ok := c.Get("send_err"); !ok || n != sendErr {
					t.Errorf("send_err is %d after %v, want %d", n, r.status, sendErr)
				}
				if err := p.a.qp.PostSend(ib.SendWR{ID: 4, Op: ib.Send}); err != nil {
					t.Errorf("post in Error: %v", err)
				} else if wc := p.a.await(t); wc.ID != 4 || wc.Status != ib.WRFlushErr {
					t.Errorf("posted in Error: %+v", wc)
				}
				if r.recvGets != ib.Success {
					if wc := p.b.await(t); wc.Status != r.recvGets {
						t.Errorf("responder's receive: %+v, want %v", wc, r.recvGets)
					}
				}
				if s := p.b.qp.State(); s != r.responder && r.name != "peer gone" {
					t.Errorf("responder is in %v, want %v", s, r.responder)
				}
				if r.event != none {
					ev, err := p.b.dev.NextEvent(context.Background())
					if err != nil || ev.Type != r.event || ev.Element != uint32(p.b.qp.Num()) {
						t.Errorf("event %+v, %v; want %v", ev, err, r.event)
					}
				}
				// Each completion in error is counted by its side and its status.
				want := map[string]uint64{"req_cqe_error": 3, "req_cqe_flush_error": 2, "resp_cqe_error": 1, "resp_cqe_flush_error": 1}
				switch r.status {
				case ib.RemAccessErr:
					want["req_remote_access_errors"] = 1
				case ib.RemInvReqErr:
					want["req_remote_invalid_request"] = 1
				case ib.RemOpErr:
					want["remote_op_err"] = 1
				default:
				}
				counted(t, "requester", p.a.dev.Stats(), want)
				want = map[string]uint64{}
				if r.recvGets != ib.Success {
					want["resp_cqe_error"] = 1
				}
				switch r.recvGets {
				case ib.WRFlushErr:
					want["resp_cqe_flush_error"] = 1
				case ib.LocLenErr:
					want["resp_local_length_error"] = 1
				default:
				}
				if r.status == ib.RemAccessErr {
					want["resp_remote_access_errors"] = 1
				}
				counted(t, "responder", p.b.dev.Stats(), want)
				if r.name == "peer gone" {
					return
				}
				// Both ends by Reset and a new connection are as good as new.
				must(t, p.a.qp.ToReset())
				must(t, p.b.qp.ToReset())
				join(t, p.a, p.b)
				transfer(t, p, ib.Write, 5000, 1)
			})
		}
	}
}

// counted compares the counters of completions in error with what the test saw.
func counted(t *testing.T, who string, s verbs.Stats, want map[string]uint64) {
	t.Helper()
	for _, name := range []string{
		"req_cqe_error", "req_cqe_flush_error", "resp_cqe_error", "resp_cqe_flush_error",
		"req_remote_access_errors", "req_remote_invalid_request", "remote_op_err", "resp_local_length_error", "resp_remote_access_errors",
	} {
		if n := s.Get(name); n != want[name] {
			t.Errorf("%s: %s is %d, want %d", who, name, n, want[name])
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// RNR NAKs are retried rnr_retry times, each not before the delay that the
// responder asks for; 7 is for ever. Time is the bubble's.
func TestRNRRetry(t *testing.T) {
	for retry := range uint8(8) {
		for _, timer := range []uint8{1, 10, 14} {
			t.Run(fmt.Sprintf("%d retries, timer %d", retry, timer), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
					a := newEnd(t, open(t, verbs.Config{Addr: addrA, Link: x}), ib.RC)
					b := newEnd(t, open(t, verbs.Config{Addr: addrB, Link: y}), ib.RC)
					wire := func(e *end, peer *end, psn, local ib.PSN) {
						must(t, e.qp.ToInit(ib.RemoteAll))
						must(t, e.qp.ToRTR(verbs.Path{DestQPN: peer.qp.Num(), PSN: psn, GID: peer.dev.GIDs()[0].GID, MinRNRTimer: timer}))
						must(t, e.qp.Modify(ib.QPAttr{
							Mask:  ib.AttrState | ib.AttrSQPSN | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic,
							State: ib.RTS, SQPSN: local, TimeoutExp: 20, RetryCnt: 0, RNRRetry: retry, MaxRdAtomic: 1,
						}))
					}
					wire(a, b, 100, 200)
					wire(b, a, 200, 100)
					start := time.Now()
					a.send(t, 0, 64)
					delay := ib.RNRDelay(timer)
					if retry == 7 {
						time.Sleep(100 * delay)
						b.recv(t, 0, 64)
						if wc := a.await(t); wc.Status != ib.Success {
							t.Errorf("%+v", wc)
						}
						if n := a.dev.Stats().Get("rcvd_rnr_err"); n < 10 || n > 101 {
							t.Errorf("%d RNR NAKs in 100 delays", n)
						}
						return
					}
					if wc := a.await(t); wc.Status != ib.RNRRetryExcErr {
						t.Errorf("%+v", wc)
					}
					if n := a.dev.Stats().Get("rcvd_rnr_err"); n != uint64(retry)+1 {
						t.Errorf("%d RNR NAKs, want %d", n, retry+1)
					}
					if d := time.Since(start); d < time.Duration(retry)*delay {
						t.Errorf("gave up after %v, %d delays of %v are %v", d, retry, delay, time.Duration(retry)*delay)
					}
					if s := b.qp.State(); s != ib.RTS {
						t.Errorf("responder is in %v", s)
					}
				})
			})
		}
	}
}
