package rnic

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

var qpTypes = []ib.QPType{ib.RC, ib.UC, ib.UD}

func testQPState() qpState {
	gids := []string{"fe80::1", "::ffff:10.0.1.2", "2001:db8::1"}
	return qpState{
		pkeys: []ib.PKey{ib.DefaultPKey},
		qpn:   0x11, activeMTU: ib.MTU1024, maxRdAtomic: 16,
		gid: func(i int) (ib.GID, string) {
			if i < 0 || i >= len(gids) {
				return ib.GID{}, fmt.Sprintf("the table has rows 0 to %d", len(gids)-1)
			}
			if i == 0 {
				return ib.GID{}, "link-local: the link cannot send from it; use 1 or 2"
			}
			return ib.GIDFromAddr(netip.MustParseAddr(gids[i])), ""
		},
		route: func(av *ib.AV) string {
			if av.DGID.Addr() == netip.MustParseAddr("10.0.2.9") {
				return "no route from 10.0.1.2"
			}
			return ""
		},
	}
}

// goodAttrs is right in every field, for any mask.
func goodAttrs(mask ib.AttrMask, to ib.QPState) *ib.QPAttr {
	return &ib.QPAttr{
		Mask: mask, State: to, Access: ib.LocalWrite | ib.RemoteAll, Port: 1, QKey: 0x11111111,
		AV:      ib.AV{DGID: ib.GIDFromAddr(netip.MustParseAddr("10.0.1.3")), SGIDIndex: 1, HopLimit: 64, SL: 3},
		PathMTU: ib.MTU1024, TimeoutExp: 14, RetryCnt: 7, RNRRetry: 7, RQPSN: 0xFFFFFF, SQPSN: 1,
		MaxRdAtomic: 16, MaxDestRdAtomic: 16, MinRNRTimer: 12, DestQPN: 0x12, RateLimitKbps: 1000,
	}
}

// The whole table, as a reader of the specification would write it down:
// required attributes, then the optional ones. Optional ones that the adapter
// refuses by name are there too.
const wantTransitions = `
RC RESET INIT: qp_access_flags, pkey_index, port_num |
RC INIT INIT: | qp_access_flags, pkey_index, port_num
RC INIT RTR: ah_attr, path_mtu, rq_psn, min_rnr_timer, max_dest_rd_atomic, dest_qp_num | qp_access_flags, pkey_index, alt_ah_attr
RC RTR RTS: timeout, retry_cnt, rnr_retry, max_rd_atomic, sq_psn | qp_access_flags, alt_ah_attr, min_rnr_timer, path_mig_state, rate_limit, late_ack
RC RTS RTS: | qp_access_flags, alt_ah_attr, min_rnr_timer, path_mig_state, rate_limit, late_ack
RC RTS SQD: | en_sqd_async_notify
RC SQD RTS: | qp_access_flags, alt_ah_attr, min_rnr_timer, path_mig_state, rate_limit, late_ack
RC SQD SQD: | qp_access_flags, pkey_index, port_num, ah_attr, timeout, retry_cnt, rnr_retry, max_rd_atomic, alt_ah_attr, min_rnr_timer, max_dest_rd_atomic, path_mig_state
UC RESET INIT: qp_access_flags, pkey_index, port_num |
UC INIT INIT: | qp_access_flags, pkey_index, port_num
UC INIT RTR: ah_attr, path_mtu, rq_psn, dest_qp_num | qp_access_flags, pkey_index, alt_ah_attr
UC RTR RTS: sq_psn | qp_access_flags, alt_ah_attr, path_mig_state, rate_limit
UC RTS RTS: | qp_access_flags, alt_ah_attr, path_mig_state, rate_limit
UC RTS SQD: | en_sqd_async_notify
UC SQD RTS: | qp_access_flags, alt_ah_attr, path_mig_state, rate_limit
UC SQD SQD: | qp_access_flags, pkey_index, ah_attr, alt_ah_attr, path_mig_state
UC SQE RTS: | qp_access_flags, rate_limit
UD RESET INIT: pkey_index, port_num, qkey |
UD INIT INIT: | pkey_index, port_num, qkey
UD INIT RTR: | pkey_index, qkey
UD RTR RTS: sq_psn | qkey, rate_limit
UD RTS RTS: | qkey, rate_limit
UD RTS SQD: | en_sqd_async_notify
UD SQD RTS: | qkey, rate_limit
UD SQD SQD: | pkey_index, qkey
UD SQE RTS: | qkey, rate_limit
`

func TestTransitionTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n")
	for _, typ := range qpTypes {
		for from := ib.Reset; from <= ib.Error; from++ {
			for to := ib.Reset; to <= ib.Error; to++ {
				need, may, ok := transitionAttrs(typ, from, to)
				if to == ib.Reset || to == ib.Error {
					if ok != (typ != ib.RC || from != ib.SQE) || need|may != 0 {
						t.Errorf("%v %v to %v: ok %v, need 0x%x, may 0x%x", typ, from, to, ok, need, may)
					}
					continue
				}
				if ok {
					line := fmt.Sprintf("%v %v %v: %s | %s", typ, from, to, attrList(need), attrList(may))
					b.WriteString(strings.TrimRight(strings.ReplaceAll(line, ":  |", ": |"), " ") + "\n")
				}
			}
		}
	}
	if got := b.String(); got != wantTransitions {
		t.Errorf("table is\n%s\nwant\n%s", got, wantTransitions)
	}
}

// Every transition of every type: exactly the needed attributes are enough;
// without any one of them it is refused; each allowed one may be added; each
// other one is refused; and a pair of states that is not in the table is
// refused with ErrState.
func TestEveryTransition(t *testing.T) {
	var unsupported ib.AttrMask
	for _, u := range unsupportedAttrs {
		unsupported |= u.attr
	}
	check := func(typ ib.QPType, from, to ib.QPState, mask ib.AttrMask, want error) {
		t.Helper()
		a := goodAttrs(mask|ib.AttrState, to)
		before := *a
		err := checkModify(typ, from, a, testQPState())
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v %v to %v with %s: %v, want %v", typ, from, to, attrList(mask), err, want)
		}
		if *a != before {
			t.Errorf("%v %v to %v: the check changed the attributes", typ, from, to)
		}
		if err == nil {
			return
		}
		var me *ModifyError
		if !errors.As(err, &me) || me.QPN != 0x11 || me.From != from || me.To != to || me.Why == "" {
			t.Errorf("%v %v to %v: incomplete error %#v", typ, from, to, err)
		}
	}
	for _, typ := range qpTypes {
		for from := ib.Reset; from <= ib.Error; from++ {
			for to := ib.Reset; to <= ib.Error+1; to++ {
				need, may, ok := transitionAttrs(typ, from, to)
				if !ok {
					check(typ, from, to, 0, ErrState)
					continue
				}
				check(typ, from, to, need, nil)
				for _, n := range attrNames[2:] {
					switch {
					case unsupported&n.attr != 0:
						check(typ, from, to, need|n.attr, ErrUnsupported)
					case need&n.attr != 0:
						check(typ, from, to, need&^n.attr, ErrInvalid)
					case may&n.attr != 0:
						check(typ, from, to, need|n.attr, nil)
					default:
						check(typ, from, to, need|n.attr, ErrInvalid)
					}
				}
			}
		}
	}
}

