//go:build linux

package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/test/interop/guest"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// TestSRQAgainstPingpong is the other end of ibv_srq_pingpong: several connections, and a shared receive queue on
// either side, with messages of several packets that arrive in turns.
func TestSRQAgainstPingpong(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, fam := range allFamilies {
		t.Run(fam.String(), func(t *testing.T) { srqPingpong(t, fam) })
	}
}

func srqPingpong(t *testing.T, fam family) {
	const qps, programQPs, iters, size, receives = 4, 256, 100, 3000, 16
	ctx := within(t, patience)
	h := newHost(t, 1<<20, nil)
	g := h.net.Guest(1)
	before := h.account()
	p, err := g.Background(ctx, fmt.Sprintf("ibv_srq_pingpong -d %s -g %d -n %d -s %d -q %d -m 1024",
		guest.RxeDevice, guestGID(t, fam), iters, size, qps))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := g.WaitListening(ctx, pingpongPort); err != nil {
		t.Fatal(err)
	}
	srq, err := h.pd.CreateSRQ(verbs.SRQConfig{MaxWR: receives, Limit: receives / 2})
	if err != nil {
		t.Fatal(err)
	}
	post := func(slot uint64) {
		if err := srq.PostRecv(ib.RecvWR{ID: slot, SGL: h.mr.SGE(4096*int(slot+1), size)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(receives) {
		post(i)
	}
	// The program's conversation: a line for each queue pair there and back, then "done". It always tells of as many as
	// it could have.
	row := h.gid(fam.guest(g))
	c := h.dial(ctx, netip.AddrPortFrom(g.IP4(), pingpongPort))
	var mine []handshake.Address
	var ours []*verbs.QP
	var lines []byte
	for range qps {
		q, err := h.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: h.cq, RecvCQ: h.cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		a := handshake.Address{QPN: q.Num(), PSN: randomPSN(), GID: h.dev.GIDs()[row].GID}
		ours, mine, lines = append(ours, q), append(mine, a), handshake.AppendAddress(lines, a)
	}
	for range programQPs - qps {
		lines = handshake.AppendAddress(lines, handshake.Address{})
	}
	if _, err := c.Write(lines); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, lines); err != nil {
		t.Fatal(err)
	}
	for i, q := range ours {
		peer, err := handshake.ParseAddress(lines[i*handshake.PingpongLen:][:handshake.PingpongLen])
		if err != nil {
			t.Fatal(err)
		}
		path := verbs.Path{DestQPN: peer.QPN, PSN: peer.PSN, LocalPSN: mine[i].PSN, GID: peer.GID, GIDIndex: row, MTU: ib.MTU1024}
		if err := h.connect(q, path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(c, "done\x00"); err != nil {
		t.Fatal(err)
	}
	fillBytes := h.buf[:size]
	for i := range fillBytes {
		fillBytes[i] = byte(i * 7)
	}
	send := func(q *verbs.QP) {
		if err := q.PostSend(ib.SendWR{ID: 1 << 32, Op: ib.Send, Flags: ib.Signaled, SGL: h.mr.SGE(0, size)}); err != nil {
			t.Fatal(err)
		}
	}
	// A queue pair sends when it has received and its last send is done. The last message of all waits until every other
	// has arrived and was answered: the program ends when it has enough, its queue pairs go with what is under way to
	// them, and nobody acknowledges or counts that.
	waits := map[ib.QPN]int{}
	byNum := map[ib.QPN]*verbs.QP{}
	posted, sent, received := 0, 0, 0
	next := func(q *verbs.QP) {
		waits[q.Num()] = 2
		posted++
		send(q)
	}
	exchange := func(upTo int) {
		for sent < upTo || received < upTo {
			wcs, err := h.await(ctx, 1)
			if err != nil {
				h.clean()
				t.Fatalf("%d sent, %d received: %v", sent, received, err)
			}
			wc := wcs[0]
			if wc.Op == ib.WCRecv {
				received++
				if wc.Bytes != size {
					t.Fatalf("%d bytes", wc.Bytes)
				}
				post(wc.ID)
			} else {
				sent++
			}
			if waits[wc.QPN]--; waits[wc.QPN] == 0 && posted < upTo {
				next(byNum[wc.QPN])
			}
		}
	}
	for _, q := range ours {
		byNum[q.Num()] = q
		next(q)
	}
	exchange(iters - 1)
	before.settle()
	next(ours[0])
	exchange(iters)
	r, err := p.Wait(ctx)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Error(err)
	}
	h.clean()
}

// TestWindowsAgainstRxe lets rdma_rxe write and read through our windows, and fail at their end and when they are taken
// back. (By its old interface the guest's library sends SEND with invalidate without the key.)
func TestWindowsAgainstRxe(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	ctx := within(t, patience)
	h := newHost(t, 1<<16, nil)
	region := make([]byte, 1<<14)
	mr, err := h.pd.RegisterMR(region, ib.AccessAll)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []verbs.MWType{verbs.MWType1, verbs.MWType2} {
		t.Run(fmt.Sprintf("type %d", typ), func(t *testing.T) {
			h := *h
			h.t = t
			c := newPair(ctx, &h, ib.RC, ipv4, settings{}, 1<<16)
			w, err := h.pd.AllocMW(typ)
			if err != nil {
				t.Fatal(err)
			}
			key, err := c.q.BindMW(w, verbs.BindConfig{MR: mr, Off: 4096, Len: 5000, Access: ib.RemoteWrite | ib.RemoteRead, Flags: ib.Signaled})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.await(ctx, 1); err != nil {
				t.Fatal(err)
			}
			want := bytes.Repeat([]byte("verbena "), 625)
			c.p.fill(0, want)
			at := ib.Remote{Addr: mr.Addr() + 4096, RKey: key}
			c.p.send(request{op: ib.Write, n: len(want), to: at})
			c.p.good(1)
			if !bytes.Equal(region[4096:4096+5000], want) {
				t.Error("other bytes have come")
			}
			c.p.send(request{op: ib.Read, off: 8192, n: 5000, to: at})
			c.p.good(1)
			if !bytes.Equal(c.p.dump(8192, 5000), want) {
				t.Error("other bytes were read")
			}
			refused := at
			if typ == verbs.MWType2 {
				if err := c.q.PostSend(ib.SendWR{Op: ib.LocalInv, Flags: ib.Signaled, Imm: uint32(key)}); err != nil {
					t.Fatal(err)
				}
				if _, err := h.await(ctx, 1); err != nil {
					t.Fatal(err)
				}
			} else {
				refused.Addr++ // one byte beyond the window's end
			}
			c.p.send(request{op: ib.Write, n: 5000, to: refused})
			if wcs := c.p.poll(1); wcs[0].status != ib.RemAccessErr {
				t.Errorf("the guest's WRITE: %v", wcs[0].status)
			}
		})
	}
	h.clean()
}

// mckeyQKey is RDMA_UDP_QKEY, that of the UDP port space.
const mckeyQKey ib.QKey = 0x01234567

// TestMulticastAgainstMckey sends to mckey in the guest and receives from it; it joins the group by the kernel's
// connection manager, and so by IGMP.
func TestMulticastAgainstMckey(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	mckeyGroup(t, verbs.Config{})
}

// mckeyGroup holds the multicast of a device against mckey.
func mckeyGroup(t *testing.T, cfg verbs.Config) {
	const messages, size = 10, 100
	group := netip.MustParseAddr("239.77.1.2")
	for _, theySend := range []bool{true, false} {
		t.Run(fmt.Sprintf("they send %v", theySend), func(t *testing.T) {
			ctx := within(t, patience)
			h := openHost(t, network(t), 1<<16, cfg)
			g := h.net.Guest(1)
			q := h.qp(ib.UD)
			if err := h.net.Do(func() error {
				if err := q.ToInitUD(mckeyQKey); err != nil {
					return err
				}
				if err := q.ToRTR(verbs.Path{}); err != nil {
					return err
				}
				if err := q.ToRTS(verbs.Path{}); err != nil {
					return err
				}
				return q.Attach(group)
			}); err != nil {
				t.Fatal(err)
			}
			args := ""
			if theySend {
				args = " -s"
				for i := range 64 {
					if err := q.PostRecv(ib.RecvWR{ID: uint64(i), SGL: h.mr.SGE(1024*i%(1<<15), 1024)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			command := fmt.Sprintf("mckey -m %v -b %v -C %d -S %d%s", group, g.IP4(), messages, size, args)
			p, err := g.Background(ctx, command)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			if theySend {
				for n, try := 0, 1; n < messages; n++ {
					one, cancel := context.WithTimeout(ctx, lossPatience)
					wcs, err := h.await(one, 1)
					cancel()
					if errors.Is(err, context.DeadlineExceeded) && try < dataTries {
						// A datagram may be lost: then it sends once more.
						t.Logf("try %d: %d of %d messages have come: %v", try, n, messages, drops(h.net))
						try++
						n--
						if r, err := g.Run(ctx, command); err != nil || r.Err() != nil {
							t.Fatalf("mckey: %v, %v\n%s", err, r.Err(), r.Stdout)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if wcs[0].Bytes != 40+size || wcs[0].Flags&ib.WCWithGRH == 0 {
						t.Errorf("%+v", wcs[0])
					}
					if grh := h.buf[1024*int(wcs[0].ID)%(1<<15):]; binary.BigEndian.Uint32(grh[36:]) != binary.BigEndian.Uint32(group.AsSlice()) {
						t.Errorf("GRH % x", grh[:40])
					}
				}
			} else {
				// It is ready when the kernel has joined: until then what we send is lost.
				if err := g.Until(ctx, fmt.Sprintf("grep -qi %s /proc/net/igmp", littleHex(group))); err != nil {
					t.Fatal(err)
				}
				ud := h.datagram(q, verbs.Path{GID: ib.GIDFromAddr(group), GIDIndex: h.gid(g.IP4())})
				ud.QKey = mckeyQKey
				done := make(chan struct{})
				go func() {
					_, _ = p.Wait(ctx)
					close(done)
				}()
				for over := false; !over; {
					if err := q.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: h.mr.SGE(0, size), UD: ud}); err != nil {
						t.Fatal(err)
					}
					if _, err := h.await(ctx, 1); err != nil {
						t.Fatal(err)
					}
					select {
					case <-done:
						over = true
					case <-ctx.Done():
						t.Fatal(ctx.Err())
					default:
					}
				}
			}
			r, err := p.Wait(ctx)
			if err == nil {
				err = r.Err()
			}
			if err != nil || !strings.Contains(r.Stdout, "data transfers complete") && !theySend {
				t.Errorf("mckey: %v\n%s", err, r.Stdout)
			}
		})
	}
}

// littleHex is an IPv4 address as /proc/net prints it on this kind of machine.
func littleHex(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("%02X%02X%02X%02X", b[3], b[2], b[1], b[0])
}
