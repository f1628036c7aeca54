package attrs

import "github.com/verbena-rdma/verbena/ib"

// Attrs are attributes as they were last modified. The fields are those of
// [ib.QPAttr].
type Attrs struct {
	Access          ib.Access
	QKey            ib.QKey
	RQPSN           ib.PSN
	SQPSN           ib.PSN
	DestQPN         ib.QPN
	PKey            ib.PKey // 0: not told yet
	PathMTU         ib.MTU
	TimeoutExp      uint8
	RetryCnt        uint8
	RNRRetry        uint8
	MaxRdAtomic     uint8
	MaxDestRdAtomic uint8
	MinRNRTimer     uint8
	SQDAsyncNotify  bool
	LateAck         bool
}

// Apply copies the attributes that the mask of a names.
func (t *Attrs) Apply(a *ib.QPAttr) {
	m := a.Mask
	if m&ib.AttrAccess != 0 {
		t.Access = a.Access
	}
	if m&ib.AttrQKey != 0 {
		t.QKey = a.QKey
	}
	if m&ib.AttrPKeyIndex != 0 {
		t.PKey = a.PKey
	}
	if m&ib.AttrPathMTU != 0 {
		t.PathMTU = a.PathMTU
	}
	if m&ib.AttrTimeout != 0 {
		t.TimeoutExp = a.TimeoutExp
	}
	if m&ib.AttrRetryCnt != 0 {
		t.RetryCnt = a.RetryCnt
	}
	if m&ib.AttrRNRRetry != 0 {
		t.RNRRetry = a.RNRRetry
	}
	if m&ib.AttrRQPSN != 0 {
		t.RQPSN = a.RQPSN & ib.PSNMask
	}
	if m&ib.AttrSQPSN != 0 {
		t.SQPSN = a.SQPSN & ib.PSNMask
	}
	if m&ib.AttrMaxRdAtomic != 0 {
		t.MaxRdAtomic = a.MaxRdAtomic
	}
	if m&ib.AttrMaxDestRdAtomic != 0 {
		t.MaxDestRdAtomic = a.MaxDestRdAtomic
	}
	if m&ib.AttrMinRNRTimer != 0 {
		t.MinRNRTimer = a.MinRNRTimer
	}
	if m&ib.AttrDestQPN != 0 {
		t.DestQPN = a.DestQPN
	}
	if m&ib.AttrEnSQDAsyncNotify != 0 {
		t.SQDAsyncNotify = a.SQDAsyncNotify
	}
	if m&ib.AttrLateAck != 0 {
		t.LateAck = a.LateAck
	}
}

// Key returns the partition key, by default that of every port.
func (t *Attrs) Key() ib.PKey {
	if t.PKey == 0 {
		return ib.DefaultPKey
	}
	return t.PKey
}

// Fill writes the attributes to a. Mask, and what is not here, it leaves alone.
func (t *Attrs) Fill(a *ib.QPAttr) {
	a.Access, a.QKey, a.PathMTU, a.DestQPN = t.Access, t.QKey, t.PathMTU, t.DestQPN
	a.RQPSN, a.SQPSN = t.RQPSN, t.SQPSN
	a.TimeoutExp, a.RetryCnt, a.RNRRetry, a.MinRNRTimer = t.TimeoutExp, t.RetryCnt, t.RNRRetry, t.MinRNRTimer
	a.MaxRdAtomic, a.MaxDestRdAtomic = t.MaxRdAtomic, t.MaxDestRdAtomic
	a.SQDAsyncNotify, a.LateAck = t.SQDAsyncNotify, t.LateAck
}
