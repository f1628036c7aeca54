package probe

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/internal/need"
)

// between stands between a probing host and a listener and spoils what the
// listener answers.
type between struct {
	l    net.Listener
	to   string
	wg   sync.WaitGroup
	mu   sync.Mutex
	most int // answers of a connection
	quit chan struct{}
	// spoil gets each answer as a frame with its length, numbered from 0, and
	// returns what is passed on; not ok ends the connection after that.
	spoil func(n int, frame []byte) (out []byte, ok bool)
}

// spoiled starts a listener and a between before it; the configuration leads to
// the latter.
func spoiled(t *testing.T, spoil func(int, []byte) ([]byte, bool)) (Config, *between) {
	t.Helper()
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	l, err := net.Listen("tcp", "127.0.78.2:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &between{l: l, to: netip.AddrPortFrom(netip.MustParseAddr("127.0.78.2"), cfg.Port).String(), spoil: spoil, quit: make(chan struct{})}
	b.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.wg.Go(func() { b.pass(c) })
		}
	})
	t.Cleanup(func() {
		close(b.quit)
		_ = l.Close()
		b.wg.Wait()
	})
	cfg.Port = uint16(l.Addr().(*net.TCPAddr).Port)
	cfg.Count, cfg.Paths, cfg.Burst, cfg.Timeout, cfg.DSCPs = 5, 2, 8, 50*time.Millisecond, []uint8{26}
	return cfg, b
}

func (b *between) pass(c net.Conn) {
	defer c.Close()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.78.1")}}
	u, err := d.Dial("tcp", b.to)
	if err != nil {
		return
	}
	defer u.Close()
	b.wg.Go(func() { _, _ = io.Copy(u, c); _ = u.Close() })
	b.wg.Go(func() { <-b.quit; _ = u.Close(); _ = c.Close() })
	for n := 0; ; n++ {
		frame, err := readFrame(u)
		if err != nil {
			return
		}
		b.mu.Lock()
		b.most = max(b.most, n+1)
		out, ok := b.spoil(n, append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		b.mu.Unlock()
		if _, err := c.Write(out); err != nil || !ok {
			return
		}
	}
}

// change runs f, which changes what spoil does.
func (b *between) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// fit checks that a result can be shown whatever the listener has said.
func fit(t *testing.T, what string, r *Result) {
	t.Helper()
	var out strings.Builder
	if err := r.Print(&out, 0); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if i := strings.IndexFunc(out.String(), func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }); i >= 0 {
		t.Errorf("%s: %q is printed", what, out.String()[max(i-20, 0):min(i+20, out.Len())])
	}
	if out.Len() > 1<<16 {
		t.Errorf("%s: %d bytes are printed", what, out.Len())
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, d := range []*Direction{&r.Forward, &r.Reverse} {
		if d.Seen > d.Sent || d.Duplicated < 0 || d.OneWay.Min < 0 && -d.OneWay.Min > r.Clock.Error+clockSlack || d.OneWay.Max > mostOneWay || d.MTU.Path > MaxSize || d.Burst.Rate < 0 {
			t.Errorf("%s: %+v", what, d)
		}
	}
	for _, x := range r.RTT {
		if x.Min < 0 || x.Max > time.Minute {
			t.Errorf("%s: round trips %+v", what, x)
		}
	}
}

// A listener that vanishes, falls silent, answers twice, in pieces, or nonsense
// at any point of the conversation.
func TestListenerFailsAtAnyPoint(t *testing.T) {
	t.Parallel()
	at, how, met := -1, "", false
	cfg, b := spoiled(t, func(n int, frame []byte) ([]byte, bool) {
		if n != at {
			return frame, true
		}
		met = true
		switch how {
		case "vanishes":
			return nil, false
		case "vanishes in the midst":
			return frame[:len(frame)/2], false
		case "says nothing more":
			return nil, true
		case "answers twice":
			return append(frame, frame...), true
		case "announces too much":
			return []byte{0xFF, 0xFF, 0xFF, 0xFF}, true
		case "answers nonsense":
			return append([]byte{0, 0, 0, 3}, "\x1b[m"...), true
		case "refuses":
			text := `{"err":"go\u001b[31m away\nnow"}`
			return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), true
		}
		panic(how)
	})
	run := func() *Result {
		t.Helper()
		rs, err := Run(t.Context(), cfg, []string{"127.0.78.2"})
		if err != nil {
			t.Fatal(err)
		}
		fit(t, fmt.Sprintf("%s at %d", how, at), &rs[0])
		return &rs[0]
	}
	cfg.Timeout = maxWait
	if r := run(); r.Status != OK {
		t.Fatalf("not spoiled: %+v", r)
	}
	answers := 0
	b.change(func() { answers = b.most })
	if answers < 12 {
		t.Fatalf("%d answers only", answers)
	}
	cfg.Timeout, cfg.patience = 20*time.Millisecond, 100*time.Millisecond
	for _, kind := range []string{"vanishes", "vanishes in the midst", "says nothing more", "announces too much", "answers nonsense", "refuses", "answers twice"} {
		for i := range answers {
			b.change(func() { at, how, met = i, kind, false })
			r := run()
			spoilt := false
			b.change(func() { spoilt = met })
			if kind == "answers twice" || !spoilt {
				// The last answer twice is no harm; others are answers to other questions.
				// Conversations are not all of one length: a busy host asks once more.
				continue
			}
			if r.Status != Unknown || r.Error == "" || strings.Contains(r.Error, "\n") || len(r.Findings) != 1 || r.Findings[0].ID != "no-control" {
				t.Errorf("%s at %d: %v %q %+v", kind, i, r.Status, r.Error, r.Findings)
			}
		}
	}
}

