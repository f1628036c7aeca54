package rnic

import (
	"fmt"
	"strings"

	"github.com/verbena-rdma/verbena/ib"
)

// The state machine of a queue pair as a modify call sees it (IBA vol.1 10.3.1
// and 11.2.5.2, table 91):
//
//	RESET ─▶ INIT ─▶ RTR ─▶ RTS ◀─▶ SQD          any ─▶ RESET
//	                         ▲                   any ─▶ ERR
//	                        SQE
//
// RTS to SQE happens by itself, on UC and UD, and never on request. A state may
// be "entered" from itself to change attributes. Which attributes a transition
// needs and allows is the table below; what values they may have is
// qpState.values.

// transition is one row: how the state is left and which attributes are needed
// and allowed on the way. AttrState and AttrCurState are always allowed.
type transition struct {
	from, to ib.QPState
	rc       attrSets
	uc       attrSets
	ud       attrSets
}

type attrSets struct{ need, may ib.AttrMask }

const (
	initConn  = ib.AttrPKeyIndex | ib.AttrPort | ib.AttrAccess
	initDgram = ib.AttrPKeyIndex | ib.AttrPort | ib.AttrQKey

	rtrUC = ib.AttrAV | ib.AttrPathMTU | ib.AttrDestQPN | ib.AttrRQPSN
	rtrRC = rtrUC | ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer

	rtsUC = ib.AttrSQPSN
	rtsRC = rtsUC | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry | ib.AttrMaxRdAtomic

	// What may change in RTS, and on the way to it. The rate limit and the late
	// ACK are Verbena's own additions.
	liveUD = ib.AttrQKey | ib.AttrRateLimit
	liveUC = ib.AttrAccess | ib.AttrAltPath | ib.AttrPathMigState | ib.AttrRateLimit
	liveRC = liveUC | ib.AttrMinRNRTimer | ib.AttrLateAck

	sqdUD = ib.AttrPKeyIndex | ib.AttrQKey
	sqdUC = ib.AttrAV | ib.AttrAltPath | ib.AttrAccess | ib.AttrPKeyIndex | ib.AttrPathMigState
	sqdRC = sqdUC | ib.AttrPort | ib.AttrTimeout | ib.AttrRetryCnt | ib.AttrRNRRetry |
		ib.AttrMaxRdAtomic | ib.AttrMaxDestRdAtomic | ib.AttrMinRNRTimer

	rtrMay = ib.AttrAltPath | ib.AttrAccess | ib.AttrPKeyIndex
)

// transitions lists every transition but those to Reset and Error, which are
// possible from every state and take no other attribute.
var transitions = [...]transition{
	{ib.Reset, ib.Init, attrSets{initConn, 0}, attrSets{initConn, 0}, attrSets{initDgram, 0}},
	{ib.Init, ib.Init, attrSets{0, initConn}, attrSets{0, initConn}, attrSets{0, initDgram}},
	{ib.Init, ib.RTR, attrSets{rtrRC, rtrMay}, attrSets{rtrUC, rtrMay}, attrSets{0, sqdUD}},
	{ib.RTR, ib.RTS, attrSets{rtsRC, liveRC}, attrSets{rtsUC, liveUC}, attrSets{ib.AttrSQPSN, liveUD}},
	{ib.RTS, ib.RTS, attrSets{0, liveRC}, attrSets{0, liveUC}, attrSets{0, liveUD}},
	{
		ib.RTS, ib.SQD,
		attrSets{0, ib.AttrEnSQDAsyncNotify},
		attrSets{0, ib.AttrEnSQDAsyncNotify},
		attrSets{0, ib.AttrEnSQDAsyncNotify},
	},
	{ib.SQD, ib.SQD, attrSets{0, sqdRC}, attrSets{0, sqdUC}, attrSets{0, sqdUD}},
	{ib.SQD, ib.RTS, attrSets{0, liveRC}, attrSets{0, liveUC}, attrSets{0, liveUD}},
	// A reliable connection has no SQE: its send queue fails with the whole QP.
	{ib.SQE, ib.RTS, attrSets{}, attrSets{0, ib.AttrAccess | ib.AttrRateLimit}, attrSets{0, liveUD}},
}

