package ether

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/verbena-rdma/verbena/wire/internal/golden"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenHeadersRoundTrip(t *testing.T) {
	for _, g := range golden.Frames(t) {
		var h Header
		n, ok := h.Decode(g.Bytes)
		out := make([]byte, n)
		if !ok || h.Tagged || h.Type != TypeIPv4 && h.Type != TypeIPv6 || h.Encode(out) != n || !bytes.Equal(out, g.Bytes[:n]) {
			t.Errorf("%s %d: %+v", g.File, g.Index, h)
		}
	}
}

func TestHeaderWithTag(t *testing.T) {
	b := unhex(t, "020000000002"+"020000000001"+"8100"+"7064"+"8915"+"60")
	var h Header
	n, ok := h.Decode(b)
	want := Header{
		Dst: MAC{2, 0, 0, 0, 0, 2}, Src: MAC{2, 0, 0, 0, 0, 1}, Tagged: true,
		Tag: MakeTag(3, true, 100), Type: TypeRoCEv1,
	}
	if !ok || n != 18 || h != want {
		t.Fatalf("%+v, %d", h, n)
	}
	out := make([]byte, 18)
	if h.Encode(out) != 18 || !bytes.Equal(out, b[:18]) {
		t.Errorf("%x", out)
	}
	// A service tag is left for the caller.
	b[12], b[13] = 0x88, 0xA8
	if n, ok := h.Decode(b); !ok || n != 14 || h.Tagged || h.Type != TypeService {
		t.Errorf("%+v, %d", h, n)
	}
}

func TestShortHeaders(t *testing.T) {
	tagged := make([]byte, 18)
	tagged[12] = 0x81
	for n := range 18 {
		var h Header
		if _, ok := h.Decode(tagged[:n]); ok {
			t.Errorf("decoded %d bytes", n)
		}
		if f, ok := FrameOf(tagged[:n]); ok || f != nil {
			t.Errorf("view over %d bytes", n)
		}
		h = Header{Tagged: true}
		if h.Encode(make([]byte, n)) != 0 {
			t.Errorf("encoded into %d bytes", n)
		}
	}
}

func TestTagFieldsAreApart(t *testing.T) {
	for _, fill := range []Tag{0, 0xFFFF, 0xA5A5} {
		for _, c := range []struct {
			name     string
			mask     Tag
			set, clr Tag
		}{
			{"pcp", 0xE000, fill.WithPCP(0xFF), fill.WithPCP(0xF8)},
			{"dei", 0x1000, fill.WithDEI(true), fill.WithDEI(false)},
			{"vid", 0x0FFF, fill.WithVID(0xFFFF), fill.WithVID(0xF000)},
		} {
			if c.set != fill|c.mask || c.clr != fill&^c.mask {
				t.Errorf("%s over %04x: %04x, %04x", c.name, uint16(fill), uint16(c.set), uint16(c.clr))
			}
		}
	}
	tag := MakeTag(5, true, 4094)
	if tag.PCP() != 5 || !tag.DEI() || tag.VID() != 4094 || tag.String() != "vlan 4094 pcp 5 dei" {
		t.Error(tag)
	}
}

func TestFrameSettersChangeOnlyTheirBytes(t *testing.T) {
	for _, tagged := range []bool{false, true} {
		for _, fill := range []byte{0, 0xFF, 0xA5} {
			fresh := func() Frame {
				b := bytes.Repeat([]byte{fill}, 24)
				if tagged {
					b[12], b[13] = 0x81, 0
				}
				f, ok := FrameOf(b)
				if !ok || f.Tagged() != tagged {
					t.Fatal("no frame")
				}
				return f
			}
			m := MAC{1, 2, 3, 4, 5, 6}
			check := func(name string, got Frame, at int, field []byte) {
				want := fresh()
				copy(want[at:], field)
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %x, want %x", name, []byte(got), []byte(want))
				}
			}
			f := fresh()
			f.SetDst(m)
			check("dst", f, 0, m[:])
			f = fresh()
			f.SetSrc(m)
			check("src", f, 6, m[:])
			f = fresh()
			f.SetTag(0x1234)
			if tagged {
				check("tag", f, 14, []byte{0x12, 0x34})
			} else {
				check("tag", f, 0, nil)
			}
			var h Header
			n, _ := h.Decode(f)
			if f.Dst() != h.Dst || f.Src() != h.Src || f.Type() != h.Type || f.Tag() != h.Tag || !bytes.Equal(f.Payload(), f[n:]) {
				t.Errorf("view %x differs from %+v", []byte(f), h)
			}
		}
	}
}

