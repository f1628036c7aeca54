package verbs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"net"
	"net/netip"
	"sync"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// The first program: two hosts, here two devices of one process, and an RDMA
// WRITE from one into the memory of the other.
func Example() {
	ctx := context.Background()
	here, there := net.Pipe() // any net.Conn: usually TCP

	var wg sync.WaitGroup
	wg.Go(func() { // the other host: it only lends its memory
		dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.12")})
		check(err)
		defer dev.Close()
		pd := dev.AllocPD()
		cq, err := dev.CreateCQ(verbs.CQConfig{})
		check(err)
		buf := make([]byte, 4096)
		mr, err := pd.RegisterMR(buf, ib.LocalWrite|ib.RemoteWrite)
		check(err)
		qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
		check(err)
		_, err = verbs.Connect(ctx, there, qp, mr)
		check(err)
		_, err = there.Read(make([]byte, 1)) // "done"
		check(err)
		fmt.Printf("found in memory: %s\n", buf[:12])
	})

	dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr("127.0.0.11")}) // one software RNIC
	check(err)
	defer dev.Close()
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(verbs.CQConfig{Depth: 128})
	check(err)
	buf := []byte("hello, RDMA!")
	mr, err := pd.RegisterMR(buf, ib.LocalWrite)
	check(err)
	qp, err := pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: cq, RecvCQ: cq})
	check(err)
	peer, err := verbs.Connect(ctx, here, qp, mr) // both ends reach RTS
	check(err)

	check(qp.PostSend(ib.SendWR{Op: ib.Write, SGL: mr.SGE(0, len(buf)), Remote: peer.At(0), Flags: ib.Signaled}))
	wcs := make([]ib.WC, 1)
	_, err = cq.Wait(ctx, wcs)
	check(err)
	fmt.Println(wcs[0].Op, wcs[0].Status)
	_, err = here.Write([]byte{1})
	check(err)
	wg.Wait()
	// Output:
	// RDMA_WRITE SUCCESS
	// found in memory: hello, RDMA!
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A counter in another host's memory, incremented without that host's program.
func ExampleQP_PostSend_fetchAdd() {
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	for range 3 {
		check(p.a.qp.PostSend(ib.SendWR{
			Op: ib.FetchAdd, Flags: ib.Signaled, SGL: p.a.mr.SGE(0, 8), Remote: p.a.peer.At(0), SwapAdd: 10,
		}))
		_, err := p.a.cq.Wait(context.Background(), make([]ib.WC, 1))
		check(err)
	}
	fmt.Println("before the last addition:", binary.NativeEndian.Uint64(p.a.mr.Bytes()))
	// Output:
	// before the last addition: 20
}

// Sleeping until there is a completion, without a goroutine for each queue: arm,
// poll once more, wait for the event.
func ExampleCompChannel() {
	p := connected("127.0.0.13", "127.0.0.14")
	defer p.close()
	events := p.b.dev.CreateCompChannel()
	cq, err := p.b.dev.CreateCQ(verbs.CQConfig{Channel: events})
	check(err)
	qp, err := p.b.pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: cq, RecvCQ: cq})
	check(err)
	check(qp.ToInitUD(0x1234))
	check(qp.ToRTR(verbs.Path{}))
	check(qp.PostRecv(ib.RecvWR{SGL: p.b.mr.SGE(0, 40+64)}))
	check(cq.Arm(false))

	// Somebody sends.
	from, err := p.a.pd.CreateQP(verbs.QPConfig{Type: ib.UD, SendCQ: p.a.cq, RecvCQ: p.a.cq})
	check(err)
	check(from.ToInitUD(0))
	check(from.ToRTR(verbs.Path{}))
	check(from.ToRTS(verbs.Path{}))
	ah, err := p.a.pd.CreateAH(ib.AV{DGID: p.b.dev.GIDs()[0].GID})
	check(err)
	check(from.PostSend(ib.SendWR{
		Op: ib.Send, Flags: ib.Inline, InlineData: []byte("datagram"),
		UD: ib.Datagram{AH: ah.Handle(), QPN: qp.Num(), QKey: 0x1234},
	}))

	ready, err := events.Wait(context.Background())
	check(err)
	wcs := make([]ib.WC, 4)
	n := ready.Poll(wcs)
	fmt.Printf("%d completion: %v of %d bytes, %q behind the GRH\n", n, wcs[0].Op, wcs[0].Bytes, p.b.mr.Bytes()[40:48])
	// Output:
	// 1 completion: RECV of 48 bytes, "datagram" behind the GRH
}

// Which row of the GID table reaches a peer.
func ExampleSelectGID() {
	rows := []verbs.GIDEntry{
		{Addr: netip.MustParseAddr("fe80::1%eth0"), Type: ib.GIDTypeRoCEv2},
		{Addr: netip.MustParseAddr("192.0.2.1"), Type: ib.GIDTypeRoCEv2},
	}
	row, err := verbs.SelectGID(rows, netip.MustParseAddr("192.0.2.7"), netip.Addr{})
	fmt.Println(row, err)
	_, err = verbs.SelectGID(rows, netip.MustParseAddr("2001:db8::7"), netip.Addr{})
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// select a GID for peer 2001:db8::7: no row qualifies: row 0 (fe80::1%eth0, RoCE v2): a link-local address reaches only link-local peers; row 1 (192.0.2.1, RoCE v2): it is IPv4, the peer IPv6
}

// connected returns two connected ends for the examples.
func connected(a, b string) exampleEnds {
	return connectedBy(verbs.Config{Addr: netip.MustParseAddr(a)}, verbs.Config{Addr: netip.MustParseAddr(b)})
}

// connectedBy is connected with devices of one's own.
func connectedBy(a, b verbs.Config) exampleEnds {
	make1 := func(cfg verbs.Config) *end {
		dev, err := verbs.Open(cfg)
		check(err)
		e := &end{dev: dev, pd: dev.AllocPD()}
		e.cq, err = dev.CreateCQ(verbs.CQConfig{})
		check(err)
		e.mr, err = e.pd.RegisterMR(make([]byte, 4096), ib.AccessAll)
		check(err)
		e.qp, err = e.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: e.cq, RecvCQ: e.cq})
		check(err)
		return e
	}
	p := exampleEnds{make1(a), make1(b)}
	p.a.peer, p.b.peer = joinPair(p.a.qp, p.a.mr, p.b.qp, p.b.mr)
	return p
}

// joinPair connects two queue pairs of this process.
func joinPair(qa *verbs.QP, ma *verbs.MR, qb *verbs.QP, mb *verbs.MR) (pa, pb *verbs.Peer) {
	x, y := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		var err error
		pb, err = verbs.Connect(context.Background(), y, qb, mb)
		check(err)
	})
	pa, err := verbs.Connect(context.Background(), x, qa, ma)
	check(err)
	wg.Wait()
	return pa, pb
}

type exampleEnds struct{ a, b *end }

func (p exampleEnds) close() {
	check(p.a.dev.Close())
	check(p.b.dev.Close())
}
