package cm

import (
	"errors"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// The errors of a machine's calls match one of these.
var (
	// ErrInvalid: an argument is out of range.
	ErrInvalid = errors.New("invalid argument")
	// ErrState: the connection is in another state, or gone.
	ErrState = errors.New("wrong state")
	// ErrInUse: somebody listens there.
	ErrInUse = errors.New("service ID in use")
	// ErrLimit: there are too many.
	ErrLimit = errors.New("limit reached")
)

// ID names a connection or a request for a service of datagrams: the local
// communication ID, or the request ID. 0 names none.
type ID uint32

// Peer is the other connection manager, and the way to it.
type Peer struct {
	GID          ib.GID
	GIDIndex     int // local row of the GID table
	TrafficClass uint8
	SL           uint8
}

// same reports whether messages from o are the peer's.
func (p *Peer) same(o *Peer) bool { return p.GID == o.GID }

// Config is what a machine is made from.
type Config struct {
	GUID uint64 // node GUID of the device
	// Rand supplies communication IDs: unguessable for real devices, seeded for
	// simulated ones.
	Rand func() uint32
	// MaxConns bounds the connections of all states, and MaxPending the requests
	// of one listener that wait for an answer; 0 for 65,536 and 1,024.
	MaxConns, MaxPending int
	// LifetimeExp is how long a packet may be under way: 4.096 µs · 2^n; 0 for
	// 14, 67 ms.
	LifetimeExp uint8
	// Timewait is how long a connection that has ended is remembered; 0 for two
	// seconds.
	Timewait time.Duration
}

// The defaults of a Config.
const (
	defaultMaxConns    = 1 << 16
	defaultMaxPending  = 1 << 10
	defaultLifetimeExp = 14
	defaultTimewait    = 2 * time.Second
)

// serviceTimeoutExp is how long an MRA says that an answer may take: 68.7 s, as
// other connection managers do.
const serviceTimeoutExp = 24

// maxOut bounds the answers to messages of no connection that wait to be sent.
const maxOut = 4096

// Machine is a connection manager. It is not safe for concurrent use.
type Machine struct {
	cfg       Config
	conns     map[ID]*conn
	remotes   map[remoteKey]*conn // those that began at the peer, and are remembered
	peers     map[qpnKey]*conn    // by the peer's queue pair, while that is in use
	listeners map[mad.ServiceID]*listener
	sidrs     map[ID]*sidr
	asked     map[remoteKey]*sidr
	timers    timers
	events    fifo[Event]
	out       fifo[outgoing]
	count     Counters
}

// remoteKey is a peer's name for a connection.
type remoteKey struct {
	gid  ib.GID
	guid uint64
	id   mad.CommID
}

// qpnKey is a peer's queue pair.
type qpnKey struct {
	gid  ib.GID
	guid uint64
	qpn  ib.QPN
}

type listener struct{ pending int }

type outgoing struct {
	to Peer
	b  [mad.Len]byte
}

// Counters are what a machine has seen.
type Counters struct {
	Sent, Received uint64 // MADs
	Resent         uint64 // by timeout or because the peer sent again
	Duplicates     uint64 // messages that had come before
	Ignored        uint64 // messages that mean nothing here
	Refused        uint64 // requests refused by the machine itself
}

// New returns a machine without connections. cfg.Rand is required.
func New(cfg Config) *Machine {
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = defaultMaxConns
	}
	if cfg.MaxPending <= 0 {
		cfg.MaxPending = defaultMaxPending
	}
	if cfg.LifetimeExp == 0 {
		cfg.LifetimeExp = defaultLifetimeExp
	}
	if cfg.Timewait <= 0 {
		cfg.Timewait = defaultTimewait
	}
	return &Machine{
		cfg: cfg, conns: make(map[ID]*conn), remotes: make(map[remoteKey]*conn), peers: make(map[qpnKey]*conn),
		listeners: make(map[mad.ServiceID]*listener), sidrs: make(map[ID]*sidr), asked: make(map[remoteKey]*sidr),
	}
}

// Counters returns what the machine has seen so far.
func (m *Machine) Counters() Counters { return m.count }

