package wire_test

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/internal/golden"
)

// The field of each setter, as a mask over the twelve bytes.
func TestBTHSettersChangeOnlyTheirBits(t *testing.T) {
	for _, c := range []struct {
		name  string
		mask  string
		set   func(h wire.BTH)
		unset func(h wire.BTH)
	}{
		{"opcode", "ff0000000000000000000000", func(h wire.BTH) { h.SetOpcode(0xFF) }, func(h wire.BTH) { h.SetOpcode(0) }},
		{"solicited", "008000000000000000000000", func(h wire.BTH) { h.SetSolicited(true) }, func(h wire.BTH) { h.SetSolicited(false) }},
		{"migreq", "004000000000000000000000", func(h wire.BTH) { h.SetMigReq(true) }, func(h wire.BTH) { h.SetMigReq(false) }},
		{"pad", "003000000000000000000000", func(h wire.BTH) { h.SetPad(0xFF) }, func(h wire.BTH) { h.SetPad(0xFC) }},
		{"version", "000f00000000000000000000", func(h wire.BTH) { h.SetVersion(0xFF) }, func(h wire.BTH) { h.SetVersion(0xF0) }},
		{"pkey", "0000ffff0000000000000000", func(h wire.BTH) { h.SetPKey(0xFFFF) }, func(h wire.BTH) { h.SetPKey(0) }},
		{"fecn", "000000008000000000000000", func(h wire.BTH) { h.SetFECN(true) }, func(h wire.BTH) { h.SetFECN(false) }},
		{"becn", "000000004000000000000000", func(h wire.BTH) { h.SetBECN(true) }, func(h wire.BTH) { h.SetBECN(false) }},
		{"qpn", "0000000000ffffff00000000", func(h wire.BTH) { h.SetDestQPN(0xFFFFFFFF) }, func(h wire.BTH) { h.SetDestQPN(0xFF000000) }},
		{"ackreq", "000000000000000080000000", func(h wire.BTH) { h.SetAckReq(true) }, func(h wire.BTH) { h.SetAckReq(false) }},
		{"psn", "000000000000000000ffffff", func(h wire.BTH) { h.SetPSN(0xFFFFFFFF) }, func(h wire.BTH) { h.SetPSN(0xFF000000) }},
	} {
		mask, err := hex.DecodeString(c.mask)
		if err != nil {
			t.Fatal(err)
		}
		for _, fill := range []byte{0x00, 0xFF, 0xA5, 0x5A} {
			h, _ := wire.BTHOf(bytes.Repeat([]byte{fill}, 12))
			want := make([]byte, 12)
			c.set(h)
			for i := range want {
				want[i] = fill | mask[i]
			}
			if !bytes.Equal(h, want) {
				t.Errorf("%s set over %02x: %x, want %x", c.name, fill, []byte(h), want)
			}
			c.unset(h)
			for i := range want {
				want[i] = fill &^ mask[i]
			}
			if !bytes.Equal(h, want) {
				t.Errorf("%s cleared over %02x: %x, want %x", c.name, fill, []byte(h), want)
			}
		}
	}
}

func TestBTHViewReadsWhatPacketDecodes(t *testing.T) {
	for _, f := range golden.Frames(t) {
		b := bytes.Clone(ibOf(f))
		for _, flip := range []byte{0, 0xF0} { // as recorded, and with other flags
			b[1] ^= flip
			b[4] ^= flip
			b[8] ^= flip
			var p wire.Packet
			if p.Decode(b) != wire.ReasonNone {
				continue // the pad count no longer fits
			}
			h, ok := wire.BTHOf(b)
			if !ok || h.Opcode() != p.Op || h.Solicited() != p.Solicited || h.MigReq() != p.MigReq || h.Pad() != p.Pad ||
				h.Version() != p.TVer || h.PKey() != p.PKey || h.FECN() != p.FECN || h.BECN() != p.BECN ||
				h.DestQPN() != p.DestQPN || h.AckReq() != p.AckReq || h.PSN() != p.PSN {
				t.Errorf("%s %d: view %x, packet %+v", f.File, f.Index, []byte(h), p)
			}
		}
	}
	for n := range wire.BTHLen {
		if h, ok := wire.BTHOf(make([]byte, n)); ok || h != nil {
			t.Errorf("view over %d bytes", n)
		}
	}
}

