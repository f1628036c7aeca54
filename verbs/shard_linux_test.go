package verbs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/verbs"
)

// Where the devices of these tests live.
var (
	shardA = netip.MustParseAddr("127.0.5.1")
	shardB = netip.MustParseAddr("127.0.5.2")
)

func openShards(t testing.TB, addr netip.Addr, n int) *verbs.Device {
	t.Helper()
	return open(t, verbs.Config{Addr: addr, Port: testPort, Shards: n})
}

// endOn is newEnd with queues of the caller's choice.
func endOn(t testing.TB, dev *verbs.Device, pd *verbs.PD, typ ib.QPType, send, recv *verbs.CQ, srq *verbs.SRQ) *end {
	t.Helper()
	e := &end{dev: dev, pd: pd, cq: recv}
	var err error
	e.mr, err = pd.RegisterMR(make([]byte, 256<<10), ib.AccessAll|ib.MWBind)
	must(t, err)
	e.qp, err = pd.CreateQP(verbs.QPConfig{Type: typ, SendCQ: send, RecvCQ: recv, SRQ: srq})
	must(t, err)
	return e
}

func newCQ(t testing.TB, dev *verbs.Device, cfg verbs.CQConfig) *verbs.CQ {
	t.Helper()
	cq, err := dev.CreateCQ(cfg)
	must(t, err)
	return cq
}

// expectAll waits for n completions, all of them good.
func expectAll(t testing.TB, cq *verbs.CQ, n int) (got []ib.WC) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	wcs := make([]ib.WC, 64)
	for len(got) < n {
		k, err := cq.Wait(ctx, wcs)
		if err != nil {
			t.Errorf("%d of %d completions: %v", len(got), n, err)
			return got
		}
		for _, wc := range wcs[:k] {
			if wc.Status != ib.Success {
				t.Errorf("%+v", wc)
			}
		}
		got = append(got, wcs[:k]...)
	}
	return got
}

// Queue pairs whose queues are of different vectors work at the same time, in
// both directions, between devices with as many and with other numbers of
// shards; what is written is what arrives, and every packet comes to the socket
// of its queue pair.
func TestShardsCarryData(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {3, 1}, {1, 4}, {4, 3}} {
		t.Run(fmt.Sprintf("%d to %d", n[0], n[1]), func(t *testing.T) {
			a, b := openShards(t, shardA, n[0]), openShards(t, shardB, n[1])
			const pairs, rounds, size = 6, 10, 100_000
			var work sync.WaitGroup
			pda, pdb := a.AllocPD(), b.AllocPD()
			for i := range pairs {
				cqa := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf(i % n[0])})
				cqb := newCQ(t, b, verbs.CQConfig{})
				x := endOn(t, a, pda, ib.RC, cqa, cqa, nil)
				y := endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
				if got := int(x.qp.Num()) % n[0]; got != i%n[0] {
					t.Errorf("QP %v is of shard %d, its CQ of %d", x.qp.Num(), got, i%n[0])
				}
				join(t, x, y)
				run := func(from, to *end, seed uint64) {
					fill(from.mr.Bytes()[:size], seed)
					for range rounds {
						if err := from.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: from.mr.SGE(0, size), Remote: from.peer.At(size)}); err != nil {
							t.Error(err)
						}
						expectAll(t, from.cq, 1)
					}
					if err := from.qp.PostSend(ib.SendWR{Op: ib.Read, Flags: ib.Signaled, SGL: from.mr.SGE(0, 2000), Remote: from.peer.At(size)}); err != nil {
						t.Error(err)
					}
					expectAll(t, from.cq, 1)
					if !bytes.Equal(to.mr.Bytes()[size:size+2000], from.mr.Bytes()[:2000]) {
						t.Errorf("pair %d: other bytes arrived", i)
					}
				}
				work.Go(func() { run(x, y, uint64(i)) })
				work.Go(func() { run(y, x, uint64(100+i)) })
			}
			work.Wait()
			for _, d := range []*verbs.Device{a, b} {
				qs := d.Queues()
				if len(qs) != d.Attr().CompVectors {
					t.Fatalf("%d queues, %d completion vectors", len(qs), d.Attr().CompVectors)
				}
				var sum verbs.Queue
				for _, q := range qs {
					if q.QPs == 0 || q.RcvdPackets == 0 || q.SentPackets == 0 || q.RcvdBytes == 0 || q.Misdirected != 0 {
						t.Errorf("%+v", q)
					}
					sum.QPs += q.QPs
					sum.RcvdPackets += q.RcvdPackets
				}
				if s := d.Stats(); sum.QPs != pairs || sum.RcvdPackets < s.Get("rcvd_pkts") && s.Get("drop_no_qp") == 0 {
					t.Errorf("queues have %d QPs and %d packets, the device %d and %d", sum.QPs, sum.RcvdPackets, pairs, s.Get("rcvd_pkts"))
				}
				if n := d.Stats().Get("drop_no_qp"); n != 0 {
					t.Errorf("%d packets found no queue pair", n)
				}
			}
		})
	}
}

