package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
)

// Places in the region.
const (
	outOff  = 0       // what is sent
	inOff   = 4 << 10 // what is received
	dataOff = 64 << 10
	sinkOff = 512 << 10
)

// rping: the client names a buffer, the server READs it and says so; the client
// names another, the server WRITEs the same into it and says so.
func rping(ctx context.Context, p *peer) error {
	const info = 16
	tell := func(e *end, off int) error {
		b := p.mr.Bytes()[outOff:]
		binary.BigEndian.PutUint64(b, p.mr.Remote(off).Addr)
		binary.BigEndian.PutUint32(b[8:], uint32(p.mr.RKey()))
		binary.BigEndian.PutUint32(b[12:], uint32(p.size))
		return e.send(ctx, info)
	}
	hear := func(e *end) (ib.Remote, int, error) {
		_, err := e.await(ctx, ib.WCRecv, 1)
		b := p.mr.Bytes()[inOff:]
		r := ib.Remote{Addr: binary.BigEndian.Uint64(b), RKey: ib.RKey(binary.BigEndian.Uint32(b[8:]))}
		return r, int(binary.BigEndian.Uint32(b[12:])), errors.Join(err, e.qp.PostRecv(ib.RecvWR{SGL: p.mr.SGE(inOff, info)}))
	}
	if p.connect != "" {
		e, err := p.dial(ctx, 2, inOff, info)
		if err != nil {
			return err
		}
		for i := range p.count {
			data, sink := p.mr.Bytes()[dataOff:dataOff+p.size], p.mr.Bytes()[sinkOff:sinkOff+p.size]
			for k := range data {
				data[k] = byte('a' + (i+k)%26)
			}
			data[p.size-1] = 0 // rping takes it for a string
			clear(sink)
			for _, off := range []int{dataOff, sinkOff} {
				if err := tell(e, off); err != nil {
					return err
				}
				if _, _, err := hear(e); err != nil {
					return err
				}
			}
			if !bytes.Equal(data, sink) {
				return fmt.Errorf("round %d: other data came back", i)
			}
		}
		return e.conn.Disconnect(ctx, nil)
	}
	l, err := p.listen(rdmacm.TCP)
	if err != nil {
		return err
	}
	e, err := p.accept(ctx, l, 2, inOff, info)
	if err != nil {
		return err
	}
	for range p.count {
		from, n, err := hear(e)
		if err != nil {
			return err
		}
		if n > sinkOff-dataOff {
			return fmt.Errorf("the client names %d bytes", n)
		}
		if err := e.one(ctx, ib.SendWR{Op: ib.Read, SGL: p.mr.SGE(dataOff, n), Remote: from}, ib.WCRead); err != nil {
			return err
		}
		if err := e.send(ctx, info); err != nil {
			return err
		}
		to, _, err := hear(e)
		if err != nil {
			return err
		}
		if err := e.one(ctx, ib.SendWR{Op: ib.Write, SGL: p.mr.SGE(dataOff, n), Remote: to}, ib.WCWrite); err != nil {
			return err
		}
		if err := e.send(ctx, info); err != nil {
			return err
		}
	}
	return e.waitEnd(ctx)
}

// one posts a request and waits for it.
func (e *end) one(ctx context.Context, wr ib.SendWR, op ib.WCOp) error {
	wr.Flags |= ib.Signaled
	if err := e.qp.PostSend(wr); err != nil {
		return err
	}
	_, err := e.await(ctx, op, 1)
	return err
}

// rdmaClientServer is rdma_client and rdma_server: 16 bytes there, 16 back.
func rdmaClientServer(ctx context.Context, p *peer) error {
	const n = 16
	if p.connect != "" {
		e, err := p.dial(ctx, 1, inOff, n)
		if err != nil {
			return err
		}
		if err := e.send(ctx, n); err != nil {
			return err
		}
		if _, err := e.await(ctx, ib.WCRecv, 1); err != nil {
			return err
		}
		return e.conn.Disconnect(ctx, nil)
	}
	l, err := p.listen(rdmacm.TCP)
	if err != nil {
		return err
	}
	e, err := p.accept(ctx, l, 1, inOff, n)
	if err != nil {
		return err
	}
	if _, err := e.await(ctx, ib.WCRecv, 1); err != nil {
		return err
	}
	if err := e.send(ctx, n); err != nil {
		return err
	}
	return e.waitEnd(ctx)
}

// ends makes all connections of the peer.
func (p *peer) ends(ctx context.Context) ([]*end, error) {
	var all []*end
	var l *rdmacm.Listener
	if p.connect == "" {
		var err error
		if l, err = p.listen(rdmacm.TCP); err != nil {
			return nil, err
		}
	}
	for range p.conns {
		var e *end
		var err error
		if l != nil {
			e, err = p.accept(ctx, l, p.count, inOff, p.size)
		} else {
			e, err = p.dial(ctx, p.count, inOff, p.size)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// cmatose is ucmatose: the server sends, the client answers; the server ends.
func cmatose(ctx context.Context, p *peer) error {
	all, err := p.ends(ctx)
	if err != nil {
		return err
	}
	sendAll := func() error {
		for _, e := range all {
			for range p.count {
				if err := e.send(ctx, p.size); err != nil {
					return err
				}
			}
		}
		return nil
	}
	hearAll := func() error {
		for _, e := range all {
			if _, err := e.await(ctx, ib.WCRecv, p.count); err != nil {
				return err
			}
		}
		return nil
	}
	if p.connect != "" {
		if err := errors.Join(hearAll(), sendAll()); err != nil {
			return err
		}
		for _, e := range all {
			if err := e.waitEnd(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(sendAll(), hearAll()); err != nil {
		return err
	}
	for _, e := range all {
		if err := e.conn.Disconnect(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// cmtime: many connections at once, and their ends, which are the client's.
func cmtime(ctx context.Context, p *peer) error {
	p.count = 0
	if p.connect == "" {
		all, err := p.ends(ctx)
		if err != nil {
			return err
		}
		for _, e := range all {
			if err := e.waitEnd(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make(chan error, p.conns)
	for range p.conns {
		go func() {
			e, err := p.dial(ctx, 0, 0, 0)
			if err == nil {
				err = e.conn.Disconnect(ctx, nil)
			}
			errs <- err
		}()
	}
	var err error
	for range p.conns {
		err = errors.Join(err, <-errs)
	}
	return err
}
