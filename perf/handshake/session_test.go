package handshake

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// run drives a whole conversation of a program with n queue pairs over two
// sizes, as both kinds of end do.
func run(s *Session, p Plan, h Hello, keys []Key) (Agreed, []Key, error) {
	a, err := s.Open(h)
	if err != nil {
		return a, nil, err
	}
	if p.FirstSync {
		if err := s.Sync(keys[0]); err != nil {
			return a, nil, err
		}
	}
	rem, err := s.Keys(keys)
	if err != nil {
		return a, nil, err
	}
	if p.EarlySync {
		if err := s.Sync(keys[0]); err != nil {
			return a, rem, err
		}
	}
	if _, err := s.Keys(keys); err != nil {
		return a, rem, err
	}
	if !p.EarlySync {
		if err := s.Sync(keys[0]); err != nil {
			return a, rem, err
		}
	}
	for range 2 {
		if p.SizeSync {
			if err := s.Sync(keys[0]); err != nil {
				return a, rem, err
			}
		}
	}
	if p.Reports {
		if _, err := s.Reports(Report{Size: 8, Iters: 9, Average: 1.5}); err != nil {
			return a, rem, err
		}
	}
	if a.Extension != nil {
		if _, err := s.Verdicts(func(Verdict) Verdict { return Verdict{Compared: 1} }); err != nil {
			return a, rem, err
		}
	}
	if p.Done {
		return a, rem, s.Done(keys[0])
	}
	return a, rem, nil
}

func keysFor(n int, last byte) []Key {
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = sampleKey
		keys[i].QPN += ib.QPN(i)
		keys[i].GID[15] = last
	}
	return keys
}

type result struct {
	a   Agreed
	rem []Key
	err error
}