// Where the system chooses by something else than the queue pair, packets come to
// the wrong sockets and are handed over: the data arrive all the same.
func TestMisdirectedPacketsAreHandedOver(t *testing.T) {
	for _, how := range []verbs.Steering{verbs.SteerPorts, verbs.SteerAddresses} {
		t.Run(how.String(), func(t *testing.T) {
			const shards, pairs, rounds, size = 4, 8, 20, 60_000
			b := open(t, verbs.Config{Addr: shardB, Port: testPort, Shards: shards, Steering: how})
			a := openShards(t, shardA, 1)
			var work sync.WaitGroup
			pda, pdb := a.AllocPD(), b.AllocPD()
			for i := range pairs {
				cqa, cqb := newCQ(t, a, verbs.CQConfig{}), newCQ(t, b, verbs.CQConfig{Vector: verbs.VectorOf(i % shards)})
				x, y := endOn(t, a, pda, ib.RC, cqa, cqa, nil), endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
				join(t, x, y)
				fill(x.mr.Bytes()[:size], uint64(i))
				work.Go(func() {
					for range rounds {
						if err := x.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: x.mr.SGE(0, size), Remote: x.peer.At(0)}); err != nil {
							t.Error(err)
						}
						expectAll(t, x.cq, 1)
					}
					if !bytes.Equal(x.mr.Bytes()[:size], y.mr.Bytes()[:size]) {
						t.Errorf("pair %d: other bytes arrived", i)
					}
				})
			}
			work.Wait()
			var socket, misdirected, used, rcvd uint64
			for _, q := range b.Queues() {
				socket += q.SocketPackets
				misdirected += q.Misdirected
				rcvd += q.RcvdPackets
				if q.SocketPackets > 0 {
					used++
				}
			}
			if d := b.LinkCounters().RxDropped; socket != rcvd+d {
				t.Errorf("%d packets came out of the sockets, %d were received and %d dropped", socket, rcvd, d)
			}
			if how == verbs.SteerAddresses && (used != 1 || misdirected < rcvd/2) {
				t.Errorf("by addresses: %d sockets got packets, %d of %d handed over", used, misdirected, rcvd)
			}
			if how == verbs.SteerPorts && used < 2 {
				t.Errorf("by ports: %d sockets got packets", used)
			}
		})
	}
}

