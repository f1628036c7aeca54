// Command cmpeer is our end of the conversations of Debian's rdmacm-utils, over
// package rdmacm, for the tests of test/interop: rping, rdma_client and
// rdma_server, ucmatose, udaddy, cmtime, mckey.
//
//	cmpeer CONVERSATION -dev NETDEV [-connect HOST:PORT | -port N] …
//	cmpeer mckey -dev NETDEV -group ADDRESS [-send]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// peer is this end: one device, its manager, and memory.
type peer struct {
	dev *verbs.Device
	m   *rdmacm.Manager
	pd  *verbs.PD
	mr  *verbs.MR
	out io.Writer

	connect string // where to; empty: we serve
	port    uint16
	count   int // messages, or rounds
	conns   int
	size    int
	typ     ib.QPType
	opt     rdmacm.Options
	group   string // mckey
	send    bool
}

var conversations = map[string]func(ctx context.Context, p *peer) error{
	"rping": rping, "rdma": rdmaClientServer, "cmatose": cmatose, "udaddy": udaddy, "cmtime": cmtime, "mckey": mckey,
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cmpeer:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 || conversations[args[0]] == nil {
		return errors.New("usage: cmpeer rping|rdma|cmatose|udaddy|cmtime|mckey -dev NETDEV [-connect HOST:PORT | -port N | -group ADDRESS [-send]]")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	p := &peer{out: out, typ: ib.RC}
	netdev := f.String("dev", "", "network interface")
	port := f.Uint("port", 7471, "port to serve")
	tos := f.Uint("tos", 0, "type of service")
	loseRTU := f.Bool("lose-rtu", false, "no RTU of the peer arrives")
	limit := f.Duration("limit", 5*time.Minute, "time that all may take")
	ethernet := f.Bool("ethernet", false, "an Ethernet device, which needs CAP_NET_RAW")
	f.StringVar(&p.connect, "connect", "", "host:port to connect to")
	f.StringVar(&p.group, "group", "", "mckey: multicast group")
	f.BoolVar(&p.send, "send", false, "mckey: send, until the standard input ends")
	f.IntVar(&p.count, "count", 10, "messages or rounds")
	f.IntVar(&p.conns, "conns", 1, "connections")
	f.IntVar(&p.size, "size", 100, "bytes of a message")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	p.port, p.opt.TOS = uint16(*port), uint8(*tos)
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	cfg := verbs.Config{Netdev: *netdev, Ethernet: *ethernet}
	if *loseRTU {
		cfg.Wrap = func(l link.Link) link.Link { return withoutRTU{l} }
	}
	var err error
	if p.dev, err = verbs.Open(cfg); err != nil {
		return err
	}
	defer p.dev.Close()
	if p.m, err = rdmacm.Open(p.dev); err != nil {
		return err
	}
	defer p.m.Close()
	p.pd = p.dev.AllocPD()
	if p.mr, err = p.pd.RegisterMR(make([]byte, 1<<20), ib.AccessAll); err != nil {
		return err
	}
	if err := conversations[args[0]](ctx, p); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: done, CM %+v\n", args[0], p.m.Counters())
	return nil
}

// end is one connection with its queue pair.
type end struct {
	p    *peer
	qp   *verbs.QP
	cq   *verbs.CQ
	conn *rdmacm.Conn
	seen []ib.WC // completions that were not asked for yet
}

// newEnd makes a queue pair with n receives posted, of size bytes at off.
func (p *peer) newEnd(n, off, size int) (*end, error) {
	cq, err := p.dev.CreateCQ(verbs.CQConfig{Depth: 256})
	if err != nil {
		return nil, err
	}
	e := &end{p: p, cq: cq}
	if e.qp, err = p.pd.CreateQP(verbs.QPConfig{Type: p.typ, SendCQ: cq, RecvCQ: cq, Cap: ib.QPCap{MaxSendWR: 64, MaxRecvWR: 64}}); err != nil {
		return nil, err
	}
	if p.typ == ib.UD {
		err = errors.Join(e.qp.ToInitUD(rdmacm.QKeyUDP), e.qp.ToRTR(verbs.Path{}), e.qp.ToRTS(verbs.Path{}))
	} else {
		err = e.qp.ToInit(ib.RemoteAll)
	}
	for range n {
		if err == nil {
			err = e.qp.PostRecv(ib.RecvWR{SGL: p.mr.SGE(off, size)})
		}
	}
	return e, err
}

// dial connects a new end.
func (p *peer) dial(ctx context.Context, n, off, size int) (*end, error) {
	e, err := p.newEnd(n, off, size)
	if err != nil {
		return nil, err
	}
	r, err := p.m.Resolve(ctx, p.connect)
	if err != nil {
		return nil, err
	}
	e.conn, err = p.m.Dial(ctx, r, e.qp, p.opt)
	return e, err
}

// accept takes the next request with a new end.
func (p *peer) accept(ctx context.Context, l *rdmacm.Listener, n, off, size int) (*end, error) {
	req, err := l.Next(ctx)
	if err != nil {
		return nil, err
	}
	e, err := p.newEnd(n, off, size)
	if err != nil {
		return nil, err
	}
	if e.conn, err = req.Accept(ctx, e.qp, p.opt); err != nil {
		return nil, err
	}
	ev, err := e.conn.NextEvent(ctx)
	if est, ok := ev.(rdmacm.Established); ok {
		fmt.Fprintf(p.out, "established, with RTU: %v\n", est.Private != nil)
	}
	return e, err
}

func (p *peer) listen(space rdmacm.Space) (*rdmacm.Listener, error) {
	l, err := p.m.Listen(space, p.port)
	if err == nil {
		fmt.Fprintf(p.out, "listening at %v port %d\n", space, l.Port())
	}
	return l, err
}

// await waits for n completions of an operation.
func (e *end) await(ctx context.Context, op ib.WCOp, n int) (last ib.WC, err error) {
	for {
		for i := 0; i < len(e.seen); i++ {
			if e.seen[i].Op == op {
				last = e.seen[i]
				e.seen = append(e.seen[:i], e.seen[i+1:]...)
				i--
				if n--; n == 0 {
					return last, nil
				}
			}
		}
		var wcs [16]ib.WC
		k, err := e.cq.Wait(ctx, wcs[:])
		if err != nil {
			return last, fmt.Errorf("%d completions of %v are missing: %w", n, op, err)
		}
		for _, wc := range wcs[:k] {
			if wc.Status != ib.Success {
				return wc, fmt.Errorf("completion of %v: %v", op, wc.Status)
			}
			e.seen = append(e.seen, wc)
		}
	}
}

// send sends n bytes and waits until they have been acknowledged, or the peer
// has ended the connection: rxe completes a receive before it acknowledges, and
// its program may disconnect in between.
func (e *end) send(ctx context.Context, n int) error {
	if err := e.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: e.p.mr.SGE(outOff, n)}); err != nil {
		return err
	}
	_, err := e.await(ctx, ib.WCSend, 1)
	if err != nil && e.conn != nil && e.waitEnd(ctx) == nil {
		return nil
	}
	return err
}

// waitEnd waits until the peer has ended the connection.
func (e *end) waitEnd(ctx context.Context) error {
	select {
	case <-e.conn.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the peer does not disconnect: %w", ctx.Err())
	}
}
