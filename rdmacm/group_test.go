package rdmacm_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/rdmacm"
	"github.com/verbena-rdma/verbena/verbs"
)

// joinAt joins a group from a side; it is no error of the test if that fails.
func (s *side) joinAt(group string, q *verbs.QP, opt rdmacm.Options) (*rdmacm.Group, error) {
	s.t.Helper()
	r, err := s.m.RouteTo(netip.AddrPortFrom(netip.MustParseAddr(group), 0))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.m.Join(within(s.t), r, q, opt)
}

func (s *side) join(group string, q *verbs.QP, opt rdmacm.Options) *rdmacm.Group {
	s.t.Helper()
	g, err := s.joinAt(group, q, opt)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// cast sends a message of 64 bytes to a group.
func (s *side) cast(q *verbs.QP, d rdmacm.Datagram) {
	s.t.Helper()
	ah, err := s.pd.CreateAH(d.AV)
	if err != nil {
		s.t.Fatal(err)
	}
	err = q.PostSend(ib.SendWR{Op: ib.Send, SGL: s.mr.SGE(0, 64), UD: ib.Datagram{AH: ah.Handle(), QPN: d.QPN, QKey: d.QKey}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// hear waits for a message at offset 1024.
func (s *side) hear() ib.WC {
	s.t.Helper()
	var wcs [1]ib.WC
	if _, err := s.cq.Wait(within(s.t), wcs[:]); err != nil || wcs[0].Status != ib.Success || wcs[0].Op != ib.WCRecv {
		s.t.Fatalf("%+v, %v", wcs[0], err)
	}
	return wcs[0]
}

// listenFor posts a receive at offset 1024.
func (s *side) listenFor(q *verbs.QP) {
	s.t.Helper()
	if err := q.PostRecv(ib.RecvWR{SGL: s.mr.SGE(1024, 104)}); err != nil {
		s.t.Fatal(err)
	}
}

// A member hears what is sent to its group, of either family; a sender needs no
// membership. The GID of a group is its address, IPv4 ones mapped (IBA annex
// A17.5.2), its packets have the QPN 0xFFFFFF and the Q_Key of port space UDP.
func TestGroup(t *testing.T) {
	for _, c := range []struct{ group, a, b string }{
		{"239.1.2.3", "10.1.0.1", "10.1.0.2"}, {"ff15::77:1", "fd00::1", "fd00::2"},
	} {
		t.Run(c.group, func(t *testing.T) {
			x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
			a, b := newSide(t, c.a, x, nil), newSide(t, c.b, y, nil)
			member := b.qp(ib.UD)
			g := b.join(c.group, member, rdmacm.Options{})
			e, ok := nextOf(t, g).(rdmacm.Joined)
			want := ib.GID(netip.MustParseAddr(c.group).As16())
			if !ok || e.AV.DGID != want || e.QPN != 0xFFFFFF || e.QKey != 0x01234567 {
				t.Errorf("event %+v, want group %v", e, want)
			}
			b.listenFor(member)
			sender := a.qp(ib.UD)
			if err := errors.Join(sender.ToInitUD(rdmacm.QKeyUDP), sender.ToRTR(verbs.Path{}), sender.ToRTS(verbs.Path{})); err != nil {
				t.Fatal(err)
			}
			out := a.join(c.group, nil, rdmacm.Options{TOS: 0x68, SL: 3})
			if av := out.Datagram().AV; av.TrafficClass != 0x68 || av.SL != 3 {
				t.Errorf("%+v", av)
			}
			copy(a.mr.Bytes(), "to all")
			a.cast(sender, out.Datagram())
			if wc := b.hear(); wc.Bytes != 104 || wc.SrcQPN != sender.Num() {
				t.Errorf("%+v", wc)
			}
			grh, data := b.mr.Bytes()[1024:1064], b.mr.Bytes()[1064:1128]
			if !bytes.Equal(data, a.mr.Bytes()[:64]) || !bytes.Equal(grh[36:], want[12:]) {
				t.Errorf("GRH % x, data %q", grh, data)
			}

			// After leaving, what is sent to the group does not arrive and what is
			// sent to the queue pair does.
			if err := errors.Join(g.Leave(), g.Leave(), out.Leave()); err != nil {
				t.Fatal(err)
			}
			if _, err := g.NextEvent(within(t)); !errors.Is(err, rdmacm.ErrGone) {
				t.Errorf("after leaving: %v", err)
			}
			b.listenFor(member)
			a.cast(sender, out.Datagram())
			copy(a.mr.Bytes(), "to one")
			av := ib.AV{DGID: ib.GIDFromAddr(b.addr)}
			a.cast(sender, rdmacm.Datagram{AV: av, QPN: member.Num(), QKey: rdmacm.QKeyUDP})
			if b.hear(); !bytes.HasPrefix(b.mr.Bytes()[1064:], []byte("to one")) {
				t.Errorf("heard %q", b.mr.Bytes()[1064:1128])
			}
			if err := member.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func nextOf(t *testing.T, g *rdmacm.Group) rdmacm.Event {
	t.Helper()
	e, err := g.NextEvent(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A queue pair that is ready keeps its Q_Key, and who sends is told it.
func TestGroupWithAnotherQKey(t *testing.T) {
	_, b := newSides(t, nil)
	q := b.qp(ib.UD)
	if err := errors.Join(q.ToInitUD(0x2222), q.ToRTR(verbs.Path{}), q.ToRTS(verbs.Path{})); err != nil {
		t.Fatal(err)
	}
	if d := b.join("239.1.2.3", q, rdmacm.Options{}).Datagram(); d.QKey != 0x2222 {
		t.Errorf("%+v", d)
	}
}

func TestGroupIsRefused(t *testing.T) {
	a, b := newSides(t, nil)
	member := a.qp(ib.UD)
	g := a.join("239.1.2.3", member, rdmacm.Options{})
	for name, c := range map[string]struct {
		group string
		q     *verbs.QP
		opt   rdmacm.Options
		want  error
	}{
		"no group":          {group: "10.1.0.2", q: a.qp(ib.UD), want: rdmacm.ErrInvalid},
		"a member":          {group: "239.1.2.3", q: member, want: rdmacm.ErrBusy},
		"RC":                {group: "239.1.2.3", q: a.qp(ib.RC), want: rdmacm.ErrInvalid},
		"of another device": {group: "239.1.2.3", q: b.qp(ib.UD), want: rdmacm.ErrInvalid},
		"private data":      {group: "239.1.2.3", q: a.qp(ib.UD), opt: rdmacm.Options{Private: []byte{1}}, want: rdmacm.ErrInvalid},
	} {
		if _, err := a.joinAt(c.group, c.q, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.q != member {
			if err := c.q.Close(); err != nil {
				t.Errorf("%s: a refused queue pair is held: %v", name, err)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.m.Join(ended, rdmacm.Route{}, nil, rdmacm.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := a.m.RouteTo(netip.MustParseAddrPort("[ff15::1]:0")); !errors.Is(err, verbs.ErrNoGID) {
		t.Errorf("a group of another family: %v", err)
	}

	// The manager's end is that of its memberships.
	nextOf(t, g)
	if err := a.m.Close(); err != nil {
		t.Fatal(err)
	}
	if e, ok := nextOf(t, g).(rdmacm.DeviceRemoved); !ok {
		t.Errorf("%+v", e)
	}
	if err := errors.Join(g.Leave(), member.Close()); err != nil {
		t.Error(err)
	}
}