// Completions of queue pairs in all shards come to one queue, each once, whether
// it is polled, waited for or armed.
func TestCQAcrossShards(t *testing.T) {
	const shards, qps, messages = 4, 8, 300
	for _, how := range []string{"poll", "wait", "channel"} {
		t.Run(how, func(t *testing.T) {
			a, b := openShards(t, shardA, shards), openShards(t, shardB, 1)
			cfg := verbs.CQConfig{Depth: 4096, Vector: verbs.SpreadVectors}
			if how == "channel" {
				cfg.Channel = a.CreateCompChannel()
			}
			cq := newCQ(t, a, cfg)
			pda, pdb := a.AllocPD(), b.AllocPD()
			used := map[int]int{}
			next := map[ib.QPN]uint64{}
			var senders sync.WaitGroup
			for range qps {
				x := endOn(t, a, pda, ib.RC, cq, cq, nil)
				used[int(x.qp.Num())%shards]++
				next[x.qp.Num()] = 0
				cqb := newCQ(t, b, verbs.CQConfig{})
				y := endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
				join(t, x, y)
				for i := range messages {
					must(t, x.qp.PostRecv(ib.RecvWR{ID: uint64(i), SGL: x.mr.SGE(0, 8)}))
				}
				senders.Go(func() {
					for range messages {
						y.send(t, 0, 8)
						expectAll(t, y.cq, 1)
					}
				})
			}
			if len(used) != shards {
				t.Errorf("queue pairs of one spread queue are in shards %v", used)
			}
			take := func(wcs []ib.WC) {
				for _, wc := range wcs {
					if wc.Status != ib.Success || wc.ID != next[wc.QPN] {
						t.Errorf("%+v, want receive %d", wc, next[wc.QPN])
					}
					next[wc.QPN]++
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			wcs := make([]ib.WC, 16)
			for left := qps * messages; left > 0 && ctx.Err() == nil && !t.Failed(); {
				var n int
				var err error
				switch how {
				case "poll":
					n = cq.Poll(wcs)
				case "wait":
					n, err = cq.Wait(ctx, wcs)
				default:
					must(t, cq.Arm(false))
					if n = cq.Poll(wcs); n == 0 {
						_, err = cfg.Channel.Wait(ctx)
					}
				}
				if err != nil {
					t.Fatalf("%d completions are missing: %v", left, err)
				}
				take(wcs[:n])
				left -= n
			}
			senders.Wait()
			if err := cq.Close(); !errors.Is(err, verbs.ErrBusy) {
				t.Errorf("closing a queue that is in use: %v", err)
			}
		})
	}
}

// Whichever shard fills a queue that several complete to, all queue pairs that
// do so end in Error, and the event comes once.
func TestOverrunOfACQAcrossShards(t *testing.T) {
	const shards = 3
	a, b := openShards(t, shardA, shards), openShards(t, shardB, 1)
	cq := newCQ(t, a, verbs.CQConfig{Depth: 4, Vector: verbs.SpreadVectors})
	var xs []*end
	pda, pdb := a.AllocPD(), b.AllocPD()
	for range shards {
		x := endOn(t, a, pda, ib.RC, cq, cq, nil)
		cqb := newCQ(t, b, verbs.CQConfig{})
		join(t, x, endOn(t, b, pdb, ib.RC, cqb, cqb, nil))
		xs = append(xs, x)
	}
	for range 5 {
		must(t, xs[1].qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: xs[1].mr.SGE(0, 8), Remote: xs[1].peer.At(0)}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var cqErrs, fatals int
	for fatals < shards {
		ev, err := a.NextEvent(ctx)
		if err != nil {
			t.Fatalf("%d of %d queue pairs have told: %v", fatals, shards, err)
		}
		switch ev.Type {
		case ib.EventCQErr:
			cqErrs++
			if ev.Element != cq.Number() {
				t.Errorf("%+v", ev)
			}
		case ib.EventQPFatal:
			fatals++
		}
	}
	for _, x := range xs {
		if s := x.qp.State(); s != ib.Error {
			t.Errorf("QP %v is in %v", x.qp.Num(), s)
		}
	}
	if cqErrs != 1 || !cq.Overrun() {
		t.Errorf("%d events of the queue, overrun %v", cqErrs, cq.Overrun())
	}
}

// Queue pairs of all shards take receives from one queue: each receive once, no
// message lost, and the limit tells once.
func TestSRQAcrossShards(t *testing.T) {
	const shards, qps, messages, size, slots = 4, 8, 150, 9000, 64
	a, b := openShards(t, shardA, shards), openShards(t, shardB, 2)
	pda, pdb := a.AllocPD(), b.AllocPD()
	mr, err := pda.RegisterMR(make([]byte, slots*size), ib.LocalWrite)
	must(t, err)
	srq, err := pda.CreateSRQ(verbs.SRQConfig{MaxWR: slots})
	must(t, err)
	post := func(slot uint64) {
		if err := srq.PostRecv(ib.RecvWR{ID: slot, SGL: mr.SGE(int(slot)*size, size)}); err != nil {
			t.Error(err)
		}
	}
	for i := range uint64(slots) {
		post(i)
	}
	cq := newCQ(t, a, verbs.CQConfig{Depth: 4096, Vector: verbs.SpreadVectors})
	var senders sync.WaitGroup
	want := map[ib.QPN][]byte{}
	for i := range qps {
		qp, err := pda.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq, SRQ: srq})
		must(t, err)
		x := &end{dev: a, pd: pda, cq: cq, qp: qp}
		cqb := newCQ(t, b, verbs.CQConfig{})
		y := endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
		join(t, x, y)
		fill(y.mr.Bytes()[:size], uint64(i))
		want[x.qp.Num()] = y.mr.Bytes()[:size]
		senders.Go(func() {
			for range messages {
				y.send(t, 0, size)
				expectAll(t, y.cq, 1)
			}
		})
	}
	busy := map[uint64]bool{}
	for left := qps * messages; left > 0 && !t.Failed(); {
		for _, wc := range expectAll(t, cq, 1) {
			if busy[wc.ID] {
				t.Fatalf("receive %d was given twice", wc.ID)
			}
			if got := mr.Bytes()[int(wc.ID)*size:][:size]; wc.Bytes != size || !bytes.Equal(got, want[wc.QPN]) {
				t.Fatalf("%+v: other bytes arrived", wc)
			}
			clear(mr.Bytes()[int(wc.ID)*size:][:size])
			post(wc.ID)
			left--
		}
	}
	senders.Wait()
	if n := srq.Query(); n.MaxWR != slots {
		t.Errorf("%+v", n)
	}
	// All is quiet and the queue is full: below the limit at once, and once.
	must(t, srq.SetLimit(slots))
	if got := srq.Query().Limit; got != slots {
		t.Errorf("the limit is %d, with %d receives posted", got, slots)
	}
}

// The limit of a shared receive queue is reached in whatever shard its queue
// pairs are, and the device tells once.
func TestSRQLimitInEveryShard(t *testing.T) {
	const shards = 3
	a, b := openShards(t, shardA, shards), openShards(t, shardB, 1)
	pda, pdb := a.AllocPD(), b.AllocPD()
	for _, vectors := range [][]int{{0}, {2}, {1, 2}} {
		srq, err := pda.CreateSRQ(verbs.SRQConfig{MaxWR: 16})
		must(t, err)
		var peers []*end
		mr, err := pda.RegisterMR(make([]byte, 64), ib.LocalWrite)
		must(t, err)
		for range 16 {
			must(t, srq.PostRecv(ib.RecvWR{SGL: mr.SGE(0, 64)}))
		}
		for _, v := range vectors {
			cq := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf(v)})
			x := endOn(t, a, pda, ib.RC, cq, cq, srq)
			cqb := newCQ(t, b, verbs.CQConfig{})
			y := endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
			join(t, x, y)
			peers = append(peers, y)
		}
		must(t, srq.SetLimit(10))
		for i := range 8 {
			y := peers[i%len(peers)]
			y.send(t, 0, 8)
			expectAll(t, y.cq, 1)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		got := 0
		for got == 0 || ctx.Err() == nil {
			ev, err := a.NextEvent(ctx)
			if err != nil {
				break
			}
			if ev.Type == ib.EventSRQLimitReached && ev.Element == srq.Number() {
				got++
				cancel() // and no second one is there
			}
		}
		cancel()
		if got != 1 || srq.Query().Limit != 0 {
			t.Errorf("vectors %v: %d events, limit %d", vectors, got, srq.Query().Limit)
		}
	}
}

