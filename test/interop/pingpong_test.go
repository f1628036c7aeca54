//go:build linux

package interop

import (
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

func TestThin(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, fam := range []family{ipv4, ipv6} {
			t.Run(fmt.Sprintf("%v/%v", typ, fam), func(t *testing.T) { thin(t, typ, fam) })
		}
	}
}

func thin(t *testing.T, typ ib.QPType, fam family) {
	const iters, size = 50, 2000
	ctx := within(t, patience)
	h := newHost(t, 1<<20, nil)
	g := h.net.Guest(1)
	before := counters(t, g)
	cmd := fmt.Sprintf("ibv_%s_pingpong -d rxe0 -g %d -n %d -s %d -c", strings.ToLower(typ.String()), guestGID(t, fam), iters, size)
	p, err := g.Background(ctx, cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := g.WaitListening(ctx, pingpongPort); err != nil {
		t.Fatal(err)
	}
	q := h.qp(typ)
	row := h.gid(fam.guest(g))
	psn := randomPSN()
	c := h.dial(ctx, netip.AddrPortFrom(g.IP4(), pingpongPort))
	peer, err := handshake.PingpongClient(c, handshake.Address{QPN: q.Num(), PSN: psn, GID: h.dev.GIDs()[row].GID})
	if err != nil {
		t.Fatal(err)
	}
	path := verbs.Path{DestQPN: peer.QPN, PSN: peer.PSN, LocalPSN: psn, GID: peer.GID, GIDIndex: row, MTU: ib.MTU1024}
	if err := h.connect(q, path); err != nil {
		t.Fatal(err)
	}
	var ud ib.Datagram
	if typ == ib.UD {
		var ah *verbs.AH
		if err := h.net.Do(func() (err error) { ah, err = h.pd.CreateAH(path.AV()); return err }); err != nil {
			t.Fatal(err)
		}
		ud = ib.Datagram{AH: ah.Handle(), QPN: peer.QPN, QKey: pingpongQKey}
	}
	for range 10 {
		if err := q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(4096, size+40)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range iters {
		if err := q.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: h.mr.SGE(0, size), UD: ud}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.await(ctx, 2); err != nil {
			h.clean()
			t.Fatalf("iteration %d: %v", i, err)
		}
		if err := q.PostRecv(ib.RecvWR{SGL: h.mr.SGE(4096, size+40)}); err != nil {
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
	t.Logf("%s", r.Stdout)
	h.clean()
	after := counters(t, g)
	s := h.dev.Stats()
	t.Logf("guest sent %d rcvd %d; we sent %d rcvd %d solved %d", after["sent_pkts"]-before["sent_pkts"], after["rcvd_pkts"]-before["rcvd_pkts"], s.Get("sent_pkts"), s.Get("rcvd_pkts"), s.Get("icrc_solved"))
}

func counters(t *testing.T, g *guest.Guest) map[string]uint64 {
	t.Helper()
	c, err := g.RxeCounters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}
