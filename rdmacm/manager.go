package rdmacm

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/cm"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/wire/mad"
)

// Manager is the connection manager of one device. Its methods, and those of
// everything made of it, may be called from any goroutine.
//
// One lock guards the machine and all that its events change. Whoever changes
// the machine under it also hands out its events and datagrams before letting
// go (flush); the manager's goroutine does so for what comes from peers and for
// deadlines.
type Manager struct {
	dev   *verbs.Device
	gsi   *verbs.GSI
	rows  []verbs.GIDEntry
	mtu   ib.MTU // of the port
	clock clock.Real
	kick  chan struct{} // capacity 1: the deadline may have changed
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when the goroutine is gone

	mu        sync.Mutex
	machine   *cm.Machine
	closed    bool
	users     map[cm.ID]user
	listeners map[mad.ServiceID]*Listener
	groups    map[*Group]struct{}
	accepting map[ib.QPN]cm.ID // whose first message says that the connection is established
	nextPort  uint16
}

// user is what the events of one ID are for: a Conn, a Request, a lookup.
type user interface {
	// cmEvent takes an event; the manager's lock is held.
	cmEvent(e *cm.Event)
	// removed says that the manager is no more; the lock is held.
	removed()
}

// Open makes the connection manager of a device. The error matches ErrBusy if
// it has one already.
func Open(dev *verbs.Device) (*Manager, error) { return open(dev, cm.Config{}) }

// open is Open with another configuration of the machine.
func open(dev *verbs.Device, cfg cm.Config) (*Manager, error) {
	cfg.GUID, cfg.Rand = dev.Attr().GUID, random32
	gsi, err := dev.OpenGSI()
	if err != nil {
		return nil, fmt.Errorf("open connection manager of device %v: %w", dev, err)
	}
	m := &Manager{
		dev: dev, gsi: gsi, rows: dev.GIDs(), mtu: dev.Port().ActiveMTU, clock: clock.NewReal(), kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		machine: cm.New(cfg),
		users:   make(map[cm.ID]user), listeners: make(map[mad.ServiceID]*Listener), groups: make(map[*Group]struct{}),
		accepting: make(map[ib.QPN]cm.ID),
		nextPort:  firstPort + uint16(random32()%(lastPort-firstPort)),
	}
	dev.ReportCM(m.cmIDs)
	go m.run()
	return m, nil
}

// Device returns the device.
func (m *Manager) Device() *verbs.Device { return m.dev }

// Counters returns what the manager has seen so far.
func (m *Manager) Counters() cm.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Counters()
}

// Connections returns how many connections, and requests of all kinds, the
// manager remembers, those that have ended lately included.
func (m *Manager) Connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.Len()
}

// Close ends all that was made of the manager: peers are told, once, that their
// connections end, queue pairs go to Error, waits return with ErrClosed. It
// waits for the manager's goroutine. Close it before its device.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		<-m.done
		return nil
	}
	m.closed = true
	now := m.clock.Now()
	for id, u := range m.users {
		u.removed()
		m.machine.Abandon(now, id)
		m.machine.AbandonSIDR(id)
	}
	clear(m.users)
	for _, l := range m.listeners {
		l.end()
	}
	clear(m.listeners)
	for g := range m.groups {
		g.removed()
	}
	clear(m.groups)
	m.send()
	m.mu.Unlock()
	close(m.stop)
	<-m.done
	m.dev.ReportCM(nil)
	return m.gsi.Close()
}

// run is the manager's goroutine.
func (m *Manager) run() {
	defer close(m.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := m.turn()
		wait := time.Hour
		if next != clock.Never {
			wait = max(next.Sub(m.clock.Now()), 0)
		}
		timer.Reset(wait)
		select {
		case <-m.gsi.C():
		case <-m.kick:
		case <-timer.C:
		case <-m.stop:
			return
		}
	}
}

// turn takes what has come and what is due, and returns the next deadline.
func (m *Manager) turn() clock.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	var b [verbs.MADLen]byte
	for {
		from, ok := m.gsi.Recv(&b)
		if !ok {
			break
		}
		if from.QPN == ib.QPGSI {
			m.machine.Receive(now, cm.Peer{GID: from.GID, GIDIndex: from.GIDIndex}, b[:])
		}
	}
	for {
		qpn, ok := m.gsi.First()
		if !ok {
			break
		}
		if id, ok := m.accepting[qpn]; ok {
			m.machine.Arrived(id)
		}
	}
	m.machine.Advance(now)
	m.flush()
	return m.machine.Deadline()
}

// do calls f, which may change the machine, and hands out what comes of it.
func (m *Manager) do(what string, f func(now clock.Time) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errorf(ErrClosed, "%s: the connection manager is closed", what)
	}
	err := f(m.clock.Now())
	m.flush()
	select {
	case m.kick <- struct{}{}:
	default:
	}
	return err
}

// flush hands out events and datagrams. Lock held.
func (m *Manager) flush() {
	for {
		e, ok := m.machine.Event()
		if !ok {
			break
		}
		m.dispatch(&e)
	}
	m.send()
}

// send sends what the machine has to say. What cannot be sent is lost, as it
// might be on its way; it is sent again. Lock held.
func (m *Manager) send() {
	var b [verbs.MADLen]byte
	for {
		to, ok := m.machine.Emit(&b)
		if !ok {
			return
		}
		_ = m.gsi.Send(verbs.GSIPeer{GID: to.GID, GIDIndex: to.GIDIndex, QPN: ib.QPGSI, TrafficClass: to.TrafficClass, SL: to.SL}, &b)
	}
}

// dispatch gives an event to whom it is for. Lock held.
func (m *Manager) dispatch(e *cm.Event) {
	if e.Type == cm.EventRequest || e.Type == cm.EventSIDRRequest {
		m.request(e)
		return
	}
	u := m.users[e.ID]
	if e.Last() {
		delete(m.users, e.ID)
	}
	if u != nil {
		u.cmEvent(e)
	}
}

// The ports that are given out.
const (
	firstPort = 32768
	lastPort  = 60999
)

// port returns a port that is not in use. Lock held.
func (m *Manager) port(s Space) (uint16, error) {
	for range lastPort - firstPort + 1 {
		p := m.nextPort
		if m.nextPort++; m.nextPort > lastPort {
			m.nextPort = firstPort
		}
		if m.listeners[mad.Service(s, p)] == nil {
			return p, nil
		}
	}
	return 0, errorf(ErrInUse, "all ports from %d to %d are in use", firstPort, lastPort)
}

// random32 returns an unguessable number.
func random32() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}
