package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// connectCM connects the queue pairs, between two synchronisations. Both ends
// take them in the same order.
func (t *test) connectCM(ctx context.Context) error {
	if err := t.s.Sync(handshake.Key{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	one := t.connectOne
	if t.cfg.Conn == ib.UD {
		one = t.lookupOne
	}
	for i, qp := range t.rig.qps {
		if err := one(ctx, i, qp); err != nil {
			return fmt.Errorf("QP %d of %d: %w", i+1, len(t.rig.qps), err)
		}
	}
	return t.s.Sync(handshake.Key{})
}

// connectOne makes one connection.
func (t *test) connectOne(ctx context.Context, _ int, qp *verbs.QP) error {
	r, c := t.rig, t.cfg
	reads := r.outReads
	if c.Verb != handshake.Read && c.Verb != handshake.Atomic {
		reads = -1
	}
	timeout := c.Timeout
	if timeout == defaultTimeout {
		timeout = 0 // nobody has chosen: as connections of the manager have it
	}
	o := rdmacm.Options{
		ResponderResources: reads, InitiatorDepth: reads, AckTimeoutExp: timeout, TOS: c.TOS, SL: c.SL, MTU: r.mtu, RetryCount: c.RetryCount,
		Access: r.remoteAccess(),
	}
	var conn *rdmacm.Conn
	var err error
	if t.server {
		var req *rdmacm.Request
		if req, err = t.cm.l.Next(ctx); err == nil {
			conn, err = req.Accept(ctx, qp, o)
		}
	} else {
		err = untilServed(ctx, func() (err error) {
			conn, err = t.cm.m.Dial(ctx, t.cm.route, qp, o)
			return err
		})
	}
	if err == nil {
		t.cm.conns = append(t.cm.conns, conn)
	}
	return err
}

// lookupOne lets the client of datagrams find one of the server's queue pairs.
// The server learns the client's from the keys that follow; the datagram by which
// a perftest client introduces itself finds no receive yet.
func (t *test) lookupOne(ctx context.Context, lane int, qp *verbs.QP) error {
	if err := errors.Join(qp.ToRTR(verbs.Path{}), qp.ToRTS(verbs.Path{LocalPSN: t.rig.keys[lane].PSN})); err != nil {
		return err
	}
	if t.server {
		req, err := t.cm.ud.Next(ctx)
		if err != nil {
			return err
		}
		return req.AcceptUD(qp, nil)
	}
	var d *rdmacm.Datagram
	err := untilServed(ctx, func() (err error) {
		d, err = t.cm.m.Lookup(ctx, t.cm.route, rdmacm.Options{TOS: t.cfg.TOS, SL: t.cfg.SL})
		return err
	})
	if err != nil {
		return err
	}
	if err := t.rig.address(lane, d.AV, d.QPN, d.QKey); err != nil {
		return err
	}
	if t.theirs || !t.cfg.Latency && !t.cfg.Both {
		return nil
	}
	return t.introduce(lane, qp)
}

// introduce sends the datagram from which a perftest server that answers learns
// where to: its immediate data are the sender's QPN, its four bytes are for
// nobody.
func (t *test) introduce(lane int, qp *verbs.QP) error {
	r := t.rig
	return qp.PostSend(ib.SendWR{
		Op: ib.SendImm, Imm: uint32(qp.Num()), UD: r.lanes[lane].UD,
		SGL: []ib.SGE{{Addr: r.mr.Addr() + r.sendAt(lane), Length: 4, LKey: r.mr.LKey()}},
	})
}

// dialAgain is how long a client waits before it asks again.
const dialAgain = 20 * time.Millisecond

// untilServed asks until the server listens: perftest's begins to after the
// synchronisation that says so.
func untilServed(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if !errors.Is(err, rdmacm.ErrRefused) {
			return err
		}
		again := time.NewTimer(dialAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return err
		}
	}
}

// remotes notes where the lanes' peers are: their memory, and to whom the
// server of datagrams answers.
func (t *test) remotes(theirs []handshake.Key) error {
	r := t.rig
	for i := range r.lanes {
		k := &theirs[i]
		r.lanes[i].Remote = ib.Remote{Addr: k.Addr, RKey: k.RKey}
		if t.cfg.Conn != ib.UD || !t.server {
			continue
		}
		av := ib.AV{DGID: k.GID, SGIDIndex: r.gid.Index, TrafficClass: t.cfg.TOS, SL: t.cfg.SL}
		if err := r.address(i, av, k.QPN, rdmacm.QKeyUDP); err != nil {
			return err
		}
	}
	return nil
}
