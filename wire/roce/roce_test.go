package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/internal/golden"
	"github.com/verbena-rdma/verbena/wire/ip"
)

func TestGoldenFramesDecodeVerifyAndEncodeAgain(t *testing.T) {
	opcodes := map[wire.Opcode]int{}
	for _, g := range golden.Frames(t) {
		var e Envelope
		if r := e.Decode(g.Bytes); r != ReasonNone {
			t.Fatalf("%s %d: %v", g.File, g.Index, r)
		}
		if !e.Verify() {
			t.Errorf("%s %d: ICRC wrong", g.File, g.Index)
		}
		if n := e.SegmentSize(); n != len(e.IB) {
			t.Errorf("%s %d: segment size %d of %d", g.File, g.Index, n, len(e.IB))
		}
		var p wire.Packet
		if r := p.Decode(e.IB[:len(e.IB)-icrc.Len]); r != wire.ReasonNone {
			t.Fatalf("%s %d: %v", g.File, g.Index, r)
		}
		opcodes[p.Op]++
		out := make([]byte, e.FrameLen(&p))
		if n := e.Encode(out, &p); n != len(g.Bytes) || !bytes.Equal(out, g.Bytes) {
			t.Errorf("%s %d: encoded again\n%x, want\n%x", g.File, g.Index, out[:n], g.Bytes)
		}
	}
	if len(opcodes) < 14 {
		t.Errorf("only %d opcodes in the recordings", len(opcodes))
	}
}

func TestDecodeIPIsDecodeWithoutEthernet(t *testing.T) {
	for _, g := range golden.Frames(t) {
		var e, f Envelope
		e.Decode(g.Bytes)
		if r := f.DecodeIP(g.Bytes[e.Ether.Len():]); r != ReasonNone {
			t.Fatalf("%s %d: %v", g.File, g.Index, r)
		}
		e.Ether = ether.Header{}
		if !equal(&e, &f) {
			t.Errorf("%s %d: %+v, want %+v", g.File, g.Index, f, e)
		}
	}
}

func equal(a, b *Envelope) bool {
	x, y := *a, *b
	x.IB, y.IB = nil, nil
	return fmt.Sprint(x) == fmt.Sprint(y) && bytes.Equal(a.IB, b.IB)
}

// envelopes has one of each kind, tagged and not.
func envelopes() []Envelope {
	v4 := Envelope{
		Ether: ether.Header{Dst: ether.MAC{2, 0, 0, 0, 0, 2}, Src: ether.MAC{2, 0, 0, 0, 0, 1}},
		Kind:  V2IPv4, Src: gid4([4]byte{10, 0, 0, 1}), Dst: gid4([4]byte{10, 0, 0, 2}),
		TOS: 0x6A, TTL: 64, DF: true, Ident: 0xBEEF, SrcPort: 0xC123, DstPort: Port,
	}
	v6 := v4
	v6.Kind, v6.DF, v6.Ident, v6.FlowLabel = V2IPv6, false, 0, 0x12345
	v6.Src, v6.Dst = ib.GID{0xFD, 15: 1}, ib.GID{0xFD, 15: 2}
	v1 := v6
	v1.Kind, v1.SrcPort, v1.DstPort = V1, 0, 0
	all := []Envelope{v4, v6, v1}
	for _, e := range all[:3] {
		e.Ether.Tagged, e.Ether.Tag = true, ether.MakeTag(3, false, 100)
		all = append(all, e)
	}
	return all
}

// packet returns a packet of opcode o with every header field filled and n
// bytes of payload.
func packet(o wire.Opcode, n int) (p wire.Packet) {
	p.SetOp(o)
	p.AckReq, p.PKey, p.DestQPN, p.PSN = true, 0xFFFF, 0x123456, 0xABCDEF
	p.RETH = wire.RETH{VA: 1 << 60, RKey: 7, Len: 9}
	p.AETH = wire.AETH{Syndrome: 0x1F, MSN: 5}
	p.Atomic = wire.AtomicETH{VA: 8, RKey: 9, SwapAdd: 10, Compare: 11}
	p.AtomicAck, p.Imm, p.IETH = 12, 13, 14
	p.DETH = wire.DETH{QKey: 15, SrcQPN: 16}
	if p.Info.Payload {
		p.Payload = make([]byte, n)
		for i := range p.Payload {
			p.Payload[i] = byte(i*7 + 1)
		}
	}
	return p
}