// transitionAttrs returns the attributes that a transition needs and those that
// it allows besides, without AttrState and AttrCurState; ok is false if there
// is no such transition.
func transitionAttrs(typ ib.QPType, from, to ib.QPState) (need, may ib.AttrMask, ok bool) {
	if from > ib.Error || typ == ib.RC && from == ib.SQE {
		return 0, 0, false
	}
	if to == ib.Reset || to == ib.Error {
		return 0, 0, true
	}
	for i := range transitions {
		t := &transitions[i]
		if t.from != from || t.to != to {
			continue
		}
		switch typ {
		case ib.RC:
			return t.rc.need, t.rc.may, true
		case ib.UC:
			return t.uc.need, t.uc.may, true
		case ib.UD:
			return t.ud.need, t.ud.may, true
		}
	}
	return 0, 0, false
}

// unsupportedAttrs are defined by the specification, and optional there, but
// not offered by this adapter.
var unsupportedAttrs = []struct {
	attr ib.AttrMask
	why  string
}{
	{ib.AttrAltPath, "automatic path migration is not supported; leave it out"},
	{ib.AttrPathMigState, "automatic path migration is not supported; leave it out"},
	{ib.AttrCap, "queues cannot be resized; create the QP with the sizes it needs"},
}

// attrNames holds the names of attributes as libibverbs' struct ibv_qp_attr has
// them, in the order of the bits.
var attrNames = []struct {
	attr ib.AttrMask
	name string
}{
	{ib.AttrState, "qp_state"},
	{ib.AttrCurState, "cur_qp_state"},
	{ib.AttrEnSQDAsyncNotify, "en_sqd_async_notify"},
	{ib.AttrAccess, "qp_access_flags"},
	{ib.AttrPKeyIndex, "pkey_index"},
	{ib.AttrPort, "port_num"},
	{ib.AttrQKey, "qkey"},
	{ib.AttrAV, "ah_attr"},
	{ib.AttrPathMTU, "path_mtu"},
	{ib.AttrTimeout, "timeout"},
	{ib.AttrRetryCnt, "retry_cnt"},
	{ib.AttrRNRRetry, "rnr_retry"},
	{ib.AttrRQPSN, "rq_psn"},
	{ib.AttrMaxRdAtomic, "max_rd_atomic"},
	{ib.AttrAltPath, "alt_ah_attr"},
	{ib.AttrMinRNRTimer, "min_rnr_timer"},
	{ib.AttrSQPSN, "sq_psn"},
	{ib.AttrMaxDestRdAtomic, "max_dest_rd_atomic"},
	{ib.AttrPathMigState, "path_mig_state"},
	{ib.AttrCap, "cap"},
	{ib.AttrDestQPN, "dest_qp_num"},
	{ib.AttrRateLimit, "rate_limit"},
	{ib.AttrLateAck, "late_ack"},
}

const attrsDefined = ib.AttrState | ib.AttrCurState | ib.AttrEnSQDAsyncNotify | initConn | initDgram | rtrRC |
	rtsRC | liveRC | ib.AttrCap

// attrList names the attributes of a mask, in the order of the bits.
func attrList(m ib.AttrMask) string {
	var names []string
	for _, a := range attrNames {
		if m&a.attr != 0 {
			names = append(names, a.name)
			m &^= a.attr
		}
	}
	if m != 0 {
		names = append(names, fmt.Sprintf("0x%x", uint32(m)))
	}
	return strings.Join(names, ", ")
}

