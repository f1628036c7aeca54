package rnic

import "github.com/verbena-rdma/verbena/ib"

// qpTable finds a queue pair by number: open addressing with linear probing.
// Numbers are given out in sequence, so their low bits spread evenly.
type qpTable struct {
	slots []*QP
	n     int
}

func (t *qpTable) len() int { return t.n }

func (t *qpTable) get(qpn ib.QPN) *QP {
	if len(t.slots) == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := int(qpn) & mask; ; i = (i + 1) & mask {
		q := t.slots[i]
		if q == nil || q.qpn == qpn {
			return q
		}
	}
}

func (t *qpTable) put(q *QP) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]*QP, max(16, 2*len(old)))
		for _, o := range old {
			if o != nil {
				t.insert(o)
			}
		}
	}
	t.insert(q)
	t.n++
}

func (t *qpTable) insert(q *QP) {
	mask := len(t.slots) - 1
	i := int(q.qpn) & mask
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = q
}

// remove takes q out and closes the gap, so that no probe stops short.
func (t *qpTable) remove(q *QP) {
	mask := len(t.slots) - 1
	i := int(q.qpn) & mask
	for t.slots[i] != q {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j] != nil; j = (j + 1) & mask {
		home := int(t.slots[j].qpn) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = nil
	t.n--
}

// qpnAllocator gives out numbers in sequence from a random place, so that a
// number comes back only after all others: an old peer's retries find nobody.
type qpnAllocator struct{ last ib.QPN }

func (n *qpnAllocator) init(rand func() uint32) { n.last = ib.QPN(rand()) & ib.MaxQPN }

// next returns a number that is neither in use nor one of the three with a
// meaning of their own.
func (n *qpnAllocator) next(used *qpTable) ib.QPN {
	for {
		n.last = (n.last + 1) & ib.MaxQPN
		if n.last > ib.QPGSI && n.last < ib.QPMulticast && used.get(n.last) == nil {
			return n.last
		}
	}
}
