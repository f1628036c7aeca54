package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
)

// Nobody waits for a neighbour: the device has others to serve. The host
// resolves it, and the link hears of that. A few frames are held meanwhile, as
// the host's own stack does; more are dropped, and all if the host gives up.

const (
	// maxHeld bounds the bytes that wait, for all neighbours together: Linux' own
	// limit for one (neigh unres_qlen_bytes).
	maxHeld = 212992
	// askAgain is how long after a question that was not answered the next frame
	// asks once more. The host itself asks three times, a second apart.
	askAgain = time.Second
)

// waiting is what there is of a neighbour whose address is not known.
type waiting struct {
	frames [][]byte   // without addresses
	next   clock.Time // not asked again before
	asked  bool       // the host is asking: what is sent meanwhile waits
	told   bool       // that it does not answer
}

// find looks for the address of a neighbour in the host's table, and makes the
// host ask for it if it is not there. It reports whether it was. l.mu is held.
func (l *system) find(h *hop) bool {
	now := l.clock.Now()
	if now < h.next {
		return false
	}
	h.next = now.Add(askAgain)
	mac, ok, err := l.neighbour(&l.routes, h.via)
	if ok {
		l.learn(h.via, mac)
		return true
	}
	if err == nil {
		l.trigger(h.via)
		h.asked = true
	}
	return false
}

// hold keeps the frames of a run until the neighbour is known, or drops them: those
// that are too many, and those that nobody asks for.
func (l *system) hold(h *hop, r *frame.Run) {
	for off := 0; off < r.N; off += r.Seg {
		b := r.Buf[off:min(off+r.Seg, r.N)]
		if !h.asked || l.held+len(b) > maxHeld {
			l.cnt.TxUnresolved++
			continue
		}
		h.frames = append(h.frames, append([]byte(nil), b...))
		l.held += len(b)
	}
}

// learn notes the address of a neighbour and sends what waits for it. l.mu is
// held.
func (l *system) learn(via netip.Addr, mac ether.MAC) {
	for _, h := range l.hops {
		if h.via != via {
			continue
		}
		h.mac, h.known = mac, true
		for _, b := range h.frames {
			l.held -= len(b)
			l.queue(b, mac)
		}
		h.waiting = waiting{}
	}
	l.flush()
}

// lose drops what waits for a neighbour that does not answer. The next frame
// asks once more.
func (l *system) lose(via netip.Addr) {
	for dst, h := range l.hops {
		if h.via != via || h.known {
			continue
		}
		l.forget(h)
		if !h.told {
			h.told = true
			l.event(link.Event{
				Kind: link.EventNoNeighbour, Src: l.source(dst), Dst: dst,
				Err: fmt.Errorf("the neighbour %v on %s answers neither ARP nor neighbour discovery: %w", via, l.cfg.Interface, unix.EHOSTUNREACH),
			})
		}
	}
}

