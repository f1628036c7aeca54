package host

import "github.com/verbena-rdma/verbena/fabric/sim"

// Stats is what a NIC has counted beside its port and its adapter.
type Stats struct {
	TxPackets, RxPackets uint64
	TxBytes, RxBytes     uint64
	CNPSent, CNPHandled  uint64
	RxDiscards           uint64 // the receive buffer was full
	RxPeak               int64  // most bytes in it
	Queues               []RxQueueStats
}

func (s *Stats) sent(p *sim.Packet, _ bool) {
	s.TxPackets++
	s.TxBytes += uint64(p.Bytes)
}

func (s *Stats) received(p *sim.Packet) {
	s.RxPackets++
	s.RxBytes += uint64(p.Bytes)
}

func (s *Stats) queue(i int, p *sim.Packet, busy sim.Time) {
	for len(s.Queues) <= i {
		s.Queues = append(s.Queues, RxQueueStats{})
	}
	q := &s.Queues[i]
	q.Packets++
	q.Bytes += uint64(p.Bytes)
	q.Busy += busy
}
