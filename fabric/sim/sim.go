package sim

// Handler is told of its events. arg is what it was scheduled with.
type Handler interface {
	Handle(now Time, arg uint64)
}

// Sim is one run: its clock, its events, its seed.
type Sim struct {
	Pool    Pool
	now     Time
	seed    uint64
	queue   queue
	handled uint64
	digest  uint64
	stopped bool
	wides   *wide // not in use
}

// New returns a run at instant 0.
func New(seed uint64) *Sim { return &Sim{seed: seed, digest: Mix(seed)} }

// Now returns the instant of the event that is being handled.
func (s *Sim) Now() Time { return s.now }

// Seed returns the seed.
func (s *Sim) Seed() uint64 { return s.seed }

// Rand returns the stream of random numbers of a name.
func (s *Sim) Rand(name string) *Rand { return NewRand(s.seed, name) }

// At schedules a call of h at t, which is not in the past; an instant that is
// counts as now. There is no way to take it back: a handler finds out whether
// an event still means something. Never schedules nothing.
func (s *Sim) At(t Time, h Handler, arg uint64) {
	if t == Never {
		return
	}
	if t < s.now {
		t = s.now
	}
	if arg>>32 != 0 {
		h, arg = s.widen(h, arg), 0
	}
	s.queue.push(t, h, uint32(arg))
}

// wide carries an argument of more than 32 bits: events have no more room.
type wide struct {
	s    *Sim
	h    Handler
	arg  uint64
	next *wide
}

func (s *Sim) widen(h Handler, arg uint64) Handler {
	w := s.wides
	if w == nil {
		w = &wide{s: s}
	} else {
		s.wides = w.next
	}
	w.h, w.arg = h, arg
	return w
}

// Handle implements Handler.
func (w *wide) Handle(now Time, _ uint64) {
	h := w.h
	w.h, w.next, w.s.wides = nil, w.s.wides, w
	h.Handle(now, w.arg)
}

// Run handles events up to and including instant until, or until Stop or
// nothing is left, and returns whether events remain. The clock stands at the
// last event handled.
func (s *Sim) Run(until Time) bool { return s.RunSome(until, 1<<63) }

// RunSome is Run for at most n events.
func (s *Sim) RunSome(until Time, n uint64) bool {
	for ; n > 0 && !s.stopped; n-- {
		at, h, arg, ok := s.queue.pop(until)
		if !ok {
			break
		}
		s.now = at
		s.handled++
		h.Handle(at, uint64(arg))
	}
	return s.queue.n > 0
}

// Stop ends Run after the present event.
func (s *Sim) Stop() { s.stopped = true }

// Stopped reports whether Stop was called.
func (s *Sim) Stopped() bool { return s.stopped }

// Next returns the instant of the earliest event, or Never.
func (s *Sim) Next() Time { return s.queue.earliest() }

// Pending returns how many events are scheduled.
func (s *Sim) Pending() int { return s.queue.n }

// Events returns how many events have been handled.
func (s *Sim) Events() uint64 { return s.handled }

// Note mixes something that has happened into the digest. What matters of a run
// (every arrival of a packet, every pause, every completion) is noted, so two
// runs with one digest did the same.
func (s *Sim) Note(v uint64) {
	s.digest = (s.digest ^ uint64(s.now) ^ v*0x9E3779B97F4A7C15) * 0xFF51AFD7ED558CCD
	s.digest ^= s.digest >> 29
}

// Digest returns the digest so far.
func (s *Sim) Digest() uint64 { return s.digest }
