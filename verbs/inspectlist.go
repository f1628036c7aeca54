package verbs

import (
	"cmp"
	"slices"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/rnic"
	"github.com/verbena-rdma/verbena/transport/dcqcn"
)

// MaxListed is how many objects of a kind a snapshot lists.
const MaxListed = 1 << 14

// batch is how many queue pairs are looked at while the device stands: some tens of
// microseconds.
const batch = 32

// children are the children of a device by their kind, each in the order of its numbers.
type children struct {
	qps  []*QP
	cqs  []*CQ
	mrs  []*MR
	pds  []*PD
	srqs []*SRQ
	// users counts what completes to a queue and what belongs to a domain.
	users map[child]uint64
}

// offspring sorts what was made of the device.
func (d *Device) offspring() children {
	f := children{users: make(map[child]uint64)}
	d.mu.Lock()
	for k := range d.kids {
		switch k := k.(type) {
		case *QP:
			f.qps = append(f.qps, k)
			f.users[k.sendCQ]++
			f.users[k.recvCQ]++
			f.users[k.pd]++
		case *CQ:
			f.cqs = append(f.cqs, k)
		case *MR:
			f.mrs = append(f.mrs, k)
			f.users[k.PD()]++
		case *PD:
			f.pds = append(f.pds, k)
		case *SRQ:
			f.srqs = append(f.srqs, k)
			f.users[k.pd]++
		case *AH:
			f.users[k.pd]++
		case *MW:
			f.users[k.pd]++
		}
	}
	d.mu.Unlock()
	return f
}

// cut keeps the first of a list; an empty one is a list, too.
func cut[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list[:min(len(list), MaxListed)]
}

// ordered sorts objects by their numbers and keeps the first of them.
func ordered[T any](list []T, number func(T) uint32) []T {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(number(a), number(b)) })
	return cut(list)
}

// lists fills in the lists of objects.
func (d *Device) lists(s *snapshot.Device, f children) {
	f.qps = ordered(f.qps, func(q *QP) uint32 { return uint32(q.Num()) })
	f.cqs = ordered(f.cqs, (*CQ).Number)
	f.mrs = ordered(f.mrs, func(m *MR) uint32 { return m.num })
	f.pds = ordered(f.pds, func(p *PD) uint32 { return uint32(p.pd) })
	f.srqs = ordered(f.srqs, (*SRQ).Number)

	ctx := snapshot.Known[uint32](1)
	qps := make([]snapshot.QP, 0, len(f.qps))
	params := map[string]*dcqcn.Params{}
	device := d.DCQCN()
	var seen [batch]qpView
	for part := range slices.Chunk(f.qps, batch) {
		for _, e := range d.shards {
			n := 0
			_ = e.drv.Do(func(now clock.Time) {
				for _, q := range part {
					if q.shard == e && !q.dead.Load() {
						seen[n].take(q, now, device)
						n++
					}
				}
			})
			for i := range seen[:n] {
				qps = append(qps, seen[i].describe(params))
			}
		}
	}
	slices.SortFunc(qps, func(a, b snapshot.QP) int { return cmp.Compare(a.LQPN, b.LQPN) })
	s.QPs = snapshot.Known(qps)

	cqs := make([]snapshot.CQ, 0, len(f.cqs))
	for _, c := range f.cqs {
		if !c.dead.Load() {
			cqs = append(cqs, snapshot.CQ{CQN: c.Number(), CQE: uint32(c.Depth()), Users: snapshot.Known(f.users[c]), CTXN: ctx})
		}
	}
	s.CQs = snapshot.Known(cqs)

	pds := make([]snapshot.PD, 0, len(f.pds))
	for _, p := range f.pds {
		if !p.dead.Load() {
			pds = append(pds, snapshot.PD{PDN: uint32(p.pd), Users: snapshot.Known(f.users[p]), CTXN: ctx})
		}
	}
	s.PDs = snapshot.Known(pds)

	mrs := make([]snapshot.MR, 0, len(f.mrs))
	for _, m := range f.mrs {
		if !m.dead.Load() {
			now := m.now.Load()
			mrs = append(mrs, snapshot.MR{MRN: m.num, Length: now.region.Len, IOVA: snapshot.Known(now.region.Base), PDN: snapshot.Known(uint32(now.pd.pd))})
		}
	}
	s.MRs = snapshot.Known(mrs)

	srqs := make([]snapshot.SRQ, 0, len(f.srqs))
	for _, q := range f.srqs {
		if !q.dead.Load() {
			srqs = append(srqs, snapshot.SRQ{SRQN: q.Number(), Type: snapshot.Known("BASIC"), PDN: snapshot.Known(uint32(q.pd.pd))})
		}
	}
	s.SRQs = snapshot.Known(srqs)
	s.Contexts = snapshot.Known([]snapshot.Context{{CTXN: 1}})
}

