package port

import (
	"math/bits"

	"github.com/verbena-rdma/verbena/fabric/sim"
)

// QuantaBits is the bit times of one pause quantum (802.3 annex 31B).
const QuantaBits = 512

func lowest(m uint8) uint8 { return uint8(bits.TrailingZeros8(m)) }

// PFC is priority flow control as a sender obeys it (802.1Qbb; 802.3 annexes
// 31B and 31D): a frame stops a class for its quanta, 512 bit times each at this
// link's rate; 0 lets it go on; when the quanta are over it goes on by itself.
type PFC struct {
	// Obeys is the set of classes for which PFC frames count.
	Obeys uint8
	// ObeysPause makes 802.3x PAUSE stop every class.
	ObeysPause bool
	// Response is how long after its arrival a frame has its effect.
	Response sim.Time

	p       *Port
	until   [8]sim.Time
	stopped uint8
	late    []told // frames that wait for their effect, in order
}

type told struct {
	enable uint8
	quanta [8]uint16
}

// The events of PFC: the class number, or that a frame takes effect.
const pfcEffect = 8

// Attach implements [FlowControl].
func (f *PFC) Attach(p *Port) { f.p = p }

// Receive implements [FlowControl].
func (f *PFC) Receive(now sim.Time, k *sim.Packet) {
	t := told{enable: k.Enable}
	for i := range t.quanta {
		t.quanta[i] = k.Quanta(uint8(i))
	}
	if k.Kind == sim.KindPause {
		if !f.ObeysPause {
			return
		}
		t.enable = 0xFF
		for i := range t.quanta {
			t.quanta[i] = k.Quanta(0)
		}
	} else if t.enable &= f.Obeys; t.enable == 0 {
		return
	}
	if f.Response == 0 {
		f.effect(now, &t)
		return
	}
	f.late = append(f.late, t)
	f.p.At(now+f.Response, pfcEffect)
}

// Handle implements [FlowControl].
func (f *PFC) Handle(now sim.Time, arg uint64) {
	if arg == pfcEffect {
		if len(f.late) > 0 {
			t := f.late[0]
			f.late = f.late[:copy(f.late, f.late[1:])]
			f.effect(now, &t)
		}
		return
	}
	if q := uint8(arg); f.stopped&(1<<q) != 0 && f.until[q] <= now {
		f.stopped &^= 1 << q
		f.p.Stats.Expired[q]++
		f.p.SetClasses(now, f.stopped)
	}
}

func (f *PFC) effect(now sim.Time, t *told) {
	for m := t.enable; m != 0; m &= m - 1 {
		q := lowest(m)
		if t.quanta[q] == 0 {
			f.stopped &^= 1 << q
			continue
		}
		f.stopped |= 1 << q
		f.until[q] = now + f.p.QuantaTime(t.quanta[q])
		f.p.At(f.until[q], uint64(q))
	}
	f.p.SetClasses(now, f.stopped)
}

// Reset implements [FlowControl].
func (f *PFC) Reset(now sim.Time) {
	f.stopped, f.late = 0, f.late[:0]
	f.p.SetClasses(now, 0)
}

// QuantaTime returns how long q quanta last at the rate of the link.
func (p *Port) QuantaTime(q uint16) sim.Time { return p.rate.For(int(q) * QuantaBits / 8) }
