package verbs

import (
	"github.com/verbena-rdma/verbena/ib"
)

// Path is what a connected queue pair must know to talk to its peer. Zero
// fields take the defaults given; where you want a real 0, use [QP.Modify].
type Path struct {
	DestQPN      ib.QPN
	PSN          ib.PSN     // of the first packet that the peer sends
	LocalPSN     ib.PSN     // of the first packet that this end sends
	GID          ib.GID     // the peer's
	GIDType      ib.GIDType // the RoCE version of GID, 0 if it is not known; ends that differ are refused
	GIDIndex     int        // the local row; see [Device.SelectGID]
	MTU          ib.MTU     // path MTU, the same at both ends; 0: the port's active MTU
	HopLimit     uint8      // 0: 64
	TrafficClass uint8
	FlowLabel    uint32
	SL           uint8
	PKeyIndex    uint16 // the partition; 0: that of ToInit

	TimeoutExp      uint8 // local ACK timeout, 4.096 µs · 2^n; 0: 14, 67 ms
	RetryCnt        uint8 // 0: 7
	RNRRetry        uint8 // 0: 7, for ever
	MinRNRTimer     uint8 // 0: 12, 0.64 ms
	MaxRdAtomic     uint8 // READs and ATOMICs outstanding as requester; 0: 16
	MaxDestRdAtomic uint8 // … as responder; 0: 16

	// LateAck is for peers of the same kind: see [ib.QPAttr]. Connect sets it.
	LateAck bool
}

// DefaultRdAtomic is the number of outstanding READs and ATOMICs of a Path that
// does not say.
const DefaultRdAtomic = 16

func (p Path) filled(d *Device) Path {
	def := func(v *uint8, n uint8) {
		if *v == 0 {
			*v = n
		}
	}
	rd := uint8(min(DefaultRdAtomic, d.adapter.Limits().MaxRdAtomic))
	def(&p.HopLimit, 64)
	def(&p.TimeoutExp, 14)
	def(&p.RetryCnt, 7)
	def(&p.RNRRetry, 7)
	def(&p.MinRNRTimer, 12)
	def(&p.MaxRdAtomic, rd)
	def(&p.MaxDestRdAtomic, rd)
	if p.MTU == 0 {
		p.MTU = d.adapter.MTU()
	}
	return p
}

// AV returns the address vector of the path.
func (p Path) AV() ib.AV {
	return ib.AV{
		DGID: p.GID, SGIDIndex: p.GIDIndex, HopLimit: p.HopLimit,
		TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel, SL: p.SL, DGIDType: p.GIDType,
	}
}

// ToInit moves a Reset queue pair to Init. access is what the peer may do by
// RDMA and ATOMICs; the regions have to allow it too. A UD queue pair gets the
// Q_Key 0: use ToInitUD for another.
func (q *QP) ToInit(access ib.Access) error {
	if q.Type() == ib.UD {
		return q.ToInitUD(0)
	}
	return q.Modify(ib.QPAttr{
		Mask:  ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess,
		State: ib.Init, Port: 1, Access: access,
	})
}

// ToInitUD moves a Reset UD queue pair to Init. key is what senders must know.
func (q *QP) ToInitUD(key ib.QKey) error {
	return q.Modify(ib.QPAttr{
		Mask:  ib.AttrState | ib.AttrPKeyIndex | ib.AttrPort | ib.AttrQKey,
		State: ib.Init, Port: 1, QKey: key,
	})
}

// ToRTR moves an Init queue pair to RTR: it receives. UD needs nothing of p.
func (q *QP) ToRTR(p Path) error {
	p = p.filled(q.pd.dev)
	attr := ib.QPAttr{Mask: ib.AttrState, State: ib.RTR}
	if p.PKeyIndex != 0 {
		attr.Mask |= ib.AttrPKeyIndex
		attr.PKeyIndex = p.PKeyIndex
	}
	if q.Type() != ib.UD {
		attr.Mask |= ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN
		attr.AV, attr.PathMTU, attr.DestQPN, attr.RQPSN = p.AV(), p.MTU, p.DestQPN, p.PSN
	}
	if q.Type() == ib.RC {
		attr.Mask |= ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer
		attr.MaxDestRdAtomic, attr.MinRNRTimer = p.MaxDestRdAtomic, p.MinRNRTimer
	}
	return q.Modify(attr)
}

// ToRTS moves an RTR queue pair to RTS: it sends. UD needs only LocalPSN.
func (q *QP) ToRTS(p Path) error {
	p = p.filled(q.pd.dev)
	attr := ib.QPAttr{Mask: ib.AttrState | ib.AttrSQPSN, State: ib.RTS, SQPSN: p.LocalPSN}
	if q.Type() == ib.RC {
		attr.Mask |= ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic | ib.AttrLateAck
		attr.LateAck = p.LateAck
		attr.TimeoutExp, attr.RetryCnt, attr.RNRRetry, attr.MaxRdAtomic = p.TimeoutExp, p.RetryCnt, p.RNRRetry, p.MaxRdAtomic
	}
	return q.Modify(attr)
}

// ToError moves the queue pair to Error: all that is posted completes with
// WR_FLUSH_ERR.
func (q *QP) ToError() error { return q.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.Error}) }

// ToReset moves the queue pair to Reset: all that is posted is forgotten. This
// is the way out of Error, for both ends.
func (q *QP) ToReset() error { return q.Modify(ib.QPAttr{Mask: ib.AttrState, State: ib.Reset}) }
