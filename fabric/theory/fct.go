package theory

import (
	"errors"
	"fmt"
)

// Packets says how a message is cut: payload bytes of a full packet, and the
// bytes that each packet costs beside them (headers, ICRC and FCS; preamble and
// gap too where a comparison counts them). HPCC's simulator has 1000+48,
// htsim 1000+64.
type Packets struct {
	Payload int64 // > 0
	Header  int64 // ≥ 0
}

// Count returns the packets of a message: one for an empty one.
func (k Packets) Count(size int64) int64 {
	if size <= 0 || k.Payload <= 0 {
		return 1
	}
	return (size-1)/k.Payload + 1
}

// Full returns the bytes on the wire of a full packet.
func (k Packets) Full() int64 { return k.Payload + k.Header }

// Last returns the bytes on the wire of the last packet of a message.
func (k Packets) Last(size int64) int64 {
	return max(size, 0) - (k.Count(size)-1)*k.Payload + k.Header
}

// Wire returns the bytes on the wire of a whole message.
func (k Packets) Wire(size int64) int64 {
	return add(max(size, 0), mul(k.Count(size), k.Header))
}

// Goodput returns the part of a rate that is payload, when packets are full.
func (k Packets) Goodput(rate float64) float64 {
	return rate * float64(k.Payload) / float64(k.Full())
}

// Hop is one link: what the transmitter before it runs at, and how long a bit
// takes to the next node (cable, and any fixed latency of the switch).
type Hop struct {
	Rate  int64 // bit/s, > 0
	Delay int64 // ps, ≥ 0
}

// Path is the links from a sender to a receiver, in order.
type Path struct {
	Hops []Hop
	// CutThrough is how many bytes of a packet a switch must have before it may
	// pass the packet on; 0 is store-and-forward. A packet never leaves before
	// its tail has come, so on a faster link it is as slow as on the one before.
	CutThrough int64
	// Tick rounds every transmission down to a multiple, in ps; 0 or 1 is exact.
	// 1000 is the nanosecond of HPCC's simulator, which makes its links fast by
	// 1 % at 100 Gb/s and 1048 B.
	Tick int64
}

// Validate reports what is impossible about the path, by hop.
func (p Path) Validate() error {
	if len(p.Hops) == 0 {
		return errors.New("path: no hop")
	}
	for i, h := range p.Hops {
		if h.Rate <= 0 {
			return fmt.Errorf("path: hop %d: rate %d bit/s is not positive", i, h.Rate)
		}
		if h.Delay < 0 {
			return fmt.Errorf("path: hop %d: delay %d ps is negative", i, h.Delay)
		}
	}
	if p.CutThrough < 0 || p.Tick < 0 {
		return fmt.Errorf("path: cut-through %d B or tick %d ps is negative", p.CutThrough, p.Tick)
	}
	return nil
}

// Reverse returns the path that the acknowledgements take.
func (p Path) Reverse() Path {
	r := p
	r.Hops = make([]Hop, len(p.Hops))
	for i, h := range p.Hops {
		r.Hops[len(p.Hops)-1-i] = h
	}
	return r
}

// Delay returns the sum of the delays of the links, in ps.
func (p Path) Delay() int64 {
	var d int64
	for _, h := range p.Hops {
		d = add(d, h.Delay)
	}
	return d
}

// Rate returns the lowest rate on the path, in bit/s; 0 without a hop.
func (p Path) Rate() int64 {
	var r int64
	for i, h := range p.Hops {
		if i == 0 || h.Rate < r {
			r = h.Rate
		}
	}
	return r
}

// tx is how long hop h sends n bytes.
func (p Path) tx(h int, n int64) int64 {
	t := Serialise(n, p.Hops[h].Rate)
	if p.Tick > 1 {
		t = mulDiv(n, 8*Second, p.Hops[h].Rate, false)
		t -= t % p.Tick
	}
	return t
}

// head is how long after the first bit of a packet has left hop h the next node
// may pass it on, beside the delay of the link.
func (p Path) head(h int, n int64) int64 {
	if p.CutThrough > 0 {
		n = min(n, p.CutThrough)
	}
	return p.tx(h, n)
}