// ModifyError says why a queue pair was not modified. Nothing of it has
// changed. It matches ErrState if the transition does not exist,
// ErrUnsupported for what the adapter does not offer, ErrPath for an address
// that leads nowhere, ErrInvalid otherwise.
type ModifyError struct {
	QPN      ib.QPN
	Type     ib.QPType
	From, To ib.QPState // equal if the state was not to change
	Attr     string     // named as in struct ibv_qp_attr and struct ibv_ah_attr; empty if about the transition
	Value    string     // the offending value; may be empty
	Why      string     // what is wrong, the limit, and what would do
	Err      error
}

func (e *ModifyError) Error() string {
	s := fmt.Sprintf("modify QP %v from %v to %v", e.QPN, e.From, e.To)
	if e.From == e.To {
		s = fmt.Sprintf("modify QP %v in %v", e.QPN, e.From)
	}
	if e.Attr != "" {
		s += ": " + e.Attr
		if e.Value != "" {
			s += " " + e.Value
		}
	}
	return s + ": " + e.Why
}

func (e *ModifyError) Unwrap() error { return e.Err }

// qpState is what a check of a modify call must know besides the attributes.
type qpState struct {
	qpn         ib.QPN
	typ         ib.QPType
	state       ib.QPState
	activeMTU   ib.MTU
	maxRdAtomic int
	// gid returns a row of the GID table; why is empty if the row can be used,
	// else the reason why not (out of range, for one). Must not be nil.
	gid func(index int) (gid ib.GID, why string)
	// groups allows multicast groups as destinations.
	groups bool
	// pkeys is the partition table.
	pkeys []ib.PKey
	// version returns the RoCE version of a row; nil: all are of one.
	version func(index int) ib.GIDType
	// route says why a path cannot be taken, or "" if it can; may be nil. It
	// is asked only about an AV that is right in itself.
	route func(av *ib.AV) (why string)
}

// checkModify tests a modify call of a QP of type typ in state cur against the
// table of transitions and the limits in lim (whose typ and state it sets). A
// nil error means that all of a can be applied. Errors are *ModifyError.
func checkModify(typ ib.QPType, cur ib.QPState, a *ib.QPAttr, lim qpState) error {
	lim.typ, lim.state = typ, cur
	return lim.check(a)
}

// check is checkModify for a filled qpState.
func (q *qpState) check(a *ib.QPAttr) error {
	to := q.state
	if a.Mask&ib.AttrState != 0 {
		to = a.State
	}
	e := q.transitionError(a, to)
	if e == nil {
		e = q.values(a)
	}
	if e == nil {
		return nil
	}
	e.QPN, e.Type, e.From, e.To = q.qpn, q.typ, q.state, to
	return e
}

func (q *qpState) transitionError(a *ib.QPAttr, to ib.QPState) *ModifyError {
	if bad := a.Mask &^ attrsDefined; bad != 0 {
		return refuse("attribute mask", fmt.Sprintf("0x%x", uint32(a.Mask)), "bits 0x%x name no attribute", uint32(bad))
	}
	if a.Mask&ib.AttrCurState != 0 && a.CurState != q.state {
		e := refuse("cur_qp_state", a.CurState.String(), "the QP is in %v; query it and decide again", q.state)
		e.Err = ErrState
		return e
	}
	need, may, ok := transitionAttrs(q.typ, q.state, to)
	if !ok {
		return &ModifyError{Why: q.noTransition(to), Err: ErrState}
	}
	given := a.Mask &^ (ib.AttrState | ib.AttrCurState)
	for _, u := range unsupportedAttrs {
		if given&u.attr != 0 {
			return &ModifyError{Attr: attrList(u.attr), Why: u.why, Err: ErrUnsupported}
		}
	}
	if missing := need &^ given; missing != 0 {
		return refuse(attrList(missing), "", "missing; %v needs %s here", q.typ, attrList(need))
	}
	if extra := given &^ (need | may); extra != 0 {
		first := extra & -extra
		return refuse(attrList(first), "", "cannot be set here; %s", q.whereSet(first))
	}
	return nil
}

