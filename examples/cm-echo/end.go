package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// host is a device with its connection manager: a program has one for each
// address that it uses.
type host struct {
	dev *verbs.Device
	cm  *rdmacm.Manager
	pd  *verbs.PD
}

// openHost opens the device of an address.
func openHost(addr string) (*host, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, err
	}
	dev, err := verbs.Open(verbs.Config{Addr: a})
	if err != nil {
		return nil, err
	}
	cm, err := rdmacm.Open(dev)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &host{dev: dev, cm: cm, pd: dev.AllocPD()}, nil
}

// close closes the manager before its device. Peers are told.
func (h *host) close() {
	_ = h.cm.Close()
	_ = h.dev.Close()
}

// An end has room for one message each way.
const room = 4096

// end is one end of a connection: a queue pair, where its completions go, and
// memory that it sends from and receives into. Sends and receives complete in
// two queues: an answer may be here before the acknowledgement of what it
// answers.
type end struct {
	qp         *verbs.QP
	sent, come *verbs.CQ
	mr         *verbs.MR
	buf        []byte // room to send, room to receive
}

// newEnd makes an end with a receive posted: the first message may come with
// the connection, so receives are posted before.
func (h *host) newEnd() (*end, error) {
	e := &end{buf: make([]byte, 2*room)}
	var err error
	if e.sent, err = h.dev.CreateCQ(verbs.CQConfig{Depth: 16}); err != nil {
		return nil, err
	}
	if e.come, err = h.dev.CreateCQ(verbs.CQConfig{Depth: 16}); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if e.mr, err = h.pd.RegisterMR(e.buf, ib.LocalWrite); err != nil {
		return nil, errors.Join(err, e.close())
	}
	e.qp, err = h.pd.CreateQP(verbs.QPConfig{Type: ib.RC, SendCQ: e.sent, RecvCQ: e.come, Cap: ib.QPCap{MaxSendWR: 4, MaxRecvWR: 4}})
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err := errors.Join(e.qp.ToInit(ib.RemoteAll), e.receive()); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *end) receive() error {
	return e.qp.PostRecv(ib.RecvWR{SGL: e.mr.SGE(room, room)})
}

// send sends a message and waits until the peer has it.
func (e *end) send(ctx context.Context, message []byte) error {
	n := copy(e.buf[:room], message)
	if err := e.qp.PostSend(ib.SendWR{Op: ib.Send, Flags: ib.Signaled, SGL: e.mr.SGE(0, n)}); err != nil {
		return err
	}
	_, err := next(ctx, e.sent)
	return err
}

// hear waits for a message. What is returned is good until the next call.
func (e *end) hear(ctx context.Context) ([]byte, error) {
	n, err := next(ctx, e.come)
	return e.buf[room:][:n], err
}

// next waits for a completion and returns its length.
func next(ctx context.Context, cq *verbs.CQ) (int, error) {
	var wcs [1]ib.WC
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return 0, err
	}
	if wcs[0].Status != ib.Success {
		return 0, fmt.Errorf("%v: %v", wcs[0].Op, wcs[0].Status)
	}
	return int(wcs[0].Bytes), nil
}

// close frees what the end has, last made first.
func (e *end) close() error {
	var err error
	if e.qp != nil {
		err = e.qp.Close()
	}
	if e.mr != nil {
		err = errors.Join(err, e.mr.Close())
	}
	for _, cq := range []*verbs.CQ{e.come, e.sent} {
		if cq != nil {
			err = errors.Join(err, cq.Close())
		}
	}
	return err
}