func TestEveryOpcodeInEveryEnvelopeRoundTrips(t *testing.T) {
	for _, e := range envelopes() {
		wire.Opcodes(func(info *wire.OpInfo) {
			for _, n := range []int{0, 1, 2, 3, 4, 1021, 1022, 1023, 1024, 4096} {
				p := packet(info.Op, n)
				b := make([]byte, e.FrameLen(&p)+3)
				m := e.Encode(b, &p)
				if m != len(b)-3 {
					t.Fatalf("%v %v %d: encoded %d bytes of %d", e.Kind, info.Name, n, m, len(b)-3)
				}
				var d Envelope
				if r := d.Decode(b[:m]); r != ReasonNone || !d.Verify() {
					t.Fatalf("%v %v %d: %v, ICRC %v", e.Kind, info.Name, n, r, d.Verify())
				}
				if d.Ether.Type == ether.TypeRoCEv1 != (e.Kind == V1) {
					t.Errorf("%v: EtherType %v", e.Kind, d.Ether.Type)
				}
				d.Ether.Type = 0
				d2 := d
				d2.IB = nil
				if !equal(&d2, &e) {
					t.Fatalf("%v: decoded %+v, want %+v", e.Kind, d2, e)
				}
				var q wire.Packet
				if r := q.Decode(d.IB[:len(d.IB)-icrc.Len]); r != wire.ReasonNone || !bytes.Equal(q.Payload, p.Payload) || q.Op != p.Op {
					t.Fatalf("%v %v %d: %v", e.Kind, info.Name, n, r)
				}
				// Ethernet padding behind the packet changes nothing.
				var padded Envelope
				if r := padded.Decode(b); r != ReasonNone || len(padded.IB) != len(d.IB) {
					t.Fatalf("%v %v %d with bytes behind: %v", e.Kind, info.Name, n, r)
				}
			}
		})
	}
}

// The masked fields are those that a router may change; all others are held.
func TestICRCHoldsWhatRoutersMayNotChange(t *testing.T) {
	for _, e := range envelopes() {
		p := packet(wire.RCSendOnly, 5)
		good := make([]byte, e.FrameLen(&p))
		e.Encode(good, &p)
		at := e.Ether.Len()
		masked := map[int]byte{} // offset from IP: bits that may change
		bth := e.Kind.headerLen()
		masked[bth+4] = 0xFF
		if e.Kind == V2IPv4 {
			masked[1], masked[8], masked[10], masked[11], masked[26], masked[27] = 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
		} else {
			masked[0], masked[1], masked[2], masked[3], masked[7] = 0x0F, 0xFF, 0xFF, 0xFF, 0xFF
			if e.Kind == V2IPv6 {
				masked[46], masked[47] = 0xFF, 0xFF
			}
		}
		for i := at; i < len(good); i++ {
			for bit := range 8 {
				b := bytes.Clone(good)
				b[i] ^= 1 << bit
				var d Envelope
				r := d.Decode(b)
				if r != ReasonNone && r != ReasonBadChecksum {
					continue // found out earlier
				}
				may := masked[i-at]&(1<<bit) != 0
				if d.Verify() != may {
					t.Errorf("%v: byte %d bit %d changed: ICRC %v, want %v", e.Kind, i-at, bit, d.Verify(), may)
				}
			}
		}
	}
}

