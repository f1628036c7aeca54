package port

import "github.com/verbena-rdma/verbena/fabric/sim"

// Stats is what one end of a link has counted of what happens seldom.
type Stats struct {
	AckTx     uint64 // packets without user data that left here
	Down      sim.Time
	Errors    uint64 // frames that arrived corrupted
	Refreshes uint64 // control frames that repeated a stop
	PauseTx   uint64 // 802.3x PAUSE frames
	PauseRx   uint64
	Expired   [8]uint64   // stops of a class that ended by themselves
	PausedFor [8]sim.Time // how long a class was stopped, without the present stop
	pfc       [8]pfcStats
}

// pfcStats counts the PFC frames about a priority.
type pfcStats struct {
	StopTx, StopRx     uint64 // those that stop
	ResumeTx, ResumeRx uint64 // ... and that let go on
}

// PrioStats is the part of one priority, as the sender of the packets has it.
type PrioStats struct {
	TxBytes, RxBytes     uint64
	TxPackets, RxPackets uint64
	StopTx, StopRx       uint64 // PFC frames that stop
	ResumeTx, ResumeRx   uint64 // ... and that let go on
}

// count is frames and their bytes.
type count struct{ bytes, packets uint64 }

func (c *count) add(k *sim.Packet) {
	c.bytes += uint64(k.Bytes)
	c.packets++
}

// sent counts a data frame that leaves. The counters of the priority that came
// first lie with what sending needs: most ports have no other.
func (p *Port) sent(k *sim.Packet) {
	q := k.Prio & 7
	switch p.first {
	case q:
		p.tx.add(k)
	case noPrio:
		p.first = q
		p.tx.add(k)
	default:
		p.others[q].add(k)
	}
	if k.Ack {
		p.Stats.AckTx++
	}
}

// left returns what has left of a priority.
func (p *Port) left(q uint8) count {
	if q == p.first {
		return p.tx
	}
	return p.others[q]
}

// gone notes a frame that left here and does not come to the other end.
func (p *Port) gone(k *sim.Packet) {
	if k.Kind != sim.KindPFC && k.Kind != sim.KindPause {
		p.lost[k.Prio&7].add(k)
	}
}

// Prio returns the counters of a priority. What has come in is what has left at
// the other end, was not lost, and is not on its way.
func (p *Port) Prio(q uint8) PrioStats {
	q &= 7
	tx, pfc := p.left(q), &p.Stats.pfc[q]
	s := PrioStats{
		TxBytes: tx.bytes, TxPackets: tx.packets,
		StopTx: pfc.StopTx, StopRx: pfc.StopRx, ResumeTx: pfc.ResumeTx, ResumeRx: pfc.ResumeRx,
	}
	if o := p.peer; o != nil {
		rx, not := o.left(q), o.lost[q]
		for k := o.air.head; k != nil; k = k.Next {
			if k.Kind != sim.KindPFC && k.Kind != sim.KindPause && k.Prio&7 == q {
				not.add(k)
			}
		}
		s.RxBytes, s.RxPackets = rx.bytes-not.bytes, rx.packets-not.packets
	}
	return s
}

// TxBytes returns the bytes of the data frames that left here.
func (p *Port) TxBytes() uint64 {
	n := p.tx.bytes
	for i := range p.others {
		n += p.others[i].bytes
	}
	return n
}

// DataTx returns how many data packets left here: hops.
func (p *Port) DataTx() uint64 {
	n := p.tx.packets
	for i := range p.others {
		n += p.others[i].packets
	}
	return n - p.Stats.AckTx
}

// Sending returns how long this end has been sending in all, the present frame
// included.
func (p *Port) Sending() sim.Time {
	if p.perByte == 0 {
		return p.longer
	}
	packets := p.DataTx() + p.Stats.AckTx + p.controls.packets
	return sim.Time(p.perByte) * sim.Time(p.TxBytes()+p.controls.bytes+uint64(p.gap)*packets)
}

func (s *Stats) controlOut(k *sim.Packet) {
	if k.Kind == sim.KindPause {
		s.PauseTx++
		return
	}
	for m := k.Enable; m != 0; m &= m - 1 {
		if i := lowest(m); k.Quanta(i) != 0 {
			s.pfc[i].StopTx++
		} else {
			s.pfc[i].ResumeTx++
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
			s.pfc[i].StopRx++
		} else {
			s.pfc[i].ResumeRx++
		}
	}
}
