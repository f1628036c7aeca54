package main

import (
	"context"
	"errors"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
)

// udaddy: the client looks the server's queue pair up and sends; the server
// answers to where it came from.
func udaddy(ctx context.Context, p *peer) error {
	p.typ = ib.UD
	const grh = 40
	e, err := p.newEnd(p.count, inOff, grh+p.size)
	if err != nil {
		return err
	}
	if p.connect != "" {
		r, err := p.m.Resolve(ctx, p.connect)
		if err != nil {
			return err
		}
		d, err := p.m.Lookup(ctx, r, p.opt)
		if err != nil {
			return err
		}
		if err := e.datagrams(ctx, d.AV, d.QPN, d.QKey); err != nil {
			return err
		}
		_, err = e.await(ctx, ib.WCRecv, p.count)
		return err
	}
	l, err := p.listen(rdmacm.UDP)
	if err != nil {
		return err
	}
	req, err := l.Next(ctx)
	if err != nil {
		return err
	}
	if err := req.AcceptUD(e.qp, nil); err != nil {
		return err
	}
	wc, err := e.await(ctx, ib.WCRecv, p.count)
	if err != nil {
		return err
	}
	b := p.mr.Bytes()[inOff:]
	gid := ib.GID(b[8:24])
	if b[0]>>4 != 6 {
		gid = ib.GIDFromAddr(netip.AddrFrom4([4]byte(b[32:36])))
	}
	return e.datagrams(ctx, ib.AV{DGID: gid, SGIDIndex: int(wc.SGIDIndex)}, wc.SrcQPN, rdmacm.QKeyUDP)
}

// datagrams sends all messages to a queue pair.
func (e *end) datagrams(ctx context.Context, av ib.AV, qpn ib.QPN, key ib.QKey) error {
	ah, err := e.p.pd.CreateAH(av)
	if err != nil {
		return err
	}
	for range e.p.count {
		wr := ib.SendWR{
			// udaddy answers to the queue pair that the immediate data name.
			Op: ib.SendImm, Imm: uint32(e.qp.Num()), Flags: ib.Signaled, SGL: e.p.mr.SGE(outOff, e.p.size), UD: ib.Datagram{AH: ah.Handle(), QPN: qpn, QKey: key},
		}
		err = errors.Join(err, e.qp.PostSend(wr))
	}
	if err != nil {
		return err
	}
	_, err = e.await(ctx, ib.WCSend, e.p.count)
	return err
}