// noTransition says which transitions there are instead.
func (q *qpState) noTransition(to ib.QPState) string {
	if to > ib.Error {
		return "there is no such state"
	}
	var next, from []string
	for s := ib.Reset; s <= ib.Error; s++ {
		if _, _, ok := transitionAttrs(q.typ, q.state, s); ok && s != q.state {
			next = append(next, s.String())
		}
		if _, _, ok := transitionAttrs(q.typ, s, to); ok && s != to {
			from = append(from, s.String())
		}
	}
	switch {
	case q.state == to:
		return fmt.Sprintf("no attribute can be changed in this state; from here a QP goes to %s", strings.Join(next, ", "))
	case len(from) == 0:
		return fmt.Sprintf("a QP never goes to %v on request; from here it goes to %s", to, strings.Join(next, ", "))
	}
	return fmt.Sprintf("no such transition; %v is reached from %s, and from here a QP goes to %s",
		to, strings.Join(from, ", "), strings.Join(next, ", "))
}

// whereSet says on which transitions an attribute can be set.
func (q *qpState) whereSet(attr ib.AttrMask) string {
	var where []string
	for i := range transitions {
		t := &transitions[i]
		need, may, ok := transitionAttrs(q.typ, t.from, t.to)
		if !ok || (need|may)&attr == 0 {
			continue
		}
		if t.from == t.to {
			where = append(where, "in "+t.from.String())
		} else {
			where = append(where, fmt.Sprintf("from %v to %v", t.from, t.to))
		}
	}
	if len(where) == 0 {
		return fmt.Sprintf("%v has no such attribute", q.typ)
	}
	return "it can " + strings.Join(where, ", ")
}

func refuse(attr, value, why string, args ...any) *ModifyError {
	return &ModifyError{Attr: attr, Value: value, Why: fmt.Sprintf(why, args...), Err: ErrInvalid}
}

// values checks the value of each attribute that is given, in the order of the
// mask's bits.
func (q *qpState) values(a *ib.QPAttr) *ModifyError {
	if a.Mask&ib.AttrAccess != 0 {
		if bad := a.Access.Undefined(); bad != 0 {
			return refuse("qp_access_flags", a.Access.String(), "bits 0x%x are undefined; can be of %v",
				uint32(bad), ib.AccessAll)
		}
	}
	if a.Mask&ib.AttrPKeyIndex != 0 {
		if n := len(q.pkeys); int(a.PKeyIndex) >= n {
			return refuse("pkey_index", fmt.Sprint(a.PKeyIndex), "the partition table has rows 0 to %d", n-1)
		}
		if k := q.pkeys[a.PKeyIndex]; k&0x7FFF == 0 {
			return refuse("pkey_index", fmt.Sprint(a.PKeyIndex), "that row of the partition table is empty")
		}
	}
	if a.Mask&ib.AttrPort != 0 && a.Port != 1 {
		return refuse("port_num", fmt.Sprint(a.Port), "the adapter has one port; use 1")
	}
	if a.Mask&ib.AttrAV != 0 {
		if e := q.path(&a.AV); e != nil {
			return e
		}
	}
	if a.Mask&ib.AttrPathMTU != 0 {
		if e := q.mtu(a.PathMTU); e != nil {
			return e
		}
	}
	return q.numbers(a)
}

