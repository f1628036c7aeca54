package transport

// Window limits the bytes in flight towards one destination: a loss-driven
// limit that keeps the receive buffer of a UDP socket from overflowing. Queue
// pairs of one destination share one. It has one owner and no clock. A nil
// *Window limits nothing, and every method accepts it.
//
// The limit starts at [WindowStart] and grows by an eighth of what is
// acknowledged until the first loss. From then on it grows by WindowStep for
// each window of data, and a loss halves it, at most once per window of data,
// never below [WindowMin]. When nothing at all comes back, so that a timer
// says so, it falls to WindowMin at once, and grows by what is acknowledged up
// to half of where it was: many senders whose packets fill one receive buffer
// would otherwise fill it again at each timeout.
type Window struct {
	limit    int
	inFlight int
	max      int
	recover  int  // bytes still to be acknowledged before another loss counts
	lost     bool // there was a loss
	credit   int  // acknowledged bytes that have not made the limit grow
	fast     int  // below it the limit grows by what is acknowledged
}

// The bounds of a window in bytes on the wire. The least is two packets of the
// largest path MTU, so that many senders fit into one receive buffer.
const (
	WindowMin   = 8 << 10
	WindowStart = 128 << 10
	WindowStep  = 4 << 10
)

// NewWindow returns a window of at most max bytes (0: no upper bound).
func NewWindow(max int) *Window {
	w := &Window{limit: WindowStart, max: max}
	if max > 0 {
		w.limit = min(w.limit, max)
	}
	return w
}

// Room returns how many bytes may be sent now; it may be negative. Something
// may always be sent when nothing is in flight.
func (w *Window) Room() int {
	if w == nil {
		return 1 << 30
	}
	if w.inFlight == 0 {
		return max(w.limit, WindowMin)
	}
	return w.limit - w.inFlight
}

// Fits reports whether n bytes may be sent now. Anything may when nothing is in
// flight.
func (w *Window) Fits(n int) bool {
	return w == nil || w.inFlight == 0 || w.limit-w.inFlight >= n
}

// Limit returns the present limit in bytes.
func (w *Window) Limit() int {
	if w == nil {
		return 1 << 30
	}
	return w.limit
}

// InFlight returns the bytes that are in flight.
func (w *Window) InFlight() int {
	if w == nil {
		return 0
	}
	return w.inFlight
}

// Sent adds n bytes to what is in flight.
func (w *Window) Sent(n int) {
	if w != nil {
		w.inFlight += n
	}
}

// Acked takes n bytes out of flight that arrived.
func (w *Window) Acked(n int) {
	if w == nil {
		return
	}
	w.Forget(n)
	if w.recover > 0 {
		w.recover = max(0, w.recover-n)
		return
	}
	if !w.lost {
		w.limit += n / 8
	} else if w.limit < w.fast {
		w.limit = min(w.limit+n, w.fast)
	} else if w.credit += n; w.credit >= w.limit {
		w.credit -= w.limit
		w.limit += WindowStep
	}
	if w.max > 0 && w.limit > w.max {
		w.limit = w.max
	}
}

// Forget takes n bytes out of flight without saying that they arrived.
func (w *Window) Forget(n int) {
	if w != nil {
		w.inFlight = max(0, w.inFlight-n)
	}
}

// Lost says that something in flight was lost.
func (w *Window) Lost() {
	if w == nil || w.recover > 0 {
		return
	}
	w.limit = min(w.limit, max(WindowMin, w.limit/2)) // the upper bound may be below WindowMin
	w.recover, w.lost, w.credit, w.fast = w.limit, true, 0, 0
}

// TimedOut says that a timer has found everything in flight lost.
func (w *Window) TimedOut() {
	if w == nil {
		return
	}
	if w.recover == 0 || w.limit > w.fast {
		w.fast = w.limit / 2
	}
	w.limit = min(w.limit, WindowMin)
	w.recover, w.lost, w.credit = w.limit, true, 0
}