// connection returns the two ends of a TCP connection. A pipe without a buffer
// would not do: in the last step both ends write and nobody reads.
func connection(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func both(t *testing.T, p Plan, hc, hs Hello, kc, ks []Key) (client, server result) {
	cc, sc := connection(t)
	done := make(chan result)
	go func() {
		a, rem, err := run(NewSession(sc, Server), p, hs, ks)
		sc.Close()
		done <- result{a, rem, err}
	}()
	a, rem, err := run(NewSession(cc, Client), p, hc, kc)
	cc.Close()
	return result{a, rem, err}, <-done
}

func TestEveryPlanMeetsItself(t *testing.T) {
	for _, v := range []Verb{Write, Read, Send, Atomic} {
		for _, lat := range []bool{false, true} {
			for _, ext := range []bool{false, true} {
				hc, hs := Hello{MTU: ib.MTU4096, CycleBuffer: 4096, CacheLine: 64}, Hello{MTU: ib.MTU1024, CycleBuffer: 65536, CacheLine: 128}
				if ext {
					hc.Extension, hs.Extension = &Extension{Test: "x"}, &Extension{Test: "x"}
				}
				c, s := both(t, PlanOf(v, lat), hc, hs, keysFor(3, 1), keysFor(3, 2))
				for _, r := range []result{c, s} {
					if r.err != nil {
						t.Fatalf("%v lat=%v ext=%v: %v", v, lat, ext, r.err)
					}
					if r.a.MTU != ib.MTU1024 || r.a.CycleBuffer != 65536 || r.a.CacheLine != 128 || (r.a.Extension != nil) != ext {
						t.Errorf("%v lat=%v ext=%v: agreed %+v", v, lat, ext, r.a)
					}
				}
				if c.rem[2].GID[15] != 2 || s.rem[2].GID[15] != 1 {
					t.Errorf("%v: keys went to the wrong end", v)
				}
			}
		}
	}
}

func TestExtensionOnlyWithConsentOfBoth(t *testing.T) {
	h := Hello{MTU: ib.MTU1024}
	withExt := h
	withExt.Extension = &Extension{Test: "x"}
	for _, pair := range [][2]Hello{{h, withExt}, {withExt, h}} {
		c, s := both(t, PlanOf(Write, false), pair[0], pair[1], keysFor(1, 1), keysFor(1, 2))
		if c.err != nil || s.err != nil {
			t.Fatalf("%v, %v", c.err, s.err)
		}
	}
}

func TestMismatchesAreNamedOnBothEnds(t *testing.T) {
	h := Hello{MTU: ib.MTU1024}
	he := func(e Extension) Hello { return Hello{MTU: ib.MTU1024, Extension: &e} }
	v6 := keysFor(1, 2)
	v6[0].GID = ib.GID{0: 0xfd, 15: 1}
	for name, tc := range map[string]struct {
		hc, hs Hello
		ks     []Key
		is     error
		say    string
	}{
		"GID family": {h, h, v6, ErrGIDFamily, "-x"},
		"size":       {he(Extension{Size: 1}), he(Extension{Size: 2}), keysFor(1, 2), ErrOptions, "-s"},
		"QPs":        {he(Extension{QPs: 1}), he(Extension{QPs: 4}), keysFor(1, 2), ErrOptions, "-q"},
		"test":       {he(Extension{Test: "write_bw"}), he(Extension{Test: "read_bw"}), keysFor(1, 2), ErrOptions, "read_bw"},
	} {
		c, s := both(t, PlanOf(Write, false), tc.hc, tc.hs, keysFor(1, 1), tc.ks)
		for end, r := range map[string]result{"client": c, "server": s} {
			if !errors.Is(r.err, tc.is) || !strings.Contains(r.err.Error(), tc.say) || strings.Contains(r.err.Error(), "\n") {
				t.Errorf("%s, %s: %v", name, end, r.err)
			}
		}
	}
}

func TestPeerWithoutGIDIsRecognised(t *testing.T) {
	cc, sc := net.Pipe()
	go func() {
		b := AppendKey(nil, sampleKey, false)
		_, _ = sc.Write(b) // and waits, as perftest does
	}()
	s := NewSession(cc, Server)
	if _, err := s.Keys(keysFor(1, 1)); !errors.Is(err, ErrNoGID) {
		t.Errorf("%v, want ErrNoGID", err)
	}
	cc.Close()
	sc.Close()
}

// script is a peer that says fixed bytes and does not care what it hears.
type script struct{ *bytes.Reader }

func (script) Write(b []byte) (int, error) { return len(b), nil }

// FuzzSession: whatever a peer says, the conversation ends, without a panic,
// in success or in one printable line.
func FuzzSession(f *testing.F) {
	open := Version{Text: ProtocolVersion}.Append(nil)
	open = appendMTU(appendInt(appendInt(open, 4096), 64), ib.MTU1024)
	key := AppendKey(nil, sampleKey, true)
	f.Add(uint8(0), false, bytes.Join([][]byte{open, key, key, key}, nil))
	f.Add(uint8(2), true, bytes.Join([][]byte{open, key, key, key, key, key}, nil))
	ours := append(Version{Text: ProtocolVersion, Ours: 1}.Append(nil), 0, 0, 0, 2, '{', '}')
	f.Add(uint8(1), true, ours)
	f.Fuzz(func(t *testing.T, verb uint8, latency bool, in []byte) {
		for _, role := range []Role{Client, Server} {
			s := NewSession(script{bytes.NewReader(in)}, role)
			_, _, err := run(s, PlanOf(Verb(verb&3), latency), Hello{MTU: ib.MTU4096, CycleBuffer: 4096, CacheLine: 64, Extension: &Extension{}}, keysFor(1, 1))
			if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("%q: the error is not one printable line", err)
			}
		}
	})
}

func FuzzPingpong(f *testing.F) {
	f.Add(AppendAddress(nil, Address{GID: sampleKey.GID}))
	f.Fuzz(func(t *testing.T, in []byte) {
		mine := Address{GID: sampleKey.GID}
		_, _ = PingpongClient(script{bytes.NewReader(in)}, mine)
		_, _ = PingpongServer(script{bytes.NewReader(in)}, mine, func(Address) error { return nil })
	})
}

func TestPingpong(t *testing.T) {
	cc, sc := net.Pipe()
	a, b := Address{QPN: 0x11, PSN: 1, GID: sampleKey.GID}, Address{QPN: 0x12, PSN: 2, GID: sampleKey.GID}
	connected := false
	done := make(chan error)
	go func() {
		got, err := PingpongServer(sc, b, func(Address) error { connected = true; return nil })
		if err == nil && got != a {
			err = io.ErrUnexpectedEOF
		}
		done <- err
	}()
	got, err := PingpongClient(cc, a)
	if err != nil || got != b || !connected {
		t.Errorf("client got %+v, %v; connected %v", got, err, connected)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if l := len(AppendAddress(nil, a)); l != PingpongLen {
		t.Errorf("line of %d bytes", l)
	}
}

func TestPingpongMismatches(t *testing.T) {
	v6 := ib.GID{0: 0xfd, 15: 1}
	for want, theirs := range map[error]ib.GID{ErrNoGID: {}, ErrGIDFamily: v6} {
		_, err := PingpongClient(script{bytes.NewReader(AppendAddress(nil, Address{GID: theirs}))}, Address{GID: sampleKey.GID})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