// numbers checks the attributes that are nothing but numbers with a limit.
func (q *qpState) numbers(a *ib.QPAttr) *ModifyError {
	rows := [...]struct {
		attr  ib.AttrMask
		value uint32
		limit uint32
		note  string
	}{
		{ib.AttrTimeout, uint32(a.TimeoutExp), 31, "the timeout is 4.096 µs times two to this power, 0 for none"},
		{ib.AttrRetryCnt, uint32(a.RetryCnt), 7, ""},
		{ib.AttrRNRRetry, uint32(a.RNRRetry), 7, "7 retries for ever"},
		{ib.AttrRQPSN, uint32(a.RQPSN), uint32(ib.PSNMask), "a PSN has 24 bits"},
		{ib.AttrMaxRdAtomic, uint32(a.MaxRdAtomic), uint32(q.maxRdAtomic), "the adapter's limit"},
		{ib.AttrMinRNRTimer, uint32(a.MinRNRTimer), 31, "it is a code"},
		{ib.AttrSQPSN, uint32(a.SQPSN), uint32(ib.PSNMask), "a PSN has 24 bits"},
		{ib.AttrMaxDestRdAtomic, uint32(a.MaxDestRdAtomic), uint32(q.maxRdAtomic), "the adapter's limit"},
	}
	for _, r := range rows {
		if a.Mask&r.attr == 0 || r.value <= r.limit {
			continue
		}
		value, limit := fmt.Sprint(r.value), fmt.Sprint(r.limit)
		if r.limit == uint32(ib.PSNMask) {
			value, limit = fmt.Sprintf("0x%x", r.value), fmt.Sprintf("0x%x", r.limit)
		}
		e := refuse(attrList(r.attr), value, "can be 0 to %s", limit)
		if r.note != "" {
			e.Why += ": " + r.note
		}
		return e
	}
	if a.Mask&ib.AttrDestQPN != 0 && (a.DestQPN <= ib.QPGSI || a.DestQPN >= ib.QPMulticast) {
		return refuse("dest_qp_num", a.DestQPN.String(), "can be %v to %v: 0, 1 and the multicast QP take no connection",
			ib.QPGSI+1, ib.QPMulticast-1)
	}
	return nil
}

func (q *qpState) mtu(m ib.MTU) *ModifyError {
	if m.Bytes() == 0 {
		return refuse("path_mtu", fmt.Sprint(uint8(m)), "can be 1 to 5, for 256, 512, 1024, 2048, 4096 bytes")
	}
	if m > q.activeMTU {
		return refuse("path_mtu", m.String(), "the port's active MTU is %v; use at most that on both ends, or raise the MTU of the network interface", q.activeMTU)
	}
	return nil
}

// path checks an address vector.
func (q *qpState) path(av *ib.AV) *ModifyError {
	sgid, why := q.gid(av.SGIDIndex)
	if why != "" {
		e := refuse("sgid_index", fmt.Sprint(av.SGIDIndex), "%s", why)
		e.Err = ErrPath
		return e
	}
	dgid := av.DGID.String()
	if a := av.DGID.Addr(); a.Is4() {
		dgid = "::ffff:" + a.String()
	} else {
		dgid = a.String()
	}
	noPath := func(why string, args ...any) *ModifyError {
		e := refuse("dgid", dgid, why, args...)
		e.Err = ErrPath
		return e
	}
	switch {
	case av.DGID.IsZero():
		return noPath("not set; use the GID that the peer's table has for its address")
	case av.DGID.IsMulticast() && !q.groups:
		return noPath("a connection cannot go to a multicast group; use the peer's own GID")
	case av.DGID.Is4() != sgid.Is4():
		return noPath("not of the address family of the local GID %v (sgid_index %d); use a row whose GID is of the peer's family",
			sgid.Addr(), av.SGIDIndex)
	case q.version != nil && av.DGIDType != 0 && av.DGIDType != q.version(av.SGIDIndex):
		return noPath("the peer's GID is for %v, the local GID %v (sgid_index %d) for %v; both ends must use one version: take a row for the peer's",
			av.DGIDType, sgid.Addr(), av.SGIDIndex, q.version(av.SGIDIndex))
	case av.FlowLabel > 0xFFFFF:
		return refuse("flow_label", fmt.Sprintf("0x%x", av.FlowLabel), "can be 0 to 0xfffff: it has 20 bits")
	case av.SL > 7:
		return refuse("sl", fmt.Sprint(av.SL), "can be 0 to 7: it is an Ethernet priority")
	}
	if q.route != nil {
		if why := q.route(av); why != "" {
			return noPath("%s", why)
		}
	}
	return nil
}
