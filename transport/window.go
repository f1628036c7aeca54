package transport

// Window limits the bytes in flight towards one destination: a loss-driven
// limit that keeps the receive buffer of a UDP socket from overflowing. Queue
// pairs of one destination share one. It has one owner and no clock. A nil
// *Window limits nothing, and every method accepts it.
//
// The limit starts at [WindowStart] and grows by an eighth of what is
// acknowledged until the first loss. From then on it grows for each window of
// data by WindowStep, or by half where it is small, and a loss halves it, at
// most once per window of data, never below a few packets. When nothing at all
// comes back, so that a timer says so, it falls to those at once, and grows by
// what is acknowledged up to half of where it was: many senders whose packets
// fill one receive buffer would otherwise fill it again at each timeout. What is
// acknowledged counts from the first byte, also between two timeouts.
//
// An acknowledgement of packets that were not sent again after the timeout says
// that they had arrived, and that only acknowledgements were lost, or late: then
// the timeout is taken back.
type Window struct {
	limit    int
	inFlight int
	max      int
	recover  int  // bytes still to be acknowledged before another loss counts
	lost     bool // there was a loss
	credit   int  // acknowledged bytes that have not made the limit grow
	fast     int  // below it the limit grows by what is acknowledged
	before   int  // the limit before a timeout that may be taken back, or 0
}

// The bounds of a window in bytes on the wire.
const (
	WindowStart = 128 << 10
	WindowStep  = 4 << 10
	// windowLeast is two packets of the largest path MTU, and what Room says at
	// least while nothing is in flight.
	windowLeast = 2 * (4096 + 32)
)

// least is what no loss takes the limit below, for packets that count so much:
// eight of them, lest all that is in flight is lost together and only a timer
// tells, but not more than two of the largest, so that many senders fit into one
// receive buffer.
func least(packet int) int { return max(2*packet, min(8*packet, windowLeast)) }

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
		return max(w.limit, windowLeast)
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
	pending := w.recover > 0
	w.recover = max(0, w.recover-n)
	switch {
	case !w.lost:
		w.limit += n / 8
	case w.limit < w.fast:
		w.limit = min(w.limit+n, w.fast)
	case pending:
		return
	default:
		if w.credit += n; w.credit >= w.limit {
			w.credit -= w.limit
			w.limit += min(WindowStep, w.limit/2+1)
		}
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

// Lost says that something in flight was lost. packet is what a full packet of
// the queue pair counts.
func (w *Window) Lost(packet int) {
	if w == nil {
		return
	}
	w.before = 0 // that was no lost acknowledgement
	if w.recover > 0 {
		return
	}
	w.limit = min(w.limit, max(least(packet), w.limit/2)) // the upper bound may be below the least
	w.recover, w.lost, w.credit, w.fast = w.limit, true, 0, 0
}

// TimedOut says that a timer has found everything in flight lost, as it seems.
// packet is what a full packet of the queue pair counts.
func (w *Window) TimedOut(packet int) {
	if w == nil {
		return
	}
	if w.recover == 0 || w.limit > w.fast {
		w.fast, w.before = w.limit/2, w.limit
	}
	w.limit = min(w.limit, least(packet))
	w.recover, w.lost = w.limit, true
}

// Arrived says that something had arrived before a timer took it for lost; all
// says that nothing was lost but acknowledgements. The limit is again what it
// was before the timeout, or half of it; not where a loss has been reported
// since, by whichever queue pair.
func (w *Window) Arrived(all bool) {
	if w == nil || w.before == 0 {
		return
	}
	to := w.before / 2
	if all {
		to = w.before
	}
	w.limit, w.before = max(w.limit, to), 0
}