// A window that a queue pair of one shard has bound opens memory for the peers of
// others, and nothing any more when it has been bound anew.
func TestWindowAcrossShards(t *testing.T) {
	a, b := openShards(t, shardA, 2), openShards(t, shardB, 2)
	pda, pdb := a.AllocPD(), b.AllocPD()
	var as, bs []*end
	for i := range 2 {
		cqa := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf(i)})
		cqb := newCQ(t, b, verbs.CQConfig{Vector: verbs.VectorOf(i)})
		x, y := endOn(t, a, pda, ib.RC, cqa, cqa, nil), endOn(t, b, pdb, ib.RC, cqb, cqb, nil)
		join(t, x, y)
		as, bs = append(as, x), append(bs, y)
	}
	m := allocMW(t, pda, verbs.MWType1)
	for range 20 {
		key := as[0].bind(t, m, verbs.BindConfig{MR: as[0].mr, Len: 4096, Access: ib.RemoteWrite | ib.RemoteRead}, ib.Success)
		for _, y := range bs {
			if s := y.write(t, ib.Remote{Addr: as[0].mr.Addr(), RKey: key}, 4096); s != ib.Success {
				t.Fatalf("through the window: %v", s)
			}
		}
		// While one writes through it, another takes it away: from the completion on
		// nothing changes any more.
		must(t, bs[1].qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: bs[1].mr.SGE(0, 4096), Remote: ib.Remote{Addr: as[0].mr.Addr(), RKey: key}}))
		expectAll(t, bs[1].cq, 1)
	}
	old := m.RKey()
	as[0].bind(t, m, verbs.BindConfig{Len: 0}, ib.Success)
	if s := bs[1].write(t, ib.Remote{Addr: as[0].mr.Addr(), RKey: old}, 64); s != ib.RemAccessErr {
		t.Errorf("a write through a window that is unbound: %v", s)
	}
	must(t, m.Close())
}