// A listener that lies: every field of every answer takes values that it must
// not have, or may have and must do no harm.
func TestListenerLies(t *testing.T) {
	t.Parallel()
	const escapes = "a\x1b]0;x\x07\u202eb\u200bc\u00ad\ufeff%s%!d(MISSING)"
	numbers := []any{-1, 0, 1, 3, 1 << 20, math.MaxInt64, int64(math.MinInt64), 1e300, 0.5}
	words := []any{"", escapes, strings.Repeat("x", 1<<16), "10.0.0.1", "fe80::1%" + escapes, "0.0.0.0", "00000000000000000000000000000000"}
	odd := []any{nil, []any{}, map[string]any{}, true}
	var field string
	var value any
	cfg, b := spoiled(t, func(_ int, frame []byte) ([]byte, bool) {
		var m any
		if err := json.Unmarshal(frame[4:], &m); err != nil {
			return frame, true
		}
		replace(m, field, value)
		body, err := json.Marshal(m)
		if err != nil {
			return frame, true
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), true
	})
	cfg.patience = 300 * time.Millisecond
	cfg.Count, cfg.Paths, cfg.Timeout = 2, 1, 10*time.Millisecond
	for f, values := range map[string][]any{
		"token": words, "peer": words, "own": words, "name": words, "version": words, "interface": words, "err": words, "from": words, "what": words, "capture_why": words,
		"mtu": numbers, "heard_ns": numbers, "answered_ns": numbers, "at": numbers, "seq": numbers, "order": numbers, "path": numbers, "tos": numbers, "ttl": numbers,
		"size": numbers, "port": numbers, "socket": numbers, "capture": numbers, "df": numbers, "icrc": numbers, "cut": numbers, "count": numbers,
		"witnesses": numbers, "strangers": numbers, "overrun": numbers, "sent": odd, "sightings": odd, "notices": odd, "host": odd, "devices": odd,
	} {
		for _, v := range values {
			b.change(func() { field, value = f, v })
			rs, err := Run(t.Context(), cfg, []string{"127.0.78.2"})
			if err != nil {
				t.Fatal(err)
			}
			fit(t, fmt.Sprintf("%s is %.40q", f, fmt.Sprint(v)), &rs[0])
		}
	}
}

// replace sets a field wherever it is, and adds what a listener may leave out.
func replace(m any, field string, v any) {
	switch m := m.(type) {
	case map[string]any:
		for _, list := range []string{"sightings", "sent"} {
			if _, ok := m[list]; ok && m["notices"] == nil {
				m["notices"] = []any{map[string]any{"what": tooBig, "from": "10.0.0.9", "count": 1, "mtu": 900}, map[string]any{"what": prohibited, "from": "10.0.0.9", "count": 1}}
			}
		}
		for k, x := range m {
			if k == field {
				m[k] = v
			} else {
				replace(x, field, v)
			}
		}
		switch field {
		case "err", "from", "cut", "witnesses", "strangers", "overrun":
			m[field] = v
		}
	case []any:
		for _, x := range m {
			replace(x, field, v)
		}
	}
}

// Two listeners may not take each other's session by its token.
func TestTokenOfAnother(t *testing.T) {
	e := newEndpoint(0, CaptureNever, "")
	a := netip.MustParseAddr("10.0.0.1")
	one, two := newSession(token{1}, a, a), newSession(token{1}, a, a)
	if !e.add(one) || e.add(two) {
		t.Error("the token of a session was given to another")
	}
	if e.remove(two); e.sessions[token{1}] != one {
		t.Error("a session ended with another's")
	}
}

// ICMP errors are believed where nothing arrives, not against what arrives.
// Their floods delay no packet for good.
func TestForgedICMP(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if errors.Is(err, unix.EPERM) {
		need.Missing(t, "may not open a raw socket: run as root")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 78, 9}}); err != nil {
		t.Fatal(err)
	}
	cfg := far(t, ListenConfig{}, "127.0.78.2")
	cfg.Count = 250
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Microsecond):
			}
			from, to := [4]byte{127, 0, 78, 1}, [4]byte{127, 0, 78, 2}
			if i%2 == 0 {
				from, to = to, from
			}
			code, mtu := byte(3), 0
			if i%4 < 2 {
				code, mtu = 4, 100+i%1000
			}
			_ = unix.Sendto(fd, unreachable(code, mtu, from, to, firstPort+uint16(i%4)*977, cfg.RoCEPort), 0, &unix.SockaddrInet4{Addr: from})
		}
	}()
	rs, err := Run(t.Context(), cfg, []string{"127.0.78.2"})
	close(stop)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	r := &rs[0]
	notes := strings.Join(r.Notes, "\n")
	if r.Status != OK || r.RoCEMTU != 4096 || r.Forward.Seen != 1000 || len(r.Forward.ICMP) < 2 || !strings.Contains(notes, "forged") {
		t.Errorf("%v, %+v, notes %s", r.Status, r.Forward, notes)
	}
	if len(r.Notes) > 10 {
		t.Errorf("%d notes", len(r.Notes))
	}
	fit(t, "forged", r)
}

// unreachable is an ICMP error about a UDP packet (RFC 792).
func unreachable(code byte, mtu int, from, to [4]byte, sport, dport uint16) []byte {
	b := []byte{3, code, 0, 0, 0, 0, byte(mtu >> 8), byte(mtu)}
	b = append(b, 0x45, 0, 0, 128, 0, 0, 0x40, 0, 64, unix.IPPROTO_UDP, 0, 0)
	b = append(append(b, from[:]...), to[:]...)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, sport), dport)
	b = append(b, 0, 108, 0, 0)
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xFFFF + sum>>16
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum))
	return b
}
