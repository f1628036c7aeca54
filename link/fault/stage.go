package fault

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
)

// RuleCount is what one rule has done.
type RuleCount struct {
	Met  uint64 // packets that met the conditions, within the rule's time
	Hits uint64 // … on which it acted
	// First and Last are when it acted first and last, since the link was first
	// used. They mean nothing without Hits.
	First, Last time.Duration
}

// passer is a packet that a stage looks at.
type passer struct {
	b     []byte // BTH to ICRC
	peer  netip.Addr
	local ib.QPN // where local is known: the queue pair of this host
	at    time.Duration
	tos   uint8
}

// stage is a rule at work.
type stage struct {
	Rule
	anyPacket bool // no condition looks into the packet
	rng       *rand.PCG
	threshold uint64 // of 2^32
	count     RuleCount
}

func newStage(r Rule, seed uint64, index int) *stage {
	if r.Distance == 0 {
		r.Distance = defaultDistance
	}
	return &stage{
		Rule:      r,
		anyPacket: r.Kinds == 0 && r.Pos == 0 && len(r.Opcodes) == 0 && len(r.QPNs) == 0 && r.PSNs == nil,
		rng:       rand.NewPCG(seed, uint64(index)),
		threshold: uint64(float64(r.Rate * (1 << 32))),
	}
}

// fires counts the packet if it meets the conditions, and says whether the
// rule acts on it.
func (s *stage) fires(p *passer) bool {
	if p.at < s.From || s.Lasts != 0 && p.at-s.From >= s.Lasts || !s.toPeer(p) || !s.anyPacket && !s.meets(p.b) {
		return false
	}
	s.count.Met++
	if s.count.Met <= s.Skip {
		return false
	}
	n := s.count.Met - s.Skip
	switch {
	case s.Span != 0 && n > s.Span,
		s.Times != 0 && s.count.Hits >= s.Times,
		s.Nth != 0 && n != s.Nth,
		s.Every != 0 && n%s.Every != 0,
		s.Rate != 0 && s.rng.Uint64()>>32 >= s.threshold:
		return false
	}
	return true
}

// acted counts a packet on which the rule has acted.
func (s *stage) acted(at time.Duration) {
	if s.count.Hits == 0 {
		s.count.First = at
	}
	s.count.Last = at
	s.count.Hits++
}

// toPeer looks at what is known of a packet besides its bytes.
func (s *stage) toPeer(p *passer) bool {
	if s.Local != nil && !s.Local(p.local) {
		return false
	}
	if len(s.Peers) == 0 {
		return true
	}
	a := p.peer.Unmap().WithZone("")
	for _, x := range s.Peers {
		if x.Contains(a) {
			return true
		}
	}
	return false
}

// destQPN returns the destination of a packet, 0 if it is too short to have one.
func destQPN(b []byte) ib.QPN {
	if len(b) < wire.BTHLen {
		return 0
	}
	return ib.QPN(binary.BigEndian.Uint32(b[4:])) & ib.MaxQPN
}

// since returns the time since the link was first used.
func (l *Link) since(now clock.Time) time.Duration {
	if !l.started {
		l.started, l.start = true, now
	}
	return now.Sub(l.start)
}

// meets looks at the BTH (IBA vol.1 9.2) and the syndrome of an AETH.
func (s *stage) meets(b []byte) bool {
	if len(b) < wire.BTHLen {
		return false
	}
	op := wire.Opcode(b[0])
	if len(s.Opcodes) != 0 && !has(s.Opcodes, op) {
		return false
	}
	if len(s.QPNs) != 0 && !has(s.QPNs, ib.QPN(binary.BigEndian.Uint32(b[4:]))&ib.MaxQPN) {
		return false
	}
	if s.PSNs != nil && !s.PSNs.contains(ib.PSN(binary.BigEndian.Uint32(b[8:]))&ib.PSNMask) {
		return false
	}
	if s.Kinds == 0 && s.Pos == 0 {
		return true
	}
	info := op.Info()
	return info != nil && (s.Kinds == 0 || s.Kinds&kindOf(info, b) != 0) && (s.Pos == 0 || s.Pos&posOf(info) != 0)
}

func has[T comparable](list []T, v T) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func kindOf(info *wire.OpInfo, b []byte) Kind {
	switch info.Kind {
	case wire.KindSend:
		return Send
	case wire.KindWrite:
		return Write
	case wire.KindReadRequest:
		return ReadRequest
	case wire.KindReadResponse:
		return ReadResponse
	case wire.KindAtomic:
		return Atomic
	case wire.KindAtomicAck:
		return AtomicAck
	case wire.KindCNP:
		return CNP
	case wire.KindFlush, wire.KindAtomicWrite:
		return 0 // no rule names them
	case wire.KindAck:
		if len(b) <= wire.BTHLen {
			return 0
		}
		// The syndrome's bits 6 and 5 (IBA vol.1 9.7.5.1.2, table 45).
		switch b[wire.BTHLen] >> 5 & 3 {
		case 0:
			return Ack
		case 1:
			return RNRNak
		case 3:
			return Nak
		}
	}
	return 0
}

func posOf(info *wire.OpInfo) Pos {
	switch info.Pos {
	case wire.PosFirst:
		return First
	case wire.PosMiddle:
		return Middle
	case wire.PosLast:
		return Last
	case wire.PosOnly:
		return Only
	}
	return 0
}
