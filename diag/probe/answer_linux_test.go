package probe

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/internal/freeport"
)

// asker is the near end of a session made by hand: its UDP sockets on its own
// address and on that of a stranger.
type asker struct {
	t                        *testing.T
	c                        net.Conn
	tok                      token
	rocePort, ctlPort        uint16
	ear, strange             *net.UDPConn // on UDP 4791 of each
	mouth, stranger          *net.UDPConn // on the path's port of each
	otherMouth, otherWitness *net.UDPConn
}

func open(t *testing.T, addr string, port uint16) *net.UDPConn {
	t.Helper()
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(addr), Port: int(port)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// pathPorts are for the tests; nothing else has addresses 127.0.78.x.
const pathPort, otherPort = 50_010, 50_020

func newAsker(t *testing.T) *asker {
	t.Helper()
	cfg := far(t, ListenConfig{Capture: CaptureNever}, "127.0.78.2")
	c := peer(t, cfg)
	return &asker{
		t: t, c: c, tok: hello(t, c), rocePort: cfg.RoCEPort, ctlPort: cfg.Port,
		ear: open(t, "127.0.78.1", cfg.RoCEPort), strange: open(t, "127.0.78.3", cfg.RoCEPort),
		mouth: open(t, "127.0.78.1", pathPort), stranger: open(t, "127.0.78.3", pathPort),
		otherMouth: open(t, "127.0.78.1", otherPort), otherWitness: open(t, "127.0.78.3", otherPort),
	}
}

// ask sends a request and returns the answer.
func (x *asker) ask(r *request, n int) *response {
	x.t.Helper()
	if err := writeFrame(x.c, r, n); err != nil {
		x.t.Fatal(err)
	}
	b, err := readFrame(x.c)
	if err != nil {
		x.t.Fatal(err)
	}
	got, err := parseResponse(b)
	if err != nil {
		x.t.Fatal(err)
	}
	return got
}

// say sends one packet of n bytes to a port of the listener.
func (x *asker) say(u *net.UDPConn, port uint16, d datagram, n int) {
	x.t.Helper()
	b := make([]byte, n)
	d.encode(b)
	if _, err := u.WriteToUDPAddrPort(b, netip.AddrPortFrom(netip.MustParseAddr("127.0.78.2"), port)); err != nil {
		x.t.Fatal(err)
	}
}

// heard reads one packet.
func (x *asker) heard(u *net.UDPConn) (d datagram, n int) {
	x.t.Helper()
	buf := make([]byte, MaxSize)
	_ = u.SetReadDeadline(time.Now().Add(time.Minute))
	n, err := u.Read(buf)
	if err != nil {
		x.t.Fatal(err)
	}
	if !d.decode(buf[:n]) {
		x.t.Fatalf("%d bytes that are no probe", n)
	}
	return d, n
}

// silent checks that nothing has come. What was sent before is answered in
// order, so that nothing is under way once a later answer is there.
func (x *asker) silent(all ...*net.UDPConn) {
	x.t.Helper()
	for _, u := range all {
		_ = u.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, err := u.Read(make([]byte, MaxSize)); err == nil {
			x.t.Errorf("%d bytes to %v", n, u.LocalAddr())
		}
	}
}

// Probes are answered for the token and the address of a control connection and
// the ports it has named only, once each, with as many bytes.
func TestAnswersAreBounded(t *testing.T) {
	x := newAsker(t)
	probe := func(u *net.UDPConn, tok token, seq uint32, n int) {
		x.say(u, x.rocePort, datagram{kind: kindProbe, echo: true, seq: seq, token: tok}, n)
	}
	probe(x.mouth, x.tok, 0, 400) // before any port was named
	// The answer says that the packet was heard.
	if r := x.ask(&request{Op: "report", First: 0, N: 1, Want: 1, WaitNs: int64(maxWait)}, 0); len(r.Sightings) != 1 {
		t.Fatalf("%+v", r)
	}
	x.ask(&request{Op: "send", Ports: []uint16{pathPort}}, 0)
	probe(x.mouth, token{}, 1, 400)     // a wrong token
	probe(x.stranger, x.tok, 2, 400)    // another address
	probe(x.otherMouth, x.tok, 3, 400)  // another port
	probe(x.mouth, x.tok, 4, 400)       // right
	probe(x.mouth, x.tok, 4, 400)       // again
	probe(x.mouth, x.tok, 4, 800)       // again, longer
	probe(x.mouth, x.tok, 5, frameLen)  // the shortest
	probe(x.mouth, x.tok, 6, 9000)      // a long one
	probe(x.mouth, x.tok, 7, MaxSize+4) // longer than any
	x.say(x.mouth, x.rocePort, datagram{kind: kindEcho, echo: true, seq: 8, token: x.tok}, 400)
	x.say(x.mouth, x.rocePort, datagram{kind: kindWitness, echo: true, seq: 9, token: x.tok}, 400)
	probe(x.mouth, x.tok, 10, 400) // the end of it
	for _, want := range []struct {
		seq uint32
		n   int
	}{{4, 400}, {5, frameLen}, {6, 9000}} {
		if d, n := x.heard(x.ear); d.seq != want.seq || n != want.n || d.kind != kindEcho || d.echo {
			t.Errorf("%d bytes %+v, want %+v", n, d, want)
		}
	}
	if d, n := x.heard(x.mouth); d.seq != 9 || n != 400 || d.kind != kindWitness {
		t.Errorf("%d bytes %+v, want the witness", n, d)
	}
	if d, n := x.heard(x.ear); d.seq != 10 || n != 400 {
		t.Errorf("%d bytes %+v", n, d)
	}
	// What a report has passed is not heard again, as a replay of it.
	x.ask(&request{Op: "report", First: 11, N: 0}, 0)
	probe(x.mouth, x.tok, 10, 400)
	probe(x.mouth, x.tok, 11, 400)
	if d, _ := x.heard(x.ear); d.seq != 11 {
		t.Errorf("%+v is answered once more", d)
	}
	x.silent(x.ear, x.mouth, x.strange, x.stranger, x.otherMouth, x.otherWitness)
}

// The packets that show whether another port passes are answered once each too.
func TestWitnessesAreBounded(t *testing.T) {
	x := newAsker(t)
	witness := func(u *net.UDPConn, tok token, seq uint32, echo bool) {
		x.say(u, x.ctlPort, datagram{kind: kindWitness, echo: echo, seq: seq, token: tok}, 128)
	}
	witness(x.mouth, token{}, 0, true)          // a wrong token
	witness(x.stranger, x.tok, 1, true)         // another address
	witness(x.mouth, x.tok, 2, false)           // does not ask
	witness(x.mouth, x.tok, maxWitnesses, true) // too many
	for range 3 {
		witness(x.otherMouth, x.tok, 3, true) // any port of the peer
	}
	x.say(x.mouth, x.ctlPort, datagram{kind: kindProbe, echo: true, seq: 4, token: x.tok}, 128) // no witness
	witness(x.mouth, x.tok, 5, true)
	if d, n := x.heard(x.otherMouth); d.seq != 3 || n != 128 || d.kind != kindWitness || d.echo {
		t.Errorf("%d bytes %+v", n, d)
	}
	if d, n := x.heard(x.mouth); d.seq != 5 || n != 128 || d.echo {
		t.Errorf("%d bytes %+v", n, d)
	}
	x.silent(x.ear, x.mouth, x.strange, x.stranger, x.otherMouth, x.otherWitness)
	if r := x.ask(&request{Op: "report"}, 0); r.Witnesses != 3 {
		t.Errorf("%d witnesses, want 3", r.Witnesses)
	}
}

// The near end answers nothing, whoever knows the token.
func TestNearEndIsSilent(t *testing.T) {
	e := newEndpoint(uint16(freeport.Get(t)), CaptureNever, "")
	defer e.close()
	near, far := netip.MustParseAddr("127.0.78.1"), netip.MustParseAddr("127.0.78.2")
	e.listen(near)
	s := newSession(token{1}, near, far)
	v, err := e.voices(near, far, []uint16{pathPort})
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	s.voice = v
	e.add(s)
	ear, mouth := open(t, "127.0.78.2", e.port), open(t, "127.0.78.2", pathPort)
	for seq, k := range []kind{kindProbe, kindEcho, kindWitness, kindProbe} {
		b := make([]byte, 128)
		d := datagram{kind: k, echo: true, seq: uint32(seq), token: s.token}
		d.encode(b)
		if _, err := mouth.WriteToUDPAddrPort(b, netip.AddrPortFrom(near, e.port)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.report(t.Context(), 0, 4, 2, true, time.Minute, nil); len(got) != 2 {
		t.Errorf("%+v", got)
	}
	(&asker{t: t}).silent(ear, mouth)
}

// What is kept of one session is bounded, whatever comes.
func TestSessionMemory(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for _, far := range []bool{false, true} {
		s := newSession(token{}, a, b)
		s.far = far
		for seq := range uint32(3 * maxSightings) {
			for k := kindProbe; k <= kindWitness; k++ {
				x := arrival{d: datagram{kind: k, seq: seq, echo: true}, src: netip.AddrPortFrom(b, 1), dst: netip.AddrPortFrom(a, 2), capture: seq%2 == 0}
				s.hear(&x)
			}
		}
		echoes := maxSightings
		if far {
			echoes = 0
		}
		if len(s.seen) != maxKept || len(s.echoes) != echoes || len(s.lastOn) > maxKept {
			t.Errorf("listener %v: %d probes, %d echoes, %d interfaces", far, len(s.seen), len(s.echoes), len(s.lastOn))
		}
		s.forget(3 * maxSightings)
		if len(s.seen) != 0 || len(s.lastOn) != 0 {
			t.Errorf("%d probes and %d interfaces are kept after they are done with", len(s.seen), len(s.lastOn))
		}
		for i := range 2 * maxNotices {
			s.complain(Notice{What: tooBig, From: a, MTU: i, Count: 1})
		}
		if len(s.said()) > maxNotices {
			t.Errorf("%d ICMP errors", len(s.said()))
		}
	}
}

// A stranger that knows the token, by listening on the way, does not hide what
// the peer has sent.
func TestStrangersHideNothing(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	s := newSession(token{}, a, b)
	for _, from := range []netip.Addr{c, b, c} {
		s.hear(&arrival{d: datagram{kind: kindProbe, seq: 1}, src: netip.AddrPortFrom(from, 1), dst: netip.AddrPortFrom(a, 2)})
	}
	if g := s.seen[1]; g.From != "" || s.strangers != 2 {
		t.Errorf("%+v, %d strangers", g, s.strangers)
	}
}
