package verbs

import (
	"net/netip"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
)

// Attach makes a UD queue pair receive what is sent to a multicast group, an
// address of 224.0.0.0/4 or ff00::/8. The device joins the group on all its
// addresses of that family. Every queue pair that is attached gets a copy, that
// of the sender included; the program reads from the completion's sender, or from
// the GRH, whose message it is.
//
// To send to a group, send to an address handle whose GID is the group's:
// [ib.GIDFromAddr] of its address. The QPN of the request means nothing then:
// 0xFFFFFF leaves. The Q_Key decides as always.
//
// The error matches ErrInvalid for another service or what is no group, ErrBusy
// for a queue pair that is attached, ErrLimit when there are too many, ErrPath if
// the group cannot be joined. A queue pair that is attached is not closed: ErrBusy.
func (q *QP) Attach(group netip.Addr) error {
	return q.mcast("attach", func() error {
		return q.shard.adapter.AttachMcast(q.qp, ib.GIDFromAddr(group.Unmap()))
	})
}

// Detach ends what Attach has begun. The device leaves a group with the last
// queue pair.
func (q *QP) Detach(group netip.Addr) error {
	return q.mcast("detach", func() error {
		return q.shard.adapter.DetachMcast(q.qp, ib.GIDFromAddr(group.Unmap()))
	})
}

func (q *QP) mcast(what string, f func() error) error {
	return q.pd.dev.do(what, func(clock.Time) error {
		if q.dead.Load() {
			return errorf(ErrClosed, "%s QP %v: it is closed", what, q.Num())
		}
		return f()
	})
}
