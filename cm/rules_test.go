package cm_test

import (
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/wire/mad"
)

func TestConnectAndDisconnect(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	s.connect()
	s.expect(`
		A→B REQ
		B: request`)
	s.accept()
	s.expect(`
		B→A REP
		A: reply`)
	s.ready()
	s.expect(`
		A→B RTU
		B: ready`)
	s.check(s.ends[0].m.Disconnect(s.now, s.ends[0].id, nil))
	s.expect(`
		A→B DREQ
		B: disconnect`)
	s.check(s.ends[1].m.Disconnect(s.now, s.ends[1].id, nil))
	s.expect(`
		B→A DREP
		A: disconnected`)
	s.pass(2 * time.Second)
	s.expect(`
		A: timewait exit
		B: timewait exit`)
	s.empty()
}

func TestNobodyListens(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.connect()
	s.expect(`
		A→B REQ
		B→A REJ: nobody listens there: invalid service ID
		A: rejected`)
	s.empty()
}

// A REQ, REP or DREQ that is lost goes out again after the time that its
// receiver had; one that is answered by nobody as often as MaxCMRetries says.
func TestLostMessagesAreSentAgain(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	s.lose = loseFirst(mad.AttrREQ, 1)
	s.connect()
	s.expect("A→B REQ, lost")
	s.pass(wait - 1)
	s.expect("")
	s.pass(1)
	s.expect(`
		A→B REQ
		B: request`)

	s.lose = loseFirst(mad.AttrREP, 1)
	s.accept()
	s.pass(wait)
	// Both ends have waited as long: B answers the duplicate, and asks again
	// itself.
	s.expect(`
		B→A REP, lost
		A→B REQ
		B→A REP
		B→A REP
		A: reply
		A→B MRA`)

	s.lose = loseFirst(mad.AttrRTU, 1)
	s.ready()
	s.expect("A→B RTU, lost")
	s.pass(2 * time.Minute) // as the MRA said
	s.expect(`
		B→A REP
		A→B RTU
		B: ready`)

	s.lose = loseFirst(mad.AttrDREQ, 2)
	s.check(s.ends[0].m.Disconnect(s.now, s.ends[0].id, nil))
	s.pass(2 * wait)
	s.expect(`
		A→B DREQ, lost
		A→B DREQ, lost
		A→B DREQ
		B: disconnect`)
	s.lose = loseFirst(mad.AttrDREP, 1)
	s.check(s.ends[1].m.Disconnect(s.now, s.ends[1].id, nil))
	s.expect("B→A DREP, lost")
	s.pass(3 * wait)
	s.expect(`
		A: disconnected
		B: timewait exit
		A: timewait exit`)
	s.empty()
}

func TestDeadPeerIsUnreachable(t *testing.T) {
	all := func(int, mad.Attr) bool { return true }
	t.Run("before the connection", func(t *testing.T) {
		s := newScript(t, cm.Config{})
		s.lose = all
		s.connect()
		s.pass(3 * wait)
		s.expect(`
			A→B REQ, lost
			A→B REQ, lost
			A→B REQ, lost
			A: unreachable
			A→B REJ: timeout, lost`)
		s.empty()
	})
	t.Run("while it is made", func(t *testing.T) {
		s := newScript(t, cm.Config{})
		s.listen()
		s.connect()
		s.lose = all
		s.accept()
		s.log = nil
		s.pass(3*wait - 1)
		s.pass(1)
		s.ends[0].m.Abandon(s.now, s.ends[0].id)
		s.settle()
		if got := s.ends[1].m.Len(); got != 0 {
			t.Errorf("the accepting end remembers %d", got)
		}
		s.empty()
	})
	t.Run("at its end", func(t *testing.T) {
		s := newScript(t, cm.Config{})
		s.establish()
		s.lose = all
		s.check(s.ends[0].m.Disconnect(s.now, s.ends[0].id, nil))
		s.pass(3*wait + 2*time.Second)
		s.expect(`
			A→B DREQ, lost
			A→B DREQ, lost
			A→B DREQ, lost
			A: disconnected
			A: timewait exit`)
	})
}

