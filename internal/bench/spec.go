package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Kind names a way to measure.
type Kind string

// The kinds of subjects.
const (
	KindRDMA   Kind = "rdma"    // a stream of messages of one operation
	KindRate   Kind = "rate"    // small WRITEs posted in batches
	KindPing   Kind = "ping"    // messages there and back
	KindIncast Kind = "incast"  // many senders, one receiver
	KindTCP    Kind = "tcp"     // a net.Conn with 64 KiB writes
	KindIperf  Kind = "iperf3"  // one stream
	KindGSO    Kind = "gso"     // the kernel's road for UDP, nothing else
	KindUDP    Kind = "udp"     // UDP there and back on raw sockets, spinning, or on net.UDPConn, blocking
	KindCopy   Kind = "copycrc" // copy and CRC in memory
	KindLoop   Kind = "loop"    // two adapters without a kernel between them
)

// Spec says what to measure. It has no more fields set than its kind needs.
type Spec struct {
	Kind     Kind
	Op       string `json:",omitempty"` // write, read, send
	Size     int    `json:",omitempty"` // bytes of a message
	QPs      int    `json:",omitempty"`
	MTU      int    `json:",omitempty"` // path MTU
	Blocking bool   `json:",omitempty"` // CQ.Wait, net.UDPConn
	Senders  int    `json:",omitempty"` // incast
	Segs     int    `json:",omitempty"` // segments of a GSO send
	Fused    bool   `json:",omitempty"` // copycrc
	// Of the devices, for both ends.
	NoOffload  bool `json:",omitempty"`
	Packet     bool `json:",omitempty"` // Ethernet devices on AF_PACKET, instead of UDP sockets
	RecvBuffer int  `json:",omitempty"`
}

// Offer is what one end tells the other before they join.
type Offer struct {
	Addr string   // of the end's host
	Port int      // of a listening socket
	QPNs []uint32 // of the queue pairs
	PSNs []uint32 // of the first packet that each sends
	Base uint64   // of the memory region
	RKey uint32
}

// Sample is what one slot gave.
type Sample struct {
	Bytes    uint64  // of payload
	Messages uint64  // messages or round trips
	Seconds  float64 // that they took
	CPU      float64 // processor seconds of this end in that time
	FarCPU   float64 // … and of the other end, scaled to that time
	P50, P99 float64 // round trips, µs
	Resent   uint64  // packets sent again
}

// add adds another slot of the same subject.
func (s *Sample) add(t *Sample) {
	s.Bytes += t.Bytes
	s.Messages += t.Messages
	s.Seconds += t.Seconds
	s.CPU += t.CPU
	s.FarCPU += t.FarCPU
	s.P50, s.P99 = (s.P50+t.P50)/2, (s.P99+t.P99)/2
	s.Resent += t.Resent
}

// Gbps is the payload's rate in 10⁹ bits a second.
func (s *Sample) Gbps() float64 { return float64(s.Bytes) * 8 / 1e9 / s.Seconds }

// Mmsg is the rate of messages in millions a second.
func (s *Sample) Mmsg() float64 { return float64(s.Messages) / 1e6 / s.Seconds }

// CPUPerGB is the processor time of both ends, seconds per 10⁹ bytes.
func (s *Sample) CPUPerGB() float64 { return (s.CPU + s.FarCPU) / (float64(s.Bytes) / 1e9) }

// end is one end of a subject. Its methods are called in this order: prepare,
// join, then slot at the near end while the far end serves, any number of times,
// and close.
type end interface {
	prepare() (Offer, error)
	join(peer Offer) error
	// slot measures for about d. Near end only.
	slot(d time.Duration) (Sample, error)
	// serve does the far end's part until h says stop.
	serve(h *halt) error
	close() error
}

// halt tells a serving end to stop, whether it spins or blocks.
type halt struct {
	stop atomic.Bool
	ctx  context.Context
	end  context.CancelFunc
}

func newHalt() *halt {
	h := &halt{}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

func (h *halt) set() {
	h.stop.Store(true)
	h.end()
}

// errLinux is why some rivals have no figures elsewhere.
var errLinux = errors.New("only on Linux")

// newEnd makes an end of a subject in a child.
func newEnd(c *child, s *Spec) (end, error) {
	switch s.Kind {
	case KindRDMA:
		return newStream(c, s), nil
	case KindRate:
		return newRate(c, s), nil
	case KindPing:
		return newPing(c, s), nil
	case KindIncast:
		return newIncast(c, s), nil
	case KindTCP:
		return &tcp{c: c}, nil
	case KindIperf:
		return &iperf{c: c}, nil
	case KindGSO:
		return newGSO(c, s)
	case KindUDP:
		if s.Blocking {
			return &udpConn{c: c}, nil
		}
		return newSpinUDP(c)
	case KindCopy:
		return &copyCRC{fused: s.Fused}, nil
	case KindLoop:
		return newLoop(s)
	}
	return nil, fmt.Errorf("unknown kind %q", s.Kind)
}

// idle is the far end of what needs none.
type idle struct{}

func (idle) prepare() (Offer, error) { return Offer{}, nil }
func (idle) join(Offer) error        { return nil }
func (idle) serve(h *halt) error     { <-h.ctx.Done(); return nil }
func (idle) close() error            { return nil }

// meter bounds a slot: the first tenth warms up, the rest counts.
type meter struct {
	warm, end time.Time
	start     time.Time // of what counts; zero while warming up
	cpu       time.Duration
	n0        uint64
}

func newMeter(d time.Duration) *meter {
	now := time.Now()
	return &meter{warm: now.Add(d / 10), end: now.Add(d)}
}

// tick is called now and then with what has been done so far. When it returns
// true the slot is over and s has its time, the amount done in it as Messages,
// and this process' processor time.
func (m *meter) tick(n uint64, s *Sample) bool {
	now := time.Now()
	if m.start.IsZero() {
		if !now.Before(m.warm) {
			m.start, m.cpu, m.n0 = now, processCPU(), n
		}
		return false
	}
	if now.Before(m.end) || n == m.n0 {
		return false
	}
	s.Seconds = now.Sub(m.start).Seconds()
	s.CPU = (processCPU() - m.cpu).Seconds()
	s.Messages = n - m.n0
	return true
}
