package rdmacm

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// ways is what both ends have agreed on, as one end's queue pair needs it.
type ways struct {
	av                 ib.AV
	mtu                ib.MTU
	peerQPN            ib.QPN
	recvPSN, sendPSN   ib.PSN
	responderResources uint8
	initiatorDepth     uint8
	ackTimeoutExp      uint8
	retryCount         uint8
	rnrRetry           uint8
	minRNRTimer        uint8
}

// checkQP refuses a queue pair that cannot be connected.
func checkQP(what string, dev *verbs.Device, qp *verbs.QP) error {
	switch {
	case qp == nil:
		return errorf(ErrInvalid, "%s: no queue pair", what)
	case qp.Device() != dev:
		return errorf(ErrInvalid, "%s: QP %v belongs to device %v, the connection manager to %v", what, qp.Num(), qp.Device(), dev)
	case qp.Type() == ib.UD:
		return errorf(ErrInvalid, "%s: QP %v is UD; datagrams have no connections, use Lookup and AcceptUD", what, qp.Num())
	}
	if s := qp.State(); s != ib.Reset && s != ib.Init {
		return errorf(verbs.ErrState, "%s: QP %v is in state %v, must be RESET or INIT", what, qp.Num(), s)
	}
	return nil
}

// toInit brings a queue pair to Init, if it is not there.
func toInit(qp *verbs.QP, access ib.Access) error {
	if qp.State() == ib.Init {
		return nil
	}
	return qp.ToInit(access)
}

// readyUD brings a UD queue pair from Reset to RTS, as port space UDP has it.
func readyUD(qp *verbs.QP) error {
	if err := qp.ToInitUD(QKeyUDP); err != nil {
		return err
	}
	if err := qp.ToRTR(verbs.Path{}); err != nil {
		return err
	}
	return qp.ToRTS(verbs.Path{LocalPSN: randomPSN()})
}

// up brings a queue pair from Init to RTS.
func (w *ways) up(qp *verbs.QP) error {
	if err := w.toRTR(qp); err != nil {
		return err
	}
	return w.toRTS(qp)
}

func (w *ways) toRTR(qp *verbs.QP) error {
	rc := qp.Type() == ib.RC
	a := ib.QPAttr{
		Mask:  ib.AttrState | ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN,
		State: ib.RTR, AV: w.av, PathMTU: w.mtu, DestQPN: w.peerQPN, RQPSN: w.recvPSN,
		MaxDestRdAtomic: w.responderResources, MinRNRTimer: w.minRNRTimer,
	}
	if rc {
		a.Mask |= ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer
	}
	return qp.Modify(a)
}

func (w *ways) toRTS(qp *verbs.QP) error {
	a := ib.QPAttr{
		Mask: ib.AttrState | ib.AttrSQPSN, State: ib.RTS, SQPSN: w.sendPSN,
		TimeoutExp: w.ackTimeoutExp, RetryCnt: w.retryCount, RNRRetry: w.rnrRetry, MaxRdAtomic: w.initiatorDepth,
	}
	if qp.Type() == ib.RC {
		a.Mask |= ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic
	}
	return qp.Modify(a)
}

// down ends the use of a queue pair: what was received is acknowledged, what is
// posted is flushed.
func down(qp *verbs.QP) {
	_ = qp.State() // what is due leaves
	_ = qp.ToError()
}

func randomPSN() ib.PSN { return ib.PSN(random32()) & ib.PSNMask }
