package roce

import (
	"iter"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/icrc"
)

// A kernel that segments UDP late (GSO) or merges it early (GRO) shows a
// capture one frame whose UDP payload is several packets: all of one size, and
// only the last may be shorter. IPv4 Identifications count up from that of the
// frame. Nothing in the frame tells the size.

// maxSegment is the longest packet, BTH to ICRC.
const maxSegment = wire.MaxHeaderLen + 4096 + icrc.Len

// SegmentSize deduces the size of the packets in a frame: len(e.IB) if it is a
// single one, 0 if it is neither that nor a run of packets.
//
// It takes the smallest size for which the ICRC of the first packet is right.
// Where no size gives that (an address was rewritten, the capture is cut) it
// takes the smallest for which all packets could follow one another: known
// opcode, same destination QP, next PSN.
func (e *Envelope) SegmentSize() int {
	whole := len(e.IB)
	if e.Verify() {
		return whole
	}
	f := e.Flow()
	for n := icrc.MinLen; n < whole && n <= maxSegment; n += 4 {
		if plausible(e.IB, n) && f.Verify(e.Ident, e.DF, e.IB[:n]) {
			return n
		}
	}
	for n := icrc.MinLen; n < whole && n <= maxSegment; n += 4 {
		if consecutive(e.IB, n) {
			return n
		}
	}
	var p wire.Packet
	if p.Decode(e.IB[:whole-icrc.Len]) == wire.ReasonNone && whole <= maxSegment {
		return whole // one packet with a wrong ICRC
	}
	return 0
}

// plausible reports whether packets of n bytes could begin at 0 and n.
func plausible(b []byte, n int) bool {
	var p, q wire.Packet
	if p.Decode(b[:n-icrc.Len]) != wire.ReasonNone {
		return false
	}
	rest := b[n:min(2*n, len(b))]
	return len(rest) >= icrc.MinLen && q.Decode(rest[:len(rest)-icrc.Len]) == wire.ReasonNone
}

// consecutive reports whether b is a run of packets of n bytes, the last
// perhaps shorter, of one QP and with PSNs that count up.
func consecutive(b []byte, n int) bool {
	var p wire.Packet
	var qpn ib.QPN
	var psn ib.PSN
	for first := true; len(b) != 0; first = false {
		m := min(n, len(b))
		if m < icrc.MinLen || p.Decode(b[:m-icrc.Len]) != wire.ReasonNone {
			return false
		}
		if !first && (p.DestQPN != qpn || p.PSN != psn) {
			return false
		}
		qpn, psn, b = p.DestQPN, p.PSN.Add(1), b[m:]
	}
	return true
}

// Segments returns the envelopes of the packets of a frame, cut into pieces of
// size bytes, as they would have been without merging: the Identification
// counts up, and IB is the piece, borrowed from e.IB. A size of 0 or less, or
// of len(e.IB) or more, gives e alone. A last piece too short for a packet is
// given like any other: decoding it names the fault.
func (e *Envelope) Segments(size int) iter.Seq[Envelope] {
	return func(yield func(Envelope) bool) {
		s := *e
		rest := e.IB
		if size <= 0 {
			size = len(rest)
		}
		if size < len(rest) {
			s.UDPChecksum = 0 // one over the whole says nothing of a part
		}
		for {
			n := min(size, len(rest))
			s.IB, rest = rest[:n:n], rest[n:]
			if !yield(s) || len(rest) == 0 {
				return
			}
			if s.Kind == V2IPv4 {
				s.Ident++
			}
		}
	}
}
