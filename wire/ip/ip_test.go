package ip

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/verbena-rdma/verbena/wire/internal/golden"
)

func TestGoldenHeadersRoundTrip(t *testing.T) {
	var four, six int
	for _, g := range golden.Frames(t) {
		b := g.Bytes[14:]
		var rest []byte
		if b[0]>>4 == 4 {
			four++
			var h IPv4
			n, r := h.Decode(b)
			out := make([]byte, n)
			if r != ReasonNone || n != IPv4Len || int(h.TotalLen) != len(b) || !h.DF || h.Proto != ProtoUDP ||
				h.Encode(out) != n || !bytes.Equal(out, b[:n]) {
				t.Fatalf("%s %d: %v %+v", g.File, g.Index, r, h)
			}
			rest = b[n:]
		} else {
			six++
			var h IPv6
			out := make([]byte, IPv6Len)
			if r := h.Decode(b); r != ReasonNone || int(h.PayloadLen) != len(b)-IPv6Len || h.NextHeader != ProtoUDP ||
				h.Encode(out) != IPv6Len || !bytes.Equal(out, b[:IPv6Len]) {
				t.Fatalf("%s %d: %v %+v", g.File, g.Index, r, h)
			}
			rest = b[IPv6Len:]
		}
		var u UDP
		out := make([]byte, UDPLen)
		if r := u.Decode(rest); r != ReasonNone || u.DstPort != 4791 || int(u.Len) != len(rest) || u.Checksum != 0 ||
			u.Encode(out) != UDPLen || !bytes.Equal(out, rest[:UDPLen]) {
			t.Fatalf("%s %d: %v %+v", g.File, g.Index, r, u)
		}
	}
	if four == 0 || six == 0 {
		t.Errorf("%d IPv4, %d IPv6", four, six)
	}
}

func TestIPv4WithOptionsAndFlags(t *testing.T) {
	for opts := range 41 {
		h := IPv4{
			TOS: 0xB9, TotalLen: 100, ID: 0xBEEF, TTL: 3, Proto: ProtoTCP, FragOff: 0x1FFF,
			DF: opts%2 == 0, MF: opts%3 == 0, Evil: opts%5 == 0,
			Src: [4]byte{10, 1, 2, 3}, Dst: [4]byte{10, 4, 5, 6}, Options: bytes.Repeat([]byte{1}, opts),
		}
		b := bytes.Repeat([]byte{0xEE}, 64)
		n := h.Encode(b)
		if n != 20+(opts+3)/4*4 || n != h.HeaderLen() || b[n] != 0xEE || Checksum(b[:n]) != 0 {
			t.Fatalf("%d bytes of options: %d, %x", opts, n, b)
		}
		var d IPv4
		m, r := d.Decode(b)
		if m != n || r != ReasonNone || len(d.Options) != n-20 || !bytes.HasPrefix(d.Options, h.Options) || !d.Fragment() {
			t.Fatalf("%d bytes of options: %d, %v, %+v", opts, m, r, d)
		}
		d.Options, h.Options, h.Checksum = nil, nil, d.Checksum
		if !reflect.DeepEqual(d, h) {
			t.Errorf("%+v, want %+v", d, h)
		}
		for short := range n {
			if _, r := d.Decode(b[:short:short]); r != ReasonShort {
				t.Fatalf("%d of %d bytes: %v", short, n, r)
			}
		}
	}
	if n := (&IPv4{Options: make([]byte, 41)}).Encode(make([]byte, 100)); n != 0 {
		t.Errorf("41 bytes of options: %d", n)
	}
	if n := (&IPv4{}).Encode(make([]byte, 19)); n != 0 {
		t.Errorf("into 19 bytes: %d", n)
	}
}