// Shards of one device reach each other.
func TestShardsOfOneDeviceReachEachOther(t *testing.T) {
	a := openShards(t, shardA, 3)
	pd := a.AllocPD()
	var work sync.WaitGroup
	for i := range 3 {
		c1 := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf(i)})
		c2 := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf((i + 1) % 3)})
		x, y := endOn(t, a, pd, ib.RC, c1, c1, nil), endOn(t, a, pd, ib.RC, c2, c2, nil)
		join(t, x, y)
		fill(x.mr.Bytes(), uint64(i))
		work.Go(func() {
			n := x.mr.Len()
			for range 20 {
				if err := x.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: x.mr.SGE(0, n), Remote: x.peer.At(0)}); err != nil {
					t.Error(err)
				}
				expectAll(t, x.cq, 1)
			}
			if !bytes.Equal(x.mr.Bytes(), y.mr.Bytes()) {
				t.Errorf("pair %d: other bytes arrived", i)
			}
		})
	}
	work.Wait()
}

// Members of a group in all shards of a device hear it, each once.
func TestGroupAcrossShards(t *testing.T) {
	group := netip.MustParseAddr("239.7.7.8")
	a, b := openShards(t, shardA, 3), openShards(t, shardB, 1)
	pd := a.AllocPD()
	ud := func(e *end) *end {
		must(t, e.qp.ToInitUD(groupQKey))
		must(t, e.qp.ToRTR(verbs.Path{}))
		must(t, e.qp.ToRTS(verbs.Path{}))
		return e
	}
	var members []*end
	for i := range 3 {
		cq := newCQ(t, a, verbs.CQConfig{Vector: verbs.VectorOf(i)})
		x := ud(endOn(t, a, pd, ib.UD, cq, cq, nil))
		must(t, x.qp.Attach(group))
		x.recv(t, 0, 1024)
		x.recv(t, 0, 1024)
		members = append(members, x)
	}
	from := ud(newEnd(t, b, ib.UD))
	fill(from.mr.Bytes()[:100], 1)
	from.castTo(t, group, 100)
	for i, x := range members {
		if wc, ok := x.gets(t); !ok || wc.Bytes != 140 {
			t.Errorf("member %d: %+v, %v", i, wc, ok)
		}
		x.silent(t) // once is enough
		must(t, x.qp.Detach(group))
	}
}