func TestModifyErrors(t *testing.T) {
	type change = func(*ib.QPAttr)
	toRTR := ib.AttrState | rtrRC
	toRTS := ib.AttrState | rtsRC
	toInit := ib.AttrState | initConn
	dgid := func(s string) change {
		return func(a *ib.QPAttr) { a.AV.DGID = ib.GIDFromAddr(netip.MustParseAddr(s)) }
	}
	for _, c := range []struct {
		typ  ib.QPType
		from ib.QPState
		mask ib.AttrMask
		to   ib.QPState
		set  change
		is   error
		want string
	}{
		{
			ib.RC, ib.Init, toRTR, ib.RTR, dgid("10.0.2.9"), ErrPath,
			"modify QP 0x000011 from INIT to RTR: dgid ::ffff:10.0.2.9: no route from 10.0.1.2",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, dgid("2001:db8::7"), ErrPath,
			"modify QP 0x000011 from INIT to RTR: dgid 2001:db8::7: not of the address family of the local GID 10.0.1.2 (sgid_index 1); use a row whose GID is of the peer's family",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, dgid("::"), ErrPath,
			"modify QP 0x000011 from INIT to RTR: dgid ::: not set; use the GID that the peer's table has for its address",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, dgid("239.1.1.1"), ErrPath,
			"modify QP 0x000011 from INIT to RTR: dgid ::ffff:239.1.1.1: a connection cannot go to a multicast group; use the peer's own GID",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.AV.SGIDIndex = 0 }, ErrPath,
			"modify QP 0x000011 from INIT to RTR: sgid_index 0: link-local: the link cannot send from it; use 1 or 2",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.AV.SGIDIndex = -1 }, ErrPath,
			"modify QP 0x000011 from INIT to RTR: sgid_index -1: the table has rows 0 to 2",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.AV.FlowLabel = 1 << 20 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: flow_label 0x100000: can be 0 to 0xfffff: it has 20 bits",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.AV.SL = 8 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: sl 8: can be 0 to 7: it is an Ethernet priority",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.PathMTU = ib.MTU4096 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: path_mtu 4096: the port's active MTU is 1024; use at most that on both ends, or raise the MTU of the network interface",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.PathMTU = 0 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: path_mtu 0: can be 1 to 5, for 256, 512, 1024, 2048, 4096 bytes",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.PathMTU = 6 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: path_mtu 6: can be 1 to 5, for 256, 512, 1024, 2048, 4096 bytes",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.RQPSN = 1 << 24 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: rq_psn 0x1000000: can be 0 to 0xffffff: a PSN has 24 bits",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.DestQPN = 1 << 24 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: dest_qp_num 0x1000000: can be 0x000002 to 0xfffffe: 0, 1 and the multicast QP take no connection",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.DestQPN = 0 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: dest_qp_num 0x000000: can be 0x000002 to 0xfffffe: 0, 1 and the multicast QP take no connection",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.MinRNRTimer = 32 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: min_rnr_timer 32: can be 0 to 31: it is a code",
		},
		{
			ib.RC, ib.Init, toRTR, ib.RTR, func(a *ib.QPAttr) { a.MaxDestRdAtomic = 17 }, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: max_dest_rd_atomic 17: can be 0 to 16: the adapter's limit",
		},
		{
			ib.RC, ib.Init, toRTR &^ (ib.AttrAV | ib.AttrRQPSN), ib.RTR, nil, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: ah_attr, rq_psn: missing; RC needs ah_attr, path_mtu, rq_psn, min_rnr_timer, max_dest_rd_atomic, dest_qp_num here",
		},
		{
			ib.RC, ib.Init, toRTR | ib.AttrSQPSN, ib.RTR, nil, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: sq_psn: cannot be set here; it can from RTR to RTS",
		},
		{
			ib.RC, ib.Init, toRTR | ib.AttrQKey, ib.RTR, nil, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: qkey: cannot be set here; RC has no such attribute",
		},
		{
			ib.RC, ib.Init, toRTR | ib.AttrAltPath, ib.RTR, nil, ErrUnsupported,
			"modify QP 0x000011 from INIT to RTR: alt_ah_attr: automatic path migration is not supported; leave it out",
		},
		{
			ib.RC, ib.Init, toRTR | 1<<22, ib.RTR, nil, ErrInvalid,
			"modify QP 0x000011 from INIT to RTR: attribute mask 0x529181: bits 0x400000 name no attribute",
		},
		{
			ib.RC, ib.RTR, toRTS, ib.RTS, func(a *ib.QPAttr) { a.TimeoutExp = 32 }, ErrInvalid,
			"modify QP 0x000011 from RTR to RTS: timeout 32: can be 0 to 31: the timeout is 4.096 µs times two to this power, 0 for none",
		},
		{
			ib.RC, ib.RTR, toRTS, ib.RTS, func(a *ib.QPAttr) { a.RetryCnt = 8 }, ErrInvalid,
			"modify QP 0x000011 from RTR to RTS: retry_cnt 8: can be 0 to 7",
		},
		{
			ib.RC, ib.RTR, toRTS, ib.RTS, func(a *ib.QPAttr) { a.RNRRetry = 8 }, ErrInvalid,
			"modify QP 0x000011 from RTR to RTS: rnr_retry 8: can be 0 to 7: 7 retries for ever",
		},
		{
			ib.RC, ib.RTR, toRTS, ib.RTS, func(a *ib.QPAttr) { a.SQPSN = 0xFF000000 }, ErrInvalid,
			"modify QP 0x000011 from RTR to RTS: sq_psn 0xff000000: can be 0 to 0xffffff: a PSN has 24 bits",
		},
		{
			ib.RC, ib.RTR, toRTS, ib.RTS, func(a *ib.QPAttr) { a.MaxRdAtomic = 255 }, ErrInvalid,
			"modify QP 0x000011 from RTR to RTS: max_rd_atomic 255: can be 0 to 16: the adapter's limit",
		},
		{
			ib.RC, ib.Reset, toInit, ib.Init, func(a *ib.QPAttr) { a.Port = 2 }, ErrInvalid,
			"modify QP 0x000011 from RESET to INIT: port_num 2: the adapter has one port; use 1",
		},
		{
			ib.RC, ib.Reset, toInit, ib.Init, func(a *ib.QPAttr) { a.PKeyIndex = 1 }, ErrInvalid,
			"modify QP 0x000011 from RESET to INIT: pkey_index 1: the partition table has rows 0 to 0",
		},
		{
			ib.RC, ib.Reset, toInit, ib.Init, func(a *ib.QPAttr) { a.Access = 1<<10 | ib.RemoteRead }, ErrInvalid,
			"modify QP 0x000011 from RESET to INIT: qp_access_flags REMOTE_READ|0x400: bits 0x400 are undefined; can be of LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC|MW_BIND",
		},
		{
			ib.RC, ib.Reset, ib.AttrState, ib.RTS, nil, ErrState,
			"modify QP 0x000011 from RESET to RTS: no such transition; RTS is reached from RTR, SQD, and from here a QP goes to INIT, ERR",
		},
		{
			ib.UD, ib.RTS, ib.AttrState, ib.SQE, nil, ErrState,
			"modify QP 0x000011 from RTS to SQE: a QP never goes to SQE on request; from here it goes to RESET, SQD, ERR",
		},
		{
			ib.UD, ib.RTS, ib.AttrState, 9, nil, ErrState,
			"modify QP 0x000011 from RTS to QP state 9: there is no such state",
		},
		{
			ib.UC, ib.RTR, ib.AttrAccess, 0, nil, ErrState,
			"modify QP 0x000011 in RTR: no attribute can be changed in this state; from here a QP goes to RESET, RTS, ERR",
		},
		{
			ib.UC, ib.SQE, ib.AttrState | ib.AttrCurState, ib.RTS, func(a *ib.QPAttr) { a.CurState = ib.RTS }, ErrState,
			"modify QP 0x000011 from SQE to RTS: cur_qp_state RTS: the QP is in SQE; query it and decide again",
		},
		{
			ib.UC, ib.RTS, ib.AttrCap, 0, nil, ErrUnsupported,
			"modify QP 0x000011 in RTS: cap: queues cannot be resized; create the QP with the sizes it needs",
		},
	} {
		a := goodAttrs(c.mask, c.to)
		if c.set != nil {
			c.set(a)
		}
		err := checkModify(c.typ, c.from, a, testQPState())
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if !errors.Is(err, c.is) {
			t.Errorf("%v\nis not %v", err, c.is)
		}
	}
}

