package rnic

import (
	"encoding/binary"
	"net/netip"

	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// source is what is remembered of packets from one address and port: the fixed
// part of their ICRC, and how the sender chooses the IPv4 Identification, which
// a UDP socket hides.
//
// Senders of our own kind number the segments of a run from 0. Others (rxe,
// RNICs) count on, or send what they like; then it is solved from the ICRC,
// which leaves a check of 16 bits (package icrc). What worked last is tried
// first: one pass over the bytes is enough as long as the guess is good.
type source struct {
	src, dst netip.Addr
	port     uint16
	next     uint16 // Identification after that of the last good packet
	solving  bool   // guessing is no use
	split    bool   // runs arrive as single packets: guess next
	good     uint8  // guesses in a row while solving
	wild     uint8  // solutions in a row that no guess explains
	zeros    uint8  // buffers that began with Identification 0: our own kind
	flow     icrc.Flow
}

const (
	// ownKind is how many buffers must have begun with Identification 0 until a
	// sender counts as our own kind.
	ownKind = 8
	// maxOwnIdent is beyond every Identification of our own kind. A corrupt
	// packet from it is taken for a good one once in 2^25 then, not 2^15.
	maxOwnIdent = 128
	// wildLimit is after how many wild solutions the sender has changed.
	wildLimit = 4
)

// first returns the Identification that the first packet of a buffer is guessed
// to have.
func (s *source) first() uint16 {
	if s.split {
		return s.next
	}
	return 0
}

// verify checks the ICRC of b, packet index of its buffer, which is guessed to
// have the Identification guess. It returns the Identification and
// don't-fragment flag that b was sent with.
func (s *source) verify(b []byte, index int, guess uint16, n *counters) (ident uint16, df, ok bool) {
	if s.dst.Is6() {
		return 0, false, s.flow.Verify(0, false, b)
	}
	if !s.solving && s.flow.Verify(guess, true, b) {
		s.took(guess)
		return guess, true, true
	}
	diff := s.flow.Sum(0, false, b) ^ icrc.Get(b[len(b)-wire.ICRCLen:])
	ident, df, ok = s.flow.SolveDiff(diff, len(b))
	if !ok {
		return 0, false, false
	}
	if df && (ident == guess || ident == 0 || ident == s.next) {
		// As good as guessed: all 32 bits are explained.
		s.split = index == 0 && ident != 0
		if s.solving {
			if s.good++; s.good >= wildLimit {
				s.solving, s.good = false, 0
			}
		}
		s.took(ident)
		return ident, df, true
	}
	s.good = 0
	if s.zeros >= ownKind && (ident >= maxOwnIdent || !df) {
		if s.wild++; s.wild < wildLimit {
			return 0, false, false
		}
		s.zeros = 0
	}
	if s.wild < wildLimit {
		s.wild++
	} else {
		s.solving = true
	}
	s.next = ident + 1
	n.icrcSolved++
	return ident, df, true
}

func (s *source) took(ident uint16) {
	s.next = ident + 1
	s.wild = 0
	if ident == 0 && s.zeros < ownKind {
		s.zeros++
	}
}

// sourceCache remembers sources. It is a cache and no table, so that a flood
// of invented senders costs no memory: a newcomer takes the place of who is
// there.
type sourceCache struct{ slots []source }

const (
	minSources = 64
	maxSources = 1 << 14
)

// get returns the entry of a source, a fresh one if it was not there. qps is
// the number of queue pairs, by which the cache grows.
func (c *sourceCache) get(src, dst netip.Addr, port uint16, qps int) *source {
	if len(c.slots) < minSources || len(c.slots) < qps && len(c.slots) < maxSources {
		n := minSources
		for n < 2*qps && n < maxSources {
			n *= 2
		}
		old := c.slots
		c.slots = make([]source, n)
		for i := range old {
			if o := &old[i]; o.src.IsValid() {
				*c.slot(o.src, o.port) = *o
			}
		}
	}
	s := c.slot(src, port)
	if s.port != port || s.src != src || s.dst != dst {
		*s = source{src: src, dst: dst, port: port, flow: flowOf(src, dst, port)}
	}
	return s
}

func (c *sourceCache) slot(src netip.Addr, port uint16) *source {
	a := src.As16()
	h := binary.LittleEndian.Uint64(a[:8])*0x9E3779B97F4A7C15 ^ binary.LittleEndian.Uint64(a[8:])
	h = (h ^ uint64(port)) * 0x9E3779B97F4A7C15
	return &c.slots[h>>40&uint64(len(c.slots)-1)]
}
