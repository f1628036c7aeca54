package rdmacm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// A client that is refused, with a reason in the server's own words, and then let in;
// what both say to each other; and the end.
func Example() {
	ctx := context.Background()
	server, client := openHost("127.0.9.131"), openHost("127.0.9.132")
	defer server.close()
	defer client.close()
	l, err := server.m.Listen(rdmacm.TCP, 7471)
	check(err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			req, err := l.Next(ctx)
			check(err)
			if said := text(req.Private()); said != "open sesame" {
				check(req.Reject([]byte("not with " + said)))
				continue
			}
			conn, err := req.Accept(ctx, server.qp(), rdmacm.Options{Private: []byte("welcome")})
			check(err)
			<-conn.Done() // the peer has disconnected, or is gone
			for {
				ev, err := conn.NextEvent(ctx)
				check(err)
				if d, ok := ev.(rdmacm.Disconnected); ok {
					fmt.Printf("server: by the peer: %v, %q\n", d.ByPeer, text(d.Private))
					return
				}
			}
		}
	}()

	route, err := client.m.Resolve(ctx, "127.0.9.131:7471")
	check(err)
	_, err = client.m.Dial(ctx, route, client.qp(), rdmacm.Options{Private: []byte("hello")})
	if no := (*rdmacm.RejectedError)(nil); errors.As(err, &no) {
		fmt.Printf("client: %v: %q\n", no.Reason, text(no.Private))
	}
	conn, err := client.m.Dial(ctx, route, client.qp(), rdmacm.Options{Private: []byte("open sesame")})
	check(err)
	fmt.Printf("client: %q, %v\n", text(conn.Private()), conn.QP().State())
	check(conn.Disconnect(ctx, []byte("bye")))
	<-ended
	// Output:
	// client: rejected by the consumer: "not with hello"
	// client: "welcome", RTS
	// server: by the peer: true, "bye"
}

// host is a device with its connection manager.
type host struct {
	dev *verbs.Device
	m   *rdmacm.Manager
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
}

func openHost(addr string) *host {
	dev, err := verbs.Open(verbs.Config{Addr: netip.MustParseAddr(addr)})
	check(err)
	h := &host{dev: dev, pd: dev.AllocPD()}
	h.m, err = rdmacm.Open(dev)
	check(err)
	h.cq, err = dev.CreateCQ(verbs.CQConfig{})
	check(err)
	h.mr, err = h.pd.RegisterMR(make([]byte, 4096), ib.LocalWrite)
	check(err)
	return h
}

// qp returns a queue pair with a receive, which may be wanted with the connection.
func (h *host) qp() *verbs.QP {
	qp, err := h.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: h.cq, RecvCQ: h.cq})
	check(err)
	check(qp.ToInit(ib.RemoteAll))
	check(qp.PostRecv(ib.RecvWR{SGL: h.mr.SGE(0, 4096)}))
	return qp
}

func (h *host) close() {
	check(h.m.Close())
	check(h.dev.Close())
}

// text takes the zeros away with which private data is filled up.
func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
