package cm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Private data as long as their fields are taken, one byte more is refused with
// the limit named, and changes nothing (IBA vol.1 12.6.5 to 12.6.13, 12.11.1).
func TestPrivateDataLimits(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	try := func(what string, most int, call func(private []byte) error) {
		t.Helper()
		err := call(make([]byte, most+1))
		if want := fmt.Sprint(most); !errors.Is(err, cm.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with %d bytes: %v, want one that names %s", what, most+1, err, want)
		}
		if err := call(make([]byte, most)); err != nil {
			t.Errorf("%s with %d bytes: %v", what, most, err)
		}
		s.settle()
	}
	a, b := s.ends[0], s.ends[1]
	connect := func(p []byte) (err error) {
		req := request()
		req.QPN += 1 // another queue pair each time
		req.Private = p
		a.id, err = a.m.Connect(s.now, a.peer, req)
		return err
	}
	try("REQ", 92, connect)
	try("REP", 196, func(p []byte) error { return b.m.Accept(s.now, b.id, &mad.REP{QPN: 0x22, Private: p}) })
	try("RTU", 224, func(p []byte) error { return a.m.Ready(a.id, p) })
	try("DREQ", 220, func(p []byte) error { return a.m.Disconnect(s.now, a.id, p) })
	try("DREP", 224, func(p []byte) error { return b.m.Disconnect(s.now, b.id, p) })
	s.empty()
	s.connect()
	try("REJ", 148, func(p []byte) error { return b.m.Reject(s.now, b.id, mad.RejConsumer, nil, p) })
	s.connect()
	try("additional information", 72, func(p []byte) error { return b.m.Reject(s.now, b.id, mad.RejPrimaryGID, p, nil) })
	try("SIDR REQ", 216, func(p []byte) error {
		_, err := a.m.Resolve(s.now, a.peer, &mad.SIDRREQ{Service: service, Private: p}, 18, 2)
		return err
	})
	try("SIDR REP", 136, func(p []byte) error { return b.m.ReplySIDR(s.now, b.id, &mad.SIDRREP{Private: p}) })
}

// Messages that come again, in every state that they can come in, do nothing
// but draw the answer that was lost.
func TestDuplicates(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.keep = map[mad.Attr][]byte{}
	again := func(to int, a mad.Attr) {
		t.Helper()
		if s.keep[a] == nil {
			t.Fatalf("there was no %v", a)
		}
		s.ends[to].m.Receive(s.now, s.ends[to].peer, s.keep[a])
		s.settle()
	}
	s.listen()
	s.connect()
	s.log = nil
	again(1, mad.AttrREQ)
	s.expect("B→A MRA")
	s.accept()
	s.log = nil
	again(1, mad.AttrREQ)
	s.expect(`
		B→A REP
		A→B MRA`) // and A, who has the REP, says that its user takes its time
	s.ready()
	s.log = nil
	again(1, mad.AttrREQ)
	again(1, mad.AttrRTU)
	again(1, mad.AttrMRA)
	s.expect("")
	again(0, mad.AttrREP)
	s.expect("A→B RTU")
	s.check(s.ends[0].m.Disconnect(s.now, s.ends[0].id, nil))
	s.log = nil
	again(0, mad.AttrREP)
	again(1, mad.AttrDREQ) // its user has not answered
	s.expect("")
	s.check(s.ends[1].m.Disconnect(s.now, s.ends[1].id, nil))
	s.expect(`
		B→A DREP
		A: disconnected`)
	again(1, mad.AttrDREQ)
	s.expect("B→A DREP")
	again(0, mad.AttrDREP)
	again(0, mad.AttrREP)
	again(1, mad.AttrRTU)
	s.expect("")
	s.pass(cmTimewait)
	s.expect(`
		A: timewait exit
		B: timewait exit`)
	// Forgotten: who still asks is answered, so that it need not wait.
	again(1, mad.AttrDREQ)
	s.expect("B→A DREP")
	again(0, mad.AttrREP)
	s.expect("A→B REJ: invalid communication ID")
	again(1, mad.AttrRTU)
	s.expect("")
	s.empty()
}

// A peer that was reborn accepts with a queue pair that it has forgotten: its
// REP is refused as its REQ would be, and the old connection ends.
func TestStaleReply(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	s.ends[1].m = cm.New(cm.Config{GUID: 0xB, Rand: func() uint32 { return 78 }})
	s.listen()
	r := request()
	r.QPN = 0x12
	id, err := s.ends[0].m.Connect(s.now, s.ends[0].peer, r)
	s.ends[0].id = id
	s.check(err)
	s.log = nil
	s.accept() // with QP 0x22 again
	s.expect(`
		B→A REP
		A: unreachable
		A: disconnect
		A→B REJ: stale connection
		A→B DREQ
		B: rejected
		B→A DREP
		A: disconnected`)
	s.pass(cmTimewait)
	s.log = nil
	s.empty()
}
