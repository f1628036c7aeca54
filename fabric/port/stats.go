package port

import "github.com/verbena-rdma/verbena/fabric/sim"

// Stats is what one end of a link has counted.
type Stats struct {
	Prio      [8]PrioStats
	AckTx     uint64 // packets without user data that left here
	Down      sim.Time
	Errors    uint64 // frames that arrived corrupted
	Refreshes uint64 // control frames that repeated a stop
	PauseTx   uint64 // 802.3x PAUSE frames
	PauseRx   uint64
	Expired   [8]uint64   // stops of a class that ended by themselves
	PausedFor [8]sim.Time // how long a class was stopped, without the present stop
}

// PrioStats is the part of one priority, as the sender of the packets has it. It
// is one cache line.
type PrioStats struct {
	TxBytes, RxBytes     uint64
	TxPackets, RxPackets uint64
	StopTx, StopRx       uint64 // PFC frames that stop
	ResumeTx, ResumeRx   uint64 // ... and that let go on
}

// DataTx returns how many data packets left here: hops.
func (s *Stats) DataTx() uint64 {
	n := uint64(0)
	for i := range s.Prio {
		n += s.Prio[i].TxPackets
	}
	return n - s.AckTx
}

func (s *Stats) sent(k *sim.Packet) {
	if k.Kind == sim.KindPFC || k.Kind == sim.KindPause {
		return
	}
	if k.Ack {
		s.AckTx++
	}
	q := &s.Prio[k.Prio&7]
	q.TxBytes += uint64(k.Bytes)
	q.TxPackets++
}

func (s *Stats) received(k *sim.Packet) {
	q := &s.Prio[k.Prio&7]
	q.RxBytes += uint64(k.Bytes)
	q.RxPackets++
}

func (s *Stats) controlOut(k *sim.Packet) {
	if k.Kind == sim.KindPause {
		s.PauseTx++
		return
	}
	for m := k.Enable; m != 0; m &= m - 1 {
		if i := lowest(m); k.Quanta(i) != 0 {
			s.Prio[i].StopTx++
		} else {
			s.Prio[i].ResumeTx++
		}
	}
}

func (s *Stats) controlIn(k *sim.Packet) {
	if k.Kind == sim.KindPause {
		s.PauseRx++
		return
	}
	for m := k.Enable; m != 0; m &= m - 1 {
		if i := lowest(m); k.Quanta(i) != 0 {
			s.Prio[i].StopRx++
		} else {
			s.Prio[i].ResumeRx++
		}
	}
}
