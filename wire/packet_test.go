package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/internal/golden"
)

// ibOf returns the bytes from BTH to pad of a recorded frame; the recordings
// have neither tags nor IP options.
func ibOf(f golden.Frame) []byte {
	at := 14 + 20 + 8
	if f.Bytes[12] == 0x86 {
		at = 14 + 40 + 8
	}
	return f.Bytes[at : len(f.Bytes)-wire.ICRCLen]
}

// full returns a packet of opcode o with a different value in every field, and
// n bytes of payload if it may have one.
func full(o wire.Opcode, n int) (p wire.Packet) {
	p.SetOp(o)
	p.Solicited, p.MigReq, p.FECN, p.BECN, p.AckReq = true, false, true, false, true
	p.PKey, p.DestQPN, p.PSN = 0x8123, 0xABCDEF, 0xFEDCBA
	p.AETH = wire.AETH{Syndrome: wire.NAKSyndrome(wire.NAKRemoteOp), MSN: 0x765432}
	p.Imm, p.IETH = 0x01020304, 0x05060708
	p.DETH = wire.DETH{QKey: 0x80010000, SrcQPN: 0x13579B}
	p.RETH = wire.RETH{VA: 0x1112131415161718, RKey: 0x191A1B1C, Len: 0x1D1E1F20}
	p.Atomic = wire.AtomicETH{VA: 0x2122232425262728, RKey: 0x292A2B2C, SwapAdd: 0x2D2E2F3031323334, Compare: 0x35363738393A3B3C}
	p.AtomicAck = 0x4142434445464748
	if p.Info.Payload {
		p.Payload = make([]byte, n)
		for i := range p.Payload {
			p.Payload[i] = byte(i + 1)
		}
	}
	p.Pad = wire.PadFor(len(p.Payload))
	return p
}

// encode returns the bytes from BTH to pad.
func encode(t *testing.T, p *wire.Packet) []byte {
	t.Helper()
	b := make([]byte, p.WireLen(len(p.Payload))-wire.ICRCLen)
	n := p.EncodeHeaders(b)
	if n != p.HeaderLen() || n+copy(b[n:], p.Payload)+int(p.Pad) != len(b) {
		t.Fatalf("%v: %d header bytes of %d", p.Op, n, p.HeaderLen())
	}
	return b
}

// only returns p with every field that its opcode does not carry cleared.
func only(p wire.Packet) wire.Packet {
	h := p.Info.Headers
	if !h.Has(wire.HdrAETH) {
		p.AETH = wire.AETH{}
	}
	if !h.Has(wire.HdrAtomicAckETH) {
		p.AtomicAck = 0
	}
	if !h.Has(wire.HdrAtomicETH) {
		p.Atomic = wire.AtomicETH{}
	}
	if !h.Has(wire.HdrRETH) {
		p.RETH = wire.RETH{}
	}
	if !h.Has(wire.HdrFETH) {
		p.FETH = wire.FETH{}
	}
	if !h.Has(wire.HdrDETH) {
		p.DETH = wire.DETH{}
	}
	if !h.Has(wire.HdrImmDt) {
		p.Imm = 0
	}
	if !h.Has(wire.HdrIETH) {
		p.IETH = 0
	}
	return p
}

func TestGoldenPacketsDecodeAndEncodeAgain(t *testing.T) {
	for _, f := range golden.Frames(t) {
		b := ibOf(f)
		var p wire.Packet
		if r := p.Decode(b); r != wire.ReasonNone {
			t.Fatalf("%s %d: %v", f.File, f.Index, r)
		}
		if got := encode(t, &p); !bytes.Equal(got, b) {
			t.Errorf("%s %d, %v: encoded again\n%x, want\n%x", f.File, f.Index, p.Op, got, b)
		}
	}
}

// What the recorded programs are known to have done.
func TestGoldenPacketsMean(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range golden.Frames(t) {
		var p wire.Packet
		p.Decode(ibOf(f))
		ok := true
		switch f.File {
		case "rc-send-33":
			if p.Op == wire.RCSendOnly {
				ok = p.Pad == 3 && len(p.Payload) == 33 && p.AckReq
			}
		case "rc-read-9002":
			if p.Op == wire.RCReadRequest {
				ok = p.RETH.Len == 9002 && p.AckReq
			}
		case "rc-write-9001-mtu1024":
			if p.Op == wire.RCWriteFirst {
				ok = p.RETH.Len == 9001 && len(p.Payload) == 1024
			}
		case "rc-atomic-fetch-add":
			ok = p.Op == wire.RCFetchAdd || p.Op == wire.RCAtomicAck
		case "ud-send-501":
			ok = p.Op == wire.UDSendOnly && p.DETH.QKey == 0x11111111 && p.DETH.SrcQPN != 0 && len(p.Payload) == 501
		case "rdmacm-read-write-send":
			if p.Op == wire.UDSendOnly {
				ok = p.DestQPN == ib.QPGSI && p.DETH.SrcQPN == ib.QPGSI && p.DETH.QKey == 0x80010000 && len(p.Payload) == 256
			}
		}
		if p.Op == wire.RCAck || p.Op == wire.RCAtomicAck {
			s := p.AETH.Syndrome
			ok = ok && s == wire.ACKSyndrome(wire.CreditsUnlimited) && s.Kind() == wire.AckACK
		}
		if !ok || p.TVer != 0 || p.MigReq {
			t.Errorf("%s %d: unexpected %+v", f.File, f.Index, p)
		}
		seen[f.File] = true
	}
	if len(seen) != 9 {
		t.Errorf("%d recordings", len(seen))
	}
}

