package cm_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// A transcript: two machines, A that asks and B that listens, and a line for
// each datagram, event and loss, which a test compares with what the rule says.
type script struct {
	t    *testing.T
	now  clock.Time
	ends [2]*end
	log  []string
	lose func(from int, a mad.Attr) bool // nil: nothing is lost
	keep map[mad.Attr][]byte             // if not nil, the last datagram of each kind
}

type end struct {
	name string
	m    *cm.Machine
	peer cm.Peer // the other end, as this one sees it
	id   cm.ID   // of the last event
	gone int     // timewait exits
}

const service = mad.ServiceID(0x0000000001061c06)

// The timeouts of a script: 4.096 µs · 2^18 and twice 4.096 µs · 2^14.
const wait = 1073741824*time.Nanosecond + 2*67108864*time.Nanosecond

// cmTimewait is how long a script's machines remember what has ended.
const cmTimewait = 2 * time.Second

func newScript(t *testing.T, cfg cm.Config) *script {
	s := &script{t: t}
	for i := range s.ends {
		c := cfg
		c.GUID = uint64(0xA + i)
		c.Rand = rand.New(rand.NewPCG(1, uint64(i))).Uint32
		s.ends[i] = &end{name: string(rune('A' + i)), m: cm.New(c), peer: peerAt(1 - i)}
	}
	return s
}

func peerAt(i int) cm.Peer {
	return cm.Peer{GID: ib.GIDFromAddr(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))}
}

func request() *mad.REQ {
	return &mad.REQ{
		Service: service, QPN: 0x11, StartingPSN: 1, RemoteTimeoutExp: 18, LocalTimeoutExp: 18, MaxCMRetries: 2, PKey: ib.DefaultPKey, MTU: ib.MTU1024,
	}
}

func (s *script) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// settle moves datagrams until there are none, and notes events.
func (s *script) settle() {
	for moved := true; moved; {
		moved = false
		for i, e := range s.ends {
			for {
				ev, ok := e.m.Event()
				if !ok {
					break
				}
				moved, e.id = true, ev.ID
				if ev.Type == cm.EventTimewaitExit {
					e.gone++
				}
				s.note("%s: %v", e.name, ev.Type)
			}
			for {
				var b [mad.Len]byte
				to, ok := e.m.Emit(&b)
				if !ok {
					break
				}
				moved = true
				if to.GID != e.peer.GID {
					s.t.Fatalf("%s sends to %v", e.name, to.GID)
				}
				var h mad.Header
				h.Decode(b[:])
				text := e.name + "→" + s.ends[1-i].name + " " + describe(h.Attr, b[mad.HeaderLen:])
				if s.keep != nil {
					s.keep[h.Attr] = slices.Clone(b[:])
				}
				if s.lose != nil && s.lose(i, h.Attr) {
					s.note("%s, lost", text)
					continue
				}
				s.note("%s", text)
				s.ends[1-i].m.Receive(s.now, s.ends[1-i].peer, b[:])
			}
		}
	}
}

func describe(a mad.Attr, b []byte) string {
	switch a {
	case mad.AttrREJ:
		var rej mad.REJ
		rej.Decode(b)
		return fmt.Sprintf("REJ: %v", rej.Reason)
	case mad.AttrAPR:
		var apr mad.APR
		apr.Decode(b)
		return fmt.Sprintf("APR: status %d", apr.Status)
	case mad.AttrSIDRREP:
		var rep mad.SIDRREP
		rep.Decode(b)
		return fmt.Sprintf("SIDR_REP: %v, QPN %v", rep.Status, rep.QPN)
	default:
		return a.String()
	}
}

// pass lets time pass, deadline by deadline.
func (s *script) pass(d time.Duration) {
	until := s.now.Add(d)
	for {
		next := clock.Min(s.ends[0].m.Deadline(), s.ends[1].m.Deadline())
		if next > until {
			break
		}
		s.now = next
		for _, e := range s.ends {
			e.m.Advance(s.now)
		}
		s.settle()
	}
	s.now = until
}

func (s *script) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.settle()
}

func (s *script) listen() { s.check(s.ends[1].m.Listen(service)) }

func (s *script) connect() {
	id, err := s.ends[0].m.Connect(s.now, s.ends[0].peer, request())
	s.ends[0].id = id
	s.check(err)
}

func (s *script) accept() {
	s.check(s.ends[1].m.Accept(s.now, s.ends[1].id, &mad.REP{QPN: 0x22, StartingPSN: 2}))
}
func (s *script) ready() { s.check(s.ends[0].m.Ready(s.ends[0].id, nil)) }

// establish makes a connection and forgets the lines.
func (s *script) establish() {
	s.listen()
	s.connect()
	s.accept()
	s.ready()
	for _, e := range s.ends {
		if got := e.m.State(e.id); got != cm.Established {
			s.t.Fatalf("%s is in state %v", e.name, got)
		}
	}
	s.log = nil
}

// expect compares the lines since the last call.
func (s *script) expect(lines string) {
	s.t.Helper()
	var want []string
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			want = append(want, line)
		}
	}
	if diff := cmp.Diff(want, s.log); diff != "" {
		s.t.Errorf("transcript (-want +got):\n%s", diff)
	}
	s.log = nil
}

// empty checks that both machines have forgotten everything.
func (s *script) empty() {
	s.t.Helper()
	s.pass(5 * time.Minute)
	for _, e := range s.ends {
		if n := e.m.Len(); n != 0 || e.m.Deadline() != clock.Never {
			s.t.Errorf("%s remembers %d connections, deadline %v", e.name, n, e.m.Deadline())
		}
	}
}

// loseFirst loses the first n messages of a kind.
func loseFirst(kind mad.Attr, n int) func(int, mad.Attr) bool {
	return func(_ int, a mad.Attr) bool {
		if a != kind || n == 0 {
			return false
		}
		n--
		return true
	}
}
