package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/verbena-rdma/verbena/ib"
)

// between is the time from one message to a group to the next.
const between = 5 * time.Millisecond

// mckey: messages to a group, with the sender's QPN as immediate data. Senders
// are members of nothing here; they send until nobody wants more, because what
// comes before a member is there is lost.
func mckey(ctx context.Context, p *peer) error {
	p.typ = ib.UD
	const grh = 40
	n := p.count
	if p.send {
		n = 0
	}
	e, err := p.newEnd(n, inOff, grh+p.size)
	if err != nil {
		return err
	}
	r, err := p.m.Resolve(ctx, net.JoinHostPort(p.group, "0"))
	if err != nil {
		return err
	}
	member := e.qp
	if p.send {
		member = nil
	}
	g, err := p.m.Join(ctx, r, member, p.opt)
	if err != nil {
		return err
	}
	defer g.Leave()
	ev, err := g.NextEvent(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%T %+v\n", ev, ev)
	if !p.send {
		_, err = e.await(ctx, ib.WCRecv, p.count)
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	d := g.Datagram()
	ah, err := p.pd.CreateAH(d.AV)
	if err != nil {
		return err
	}
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		err := e.one(ctx, ib.SendWR{
			Op: ib.SendImm, Imm: uint32(e.qp.Num()), SGL: p.mr.SGE(outOff, p.size), UD: ib.Datagram{AH: ah.Handle(), QPN: d.QPN, QKey: d.QKey},
		}, ib.WCSend)
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
