package probe

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Bounds of what is kept of one session.
const (
	maxSightings = 1 << 14 // echoes, and packets of one phase
	maxKept      = 1 << 12 // probes that no report has passed
	maxWitnesses = 64
)

// session is what one end has heard of one conversation. It is safe for
// concurrent use.
type session struct {
	token token
	local netip.Addr // of this end, without zone: a packet socket hears what is for others too
	peer  netip.Addr // of the other end, without zone
	far   bool       // this end is the listener: it answers, and waits for no answers

	mu        sync.Mutex
	voice     *voice // of a listener: what it answers with; nil before it was asked to send
	floor     uint32 // sequence numbers before it are done with
	seen      map[uint32]*Sighting
	echoes    map[uint32]echo
	witnesses uint64 // by sequence number
	notices   []Notice
	strangers int // packets with the token from other addresses
	order     uint32
	lastOn    map[uint32]int // by sequence number: the interface of the first capture
	changed   chan struct{}  // closed and made anew when something was heard
}

// echo is an answer to a probe: four instants, the first and last on this
// host's clock.
type echo struct{ sent, heard, echoed, back int64 }

func newSession(t token, local, peer netip.Addr) *session {
	return &session{
		token: t, local: local.Unmap().WithZone(""), peer: peer.Unmap().WithZone(""), seen: map[uint32]*Sighting{}, echoes: map[uint32]echo{},
		lastOn: map[uint32]int{}, changed: make(chan struct{}),
	}
}

// arrival is one packet at one ear.
type arrival struct {
	d        datagram
	src      netip.AddrPort
	dst      netip.AddrPort
	at       int64
	tos, ttl uint8
	size     int  // of the IP packet
	df       int8 // 1, 0, -1
	icrc     bool
	cut      int // bytes of the largest fragment; 0: it came whole
	capture  bool
	ifindex  int // of a capture
}

// hear keeps an arrival. first says that it is to be answered: a probe that
// was not heard before.
func (s *session) hear(a *arrival) (first bool) {
	if a.dst.Addr().Unmap().WithZone("") != s.local {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := ""
	if got := a.src.Addr().Unmap().WithZone(""); got != s.peer {
		from = got.String()
		if g := s.seen[a.d.seq]; g == nil || g.From != from || a.capture && g.Capture > 0 || !a.capture && g.Socket > 0 {
			s.strangers++ // once, though both ears hear it
		}
	}
	defer s.signal()
	switch a.d.kind {
	case kindWitness:
		bit := uint64(1) << (a.d.seq % maxWitnesses)
		if from != "" || a.d.seq >= maxWitnesses || s.witnesses&bit != 0 {
			return false
		}
		s.witnesses |= bit
		return true
	case kindEcho:
		if _, ok := s.echoes[a.d.seq]; !ok && from == "" && !s.far && len(s.echoes) < maxSightings {
			s.echoes[a.d.seq] = echo{a.d.sentAt, a.d.heard, a.d.echoed, a.at}
		}
		return false
	case kindProbe:
	}
	if a.d.seq < s.floor {
		return false
	}
	g := s.seen[a.d.seq]
	if g != nil && g.From != "" && from == "" {
		g = nil // the packet itself counts for more than a stranger's
		delete(s.seen, a.d.seq)
	}
	if g == nil {
		if len(s.seen) >= maxKept {
			return false
		}
		g = &Sighting{
			Seq: a.d.seq, At: a.at, Order: s.order, Path: a.d.path, TOS: a.tos, TTL: a.ttl, Size: a.size, Port: a.src.Port(), DF: -1, From: from,
		}
		s.order++
		s.seen[a.d.seq] = g
		first = from == ""
	}
	if a.icrc {
		g.ICRC = 1
	}
	if a.df >= 0 {
		g.DF = a.df
	}
	if a.cut > 0 {
		g.Cut = a.cut
	}
	if !a.capture {
		g.Socket = min(g.Socket+1, maxCopies)
		return first
	}
	// A frame passes a VLAN or bond interface and the one beneath: count one.
	if g.Capture == 0 {
		s.lastOn[a.d.seq] = a.ifindex
	}
	if s.lastOn[a.d.seq] == a.ifindex {
		g.Capture = min(g.Capture+1, maxCopies)
	}
	return first
}

// speak says what the session answers with; nil: nothing.
func (s *session) speak(v *voice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voice = v
}

// complain keeps an ICMP error.
func (s *session) complain(n Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notices = note(s.notices, n)
	s.signal()
}

func (s *session) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// lookAgain is the least time between two looks whether enough was heard: a
// flood does not cost more.
const lookAgain = time.Millisecond

// await waits until enough is true of the session, the time has passed or ctx
// ends. enough is called with the session locked.
func (s *session) await(ctx context.Context, d time.Duration, enough func() bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		s.mu.Lock()
		done, changed := enough(), s.changed
		s.mu.Unlock()
		if done || !pause(ctx, time.Now().Add(min(lookAgain, d))) {
			return
		}
		select {
		case <-changed:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// report returns what was seen of n sequence numbers from first on, after all
// of them are there, by the socket if one listens, or the time has passed and
// late has returned. What is before first is forgotten.
func (s *session) report(ctx context.Context, first uint32, n, want int, socket bool, d time.Duration, late func(context.Context)) []Sighting {
	s.forget(first)
	full := false
	s.await(ctx, d, func() bool {
		have := 0
		for i := range n {
			if g := s.seen[first+uint32(i)]; g != nil && (!socket || g.Socket > 0) {
				have++
			}
		}
		full = have >= want
		return full
	})
	if !full {
		late(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Sighting
	for i := range n {
		if g := s.seen[first+uint32(i)]; g != nil {
			out = append(out, *g)
		}
	}
	return out
}

// forget drops what was seen of sequence numbers before first.
func (s *session) forget(first uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first <= s.floor {
		return
	}
	s.floor = first
	for seq := range s.seen {
		if seq < first {
			delete(s.seen, seq)
			delete(s.lastOn, seq)
		}
	}
}

// said returns the ICMP errors so far.
func (s *session) said() []Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Notice(nil), s.notices...)
}
