package rnic

import "github.com/verbena-rdma/verbena/ib"

// QPCensus is how many queue pairs there are by type and state. The general services
// queue pair stands apart from other datagrams, under [CensusGSI].
type QPCensus [ib.UD + 1][ib.Error + 1]uint32

// CensusGSI stands for the type of queue pair 1; there is no transport of that number.
const CensusGSI ib.QPType = 1

// QPCensus returns how many queue pairs the adapter has, without a walk over them. Owner.
func (a *Adapter) QPCensus() QPCensus { return a.census }

// counted is where a queue pair is counted while it has the state that it has.
func (a *Adapter) counted(q *QP) *uint32 {
	t := q.typ
	if q.qpn == ib.QPGSI {
		t = CensusGSI
	}
	return &a.census[t][q.state.load()]
}

// setState notes the state of a queue pair for others to read.
func (a *Adapter) setState(q *QP, s ib.QPState) {
	*a.counted(q)--
	q.state.store(s)
	*a.counted(q)++
}