// Delivery returns when the last bit of a message reaches the receiver of an
// otherwise empty path, in ps after its first bit has left: the base flow
// completion time,
//
//	sum of delays + sum over hops of a packet's transmission + (n-1) * that of the slowest hop
//
// for equal packets and store-and-forward. It is exact for a short last packet
// and for cut-through too. All full packets leave hop h at a distance of
// M_h = max of the transmissions on hops 1..h, so two recurrences over the hops,
// one for the full packets and one for the last, say it all:
//
//	start[h] = max(start[h-1] + head[h-1] + delay[h-1], end[h] of the packet before)
//	end[h]   = max(start[h] + tx[h], end[h-1] + delay[h-1])
//
// A path or packet format that Validate refuses gives Never.
func (p Path) Delivery(k Packets, size int64) int64 {
	if p.Validate() != nil || k.Payload <= 0 || k.Header < 0 {
		return Never
	}
	n, full, last := k.Count(size), k.Full(), k.Last(size)
	var (
		slowest    int64 // M_h
		start1     int64 // first full packet starts
		endFull    int64 // last full packet has left
		startN     int64 // last packet starts
		endN       int64 // last packet has left
		delay      int64 // of the hop before
		headF      int64 // head of a full packet, and of the last, on the hop before
		headN      int64
		fullBefore = n > 1
	)
	for h := range p.Hops {
		startN = add(startN, add(headN, delay))
		if fullBefore {
			txF := p.tx(h, full)
			slowest = max(slowest, txF)
			start1 = add(start1, add(headF, delay))
			endFull = max(add(add(start1, mul(n-2, slowest)), txF), add(endFull, delay))
			startN = max(startN, endFull)
			headF = p.head(h, full)
		}
		endN = max(add(startN, p.tx(h, last)), add(endN, delay))
		headN, delay = p.head(h, last), p.Hops[h].Delay
	}
	return add(endN, delay)
}

// Completion returns when the sender of a message knows that it has arrived: the
// delivery, and an acknowledgement of ack bytes on the wire back over the same
// links. This is what HPCC's simulator and a verbs program call completion time.
func (p Path) Completion(k Packets, size, ack int64) int64 {
	return add(p.Delivery(k, size), p.Reverse().Delivery(Packets{Payload: max(ack, 1)}, ack))
}

// Standalone returns HPCC's "standalone FCT" in whole ns, the denominator of the
// slowdown in its fct.txt:
//
//	2 * sum of delays + sum over hops of the transmission of one payload
//	+ (size + packets * header) * 8 / lowest rate
//
// each term rounded down to a ns. It counts headers in the last term only, and
// the propagation twice since the completion is seen at the sender. (The
// original keeps the byte count in 32 bits, so flows of 4 GiB and more are
// misjudged there; this is not imitated.)
func (p Path) Standalone(k Packets, size int64) int64 {
	if p.Validate() != nil || k.Payload <= 0 || k.Header < 0 {
		return Never
	}
	var rtt int64
	for _, h := range p.Hops {
		rtt = add(rtt, 2*(h.Delay/1000))
		rtt = add(rtt, mulDiv(k.Payload, 8e9, h.Rate, false))
	}
	return add(rtt, mulDiv(k.Wire(size), 8e9, p.Rate(), false))
}

// Slowdown returns a completion time by its standalone time, at least 1: what
// HPCC's fct_analysis prints. Both are in the same unit.
func Slowdown(fct, standalone int64) float64 {
	if standalone <= 0 {
		return 1
	}
	return max(1, float64(fct)/float64(standalone))
}

// PercentileIndex returns which element of n sorted ones fct_analysis takes for
// the fraction p of 0..1: the integer part of n*p, with no interpolation; -1 for
// an empty set.
func PercentileIndex(n int, p float64) int {
	if n <= 0 {
		return -1
	}
	return min(max(int(float64(n)*p), 0), n-1)
}
