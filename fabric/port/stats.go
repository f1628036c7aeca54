package port

import "github.com/verbena-rdma/verbena/fabric/sim"

// Stats is what one end of a link has counted.
type Stats struct {
	Prio      [8]PrioStats
	Busy      sim.Time // time spent sending
	Down      sim.Time
	Errors    uint64 // frames that arrived corrupted
	Refreshes uint64 // control frames that repeated a stop
	PauseTx   uint64 // 802.3x PAUSE frames
	PauseRx   uint64
	DataTx    uint64 // data packets that left here: hops
	AckTx     uint64 // packets without user data
}

// PrioStats is the part of one priority, as the sender of the packets has it.
type PrioStats struct {
	TxBytes, RxBytes     uint64
	TxPackets, RxPackets uint64
	StopTx, StopRx       uint64 // PFC frames that stop
	ResumeTx, ResumeRx   uint64 // ... and that let go on
	Expired              uint64 // stops that ended by themselves
	PausedFor            sim.Time
}

func (s *Stats) sent(k *sim.Packet, t sim.Time) {
	s.Busy += t
	if k.Kind == sim.KindPFC || k.Kind == sim.KindPause {
		return
	}
	if k.Ack {
		s.AckTx++
	} else {
		s.DataTx++
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