// source is the first address of this link that is of dst's family.
func (l *system) source(dst netip.Addr) netip.Addr {
	for _, a := range l.cfg.Addrs {
		if a.Is4() == dst.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// forget drops what waits.
func (l *system) forget(h *hop) {
	for _, b := range h.frames {
		l.held -= len(b)
	}
	l.cnt.TxUnresolved += uint64(len(h.frames))
	h.frames, h.asked = nil, false
}

// neighbour asks the host's table.
func (l *system) neighbour(n *netlink, via netip.Addr) (mac ether.MAC, ok bool, err error) {
	m := unix.NdMsg{Family: family(via), Ifindex: int32(l.index)}
	b, err := n.ask(unix.RTM_GETNEIGH, 0, bytesOf(&m), attr{unix.NDA_DST, via.AsSlice()})
	if errors.Is(err, unix.ENOENT) {
		return mac, false, nil
	}
	if err != nil {
		return mac, false, err
	}
	e := readNeighbour(b, l.index)
	return e.mac, e.ok, nil
}

// entry is one entry of the table of an interface.
type entry struct {
	dst    netip.Addr
	mac    ether.MAC
	ok     bool // mac can be used
	failed bool // the host has asked in vain
}

// readNeighbour reads one entry; that of another interface is neither ok nor
// failed.
func readNeighbour(b []byte, index int) (e entry) {
	if len(b) < unix.SizeofNdMsg {
		return e
	}
	at := int(int32(binary.NativeEndian.Uint32(b[4:])))
	state := binary.NativeEndian.Uint16(b[8:])
	attrs(b[unix.SizeofNdMsg:], func(typ uint16, data []byte) {
		switch {
		case typ == unix.NDA_DST:
			e.dst, _ = netip.AddrFromSlice(data)
		case typ == unix.NDA_LLADDR && len(data) == len(e.mac):
			e.mac, e.ok = ether.MAC(data), true
		}
	})
	mine := at == index && e.dst.IsValid()
	e.ok = e.ok && mine && state&nudValid != 0
	e.failed = mine && state&unix.NUD_FAILED != 0
	return e
}

// trigger lets the host resolve a neighbour. Where this process may not ask for
// that, a datagram to the discard port has the same effect. l.mu is held.
func (l *system) trigger(via netip.Addr) {
	m := unix.NdMsg{Family: family(via), Ifindex: int32(l.index), Flags: unix.NTF_USE}
	_, err := l.routes.ask(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_ACK, bytesOf(&m), attr{unix.NDA_DST, via.AsSlice()})
	if err == nil {
		return
	}
	for _, h := range l.holders {
		if h.addr.Is4() == via.Is4() && h.addr.IsLinkLocalUnicast() == via.IsLinkLocalUnicast() {
			_ = unix.Sendto(h.fd, nil, unix.MSG_DONTWAIT, sockaddr(via, discardPort, l.index))
			return
		}
	}
}

// ears hear what the host learns about neighbours.
type ears struct {
	nl    netlink
	again netlink // asks when news were lost
	file  *os.File
	done  chan struct{}
}

// listen starts to follow the neighbours.
func (l *system) listen() error {
	e := &l.ears
	if err := e.again.open(0); err != nil {
		return err
	}
	if err := e.nl.open(unix.RTMGRP_NEIGH); err != nil {
		return err
	}
	if err := unix.SetNonblock(e.nl.fd, true); err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	e.file = os.NewFile(uintptr(e.nl.fd), "netlink")
	e.nl.fd = -1
	e.done = make(chan struct{})
	go l.follow()
	return nil
}

func (e *ears) close() {
	e.nl.close()
	if e.file != nil {
		_ = e.file.Close()
		<-e.done
	}
	e.again.close()
}

// follow notes new addresses of neighbours until the link is closed. One that
// the host forgets keeps the last.
func (l *system) follow() {
	defer close(l.ears.done)
	for {
		n, err := l.ears.file.Read(l.ears.nl.in[:])
		switch {
		case errors.Is(err, unix.ENOBUFS):
			l.catchUp()
			continue
		case err != nil:
			return
		}
		for _, m := range messages(l.ears.nl.in[:n]) {
			if m.typ == unix.RTM_NEWNEIGH {
				l.note(readNeighbour(m.body, l.index))
			}
		}
	}
}

// note takes a piece of news in.
func (l *system) note(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case e.ok:
		l.learn(e.dst, e.mac)
	case e.failed:
		l.lose(e.dst)
	}
}

// catchUp asks for every neighbour once more: news were lost.
func (l *system) catchUp() {
	l.mu.Lock()
	var all []netip.Addr
	for _, h := range l.hops {
		if h.via.IsValid() {
			all = append(all, h.via)
		}
	}
	l.mu.Unlock()
	for _, via := range all {
		if mac, ok, err := l.neighbour(&l.ears.again, via); ok && err == nil {
			l.note(entry{dst: via, mac: mac, ok: true})
		}
	}
}
