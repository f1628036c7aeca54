package theory

// Incast is senders that begin at one instant, each with one message of one
// size, over paths that are alike, the last hop of which is shared.
type Incast struct {
	Senders int64
	Size    int64
	Packets Packets
	Path    Path
}

// LastDelivery returns when the last bit of the last message reaches the
// receiver, in ps: the shared link is never idle between its first packet and
// its last, so this is N*S/C + base, exactly
//
//	end of the first packet on the last hop + transmission of all other packets + delay,
//
// whatever the order is in which they are served, as long as nothing is lost and
// nobody slows down (PFC may stop senders: the queue in front of the link does
// not run empty for that). A single sender may be slower than this; the later of
// the two is returned.
func (i Incast) LastDelivery() int64 {
	one := i.Path.Delivery(i.Packets, i.Size)
	if one == Never || i.Senders <= 0 {
		return Never
	}
	k, h := i.Packets, len(i.Path.Hops)-1
	n, last := k.Count(i.Size), i.Path.tx(h, k.Last(i.Size))
	first := last
	if n > 1 {
		first = i.Path.tx(h, k.Full())
	}
	// Delivery of a message of one packet ends with that packet's end on the
	// last hop and its delay.
	begun := i.Path.Delivery(k, min(max(i.Size, 0), k.Payload))
	flow := add(mul(n-1, i.Path.tx(h, k.Full())), last)
	return max(one, add(begun, mul(i.Senders, flow)-first))
}

// LastCompletion returns when the last sender has its acknowledgement of ack
// bytes on the wire.
func (i Incast) LastCompletion(ack int64) int64 {
	return add(i.LastDelivery(), i.Path.Reverse().Delivery(Packets{Payload: max(ack, 1)}, ack))
}

// PeakQueue returns the bytes that wait for the last hop when the last byte of
// the senders arrives there, without flow or congestion control: N messages have
// come while the link, at C, took away what passes in the time of one at r,
//
//	N*W - W*C/r,
//
// which is (N-1)*W for equal rates. A switch that counts the packet being sent,
// or packets that come together, adds at most one packet for each sender.
func (i Incast) PeakQueue() int64 {
	if i.LastDelivery() == Never {
		return Never
	}
	w := i.Packets.Wire(i.Size)
	hops := i.Path.Hops
	in := hops[0].Rate
	for _, h := range hops[:len(hops)-1] {
		in = min(in, h.Rate)
	}
	return max(0, mul(i.Senders, w)-mulDiv(w, hops[len(hops)-1].Rate, in, false))
}

// BurstPeak returns the bytes that a burst leaves in a queue that was empty: the
// burst of so many bytes comes at burstRate beside a stream of base, and the
// port takes away capacity (all in bit/s). A stream at line rate and a burst at
// line rate leave the whole burst: an ECN threshold above it is not reached by
// one burst, which is where a sweep of the threshold has its knee.
func BurstPeak(burst, burstRate, base, capacity float64) float64 {
	if burstRate <= 0 {
		return 0
	}
	return max(0, burst*(burstRate+base-capacity)/burstRate)
}