// qpView is what is copied of a queue pair while the device stands; all else is
// worked out afterwards.
type qpView struct {
	qpn   ib.QPN
	typ   ib.QPType
	pdn   uint32
	attr  ib.QPAttr
	port  uint16
	cc    DCQCN // the knobs are the configuration's: read only
	state dcqcn.State
	count rnic.Counters
	rate  uint64
}

// take copies, under the lock of the queue pair's driver.
func (v *qpView) take(q *QP, now clock.Time, device DCQCN) {
	a := q.shard.adapter
	v.qpn, v.typ, v.pdn, v.attr, v.port = q.Num(), q.Type(), uint32(q.pd.pd), a.QueryQP(q.qp), a.SourcePort(q.qp)
	v.cc = device
	if q.dcqcn != nil {
		v.cc = *q.dcqcn
	}
	a.ReadQPCounters(q.qp, &v.count)
	if v.cc.On() {
		v.state, v.rate = a.QueryRP(now, q.qp), a.RateNow(q.qp)
	}
}

// describe says it in the words of a snapshot. params are those of the settings met so
// far.
func (v *qpView) describe(params map[string]*dcqcn.Params) snapshot.QP {
	a := &v.attr
	s := snapshot.QP{
		Port: int(a.Port), LQPN: uint32(v.qpn), Type: typeName(v.qpn == ib.QPGSI, v.typ), State: a.State.String(), PDN: snapshot.Known(v.pdn),
		SQPSN: snapshot.Known(uint32(a.SQPSN)),
	}
	if v.typ != ib.UD {
		s.RQPN, s.RQPSN, s.PathMig = snapshot.Known(uint32(a.DestQPN)), snapshot.Known(uint32(a.RQPSN)), snapshot.Known("MIGRATED") // 0 before it has a peer, as the kernel's
		if a.State != ib.Reset && a.State != ib.Init && !a.AV.DGID.IsZero() {
			s.PathMTU = snapshot.Known(a.PathMTU.Bytes())
			s.GIDIndex = snapshot.Known(a.AV.SGIDIndex)
			s.TrafficClass = snapshot.Known(int(a.AV.TrafficClass))
			s.RemoteGID = snapshot.Known(sysfsGID(a.AV.DGID))
		}
	}
	if v.port != 0 {
		s.SourcePort = snapshot.Known(int(v.port))
	}
	s.Counters = v.counters()
	if v.cc.On() && v.qpn != ib.QPGSI {
		s.Reaction = v.reaction(params)
	}
	return s
}

// counted are the counters of a queue pair that a snapshot has, under their names in
// the counters of the device. Most queue pairs have met nothing but traffic: lists stay
// short since what never happened is left out, but for the first four.
var counted = []string{
	"sent_pkts", "sent_bytes", "rcvd_pkts", "rcvd_bytes",
	"retransmitted", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "out_of_sequence",
	"np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled",
}

// always is how many of them a queue pair that has sent or received anything has.
const always = 4

// counters are nil where nothing has been counted.
func (v *qpView) counters() snapshot.Counters {
	var all snapshot.Counters
	traffic := false
	for i, name := range counted {
		n, _ := v.count.Get(name)
		traffic = traffic || n > 0
		if n > 0 || i < always {
			all = append(all, snapshot.Counter{Name: name, Value: snapshot.Known(n)})
		}
	}
	if !traffic {
		return nil
	}
	return byName(all)
}

func (v *qpView) reaction(params map[string]*dcqcn.Params) *snapshot.Reaction {
	r := &snapshot.Reaction{
		Preset: v.cc.Preset, LineRate: v.cc.LineRate, Rate: v.rate, Rc: v.state.Rc, Rt: v.state.Rt, Alpha: float64(v.state.Alpha) / (1 << 32),
		Cuts: uint64(v.state.Cuts), Recovered: uint64(v.state.Recoveries), Additive: uint64(v.state.Additive), Hyper: uint64(v.state.Hyper),
	}
	key := v.cc.String()
	p, ok := params[key]
	if !ok {
		p, _ = v.cc.Params()
		params[key] = p
	}
	if p != nil {
		r.Phase = p.Phase(&v.state, v.cc.LineRate).String()
	}
	return r
}