func TestRefusalsHaveTheirReason(t *testing.T) {
	mk := func(k Kind) []byte {
		for _, e := range envelopes() {
			if e.Kind == k {
				p := packet(wire.RCSendOnly, 8)
				b := make([]byte, e.FrameLen(&p))
				e.Encode(b, &p)
				return b
			}
		}
		return nil
	}
	const at = ether.HeaderLen
	for _, c := range []struct {
		name   string
		kind   Kind
		change func(b []byte) []byte
		want   Reason
	}{
		{"empty", V2IPv4, func([]byte) []byte { return nil }, ReasonShort},
		{"half an Ethernet header", V2IPv4, func(b []byte) []byte { return b[:13] }, ReasonShort},
		{"ARP", V2IPv4, func(b []byte) []byte { b[13] = 6; return b }, ReasonNotRoCE},
		{"TCP", V2IPv4, func(b []byte) []byte { b[at+9] = 6; return b }, ReasonNotRoCE},
		{"another port", V2IPv4, func(b []byte) []byte { b[at+22]++; return b }, ReasonNotRoCE},
		{"another port, v6", V2IPv6, func(b []byte) []byte { b[at+42]++; return b }, ReasonNotRoCE},
		{"GRH of something else", V1, func(b []byte) []byte { b[at+6] = 0xFF; return b }, ReasonNotRoCE},
		{"version", V2IPv4, func(b []byte) []byte { b[at] = 0x55; return b }, ReasonBadIP},
		{"version, v6", V2IPv6, func(b []byte) []byte { b[at] = 0x55; return b }, ReasonBadIP},
		{"version, GRH", V1, func(b []byte) []byte { b[at] = 0x55; return b }, ReasonBadIP},
		{"header length", V2IPv4, func(b []byte) []byte { b[at] = 0x44; return b }, ReasonBadIP},
		{"fragment", V2IPv4, func(b []byte) []byte { b[at+6] |= 0x20; return b }, ReasonFragment},
		{"cut", V2IPv4, func(b []byte) []byte { return b[:len(b)-1] }, ReasonShort},
		{"cut, v6", V2IPv6, func(b []byte) []byte { return b[:len(b)-1] }, ReasonShort},
		{"cut, GRH", V1, func(b []byte) []byte { return b[:len(b)-1] }, ReasonShort},
		{"UDP length", V2IPv4, func(b []byte) []byte { b[at+25]--; return b }, ReasonBadLength},
		{"UDP length, v6", V2IPv6, func(b []byte) []byte { b[at+45]--; return b }, ReasonBadLength},
		{"UDP length under 8", V2IPv6, func(b []byte) []byte { b[at+45] = 7; return b }, ReasonBadLength},
		{"no room for UDP", V2IPv6, func(b []byte) []byte { b[at+5] = 7; return b }, ReasonBadLength},
		{"no room for BTH", V1, func(b []byte) []byte { b[at+5] = 15; return b }, ReasonBadLength},
		{"IP checksum", V2IPv4, func(b []byte) []byte { b[at+10] ^= 1; return b }, ReasonBadChecksum},
		{"options", V2IPv4, func(b []byte) []byte {
			b = append(b[:at+20:at+20], append(make([]byte, 4), b[at+20:]...)...)
			b[at] = 0x46
			binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
			return b
		}, ReasonIPOptions},
	} {
		var e Envelope
		if got := e.Decode(c.change(mk(c.kind))); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	e := envelopes()[0]
	p := packet(wire.RCSendOnly, 8)
	b := make([]byte, e.FrameLen(&p))
	if n := e.Encode(b[:len(b)-1], &p); n != 0 {
		t.Errorf("into too little room: %d", n)
	}
	p.Op = 0xFF
	if n := e.Encode(b, &p); n != 0 {
		t.Errorf("unknown opcode: %d", n)
	}
	p.Op = wire.RCAck
	if n := e.Encode(b, &p); n != 0 {
		t.Errorf("payload on an acknowledgement: %d", n)
	}
	e.Kind = 0
	p.Op = wire.RCSendOnly
	if n := e.Encode(b, &p); n != 0 {
		t.Errorf("no kind: %d", n)
	}
	e = envelopes()[0]
	p.Payload = make([]byte, 70000)
	if n := e.Encode(make([]byte, 80000), &p); n != 0 {
		t.Errorf("70,000 bytes: %d", n)
	}
}

func TestUDPChecksum(t *testing.T) {
	for _, e := range envelopes() {
		p := packet(wire.RCSendOnly, 9)
		b := make([]byte, e.FrameLen(&p))
		e.Encode(b, &p)
		e.FillUDPChecksum(b)
		var d Envelope
		if r := d.Decode(b); r != ReasonNone || !d.Verify() {
			t.Fatalf("%v: %v", e.Kind, r)
		}
		if e.Kind == V1 {
			continue
		}
		if d.UDPChecksum == 0 {
			t.Errorf("%v: none", e.Kind)
		}
		e.FillUDPChecksum(b[:10]) // too short: nothing, and no panic
		// Over header and data with a right checksum the sum is all ones.
		udp := b[e.Len()-8:]
		udp[6], udp[7] = 0, 0
		want := ip.UDPChecksum6(e.Src, e.Dst, udp)
		if e.Kind == V2IPv4 {
			want = ip.UDPChecksum4([4]byte(e.Src[12:]), [4]byte(e.Dst[12:]), udp)
		}
		if d.UDPChecksum != want {
			t.Errorf("%v: %04x, want %04x", e.Kind, d.UDPChecksum, want)
		}
	}
}

func TestCNP(t *testing.T) {
	for _, e := range envelopes() {
		p := NewCNP(0x000123)
		b := make([]byte, e.FrameLen(&p))
		e.Encode(b, &p)
		var d Envelope
		if r := d.Decode(b); r != ReasonNone || !d.Verify() {
			t.Fatalf("%v: %v", e.Kind, r)
		}
		want := make([]byte, 28)
		copy(want, []byte{0x81, 0, 0xFF, 0xFF, 0x40, 0, 1, 0x23})
		if got := d.IB[:len(d.IB)-icrc.Len]; !bytes.Equal(got, want) {
			t.Errorf("%v: %x, want %x", e.Kind, got, want)
		}
	}
}

// merged builds a frame as a kernel shows it before segmentation: packets of
// the given payload sizes, ICRCs for counting Identifications.
func merged(e Envelope, ops []wire.Opcode, sizes []int) []byte {
	var ibs []byte
	for i, n := range sizes {
		s := e
		if s.Kind == V2IPv4 {
			s.Ident += uint16(i)
		}
		p := packet(ops[i], n)
		p.PSN = p.PSN.Add(i)
		b := make([]byte, s.FrameLen(&p))
		s.Encode(b, &p)
		ibs = append(ibs, b[s.Len():]...)
	}
	out := make([]byte, e.Len()+len(ibs))
	e.EncodeHeaders(out, len(ibs))
	copy(out[e.Len():], ibs)
	return out
}

func TestMergedFramesAreCut(t *testing.T) {
	const first, mid, last, only = wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCWriteOnly
	for _, e := range envelopes() {
		for _, c := range []struct {
			name  string
			ops   []wire.Opcode
			sizes []int
			size  int
		}{
			{"one", []wire.Opcode{first}, []int{1024}, 12 + 16 + 1024 + 4},
			{"middles", []wire.Opcode{mid, mid, mid}, []int{4096, 4096, 4096}, 12 + 4096 + 4},
			{"middles and last", []wire.Opcode{mid, mid, last}, []int{1024, 1024, 77}, 12 + 1024 + 4},
			{"empty", []wire.Opcode{wire.RCSendOnly, wire.RCSendOnly, wire.RCSendOnly}, []int{0, 0, 0}, 16},
			{"small messages", []wire.Opcode{only, only, only, only, only}, []int{64, 64, 64, 64, 64}, 12 + 16 + 64 + 4},
			{"acknowledgements", []wire.Opcode{wire.RCAck, wire.RCAck}, []int{0, 0}, 20},
			{"pads", []wire.Opcode{only, only, only}, []int{61, 63, 62}, 12 + 16 + 64 + 4},
		} {
			b := merged(e, c.ops, c.sizes)
			var d Envelope
			if r := d.Decode(b); r != ReasonNone {
				t.Fatalf("%s: %v", c.name, r)
			}
			size := d.SegmentSize()
			if size != c.size {
				t.Fatalf("%v %s: segment size %d, want %d", e.Kind, c.name, size, c.size)
			}
			i := 0
			for s := range d.Segments(size) {
				var p wire.Packet
				if r := p.Decode(s.IB[:len(s.IB)-icrc.Len]); r != wire.ReasonNone || p.Op != c.ops[i] || !s.Verify() {
					t.Errorf("%v %s: packet %d: %v, %v, ICRC %v", e.Kind, c.name, i, r, p.Op, s.Verify())
				}
				i++
			}
			if i != len(c.ops) {
				t.Errorf("%v %s: %d packets, want %d", e.Kind, c.name, i, len(c.ops))
			}
			// With every ICRC spoilt by a rewritten address, the order of PSNs tells.
			d.Dst[15]++
			if got := d.SegmentSize(); got != c.size {
				t.Errorf("%v %s with a rewritten address: segment size %d, want %d", e.Kind, c.name, got, c.size)
			}
		}
	}
}

func TestSegmentsOfAnySize(t *testing.T) {
	e := envelopes()[0]
	e.IB = make([]byte, 100)
	for size := -3; size < 110; size++ {
		n, total := 0, 0
		for s := range e.Segments(size) {
			n++
			total += len(s.IB)
		}
		want := 1
		if size > 0 {
			want = (100 + size - 1) / size
		}
		if n != want || total != 100 {
			t.Errorf("size %d: %d pieces of %d bytes together, want %d of 100", size, n, total, want)
		}
	}
	for range e.Segments(10) {
		break
	}
}

func TestNoAllocations(t *testing.T) {
	e := envelopes()[0]
	p := packet(wire.RCWriteOnly, 1023)
	b := make([]byte, e.FrameLen(&p))
	n := testing.AllocsPerRun(100, func() {
		e.Encode(b, &p)
		var d Envelope
		if d.Decode(b) != ReasonNone || !d.Verify() {
			panic("bad frame")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range golden.Frames(f) {
		if len(g.Bytes) < 700 {
			f.Add(g.Bytes)
		}
	}
	for _, e := range envelopes() {
		f.Add(merged(e, []wire.Opcode{wire.RCSendOnly, wire.RCSendOnly}, []int{3, 3}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Envelope
		r := e.Decode(b)
		if r != ReasonNone && r != ReasonBadChecksum {
			e.DecodeIP(b)
			return
		}
		good := e.Verify()
		size := e.SegmentSize()
		total := 0
		for s := range e.Segments(size) {
			total += len(s.IB)
		}
		if total != len(e.IB) {
			t.Errorf("pieces have %d bytes of %d", total, len(e.IB))
		}
		var p wire.Packet
		if !good || p.Decode(e.IB[:len(e.IB)-icrc.Len]) != wire.ReasonNone {
			return
		}
		out := make([]byte, e.FrameLen(&p))
		if n := e.Encode(out, &p); n != len(out) {
			t.Fatalf("encoded %d of %d", n, len(out))
		}
		var d Envelope
		if r := d.Decode(out); r != ReasonNone || !d.Verify() {
			// Reserved bits and pad bytes are not kept, so bytes may differ, but a
			// frame of ours is always good.
			t.Errorf("our own frame: %v", r)
		}
	})
}

func BenchmarkDecodeVerify(b *testing.B) {
	e := envelopes()[0]
	p := packet(wire.RCWriteMiddle, 4096)
	buf := make([]byte, e.FrameLen(&p))
	e.Encode(buf, &p)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		var d Envelope
		if d.Decode(buf) != ReasonNone || !d.Verify() {
			b.Fatal()
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := envelopes()[0]
	p := packet(wire.RCWriteMiddle, 4096)
	buf := make([]byte, e.FrameLen(&p))
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		e.Encode(buf, &p)
	}
}

func BenchmarkSegmentSize(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	e := envelopes()[0]
	ops, sizes := make([]wire.Opcode, 15), make([]int, 15)
	for i := range ops {
		ops[i], sizes[i] = wire.RCWriteMiddle, 4096
	}
	sizes[14] = r.IntN(4096)
	var d Envelope
	d.Decode(merged(e, ops, sizes))
	for b.Loop() {
		d.SegmentSize()
	}
}