// The extremes of every number are accepted, whatever else is given.
func TestModifyLimitsAreReachable(t *testing.T) {
	for _, set := range []func(*ib.QPAttr){
		func(a *ib.QPAttr) { a.TimeoutExp, a.RetryCnt, a.RNRRetry, a.MinRNRTimer = 31, 7, 7, 31 },
		func(a *ib.QPAttr) { a.TimeoutExp, a.RetryCnt, a.RNRRetry, a.MinRNRTimer = 0, 0, 0, 0 },
		func(a *ib.QPAttr) { a.RQPSN, a.SQPSN, a.DestQPN = ib.PSNMask, ib.PSNMask, ib.MaxQPN-1 },
		func(a *ib.QPAttr) { a.RQPSN, a.SQPSN, a.DestQPN = 0, 0, 2 },
		func(a *ib.QPAttr) { a.MaxRdAtomic, a.MaxDestRdAtomic = 0, 0 },
		func(a *ib.QPAttr) { a.PathMTU, a.AV.FlowLabel, a.AV.SL = ib.MTU256, 0xFFFFF, 7 },
		func(a *ib.QPAttr) {
			a.Access = ib.AccessAll | ib.RelaxedOrder
			a.AV.SGIDIndex, a.AV.DGID = 2, ib.GIDFromAddr(netip.MustParseAddr("fe80::9"))
		},
	} {
		for _, typ := range qpTypes {
			for i := range transitions {
				from, to := transitions[i].from, transitions[i].to
				need, may, ok := transitionAttrs(typ, from, to)
				if !ok {
					continue
				}
				for _, u := range unsupportedAttrs {
					may &^= u.attr
				}
				a := goodAttrs(need|may|ib.AttrState|ib.AttrCurState, to)
				a.CurState = from
				set(a)
				if err := checkModify(typ, from, a, testQPState()); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