// The frames by the byte, as the standards draw them.
func TestControlFrames(t *testing.T) {
	src := MAC{2, 0, 0, 0, 0, 1}
	pad := func(s string) []byte { return append(unhex(t, s), make([]byte, MinLen-len(s)/2)...) }

	buf := bytes.Repeat([]byte{0xEE}, MinLen+1)
	p := Pause{Quanta: 0xFFFF}
	if n := p.EncodeFrame(buf, src); n != MinLen || !bytes.Equal(buf[:n], pad("0180c2000001020000000001"+"8808"+"0001"+"ffff")) || buf[n] != 0xEE {
		t.Errorf("PAUSE: %x", buf)
	}
	var p2 Pause
	if !p2.Decode(buf[HeaderLen:]) || p2 != p {
		t.Errorf("PAUSE: %+v", p2)
	}

	var c PFC
	c.Set(3, 0xFFFF)
	c.Set(4, 0)
	if n := c.EncodeFrame(buf, src); n != MinLen ||
		!bytes.Equal(buf[:n], pad("0180c2000001020000000001"+"8808"+"0101"+"0018"+"000000000000ffff0000000000000000")) {
		t.Errorf("PFC: %x", buf)
	}
	var c2 PFC
	buf[HeaderLen+2] = 0xFF // reserved half of the vector
	if !c2.Decode(buf[HeaderLen:]) || c2 != c {
		t.Errorf("PFC: %+v", c2)
	}
	for prio := range uint8(8) {
		q, ok := c2.For(prio)
		if ok != (prio == 3 || prio == 4) || prio == 3 && q != 0xFFFF {
			t.Errorf("priority %d: %d, %v", prio, q, ok)
		}
	}
	if p2.Decode(buf[HeaderLen:]) {
		t.Error("a PFC frame is a PAUSE")
	}
	for n := range pfcLen {
		if c2.Decode(buf[HeaderLen : HeaderLen+n : HeaderLen+n]) {
			t.Errorf("PFC of %d bytes", n)
		}
	}
	for n := range MinLen {
		if p.EncodeFrame(make([]byte, n), src) != 0 || c.EncodeFrame(make([]byte, n), src) != 0 {
			t.Errorf("encoded into %d bytes", n)
		}
	}
	if ControlAddr().String() != "01:80:c2:00:00:01" || !ControlAddr().IsMulticast() || src.IsMulticast() {
		t.Error("addresses")
	}
}

func FuzzFrame(f *testing.F) {
	b := make([]byte, MinLen)
	(&PFC{Enable: 8}).EncodeFrame(b, MAC{2})
	f.Add(bytes.Clone(b))
	(&Pause{Quanta: 7}).EncodeFrame(b, MAC{2})
	f.Add(b)
	f.Add(unhexSeed())
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:len(b):len(b)]
		var h Header
		n, ok := h.Decode(b)
		v, okView := FrameOf(b)
		if ok != okView {
			t.Fatal("view and value disagree")
		}
		if !ok {
			return
		}
		out := make([]byte, n)
		if h.Encode(out) != n || !bytes.Equal(out, b[:n]) {
			t.Errorf("%x, want %x", out, b[:n])
		}
		if v.Type() != h.Type || v.Tag() != h.Tag || len(v.Payload()) != len(b)-n {
			t.Error("view and value disagree")
		}
		var pfc PFC
		if pfc.Decode(b[n:]) {
			frame := make([]byte, MinLen)
			pfc.EncodeFrame(frame, h.Src)
			var again PFC
			if !again.Decode(frame[HeaderLen:]) || again != pfc {
				t.Errorf("%+v, want %+v", again, pfc)
			}
		}
		var pause Pause
		pause.Decode(b[n:])
	})
}

func unhexSeed() []byte { return append(make([]byte, 12), 0x81, 0, 0x60, 0, 8, 0) }

func TestNoAllocations(t *testing.T) {
	b := make([]byte, MinLen)
	n := testing.AllocsPerRun(100, func() {
		c := PFC{Enable: 1}
		c.EncodeFrame(b, MAC{2})
		var h Header
		at, _ := h.Decode(b)
		c.Decode(b[at:])
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TypeRoCEv1.String(), "RoCEv1"},
		{Type(0x1234).String(), "0x1234"},
		{OpPFC.String(), "PFC"},
		{OpPause.String(), "PAUSE"},
		{ControlOp(2).String(), "MAC control 0x0002"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
