//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// pingpongQKey is the Q_Key that ibv_ud_pingpong uses.
const pingpongQKey ib.QKey = 0x11111111

const pingpongPort = 18515

// TestVerbsAgainstPingpong drives package verbs in this process against ibv_*_pingpong as server: the shortest road
// through all of the stack, and the place to look first when much fails.
func TestVerbsAgainstPingpong(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, fam := range allFamilies {
			t.Run(fmt.Sprintf("%v/%v", typ, fam), func(t *testing.T) { pingpong(t, typ, fam, verbs.Config{}) })
		}
	}
}

func pingpong(t *testing.T, typ ib.QPType, fam family, cfg verbs.Config) {
	ctx := within(t, patience)
	h := openHost(t, network(t), 1<<16, cfg)
	h.unlessLost(typ, func() { h.pingpong(ctx, typ, fam) })
	h.clean()
}

// pingpong is one conversation.
func (h *host) pingpong(ctx context.Context, typ ib.QPType, fam family) {
	const iters, size = 50, 2000
	t, g := h.t, h.net.Guest(1)
	before := h.account()
	p, err := g.Background(ctx, fmt.Sprintf("ibv_%s_pingpong -d %s -g %d -n %d -s %d -c",
		strings.ToLower(typ.String()), guest.RxeDevice, guestGID(t, fam), iters, size))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := g.WaitListening(ctx, pingpongPort); err != nil {
		t.Fatal(err)
	}
	q, row, psn := h.qp(typ), h.gid(fam.guest(g)), randomPSN()
	c := h.dial(ctx, netip.AddrPortFrom(g.IP4(), pingpongPort))
	peer, err := handshake.PingpongClient(c, handshake.Address{QPN: q.Num(), PSN: psn, GID: h.dev.GIDs()[row].GID})
	if err != nil {
		t.Fatal(err)
	}
	path := verbs.Path{DestQPN: peer.QPN, PSN: peer.PSN, LocalPSN: psn, GID: peer.GID, GIDIndex: row, MTU: ib.MTU1024}
	if err := h.connect(q, path); err != nil {
		t.Fatal(err)
	}
	ud := h.datagram(q, path)
	recv := ib.RecvWR{SGL: h.mr.SGE(4096, size+40)}
	for range 10 {
		if err := q.PostRecv(recv); err != nil {
			t.Fatal(err)
		}
	}
	for i := range iters {
		if i == iters-1 {
			before.settle() // behind the last message the guest's queue pair goes, and with it what it would have counted
		}
		if err := q.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: h.mr.SGE(0, size), UD: ud}); err != nil {
			t.Fatal(err)
		}
		one, cancel := ctx, func() {}
		if typ != ib.RC {
			one, cancel = context.WithTimeout(ctx, lossPatience)
		}
		_, err := h.await(one, 2)
		cancel()
		if typ != ib.RC && errors.Is(err, context.DeadlineExceeded) {
			panic(lost{fmt.Sprintf("iteration %d: %v", i, err), func() {
				p.Kill()
				if err := q.Close(); err != nil {
					t.Error(err)
				}
			}})
		}
		if err != nil {
			h.clean()
			t.Fatalf("iteration %d: %v", i, err)
		}
		if err := q.PostRecv(recv); err != nil {
			t.Fatal(err)
		}
	}
	r, err := p.Wait(ctx)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Error(err)
	}
}