// Every value form: encoded over ones and zeros the bytes are the same, are
// those of the specification, and decode to the value again.
func TestHeadersByByte(t *testing.T) {
	check := func(name, want string, encode func(b []byte), same func(b []byte) bool) {
		t.Helper()
		for _, fill := range []byte{0, 0xFF} {
			b := bytes.Repeat([]byte{fill}, len(want)/2+2)
			encode(b)
			if got := hex.EncodeToString(b[:len(want)/2]); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if b[len(b)-1] != fill || b[len(b)-2] != fill {
				t.Errorf("%s: wrote behind its end", name)
			}
			if !same(b) {
				t.Errorf("%s: decodes to another value", name)
			}
		}
	}
	deth := wire.DETH{QKey: 0x80010000, SrcQPN: 0x123456}
	check("DETH", "8001000000123456", deth.Encode, func(b []byte) bool {
		var h wire.DETH
		b[4] = 0xFF // reserved: ignored
		h.Decode(b)
		return h == deth
	})
	reth := wire.RETH{VA: 0x0102030405060708, RKey: 0x090A0B0C, Len: 0x0D0E0F10}
	check("RETH", "0102030405060708090a0b0c0d0e0f10", reth.Encode, func(b []byte) bool {
		var h wire.RETH
		h.Decode(b)
		return h == reth
	})
	atomic := wire.AtomicETH{VA: 0x0102030405060708, RKey: 0x090A0B0C, SwapAdd: 0x1112131415161718, Compare: 0x2122232425262728}
	check("AtomicETH", "0102030405060708090a0b0c11121314151617182122232425262728", atomic.Encode, func(b []byte) bool {
		var h wire.AtomicETH
		h.Decode(b)
		return h == atomic
	})
	// Reserved bits as they come mean nothing and leave as 0.
	feth := wire.FETH{Placement: 3, Level: 1}
	check("FETH", "00000013", feth.Encode, func(b []byte) bool {
		var h wire.FETH
		b[0], b[1], b[2], b[3] = 0xFF, 0xFF, 0xFF, b[3]|0xC0
		h.Decode(b)
		return h == feth
	})
	aeth := wire.AETH{Syndrome: 0x63, MSN: 0x123456}
	check("AETH", "63123456", aeth.Encode, func(b []byte) bool {
		var h wire.AETH
		h.Decode(b)
		return h == aeth
	})
}

func TestSyndromes(t *testing.T) {
	for s := range 256 {
		s := wire.AETHSyndrome(s)
		switch s.Kind() {
		case wire.AckACK:
			if wire.ACKSyndrome(s.CreditCode()) != s&0x7F {
				t.Errorf("%02x: ACK with code %d", uint8(s), s.CreditCode())
			}
		case wire.AckRNR:
			if wire.RNRSyndrome(s.RNRTimer()) != s&0x7F {
				t.Errorf("%02x: RNR NAK with timer %d", uint8(s), s.RNRTimer())
			}
		case wire.AckNAK:
			if wire.NAKSyndrome(s.NAKCode()) != s&0x7F {
				t.Errorf("%02x: NAK with code %d", uint8(s), s.NAKCode())
			}
		case wire.AckReserved:
			if s&0x60 != 0x40 {
				t.Errorf("%02x: reserved", uint8(s))
			}
		}
		if s.String() == "" {
			t.Errorf("%02x: no name", uint8(s))
		}
	}
	for _, c := range []struct {
		s    wire.AETHSyndrome
		code uint8
		name string
	}{
		{wire.NAKSyndrome(wire.NAKSequence), 0x60, "NAK, PSN sequence error"},
		{wire.NAKSyndrome(wire.NAKInvalid), 0x61, "NAK, invalid request"},
		{wire.NAKSyndrome(wire.NAKRemoteAccess), 0x62, "NAK, remote access error"},
		{wire.NAKSyndrome(wire.NAKRemoteOp), 0x63, "NAK, remote operational error"},
		{wire.NAKSyndrome(wire.NAKInvalidRD), 0x64, "NAK, invalid RD request"},
		{wire.NAKSyndrome(5), 0x65, "NAK, NAK code 5"},
		{wire.RNRSyndrome(1), 0x21, "RNR NAK, 10µs"},
		{wire.RNRSyndrome(0), 0x20, "RNR NAK, 655.36ms"},
		{wire.ACKSyndrome(wire.CreditsUnlimited), 0x1F, "ACK"},
		{wire.ACKSyndrome(7), 0x07, "ACK, 12 credits"},
		{0x40, 0x40, "syndrome 0x40"},
	} {
		if uint8(c.s) != c.code || c.s.String() != c.name {
			t.Errorf("%02x %q, want %02x %q", uint8(c.s), c.s, c.code, c.name)
		}
	}
	if d := wire.RNRSyndrome(14).RNRDelay(); d != ib.RNRDelay(14) || d != 1280*time.Microsecond {
		t.Errorf("RNR timer 14: %v", d)
	}
}

func TestCreditCodes(t *testing.T) {
	// IBA vol.1 9.7.7.2: 0 to 4, then steps of ×1.5 and ×1.33 in turn.
	want := []int{0, 1, 2, 3, 4}
	for n := 4; len(want) < 31; n *= 2 {
		want = append(want, n*3/2, n*2)
	}
	for c, w := range want[:31] {
		if n, ok := wire.CreditCode(c).Credits(); !ok || n != w {
			t.Errorf("code %d: %d credits, want %d", c, n, w)
		}
	}
	if _, ok := wire.CreditsUnlimited.Credits(); ok {
		t.Error("code 31 is a number")
	}
	for n := -1; n < 40000; n++ {
		c := wire.CreditCodeFor(n)
		got, ok := c.Credits()
		if !ok || got > max(n, 0) || c < 30 && want[c+1] <= n {
			t.Fatalf("%d credits: code %d, %d", n, c, got)
		}
	}
}
