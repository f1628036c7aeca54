package iptables

import (
	"encoding/binary"
	"strings"
	"testing"
)

// made is a table of rules: one that drops a port, the policy, the end.
func made(l *layout) ([]byte, hooks) {
	ne := binary.NativeEndian
	put := func(b []byte, matches []byte, target string, verdict int32, proto uint16) []byte {
		e := make([]byte, l.entry)
		ne.PutUint16(e[l.proto:], proto)
		e[l.flags] |= l.flagProto
		t := make([]byte, partLen+8)
		if target != "" {
			t = make([]byte, partLen+32)
			copy(t[2:], target)
			copy(t[partLen:], target)
		} else {
			ne.PutUint32(t[partLen:], uint32(verdict))
		}
		ne.PutUint16(t, uint16(len(t)))
		ne.PutUint16(e[l.target:], uint16(l.entry+len(matches)))
		ne.PutUint16(e[l.target+2:], uint16(l.entry+len(matches)+len(t)))
		return append(append(append(b, e...), matches...), t...)
	}
	m := make([]byte, partLen+16)
	ne.PutUint16(m, uint16(len(m)))
	copy(m[2:], "udp")
	ne.PutUint16(m[partLen+2:], 65535)
	ne.PutUint16(m[partLen+4:], 4791)
	ne.PutUint16(m[partLen+6:], 4791)
	var b []byte
	b = put(b, m, "", -1, 17)
	policy := uint32(len(b))
	b = put(b, nil, "", -2, 0)
	b = put(b, nil, "ERROR", 0, 0)
	return b, hooks{1: {true, 0, policy}}
}

func TestTable(t *testing.T) {
	for _, l := range []*layout{&ipv4, &ipv6} {
		b, h := made(l)
		const want = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp --dport 4791 -j DROP\nCOMMIT\n"
		if got, err := l.save(b, h); err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
		for n := range len(b) { // cut anywhere but between entries it is refused
			if got, err := l.save(b[:n], h); err == nil && strings.Count(got, "\n") > 4 {
				t.Errorf("cut at %d: %q", n, got)
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	for _, l := range []*layout{&ipv4, &ipv6} {
		b, h := made(l)
		f.Add(b, h[1].entry, h[1].underflow)
	}
	f.Fuzz(func(t *testing.T, b []byte, entry, underflow uint32) {
		for _, l := range []*layout{&ipv4, &ipv6} {
			s, err := l.save(b, hooks{1: {true, entry, underflow}, 2: {true, underflow, entry}})
			if len(s) > 64+40*len(b) {
				t.Errorf("%d bytes of %d", len(s), len(b))
			}
			if err == nil && !strings.HasSuffix(s, "COMMIT\n") {
				t.Errorf("%q", s)
			}
		}
	})
}