func TestEveryOpcodeRoundTrips(t *testing.T) {
	wire.Opcodes(func(info *wire.OpInfo) {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 1023, 4096} {
			p := only(full(info.Op, n))
			b := encode(t, &p)
			// Fields of absent headers are left alone, so begin with none.
			var q wire.Packet
			if r := q.Decode(b); r != wire.ReasonNone {
				t.Fatalf("%s with %d bytes: %v", info.Name, n, r)
			}
			if fmt.Sprintf("%+v", q) != fmt.Sprintf("%+v", p) {
				t.Errorf("%s with %d bytes:\n%+v, want\n%+v", info.Name, n, q, p)
			}
		}
	})
}

func TestDecodeLeavesAbsentHeadersAlone(t *testing.T) {
	mid := full(wire.RCWriteMiddle, 16)
	b := encode(t, &mid)
	p := full(wire.UDSendOnly, 4)
	before := p
	p.Decode(b)
	if p.DETH != before.DETH || p.RETH != before.RETH || p.AETH != before.AETH || p.Imm != before.Imm {
		t.Errorf("changed: %+v", p)
	}
}

// Every first byte, every length up to 64, every pad count, with both
// versions: the answer is the one that the table and arithmetic say.
func TestEveryOpcodeByEveryLength(t *testing.T) {
	b := make([]byte, 65)
	var p wire.Packet
	for op := range 256 {
		info := wire.Opcode(op).Info()
		for n := range 65 {
			for pad := range 4 {
				for _, version := range []byte{0, 1, 15} {
					b[0], b[1] = byte(op), byte(pad)<<4|version
					// The capacity ends with the length: reading on would panic.
					got := p.Decode(b[:n:n])
					var want wire.Reason
					switch {
					case n < wire.BTHLen:
						want = wire.ReasonShort
					case version != 0:
						want = wire.ReasonBadVersion
					case info == nil:
						want = wire.ReasonBadOpcode
					case n < info.Len:
						want = wire.ReasonShort
					case pad > n-info.Len:
						want = wire.ReasonBadPad
					case !info.Payload && n != info.Len || (n-info.Len)%4 != 0:
						want = wire.ReasonBadLength
					}
					if got != want {
						t.Fatalf("opcode %02x, %d bytes, pad %d, version %d: %v, want %v", op, n, pad, version, got, want)
					}
					if got == wire.ReasonNone && (len(p.Payload) != n-info.Len-pad || cap(p.Payload) != len(p.Payload)) {
						t.Fatalf("opcode %02x, %d bytes, pad %d: payload %d of %d", op, n, pad, len(p.Payload), cap(p.Payload))
					}
				}
			}
		}
	}
}

func TestEncodeHeadersRefuses(t *testing.T) {
	for op := range 256 {
		p := wire.Packet{Op: wire.Opcode(op)}
		want := p.HeaderLen()
		for n := range 45 {
			b := bytes.Repeat([]byte{0xA5}, n)
			got := p.EncodeHeaders(b)
			if want == 0 || n < want {
				if got != 0 || !bytes.Equal(b, bytes.Repeat([]byte{0xA5}, n)) {
					t.Fatalf("opcode %02x into %d bytes: %d, %x", op, n, got, b)
				}
			} else if got != want || !bytes.Equal(b[got:], bytes.Repeat([]byte{0xA5}, n-got)) {
				t.Fatalf("opcode %02x into %d bytes: %d, want %d", op, n, got, want)
			}
		}
	}
}