// Whoever takes its time says so when it is asked again.
func TestSlowAnswerIsAnnounced(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	s.connect()
	s.pass(wait)
	s.expect(`
		A→B REQ
		B: request
		A→B REQ
		B→A MRA`)
	s.pass(60 * time.Second) // of 68.7
	s.expect("")
	s.accept()
	s.expect(`
		B→A REP
		A: reply`)
	s.ready()
	s.expect(`
		A→B RTU
		B: ready`)
}

func TestReject(t *testing.T) {
	t.Run("the request", func(t *testing.T) {
		s := newScript(t, cm.Config{})
		s.listen()
		s.connect()
		s.lose = loseFirst(mad.AttrREJ, 1)
		s.check(s.ends[1].m.Reject(s.now, s.ends[1].id, mad.RejConsumer, nil, []byte("no")))
		s.pass(wait)
		s.expect(`
			A→B REQ
			B: request
			B→A REJ: rejected by the consumer, lost
			A→B REQ
			B→A REJ: rejected by the consumer
			A: rejected`)
		s.empty()
	})
	t.Run("the reply", func(t *testing.T) {
		s := newScript(t, cm.Config{})
		s.listen()
		s.connect()
		s.accept()
		s.log = nil
		s.check(s.ends[0].m.Reject(s.now, s.ends[0].id, mad.RejConsumer, nil, nil))
		s.expect(`
			A→B REJ: rejected by the consumer
			B: rejected`)
		s.empty()
	})
}

// Who gives up says so, and the other end forgets the request.
func TestGivingUp(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	s.connect()
	s.log = nil
	s.ends[0].m.Abandon(s.now, s.ends[0].id)
	s.settle()
	s.expect(`
		A→B REJ: timeout
		B: rejected`)
	s.empty()
	if err := s.ends[1].m.Accept(s.now, s.ends[1].id, &mad.REP{}); err == nil {
		t.Error("a request that is gone was accepted")
	}
}

// Data can come before the RTU; the RTU then means nothing new.
func TestDataEstablish(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.listen()
	s.connect()
	s.accept()
	s.log = nil
	s.ends[1].m.Arrived(s.ends[1].id)
	s.settle()
	s.ready()
	s.expect(`
		B: ready
		A→B RTU`)
}