// Len returns the number of connections and of requests for services of
// datagrams that the machine remembers.
func (m *Machine) Len() int { return len(m.conns) + len(m.sidrs) }

// Listen makes requests for a service events. The error matches ErrInUse.
func (m *Machine) Listen(id mad.ServiceID) error {
	if m.listeners[id] != nil {
		return fmt.Errorf("listen at %v: %w", id, ErrInUse)
	}
	m.listeners[id] = &listener{}
	return nil
}

// Unlisten ends that. Requests that wait for an answer stay.
func (m *Machine) Unlisten(id mad.ServiceID) { delete(m.listeners, id) }

// Receive takes a MAD of mad.Len bytes from a peer; b is borrowed. Any bytes
// are harmless.
func (m *Machine) Receive(now clock.Time, from Peer, b []byte) {
	if len(b) != mad.Len {
		m.count.Ignored++
		return
	}
	var h mad.Header
	h.Decode(b)
	if h.Class != mad.ClassCM || h.BaseVersion != mad.BaseVersion || h.Method != mad.MethodSend {
		m.count.Ignored++
		return
	}
	if h.ClassVersion != mad.CMClassVersion {
		m.refuseVersion(from, &h, b[mad.HeaderLen:])
		return
	}
	m.count.Received++
	switch h.Attr {
	case mad.AttrREQ:
		m.receiveREQ(now, from, &h, b)
	case mad.AttrMRA:
		m.receiveMRA(now, from, b)
	case mad.AttrREJ:
		m.receiveREJ(now, from, b)
	case mad.AttrREP:
		m.receiveREP(now, from, &h, b)
	case mad.AttrRTU:
		m.receiveRTU(from, b)
	case mad.AttrDREQ:
		m.receiveDREQ(now, from, &h, b)
	case mad.AttrDREP:
		m.receiveDREP(now, from, b)
	case mad.AttrSIDRREQ:
		m.receiveSIDRREQ(now, from, &h, b)
	case mad.AttrSIDRREP:
		m.receiveSIDRREP(from, b)
	case mad.AttrLAP:
		m.receiveLAP(from, &h, b)
	case mad.AttrClassPortInfo, mad.AttrAPR:
		m.count.Ignored++
	default:
		m.count.Ignored++
	}
}

// Emit removes the oldest MAD that waits to be sent, writes it to b and says to
// whom it goes; ok is false if there is none.
func (m *Machine) Emit(b *[mad.Len]byte) (to Peer, ok bool) {
	o, ok := m.out.pop()
	if !ok {
		return Peer{}, false
	}
	*b = o.b
	m.count.Sent++
	return o.to, true
}

// Deadline returns the instant at which Advance wants to be called, or Never.
func (m *Machine) Deadline() clock.Time { return m.timers.earliest() }

// Advance does what is due. Early or repeated calls do nothing.
func (m *Machine) Advance(now clock.Time) {
	for t := m.timers.due(now); t != nil; t = m.timers.due(now) {
		m.timers.stop(t)
		if t.conn != nil {
			m.timeout(now, t.conn)
		} else {
			m.sidrTimeout(now, t.sidr)
		}
	}
}

// send queues a message.
func (m *Machine) send(to Peer, tid uint64, msg mad.Message) {
	m.out.push(outgoing{to: to})
	mad.Put(m.out.last().b[:], tid, msg)
}

// answer queues a message about no connection: there is room for so many.
func (m *Machine) answer(to Peer, tid uint64, msg mad.Message) {
	if m.out.len() >= maxOut {
		m.count.Ignored++
		return
	}
	m.send(to, tid, msg)
}

// newID returns a number that is not in use.
func (m *Machine) newID() ID {
	for {
		id := ID(m.cfg.Rand())
		if id != 0 && m.conns[id] == nil && m.sidrs[id] == nil {
			return id
		}
	}
}

// wait is how long an answer may take: what the peer was given, and the way
// there and back (IBA vol.1 12.6.5).
func (m *Machine) wait(exp uint8) time.Duration {
	return span(exp) + 2*span(m.cfg.LifetimeExp)
}

// span is 4.096 µs · 2^exp.
func span(exp uint8) time.Duration { return 4096 * time.Nanosecond << (exp & 31) }
