//go:build linux

package interop

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// outcome is what an erroneous request leaves: statuses of completions, -1 for none, and the states of the two queue
// pairs afterwards.
type outcome struct {
	requester, responder int
	requesterState       ib.QPState
	responderState       ib.QPState
}

const none = -1

// errorCases are the errors that a peer can see, each provoked in both directions: with rdma_rxe as responder it says
// whether we understand its NAKs, with rdma_rxe as requester whether it understands ours.
var errorCases = []struct {
	name string
	set  settings
	recv int // bytes of the receive that the responder has posted; none: none
	wr   func(to ib.Remote) request
	want outcome
	rxe  *outcome // what rdma_rxe does as responder, where it differs from RNICs; want is then for our responder
	ours bool     // only by us: rdma_rxe refuses to post it
}{
	{
		name: "WRITE with an rkey that is none", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.Write, n: 100, to: ib.Remote{Addr: to.Addr, RKey: to.RKey ^ 0x5500}}
		},
		want: outcome{int(ib.RemAccessErr), none, ib.Error, ib.Error},
	},
	{
		name: "WRITE beyond the region", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.Write, n: 100, to: ib.Remote{Addr: to.Addr + 2*dataBytes - 50, RKey: to.RKey}}
		},
		want: outcome{int(ib.RemAccessErr), none, ib.Error, ib.Error},
	},
	{
		name: "READ with an rkey that is none", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.Read, n: 100, to: ib.Remote{Addr: to.Addr, RKey: to.RKey ^ 0x5500}}
		},
		want: outcome{int(ib.RemAccessErr), none, ib.Error, ib.Error},
	},
	{
		name: "READ beyond the region", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.Read, n: 5000, to: ib.Remote{Addr: to.Addr + 2*dataBytes - 4000, RKey: to.RKey}}
		},
		want: outcome{int(ib.RemAccessErr), none, ib.Error, ib.Error},
	},
	{
		name: "ATOMIC with an rkey that is none", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.FetchAdd, n: 8, to: ib.Remote{Addr: to.Addr, RKey: to.RKey ^ 0x5500}}
		},
		want: outcome{int(ib.RemAccessErr), none, ib.Error, ib.Error},
	},
	{
		name: "ATOMIC at an address that is not aligned", recv: none,
		wr: func(to ib.Remote) request {
			return request{op: ib.CompareSwap, n: 8, to: ib.Remote{Addr: to.Addr + 4, RKey: to.RKey}}
		},
		want: outcome{int(ib.RemInvReqErr), none, ib.Error, ib.Error},
		ours: true,
	},
	{
		name: "SEND longer than the receive", recv: 99,
		wr:   func(ib.Remote) request { return request{op: ib.Send, n: 100} },
		want: outcome{int(ib.RemInvReqErr), int(ib.LocLenErr), ib.Error, ib.Error},
		rxe:  &outcome{int(ib.RemOpErr), int(ib.LocQPOpErr), ib.Error, ib.Error},
	},
	{
		name: "SEND of several packets longer than the receive", recv: 3000,
		wr:   func(ib.Remote) request { return request{op: ib.Send, n: 5000} },
		want: outcome{int(ib.RemInvReqErr), int(ib.LocLenErr), ib.Error, ib.Error},
		rxe:  &outcome{int(ib.RemOpErr), int(ib.LocQPOpErr), ib.Error, ib.Error},
	},
	{
		name: "SEND without a receive, three retries", recv: none, set: settings{rnrRetry: 3, minRNR: 10},
		wr:   func(ib.Remote) request { return request{op: ib.Send, n: 100} },
		want: outcome{int(ib.RNRRetryExcErr), none, ib.Error, ib.RTS},
	},
	{
		name: "WRITE with immediate without a receive, three retries", recv: none, set: settings{rnrRetry: 3, minRNR: 10},
		wr:   func(to ib.Remote) request { return request{op: ib.WriteImm, n: 100, to: to} },
		want: outcome{int(ib.RNRRetryExcErr), none, ib.Error, ib.RTS},
	},
}

