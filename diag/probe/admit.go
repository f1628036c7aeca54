package probe

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// log tells Logf, not of every one of many sessions.
func (l *Listener) log(format string, args ...any) {
	if l.cfg.Logf == nil {
		return
	}
	ok, missed := l.lines.next(time.Now())
	if missed > 0 {
		l.cfg.Logf("%d lines were left out", missed)
	}
	if ok {
		l.cfg.Logf(format, args...)
	}
}

// lines bounds how much is told in a minute.
type lines struct {
	mu           sync.Mutex
	since        time.Time
	told, missed int
}

const maxLines = 20

// next reports whether a line may be told, and how many could not before it.
func (x *lines) next(now time.Time) (ok bool, missed int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Sub(x.since) >= time.Minute {
		missed = x.missed
		x.since, x.told, x.missed = now, 0, 0
	}
	if x.told >= maxLines {
		x.missed++
		return false, 0
	}
	x.told++
	return true, missed
}

// sameSite reports whether two peers may be one host: a host has one IPv4
// address and a network of 64 bits of IPv6 addresses.
func sameSite(a, b netip.Addr) bool {
	if a.Is4() || b.Is4() || a.IsLinkLocalUnicast() {
		return a == b
	}
	p, _ := a.Prefix(64)
	return p.Contains(b)
}

// admit keeps account of sessions; the answer says why one is refused.
func (l *Listener) admit(c net.Conn, peer netip.Addr) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return "the listener ends"
	}
	same, near := 0, 0
	for _, p := range l.conns {
		if p == peer {
			same++
		}
		if sameSite(p, peer) {
			near++
		}
	}
	if len(l.conns) >= l.cfg.MaxSessions || same >= maxPerPeer || near >= max(maxPerPeer, l.cfg.MaxSessions/2) {
		return fmt.Sprintf("busy with %d sessions, %d of them yours; try again later", len(l.conns), same)
	}
	l.conns[c] = peer
	return ""
}

func (l *Listener) leave(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