func TestRefusals(t *testing.T) {
	good := make([]byte, 20)
	(&IPv4{TotalLen: 20}).Encode(good)
	for _, c := range []struct {
		at   int
		v    byte
		want Reason
	}{
		{0, 0x65, ReasonBadVersion},
		{0, 0x44, ReasonBadHeaderLen},
		{0, 0x46, ReasonShort},
		{3, 19, ReasonBadLength},
		{8, 1, ReasonBadChecksum},
	} {
		b := bytes.Clone(good)
		b[c.at] = c.v
		if _, r := (&IPv4{}).Decode(b); r != c.want {
			t.Errorf("byte %d = %02x: %v, want %v", c.at, c.v, r, c.want)
		}
	}
	if r := (&IPv6{}).Decode(make([]byte, 40)); r != ReasonBadVersion {
		t.Error(r)
	}
	for n := range 40 {
		if r := (&IPv6{}).Decode(make([]byte, n)); r != ReasonShort {
			t.Errorf("IPv6 of %d bytes: %v", n, r)
		}
		if (&IPv6{}).Encode(make([]byte, n)) != 0 {
			t.Errorf("IPv6 encoded into %d bytes", n)
		}
	}
	for n := range 8 {
		if r := (&UDP{}).Decode(make([]byte, n)); r != ReasonShort {
			t.Errorf("UDP of %d bytes: %v", n, r)
		}
		if (&UDP{}).Encode(make([]byte, n)) != 0 || UDPChecksum4([4]byte{}, [4]byte{}, make([]byte, n)) != 0 {
			t.Errorf("UDP encoded into %d bytes", n)
		}
		b := make([]byte, 8)
		b[5] = byte(n)
		if r := (&UDP{}).Decode(b); r != ReasonBadLength {
			t.Errorf("UDP length %d: %v", n, r)
		}
	}
}

// Fields wider than their place must not reach their neighbours.
func TestFieldsAreApart(t *testing.T) {
	b := make([]byte, 40)
	(&IPv6{FlowLabel: 0xFFF00000}).Encode(b)
	if b[0] != 0x60 || b[1] != 0 || b[2] != 0 || b[3] != 0 {
		t.Errorf("flow label: %x", b[:4])
	}
	(&IPv4{FragOff: 0xE000}).Encode(b)
	if b[6] != 0 || b[7] != 0 {
		t.Errorf("fragment offset: %x", b[6:8])
	}
	for _, fill := range []TOS{0, 0xFF, 0xA5} {
		if fill.WithECN(0xFF) != fill|3 || fill.WithECN(0xFC) != fill&^3 ||
			fill.WithDSCP(0xFF) != fill|0xFC || fill.WithDSCP(0xC0) != fill&^0xFC {
			t.Errorf("TOS %02x", uint8(fill))
		}
	}
	if v := TOS(0xBA); v.DSCP() != 46 || v.ECN() != ECT0 {
		t.Error("TOS 0xBA")
	}
}

// Marking changes the two bits and keeps the IPv4 checksum right, for every
// TOS and many headers.
func TestSetECN(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		h4 := IPv4{TotalLen: 20 + uint16(r.IntN(2000)), ID: uint16(r.Uint32()), TTL: uint8(r.Uint32()), Proto: ProtoUDP}
		h6 := IPv6{PayloadLen: uint16(r.Uint32()), FlowLabel: r.Uint32() & 0xFFFFF, HopLimit: uint8(r.Uint32())}
		binary.BigEndian.PutUint32(h4.Src[:], r.Uint32())
		binary.BigEndian.PutUint32(h4.Dst[:], r.Uint32())
		for tos := range 256 {
			h4.TOS, h6.TOS = TOS(tos), TOS(tos)
			e := ECN(tos+int(h4.ID)) & 3
			var b4, w4 [20]byte
			var b6, w6 [40]byte
			h4.Encode(b4[:])
			h6.Encode(b6[:])
			if got, ok := ECNOf(b4[:]); !ok || got != ECN(tos&3) {
				t.Fatalf("v4 TOS %02x: %v", tos, got)
			}
			if got, ok := ECNOf(b6[:]); !ok || got != ECN(tos&3) {
				t.Fatalf("v6 TOS %02x: %v", tos, got)
			}
			if !SetECN(b4[:], e) || !SetECN(b6[:], e) {
				t.Fatal("refused")
			}
			h4.TOS, h6.TOS = h4.TOS.WithECN(e), h6.TOS.WithECN(e)
			h4.Encode(w4[:])
			h6.Encode(w6[:])
			if b4 != w4 || b6 != w6 {
				t.Fatalf("TOS %02x to %v:\n%x, want\n%x\n%x, want\n%x", tos, e, b4, w4, b6, w6)
			}
		}
	}
	for n := range 20 {
		b := bytes.Repeat([]byte{0x45}, n)
		if _, ok := ECNOf(b); ok || SetECN(b, CE) || !bytes.Equal(b, bytes.Repeat([]byte{0x45}, n)) {
			t.Errorf("%d bytes marked", n)
		}
	}
	if SetECN(bytes.Repeat([]byte{0x65}, 39), CE) || SetECN(make([]byte, 60), CE) {
		t.Error("no IP header marked")
	}
}