// Numbers wider than their field must not reach their neighbours.
func TestEncodeHeadersKeepsFieldsApart(t *testing.T) {
	wire.Opcodes(func(info *wire.OpInfo) {
		p := wire.Packet{
			Op: info.Op, Pad: 0xFF, TVer: 0xF0, DestQPN: 0xFF000000, PSN: 0xFF000000,
			AETH: wire.AETH{MSN: 0xFF000000}, DETH: wire.DETH{SrcQPN: 0xFF000000},
		}
		b := make([]byte, info.Len)
		p.EncodeHeaders(b)
		want := make([]byte, info.Len)
		want[0], want[1] = byte(info.Op), 0x30
		if !bytes.Equal(b, want) {
			t.Errorf("%s: %x, want %x", info.Name, b, want)
		}
	})
}

func TestWireLen(t *testing.T) {
	for _, c := range []struct {
		op   wire.Opcode
		n    int
		want int
	}{
		{wire.RCSendOnly, 0, 16},
		{wire.RCSendOnly, 33, 12 + 36 + 4},
		{wire.RCWriteOnlyImm, 1, 12 + 16 + 4 + 4 + 4},
		{wire.RCAck, 0, 20},
		{wire.RCAtomicAck, 0, 28},
		{wire.RCFetchAdd, 0, 44},
		{wire.UDSendOnlyImm, 4096, 12 + 8 + 4 + 4096 + 4},
		{wire.CNP, 0, 32},
	} {
		p := wire.Packet{Op: c.op}
		if got := p.WireLen(c.n); got != c.want {
			t.Errorf("%v with %d bytes: %d, want %d", c.op, c.n, got, c.want)
		}
	}
	for n := range 9 {
		if got := wire.PadFor(n); (n+int(got))%4 != 0 || got > 3 {
			t.Errorf("pad for %d bytes: %d", n, got)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	var p wire.Packet
	out := make([]byte, wire.MaxHeaderLen)
	wire.Opcodes(func(info *wire.OpInfo) {
		src := full(info.Op, 64)
		b := encode(t, &src)
		n := testing.AllocsPerRun(20, func() {
			if p.Decode(b) != wire.ReasonNone {
				t.Fatal("bad packet")
			}
			p.EncodeHeaders(out)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", info.Name, n)
		}
	})
}

// Decoding and encoding give back every bit but the reserved ones.
func FuzzPacket(f *testing.F) {
	for _, g := range golden.Frames(f) {
		if b := ibOf(g); len(b) < 300 {
			f.Add(b)
		}
	}
	wire.Opcodes(func(info *wire.OpInfo) {
		b := make([]byte, info.Len)
		b[0] = byte(info.Op)
		f.Add(b)
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p wire.Packet
		if p.Decode(b[:len(b):len(b)]) != wire.ReasonNone {
			return
		}
		got := make([]byte, len(b))
		n := p.EncodeHeaders(got)
		if n != p.Info.Len || n+len(p.Payload)+int(p.Pad) != len(b) {
			t.Fatalf("%d + %d + %d bytes of %d", n, len(p.Payload), p.Pad, len(b))
		}
		want := bytes.Clone(b[:n])
		want[4] &= 0xC0
		want[8] &= 0x80
		if p.Info.Headers.Has(wire.HdrDETH) {
			want[16] = 0
		}
		if p.Info.Headers.Has(wire.HdrReserved) {
			clear(want[12:28])
		}
		if !bytes.Equal(got[:n], want) {
			t.Errorf("%v: %x, want %x", p.Op, got[:n], want)
		}
	})
}

var sinkReason wire.Reason

func BenchmarkDecode(b *testing.B) {
	for _, o := range []wire.Opcode{wire.RCWriteMiddle, wire.RCWriteOnly, wire.RCAck, wire.UDSendOnly} {
		b.Run(o.String(), func(b *testing.B) {
			src := full(o, 1024)
			buf := make([]byte, src.WireLen(len(src.Payload))-4)
			src.EncodeHeaders(buf)
			var p wire.Packet
			b.ReportAllocs()
			for b.Loop() {
				sinkReason = p.Decode(buf)
			}
		})
	}
}

func BenchmarkEncodeHeaders(b *testing.B) {
	for _, o := range []wire.Opcode{wire.RCWriteMiddle, wire.RCWriteOnly, wire.RCAck, wire.UDSendOnly} {
		b.Run(o.String(), func(b *testing.B) {
			p := full(o, 1024)
			var buf [wire.MaxHeaderLen]byte
			for b.Loop() {
				p.EncodeHeaders(buf[:])
			}
		})
	}
}

// Random bytes, and random changes of good packets, never panic and never
// give a payload outside the input.
func TestRandomBytes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var p wire.Packet
	for range 200000 {
		b := make([]byte, r.IntN(64))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if len(b) > 1 && r.IntN(2) == 0 {
			b[1] &= 0xF0
		}
		if p.Decode(b[:len(b):len(b)]) == wire.ReasonNone && len(p.Payload) > len(b)-wire.BTHLen {
			t.Fatalf("%x: payload of %d bytes", b, len(p.Payload))
		}
	}
}