func TestErrors(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, c := range errorCases {
		t.Run(c.name, func(t *testing.T) {
			t.Run("by us", func(t *testing.T) {
				ctx := within(t, patience)
				h := newHost(t, 2*dataBytes, nil)
				p := newPair(ctx, h, ib.RC, ipv4, c.set, 2*dataBytes)
				if c.recv != none {
					p.p.recv(0, c.recv, 1)
				}
				r := c.wr(p.p.at(0))
				if err := p.q.PostSend(ib.SendWR{
					Op: r.op, Flags: ib.Signaled, SGL: h.mr.SGE(0, r.n), Remote: r.to, SwapAdd: 1, Compare: 1,
				}); err != nil {
					t.Fatal(err)
				}
				got := outcome{int(h.status(p.q)), none, p.q.State(), 0}
				if c.want.responder != none {
					got.responder = int(p.p.poll(1)[0].status)
				}
				got.responderState = p.p.state()
				want := c.want
				if c.rxe != nil {
					want = *c.rxe
				}
				same(t, got, want)
			})
			if c.ours {
				return
			}
			t.Run("by the guest", func(t *testing.T) {
				ctx := within(t, patience)
				h := newHost(t, 2*dataBytes, nil)
				p := newPair(ctx, h, ib.RC, ipv4, c.set, 2*dataBytes)
				if c.recv != none {
					if err := p.q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(0, c.recv)}); err != nil {
						t.Fatal(err)
					}
				}
				p.p.send(c.wr(h.mr.Remote(0)))
				got := outcome{responder: none}
				got.requester = int(p.p.poll(1)[0].status)
				got.requesterState = p.p.state()
				if c.want.responder != none {
					got.responder = int(h.status(p.q))
				}
				got.responderState = p.q.State()
				same(t, got, c.want)
			})
		})
	}
	complaints(t, network(t).Guest(1))
}

func same(t *testing.T, got, want outcome) {
	t.Helper()
	if got != want {
		t.Errorf("requester %v and %v, responder %v and %v; want %v and %v, %v and %v",
			status(got.requester), got.requesterState, status(got.responder), got.responderState,
			status(want.requester), want.requesterState, status(want.responder), want.responderState)
	}
}

func status(s int) string {
	if s == none {
		return "no completion"
	}
	return ib.WCStatus(s).String()
}

// status returns the status of our next completion, which must come.
func (h *host) status(q *verbs.QP) ib.WCStatus {
	h.t.Helper()
	var wc [1]ib.WC
	if _, err := h.cq.Wait(within(h.t, patience), wc[:]); err != nil {
		h.t.Fatalf("no completion: %v; our QP is in %v", err, q.State())
	}
	return wc[0].Status
}

// TestReceiverNotReady sends to an end that has no receive yet, and gives it one once it has said so.
func TestReceiverNotReady(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, n := range []int{1, 5000} {
		ctx := within(t, patience)
		h := newHost(t, 2*dataBytes, nil)
		c := newPair(ctx, h, ib.RC, ipv6, settings{minRNR: 14}, dataBytes)
		d := &mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), 3))}
		// Ours waits.
		off, want := d.source(n)
		to := d.sinkThere(n)
		if err := c.q.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: h.mr.SGE(off, n)}); err != nil {
			t.Fatal(err)
		}
		for h.dev.Stats().Get("rcvd_rnr_err") == 0 && ctx.Err() == nil {
			h.dev.Progress()
			runtime.Gosched()
		}
		c.p.recv(to, n, 1)
		d.completed("SEND that waited for a receive")
		c.p.good(1)
		d.same("SEND that waited for a receive", d.there(to, n), want)
		// The guest's waits.
		want = d.draw(n)
		c.p.fill(guard, want)
		at := d.sink(n)
		c.p.send(request{op: ib.Send, off: guard, n: n})
		for h.dev.Stats().Get("send_rnr_err") == 0 && ctx.Err() == nil {
			h.dev.Progress()
			runtime.Gosched()
		}
		if err := c.q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(at, n)}); err != nil {
			t.Fatal(err)
		}
		d.completed("SEND of the guest that waited for a receive")
		c.p.good(1)
		d.same("SEND of the guest that waited for a receive", d.here(at, n), want)
		h.clean()
		if err := h.dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPeerGone closes the responder's queue pair: the requester's retries end.
