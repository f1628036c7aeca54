package demo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/verbs"
)

const (
	regionBytes = 1 << 20
	recvDepth   = 256
	sendDepth   = 128
)

// end is one of the two hosts: a device with one connected queue pair and one
// memory region.
type end struct {
	dev  *verbs.Device
	pd   *verbs.PD
	cq   *verbs.CQ
	mem  *verbs.Memory
	mr   *verbs.MR
	qp   *verbs.QP
	peer *verbs.MR // the far end's region
	wcs  [32]ib.WC
}

func (e *end) close() error {
	if e == nil || e.dev == nil {
		return nil
	}
	err := e.dev.Close()
	if e.mem != nil {
		err = errors.Join(err, e.mem.Close())
	}
	return err
}

// openEnd makes a device on addr. wrap may be nil.
func openEnd(addr netip.Addr, port uint16, wrap func(link.Link) link.Link) (e *end, err error) {
	e = &end{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
			e = nil
		}
	}()
	if e.dev, err = verbs.Open(verbs.Config{Addr: addr, Port: port, Wrap: wrap}); err != nil {
		return e, err
	}
	if e.mem, err = verbs.Alloc(regionBytes); err != nil {
		return e, err
	}
	e.pd = e.dev.AllocPD()
	if e.cq, err = e.dev.CreateCQ(verbs.CQConfig{Depth: sendDepth + recvDepth}); err != nil {
		return e, err
	}
	if e.mr, err = e.pd.RegisterMR(e.mem.Bytes(), ib.LocalWrite|ib.RemoteAll); err != nil {
		return e, err
	}
	e.qp, err = e.pd.CreateQP(verbs.QPConfig{
		Type: ib.RC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: ib.QPCap{MaxSendWR: sendDepth, MaxRecvWR: recvDepth},
	})
	return e, err
}

// duo is a connected pair of ends.
type duo struct{ a, b *end }

func (d *duo) close() error { return errors.Join(d.a.close(), d.b.close()) }

// ackTimeoutExp gives a local ACK timeout of 67 ms, of which eight outlast a
// host that is busy elsewhere.
const ackTimeoutExp = 14

// openDuo makes two devices and connects their queue pairs; both ends being in
// this process, they need no exchange (verbs.Connect is for when they are not).
// wrap, if not nil, puts middleware around the link of the second.
func openDuo(cfg *Config, wrap func(link.Link) link.Link) (d *duo, err error) {
	d = &duo{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
			d = nil
		}
	}()
	if d.a, err = openEnd(cfg.Client, cfg.Port, nil); err != nil {
		return d, err
	}
	if d.b, err = openEnd(cfg.Server, cfg.Port, wrap); err != nil {
		return d, err
	}
	psnA, psnB := ib.PSN(rand.Uint32())&ib.PSNMask, ib.PSN(rand.Uint32())&ib.PSNMask
	if err = d.a.connect(d.b, psnA, psnB); err != nil {
		return d, err
	}
	return d, d.b.connect(d.a, psnB, psnA)
}

// connect takes the queue pair of e to RTS, towards peer.
func (e *end) connect(peer *end, psn, peerPSN ib.PSN) error {
	addr := peer.dev.Attr().Addr
	index, err := e.dev.SelectGID(addr)
	if err != nil {
		return err
	}
	path := verbs.Path{
		DestQPN: peer.qp.Num(), PSN: peerPSN, LocalPSN: psn,
		GID: ib.GIDFromAddr(addr), GIDIndex: index, TimeoutExp: ackTimeoutExp, LateAck: true,
	}
	e.peer = peer.mr
	if err := e.qp.ToInit(ib.RemoteAll | ib.LocalWrite); err != nil {
		return err
	}
	if err := e.qp.ToRTR(path); err != nil {
		return err
	}
	return e.qp.ToRTS(path)
}

// check turns a failed completion into an error.
func check(wcs []ib.WC) error {
	for i := range wcs {
		if wcs[i].Status != ib.Success {
			return fmt.Errorf("work request %d on QP %v: %v", wcs[i].ID, wcs[i].QPN, wcs[i].Status)
		}
	}
	return nil
}
