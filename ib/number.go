package ib

import "fmt"

// QPN is a queue pair number: 24 bits. 0 and 1 are the management QPs.
type QPN uint32

// QPN values with a meaning of their own (IBA vol.1 3.5.3).
const (
	QPSMI       QPN = 0        // subnet management; unused on RoCE
	QPGSI       QPN = 1        // general services: connection management
	QPMulticast QPN = 0xFFFFFF // destination of every multicast packet
	MaxQPN      QPN = 0xFFFFFF
)

func (q QPN) String() string { return fmt.Sprintf("0x%06x", uint32(q)) }

// PSN is a packet sequence number: 24 bits, compared modulo 2^24
// (IBA vol.1 9.7.2). Values above [PSNMask] are never produced here.
type PSN uint32

// PSNMask covers the 24 bits of a PSN.
const PSNMask PSN = 0xFFFFFF

// Add returns the PSN n steps after p; n may be negative.
func (p PSN) Add(n int) PSN { return (p + PSN(n)) & PSNMask }

// Sub returns the signed distance from q to p, in [-2^23, 2^23).
func (p PSN) Sub(q PSN) int { return int(int32((p-q)<<8) >> 8) }

// Before reports whether p comes before q on the circle.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }

// Max returns the later of two PSNs.
func (p PSN) Max(q PSN) PSN {
	if p.Before(q) {
		return q
	}
	return p
}

func (p PSN) String() string { return fmt.Sprintf("0x%06x", uint32(p)) }

// MSN is a message sequence number: 24 bits, as carried in the AETH.
type MSN uint32

// LKey names a memory region in a local scatter/gather element.
type LKey uint32

// RKey names a memory region or window in a request from a remote peer.
type RKey uint32

// PKey is a partition key; the top bit marks full membership.
type PKey uint16

// DefaultPKey is the partition every RoCE port is a full member of.
const DefaultPKey PKey = 0xFFFF

// Matches reports whether a packet carrying k is accepted by a QP with key q
// (IBA vol.1 10.9.3): the low 15 bits are equal and not zero, and at least one
// of the two is a full member.
func (k PKey) Matches(q PKey) bool {
	return k&0x7FFF == q&0x7FFF && k&0x7FFF != 0 && (k|q)&0x8000 != 0
}

// QKey protects a UD queue pair. Keys with the top bit set are privileged: in
// a send work request they mean "use the key of this QP" (IBA vol.1 10.2.5).
type QKey uint32

// Privileged reports whether the top bit is set.
func (k QKey) Privileged() bool { return k&0x80000000 != 0 }

// MTU is a path MTU in the specification's coding: the largest payload of a
// packet.
type MTU uint8

// The five path MTUs. The zero MTU is "not set".
const (
	MTU256 MTU = 1 + iota
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// Bytes returns the payload size, or 0 if m is not one of the five.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// MTUFor returns the largest path MTU of at most n payload bytes, or 0 if n is
// below 256.
func MTUFor(n int) MTU {
	for m := MTU4096; m >= MTU256; m-- {
		if m.Bytes() <= n {
			return m
		}
	}
	return 0
}

func (m MTU) String() string {
	if b := m.Bytes(); b != 0 {
		return fmt.Sprint(b)
	}
	return fmt.Sprintf("invalid MTU (%d)", uint8(m))
}

// MaxMessage is the largest message of RC and UC: 2^31 bytes
// (IBA vol.1 9.7.7.1).
const MaxMessage = 1 << 31