func TestPeerGone(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	t.Run("of the guest", func(t *testing.T) {
		ctx := within(t, patience)
		h := newHost(t, dataBytes, nil)
		c := newPair(ctx, h, ib.RC, ipv4, settings{timeout: 10, retry: 2}, 4096)
		c.p.conn.Close() // its process ends
		// The close may come behind the first requests: send until it has come.
		for {
			if err := c.q.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: h.mr.SGE(0, 100), Remote: c.p.at(0)}); err != nil {
				t.Fatal(err)
			}
			if s := h.status(c.q); s == ib.RetryExcErr {
				break
			} else if s != ib.Success {
				t.Fatalf("completion %v, want %v", s, ib.RetryExcErr)
			}
		}
		if s := c.q.State(); s != ib.Error {
			t.Errorf("our QP is in %v, want %v", s, ib.Error)
		}
	})
	t.Run("of ours", func(t *testing.T) {
		ctx := within(t, patience)
		h := newHost(t, dataBytes, nil)
		c := newPair(ctx, h, ib.RC, ipv4, settings{timeout: 10, retry: 2}, 4096)
		if err := c.q.Close(); err != nil {
			t.Fatal(err)
		}
		c.p.send(request{op: ib.Write, n: 100, to: h.mr.Remote(0)})
		if wc := c.p.poll(1)[0]; wc.status != ib.RetryExcErr {
			t.Errorf("the guest's completion is %v, want %v", wc.status, ib.RetryExcErr)
		}
	})
}

// TestImmediate carries immediate data both ways, with every operation that has some.
func TestImmediate(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		t.Run(typ.String(), func(t *testing.T) {
			ctx := within(t, patience)
			h := newHost(t, 2*dataBytes, nil)
			h.unlessLost(typ, func() {
				c := h.pairThatMayLose(ctx, typ, ipv4, settings{})
				immediates(&mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed(t), 4))})
			})
			h.clean()
		})
	}
}

func immediates(d *mover) {
	h, typ := d.h, d.q.Type()
	t := h.t
	for _, n := range []int{0, 1, 1000, 1024, 4000} {
		for _, op := range []ib.WROp{ib.SendImm, ib.WriteImm} {
			if typ == ib.UD && (op == ib.WriteImm || n > 1024) {
				continue
			}
			room := n + d.grh()
			if op == ib.WriteImm {
				room = 0
			}
			imm := d.rng.Uint32()
			d.p.recv(0, room, 1)
			d.post(ib.SendWR{Op: op, SGL: h.mr.SGE(0, n), Imm: imm, Remote: d.p.at(guard)})
			if wc := d.p.good(1)[0]; wc.imm != imm || wc.flags&ib.WCWithImm == 0 || wc.n != n+d.grh() {
				t.Errorf("%v of %d bytes with immediate %#x: the guest received %+v", op, n, imm, wc)
			}
			imm = d.rng.Uint32()
			if err := d.q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(dataBytes, room)}); err != nil {
				t.Fatal(err)
			}
			d.p.send(request{op: op, off: 0, n: n, imm: imm, to: h.mr.Remote(guard)})
			if wc := d.completed("immediate from the guest"); wc.Imm != imm || wc.Flags&ib.WCWithImm == 0 || int(wc.Bytes) != n+d.grh() {
				t.Errorf("%v of %d bytes with immediate %#x from the guest: %+v", op, n, imm, wc)
			}
			d.p.good(1)
		}
	}
}
