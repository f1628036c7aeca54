// Hello-write opens two software RNICs in one process and writes from the
// memory of one into the memory of the other.
//
//	go run ./examples/hello-write
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx, os.Stdout, "127.0.0.1", "127.0.0.2"); err != nil {
		fmt.Fprintln(os.Stderr, "hello-write:", err)
		os.Exit(1)
	}
}

// run lets a client at address from write into the memory of a server at
// address to.
func run(ctx context.Context, out io.Writer, from, to string) error {
	here, there := net.Pipe() // stands for a TCP connection between two hosts
	served := make(chan error, 1)
	go func() { served <- serve(ctx, there, to, out) }()
	err := hello(ctx, here, from, out)
	here.Close()
	if e := <-served; err == nil {
		err = e
	}
	return err
}

// host is what both ends need.
type host struct {
	dev *verbs.Device
	cq  *verbs.CQ
	mr  *verbs.MR
	qp  *verbs.QP
}

func newHost(addr string, buf []byte, access ib.Access) (*host, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	h := &host{}
	if h.dev, err = verbs.Open(verbs.Config{Addr: a}); err != nil {
		return nil, err
	}
	pd := h.dev.AllocPD()
	if h.cq, err = h.dev.CreateCQ(verbs.CQConfig{Depth: 16}); err == nil {
		if h.mr, err = pd.RegisterMR(buf, access); err == nil {
			h.qp, err = pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: h.cq, RecvCQ: h.cq})
		}
	}
	if err != nil {
		h.dev.Close() // and all that was made of it
		return nil, err
	}
	return h, nil
}

// hello writes a greeting into the peer's memory.
func hello(ctx context.Context, conn net.Conn, addr string, out io.Writer) error {
	buf := []byte("hello from " + addr)
	h, err := newHost(addr, buf, 0)
	if err != nil {
		return err
	}
	defer h.dev.Close()
	peer, err := verbs.Connect(ctx, conn, h.qp, h.mr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: QP %v is connected with QP %v of %v, path MTU %v\n", addr, h.qp.Num(), peer.QPN, peer.Path.GID.Addr(), peer.Path.MTU)

	err = h.qp.PostSend(ib.SendWR{Op: ib.Write, SGL: h.mr.SGE(0, len(buf)), Remote: peer.At(0), Flags: ib.Signaled})
	if err != nil {
		return err
	}
	var wcs [1]ib.WC
	if _, err := h.cq.Wait(ctx, wcs[:]); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %v of %d bytes: %v\n", addr, wcs[0].Op, len(buf), wcs[0].Status)
	_, err = conn.Write([]byte{byte(len(buf))}) // a WRITE tells nobody; say that it is there
	return err
}

// serve lends its memory and shows what it finds there.
func serve(ctx context.Context, conn net.Conn, addr string, out io.Writer) error {
	defer conn.Close()
	h, err := newHost(addr, make([]byte, 256), ib.LocalWrite|ib.RemoteWrite)
	if err != nil {
		return err
	}
	defer h.dev.Close()
	if _, err := verbs.Connect(ctx, conn, h.qp, h.mr); err != nil {
		return err
	}
	var n [1]byte
	if _, err := io.ReadFull(conn, n[:]); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: found in memory: %q\n", addr, h.mr.Bytes()[:n[0]])
	return nil
}
