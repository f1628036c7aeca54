package cm_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Whatever is lost, and whatever the users do when: nothing is remembered for
// ever, and who believes in a connection at the end has a peer that did.
func TestNothingIsRememberedForEver(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := newScript(t, cm.Config{})
		s.lose = func(int, mad.Attr) bool { return rapid.IntRange(0, 9).Draw(r, "loss") < 3 }
		s.listen()
		s.connect()
		b := s.ends[1]
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			switch rapid.IntRange(0, 7).Draw(r, "step") {
			case 0:
				_ = b.m.Accept(s.now, b.id, &mad.REP{QPN: 0x22})
			case 1:
				_ = s.ends[0].m.Ready(s.ends[0].id, nil)
			case 2:
				e := s.ends[rapid.IntRange(0, 1).Draw(r, "end")]
				_ = e.m.Disconnect(s.now, e.id, nil)
			case 3:
				e := s.ends[rapid.IntRange(0, 1).Draw(r, "end")]
				_ = e.m.Reject(s.now, e.id, mad.RejConsumer, nil, nil)
			case 4:
				b.m.Arrived(b.id)
			default:
				s.pass(time.Duration(rapid.IntRange(0, 4000).Draw(r, "ms")) * time.Millisecond)
			}
			s.settle()
		}
		s.lose = nil
		for _, e := range s.ends {
			e.m.Abandon(s.now, e.id)
		}
		s.settle()
		for range 3 { // events that wait for an answer
			for _, e := range s.ends {
				e.m.Abandon(s.now, e.id)
			}
			s.pass(3 * time.Minute)
		}
		for _, e := range s.ends {
			if n := e.m.Len(); n != 0 {
				r.Fatalf("%s remembers %d connections, state %v:\n%v", e.name, n, e.m.State(e.id), s.log)
			}
		}
	})
}

// Any bytes are harmless.
func FuzzReceive(f *testing.F) {
	for _, m := range []mad.Message{
		&mad.REQ{Service: service, LocalID: 1}, &mad.MRA{RemoteID: 1}, &mad.REJ{}, &mad.REP{}, &mad.RTU{}, &mad.DREQ{}, &mad.DREP{},
		&mad.SIDRREQ{Service: service}, &mad.SIDRREP{}, &mad.LAP{}, &mad.APR{},
	} {
		b := make([]byte, mad.Len)
		mad.Put(b, 1, m)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newScript(t, cm.Config{MaxConns: 4, MaxPending: 2})
		s.establish()
		b := make([]byte, mad.Len)
		copy(b, data)
		s.ends[1].m.Receive(s.now, s.ends[1].peer, b)
		s.ends[1].m.Receive(s.now, s.ends[1].peer, data)
		s.settle()
		s.pass(time.Hour)
	})
}