func TestBothEndsDisconnectAtOnce(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	for _, e := range s.ends {
		if err := e.m.Disconnect(s.now, e.id, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.settle()
	s.pass(2 * time.Second)
	for _, e := range s.ends {
		if e.gone != 1 {
			t.Errorf("%s: %d timewait exits", e.name, e.gone)
		}
	}
	s.empty()
}

// A peer that was reborn uses its queue pair for a new connection: the new one
// is refused, the old one ends, and then the new one can be made.
func TestStaleConnection(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	s.ends[0].m = cm.New(cm.Config{GUID: 0xA, Rand: func() uint32 { return 77 }})
	s.connect()
	s.expect(`
		A→B REQ
		B: disconnect
		B→A REJ: stale connection
		B→A DREQ
		A: rejected
		A→B DREP
		B: disconnected`)
	s.connect()
	s.expect(`
		A→B REQ
		B: request`)
}

// A DREQ for a connection that nobody remembers is answered, so that the peer
// does not wait; a REP is refused.
func TestForgottenConnection(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	s.ends[1].m = cm.New(cm.Config{GUID: 0xB, Rand: func() uint32 { return 78 }})
	s.check(s.ends[0].m.Disconnect(s.now, s.ends[0].id, nil))
	s.expect(`
		A→B DREQ
		B→A DREP
		A: disconnected`)

	s = newScript(t, cm.Config{})
	s.listen()
	s.connect()
	s.ends[0].m = cm.New(cm.Config{GUID: 0xA, Rand: func() uint32 { return 79 }})
	s.log = nil
	s.accept()
	s.expect(`
		B→A REP
		A→B REJ: invalid communication ID
		B: rejected`)
}

func TestAlternatePathIsRefusedPolitely(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	lap := func(local, remote cm.ID) {
		var b [mad.Len]byte
		mad.Put(b[:], 1, &mad.LAP{LocalID: mad.CommID(local), RemoteID: mad.CommID(remote)})
		s.ends[1].m.Receive(s.now, s.ends[1].peer, b[:])
		s.settle()
	}
	lap(s.ends[0].id, s.ends[1].id)
	lap(s.ends[0].id, s.ends[1].id+1)
	s.expect(`
		B→A APR: status 2
		B→A APR: status 1`)
}

// A message about a connection from anywhere but its peer changes nothing.
func TestStrangersAreNotBelieved(t *testing.T) {
	s := newScript(t, cm.Config{})
	s.establish()
	stranger := peerAt(7)
	for _, m := range []mad.Message{
		&mad.DREQ{LocalID: mad.CommID(s.ends[0].id), RemoteID: mad.CommID(s.ends[1].id), RemoteQPN: 0x22},
		&mad.REJ{LocalID: mad.CommID(s.ends[0].id), RemoteID: mad.CommID(s.ends[1].id), Reason: mad.RejConsumer},
	} {
		var b [mad.Len]byte
		mad.Put(b[:], 1, m)
		s.ends[1].m.Receive(s.now, stranger, b[:])
		for {
			if _, ok := s.ends[1].m.Emit(&b); !ok {
				break
			}
		}
	}
	if got := s.ends[1].m.State(s.ends[1].id); got != cm.Established {
		t.Errorf("state %v", got)
	}
}

// What a peer can make a machine remember is bounded.
func TestBacklog(t *testing.T) {
	s := newScript(t, cm.Config{MaxPending: 3})
	s.listen()
	var refused int
	for i := range 5 {
		r := request()
		r.QPN += 0x100
		r.QPN = r.QPN + 1<<uint(i+10)
		if _, err := s.ends[0].m.Connect(s.now, s.ends[0].peer, r); err != nil {
			t.Fatal(err)
		}
		s.settle()
	}
	for _, line := range s.log {
		if line == "B→A REJ: no resources available" {
			refused++
		}
	}
	if refused != 2 || s.ends[1].m.Len() != 3 {
		t.Errorf("%d refused, %d waiting", refused, s.ends[1].m.Len())
	}
	s.empty()
}

func TestDatagramService(t *testing.T) {
	s := newScript(t, cm.Config{})
	ask := func() {
		id, err := s.ends[0].m.Resolve(s.now, s.ends[0].peer, &mad.SIDRREQ{Service: service}, 18, 2)
		s.ends[0].id = id
		s.check(err)
	}
	ask()
	s.expect(`
		A→B SIDR_REQ
		B→A SIDR_REP: nobody listens there: service ID not supported, QPN 0x000000
		A: SIDR reply`)
	s.listen()
	ask()
	s.pass(wait) // a duplicate is not asked twice
	s.expect(`
		A→B SIDR_REQ
		B: SIDR request
		A→B SIDR_REQ`)
	s.lose = loseFirst(mad.AttrSIDRREP, 1)
	s.check(s.ends[1].m.ReplySIDR(s.now, s.ends[1].id, &mad.SIDRREP{QPN: 0x22}))
	s.pass(wait)
	s.expect(`
		B→A SIDR_REP: valid, QPN 0x000022, lost
		A→B SIDR_REQ
		B→A SIDR_REP: valid, QPN 0x000022
		A: SIDR reply`)
	s.empty()
	s.lose = func(int, mad.Attr) bool { return true }
	ask()
	s.pass(3 * wait)
	s.expect(`
		A→B SIDR_REQ, lost
		A→B SIDR_REQ, lost
		A→B SIDR_REQ, lost
		A: unreachable`)
	s.empty()
}
