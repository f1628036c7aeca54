package probe

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// No peer takes all sessions, however many addresses it has.
func TestSessionsAreFair(t *testing.T) {
	l := &Listener{cfg: ListenConfig{MaxSessions: 16}, conns: map[net.Conn]netip.Addr{}}
	admit := func(addr string) bool { return l.admit(&net.TCPConn{}, netip.MustParseAddr(addr)) == "" }
	got := 0
	for i := range 100 {
		if admit(fmt.Sprintf("2001:db8::%x", i)) {
			got++
		}
	}
	if got != 8 {
		t.Errorf("one IPv6 network has %d sessions", got)
	}
	got = 0
	for range 100 {
		if admit("10.0.0.1") {
			got++
		}
	}
	if got != maxPerPeer {
		t.Errorf("one IPv4 address has %d sessions", got)
	}
	// Hosts of one link are not one host.
	for i := range 4 {
		if !admit(fmt.Sprintf("fe80::%d%%e0", i+1)) {
			t.Errorf("link-local peer %d is refused", i)
		}
	}
	if why := l.admit(&net.TCPConn{}, netip.MustParseAddr("10.0.0.9")); !strings.Contains(why, "busy with 16 sessions") {
		t.Errorf("the 17th: %q", why)
	}
}

// A flood of connections is not a flood of lines.
func TestLinesAreBounded(t *testing.T) {
	var x lines
	now := time.Unix(1000, 0)
	told := 0
	for i := range 1000 {
		ok, missed := x.next(now.Add(time.Duration(i) * time.Millisecond))
		if ok {
			told++
		}
		if missed != 0 {
			t.Errorf("%d missed", missed)
		}
	}
	if told != maxLines {
		t.Errorf("%d lines", told)
	}
	if ok, missed := x.next(now.Add(time.Minute)); !ok || missed != 1000-maxLines {
		t.Errorf("a minute later: %v, %d missed", ok, missed)
	}
}