// The limits are the device's, not the shard's.
func TestLimitsOfAShardedDevice(t *testing.T) {
	a := open(t, verbs.Config{Addr: shardA, Port: testPort, Shards: 2, Limits: verbs.Limits{MaxQP: 3, MaxPD: 1, MaxMcastGroup: 2}})
	pd := a.AllocPD()
	cq := newCQ(t, a, verbs.CQConfig{Vector: verbs.SpreadVectors})
	var qps []*verbs.QP
	for range 3 {
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq})
		must(t, err)
		qps = append(qps, qp)
	}
	if _, err := pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq}); !errors.Is(err, verbs.ErrLimit) {
		t.Errorf("a fourth of three: %v", err)
	}
	for i, qp := range qps {
		err := qp.Attach(netip.AddrFrom4([4]byte{239, 7, 8, byte(i)}))
		if want := i == 2; errors.Is(err, verbs.ErrLimit) != want {
			t.Errorf("group %d of 2: %v", i, err)
		}
	}
	must(t, qps[1].Attach(netip.AddrFrom4([4]byte{239, 7, 8, 0}))) // in another shard, and no further group
	if err := pd.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Errorf("closing a PD in use: %v", err)
	}
	if _, err := a.CreateCQ(verbs.CQConfig{Vector: verbs.VectorOf(2)}); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("vector 2 of 2: %v", err)
	}
}

func TestShardRefusals(t *testing.T) {
	for _, c := range []struct {
		cfg  verbs.Config
		want error
	}{
		{verbs.Config{Addr: shardA, Shards: -1}, verbs.ErrInvalid},
		{verbs.Config{Addr: shardA, Shards: verbs.MaxShards + 1}, verbs.ErrInvalid},
		{verbs.Config{Netdev: "lo", Ethernet: true, Shards: 2}, verbs.ErrUnsupported},
	} {
		if _, err := verbs.Open(c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	// The port belongs to one device, sharded or not, in either order.
	for _, n := range [][2]int{{2, 2}, {2, 1}, {1, 2}} {
		first, err := verbs.Open(verbs.Config{Addr: shardA, Port: testPort, Shards: n[0]})
		must(t, err)
		second, err := verbs.Open(verbs.Config{Addr: shardA, Port: testPort, Shards: n[1]})
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%d shards on a port that a device of %d has: %v", n[1], n[0], err)
		}
		if second != nil {
			must(t, second.Close())
		}
		must(t, first.Close())
	}
}

// Everything that the link counts is in the device's sum.
func TestLinkCountersAreSummed(t *testing.T) {
	var one, sum link.Counters
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(uint64(i + 1))
	}
	sum.Add(one)
	sum.Add(one)
	s := reflect.ValueOf(sum)
	for i := range s.NumField() {
		if got := s.Field(i).Uint(); got != uint64(2*(i+1)) {
			t.Errorf("%s is %d, want %d", s.Type().Field(i).Name, got, 2*(i+1))
		}
	}
}

// Posting, polling and waiting allocate nothing on a queue across shards either.
func TestShardsAllocateNothing(t *testing.T) {
	a, b := openShards(t, shardA, 2), openShards(t, shardB, 2)
	cq := newCQ(t, a, verbs.CQConfig{Vector: verbs.SpreadVectors})
	pda, pdb := a.AllocPD(), b.AllocPD()
	var xs []*end
	for range 2 {
		x := endOn(t, a, pda, ib.RC, cq, cq, nil)
		cqb := newCQ(t, b, verbs.CQConfig{})
		join(t, x, endOn(t, b, pdb, ib.RC, cqb, cqb, nil))
		xs = append(xs, x)
	}
	wcs := make([]ib.WC, 8)
	turn := func() {
		for _, x := range xs {
			if err := x.qp.PostSend(ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: x.mr.SGE(0, 20000), Remote: x.peer.At(0)}); err != nil {
				t.Error(err)
			}
		}
		for left := len(xs); left > 0; {
			n, err := cq.Wait(context.Background(), wcs)
			if err != nil {
				t.Error(err)
			}
			left -= n
		}
	}
	for range 200 {
		turn()
	}
	if n := testing.AllocsPerRun(200, turn); n >= 1 {
		t.Errorf("%v allocations a turn", n)
	}
}