// RFC 1071's own example, and a datagram with its checksum computed by hand.
func TestChecksums(t *testing.T) {
	if got := ^Checksum([]byte{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7}); got != 0xDDF2 {
		t.Errorf("%04x", got)
	}
	slow := func(b []byte) uint16 {
		var s uint32
		for i, v := range b {
			s += uint32(v) << (8 * (1 - i%2))
			s = s&0xFFFF + s>>16
		}
		return ^uint16(s)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if got, want := Checksum(b), slow(b); got != want {
			t.Fatalf("%d bytes: %04x, want %04x", n, got, want)
		}
		if n < UDPLen {
			continue
		}
		s4, d4 := [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2}
		s6, d6 := [16]byte{0xFD, 15: 1}, [16]byte{0xFD, 15: 2}
		binary.BigEndian.PutUint16(b[6:], UDPChecksum4(s4, d4, b))
		p := append(append(append(s4[:], d4[:]...), 0, 17, byte(n>>8), byte(n)), b...)
		if slow(p) != 0 {
			t.Fatalf("v4, %d bytes: sum %04x", n, slow(p))
		}
		binary.BigEndian.PutUint16(b[6:], UDPChecksum6(s6, d6, b))
		p = append(append(append(s6[:], d6[:]...), 0, 0, byte(n>>8), byte(n), 0, 0, 0, 17), b...)
		if slow(p) != 0 {
			t.Fatalf("v6, %d bytes: sum %04x", n, slow(p))
		}
	}
	// A sum of all ones would read "no checksum": it is sent as 0xFFFF.
	zero, err := hex.DecodeString("0000000000080000")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for v := range 1 << 16 {
		binary.BigEndian.PutUint16(zero, uint16(v))
		c := UDPChecksum4([4]byte{}, [4]byte{}, zero)
		found = found || c == 0xFFFF
		if c == 0 {
			t.Fatalf("source port %d: checksum 0", v)
		}
	}
	if !found {
		t.Error("the case was not reached")
	}
}

func FuzzHeaders(f *testing.F) {
	for i, g := range golden.Frames(f) {
		if i%20 == 0 {
			f.Add(g.Bytes[14:min(len(g.Bytes), 80)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		var four IPv4
		if n, r := four.Decode(b); r == ReasonNone || r == ReasonBadChecksum {
			out := make([]byte, n)
			if four.Encode(out) != n || r == ReasonNone && !bytes.Equal(out, b[:n]) &&
				(binary.BigEndian.Uint16(b[10:]) != 0xFFFF || binary.BigEndian.Uint16(out[10:]) != 0) {
				// 0xFFFF and 0 are the same number to a receiver.
				t.Errorf("%x, want %x", out, b[:n])
			}
		}
		var six IPv6
		if six.Decode(b) == ReasonNone {
			out := make([]byte, IPv6Len)
			if six.Encode(out) != IPv6Len || !bytes.Equal(out, b[:IPv6Len]) {
				t.Errorf("%x, want %x", out, b[:IPv6Len])
			}
		}
		var u UDP
		if u.Decode(b) == ReasonNone {
			out := make([]byte, UDPLen)
			if u.Encode(out) != UDPLen || !bytes.Equal(out, b[:UDPLen]) {
				t.Errorf("%x, want %x", out, b[:UDPLen])
			}
		}
		e, ok := ECNOf(b)
		c := bytes.Clone(b)
		if SetECN(c, e) != ok || !bytes.Equal(b, c) {
			t.Error("setting the same ECN changed something")
		}
	})
}

func TestNoAllocations(t *testing.T) {
	b := make([]byte, 60)
	n := testing.AllocsPerRun(100, func() {
		h := IPv4{TotalLen: 60}
		h.Encode(b)
		h.Decode(b)
		SetECN(b, CE)
		UDPChecksum4(h.Src, h.Dst, b)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{CE.String(), "CE"},
		{ECN(9).String(), "ECN 9"},
		{ReasonBadChecksum.String(), "bad IP header checksum"},
		{Reason(99).String(), "reason 99"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func BenchmarkIPv4(b *testing.B) {
	h := IPv4{TotalLen: 1000, Proto: ProtoUDP}
	buf := make([]byte, 20)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			h.Encode(buf)
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			h.Decode(buf)
		}
	})
	b.Run("mark", func(b *testing.B) {
		e := ECN(0)
		for b.Loop() {
			SetECN(buf, e&3)
			e++
		}
	})
}
