package truth

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// loop is DCQCN at one queue and nothing else: reaction and notification points
// of package dcqcn, packets that leave at the rate they are told, a queue that
// marks, delays of 1 us. No adapter, no switch, no port, no transport: what the
// fabric shows beyond it is a fault of the fabric, what it shows too is DCQCN's.
type loop struct {
	params *dcqcn.Params
	rp     []dcqcn.RP
	np     []dcqcn.NP
	rand   *rand.Rand

	tx     float64 // ns of a packet at the queue
	events happenings
	fifo   []int // flows
	busy   bool

	from, last float64 // statistics
	area       float64
	squares    float64
}

const (
	packet  = 1048
	hopTime = 1000.0 // ns
	ackTx   = 60
)

type happening struct {
	at   float64 // ns
	what func(now float64)
}

type happenings []happening

func (h happenings) Len() int           { return len(h) }
func (h happenings) Less(i, j int) bool { return h[i].at < h[j].at }
func (h happenings) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)        { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (l *loop) at(t float64, what func(now float64)) { heap.Push(&l.events, happening{t, what}) }

// runLoop returns the mean and the standard deviation of the queue in KB from 50
// ms to the end.
func runLoop(t testing.TB, r rig, gbps, n int, seed uint64) level {
	t.Helper()
	p, err := r.sc.Host.DCQCN.Params()
	if err != nil {
		t.Fatal(err)
	}
	line := uint64(gbps) * 1e9
	scaled := p.Scaled(line)
	l := &loop{
		params: &scaled, rp: make([]dcqcn.RP, n), np: make([]dcqcn.NP, n), rand: rand.New(rand.NewPCG(seed, 0)),
		tx: packet * 8 / float64(gbps), from: 50e6,
	}
	for i := range l.rp {
		l.rp[i].Start(0, l.params, line)
		l.at(0, func(now float64) { l.send(now, i) })
	}
	end := float64(r.sc.Duration) / 1e3
	for l.events[0].at <= end {
		e := heap.Pop(&l.events).(happening)
		e.what(e.at)
	}
	l.look(end)
	mean := l.area / (end - l.from)
	return level{mean: mean / 1e3, sd: math.Sqrt(l.squares/(end-l.from)-mean*mean) / 1e3}
}

func (l *loop) send(now float64, i int) {
	c := clock.Time(now)
	l.rp[i].Sent(c, packet)
	l.at(now+l.tx+hopTime, func(now float64) { l.arrive(now, i) })
	l.at(now+packet*8e9/float64(l.rp[i].Rate(c)), func(now float64) { l.send(now, i) })
}

// look adds up what the queue was since the last time.
func (l *loop) look(now float64) {
	if dt := now - max(l.last, l.from); dt > 0 {
		b := float64(len(l.fifo) * packet)
		l.area += b * dt
		l.squares += b * b * dt
	}
	l.last = now
}

func (l *loop) arrive(now float64, i int) {
	l.look(now)
	l.fifo = append(l.fifo, i)
	if !l.busy {
		l.serve(now)
	}
}

func (l *loop) serve(now float64) {
	i := l.fifo[0]
	l.fifo = l.fifo[1:]
	l.busy = true
	l.at(now+l.tx, func(now float64) {
		l.look(now)
		l.busy = false
		if len(l.fifo) > 0 {
			l.serve(now)
		}
	})
	if l.rand.Float64() < model(40, 2).Mark(float64(len(l.fifo)*packet)) {
		l.at(now+l.tx+hopTime, func(now float64) { l.marked(now, i) })
	}
}

func (l *loop) marked(now float64, i int) {
	np, c := &l.np[i], clock.Time(now)
	if l.params.Notify == dcqcn.NotifyAck || np.Marked(c, l.params) {
		l.notify(now, i)
	} else if due := np.Deadline(l.params); due != clock.Never {
		l.at(float64(due), func(now float64) {
			if np.Due(clock.Time(now), l.params) {
				l.notify(now, i)
			}
		})
	}
}

func (l *loop) notify(now float64, i int) {
	l.at(now+2*hopTime+2*ackTx*l.tx/packet, func(now float64) { l.rp[i].Congestion(clock.Time(now)) })
}
