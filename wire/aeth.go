package wire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/ib"
)

// AETHLen is the length of an ACK extended transport header.
const AETHLen = 4

// AETH is the ACK extended transport header (IBA vol.1 9.3.5): the verdict and
// the number of the last message that the responder completed.
type AETH struct {
	Syndrome AETHSyndrome
	MSN      ib.MSN // 24 bits
}

// Decode fills h from b, which has at least AETHLen bytes.
func (h *AETH) Decode(b []byte) {
	_ = b[AETHLen-1]
	h.Syndrome = AETHSyndrome(b[0])
	h.MSN = ib.MSN(get24(b[1:]))
}

// Encode writes h to b, which has room for AETHLen bytes.
func (h *AETH) Encode(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(h.Syndrome)<<24|uint32(h.MSN)&0xFFFFFF)
}

// AETHSyndrome is the verdict byte of an AETH (IBA vol.1 9.7.5):
// bit 7 reserved, bits 6:5 the kind, bits 4:0 its argument. The zero syndrome
// is an ACK without credits.
type AETHSyndrome uint8

// AckKind is what a syndrome says.
type AckKind uint8

// The kinds, with their code on the wire.
const (
	AckACK      AckKind = 0
	AckRNR      AckKind = 1 // receiver not ready: a negative acknowledgement with a delay
	AckReserved AckKind = 2
	AckNAK      AckKind = 3
)

func (k AckKind) String() string {
	switch k {
	case AckACK:
		return "ACK"
	case AckRNR:
		return "RNR NAK"
	case AckNAK:
		return "NAK"
	case AckReserved:
		return "reserved"
	}
	return fmt.Sprintf("ack kind %d", uint8(k))
}

// NAKCode is the argument of a NAK (IBA vol.1 9.7.5.2).
type NAKCode uint8

// The codes.
const (
	NAKSequence      NAKCode = 0 // PSN sequence error
	NAKInvalid       NAKCode = 1 // invalid request
	NAKRemoteAccess  NAKCode = 2 // remote access error
	NAKRemoteOp      NAKCode = 3 // remote operational error
	NAKInvalidRD     NAKCode = 4 // invalid RD request
	nakCodesReserved         = 5
)

var nakNames = [nakCodesReserved]string{
	"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
}

// Defined reports whether the code has a meaning.
func (c NAKCode) Defined() bool { return c < nakCodesReserved }

func (c NAKCode) String() string {
	if c.Defined() {
		return nakNames[c]
	}
	return fmt.Sprintf("NAK code %d", uint8(c))
}

// ACKSyndrome returns the syndrome of an ACK with a credit code (see
// [CreditCodeFor]); five bits are kept.
func ACKSyndrome(c CreditCode) AETHSyndrome { return AETHSyndrome(c & 0x1F) }

// RNRSyndrome returns the syndrome of an RNR NAK with a timer code (see
// [ib.RNRDelay]); five bits are kept.
func RNRSyndrome(timer uint8) AETHSyndrome { return AETHSyndrome(AckRNR<<5) | AETHSyndrome(timer&0x1F) }

// NAKSyndrome returns the syndrome of a NAK; five bits of the code are kept.
func NAKSyndrome(c NAKCode) AETHSyndrome { return AETHSyndrome(AckNAK<<5) | AETHSyndrome(c&0x1F) }

// Kind returns what the syndrome says. The reserved top bit is ignored.
func (s AETHSyndrome) Kind() AckKind { return AckKind(s >> 5 & 3) }

// CreditCode returns the argument of an ACK.
func (s AETHSyndrome) CreditCode() CreditCode { return CreditCode(s & 0x1F) }

// RNRTimer returns the argument of an RNR NAK, the timer code.
func (s AETHSyndrome) RNRTimer() uint8 { return uint8(s & 0x1F) }

// RNRDelay returns the delay that an RNR NAK asks for.
func (s AETHSyndrome) RNRDelay() time.Duration { return ib.RNRDelay(s.RNRTimer()) }

// NAKCode returns the argument of a NAK.
func (s AETHSyndrome) NAKCode() NAKCode { return NAKCode(s & 0x1F) }

func (s AETHSyndrome) String() string {
	switch s.Kind() {
	case AckACK:
		if n, ok := s.CreditCode().Credits(); ok {
			return fmt.Sprintf("ACK, %d credits", n)
		}
		return "ACK"
	case AckRNR:
		return fmt.Sprintf("RNR NAK, %v", s.RNRDelay())
	case AckNAK:
		return "NAK, " + s.NAKCode().String()
	case AckReserved:
	}
	return fmt.Sprintf("syndrome 0x%02x", uint8(s))
}

// CreditCode is the five-bit code of an end-to-end credit count (IBA vol.1
// 9.7.7.2).
type CreditCode uint8

// CreditsUnlimited is the code of a responder that does no end-to-end flow
// control: of an SRQ, of rxe always.
const CreditsUnlimited CreditCode = 31

var creditCounts = [31]uint16{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// Credits returns the number of messages that the requester may still send;
// ok is false for [CreditsUnlimited].
func (c CreditCode) Credits() (n int, ok bool) {
	if c &= 0x1F; c == CreditsUnlimited {
		return 0, false
	}
	return int(creditCounts[c]), true
}

// CreditCodeFor returns the code of the largest count that is at most n: a
// responder never promises more receives than it has.
func CreditCodeFor(n int) CreditCode {
	c := CreditCode(len(creditCounts) - 1)
	for c > 0 && int(creditCounts[c]) > n {
		c--
	}
	return c
}
