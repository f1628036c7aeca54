package host

import "github.com/verbena-rdma/verbena/fabric/sim"

// Stats is what a NIC has counted beside its port and its adapter.
type Stats struct {
	CNPSent    uint64
	CNPHandled uint64
	RxDiscards uint64 // the receive buffer was full
	RxPeak     int64  // most bytes in it
	Queues     []RxQueueStats
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
