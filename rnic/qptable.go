package rnic

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/verbena-rdma/verbena/ib"
)

// qpTable finds a queue pair by number: open addressing with linear probing, at
// most three quarters full. Numbers are given out in sequence: a multiplication
// spreads them evenly and apart (Knuth vol.3 6.4, Fibonacci hashing), so that
// neither a number that nobody has nor a removal walks along all of them.
type qpTable struct {
	slots []*QP
	n     int
	shift uint8 // 32 minus the bits of a slot's place
}

func (t *qpTable) len() int { return t.n }

func (t *qpTable) home(qpn ib.QPN) int { return int(uint32(qpn) * 0x9E3779B1 >> t.shift) }

func (t *qpTable) get(qpn ib.QPN) *QP {
	if len(t.slots) == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := t.home(qpn); ; i = (i + 1) & mask {
		q := t.slots[i]
		if q == nil || q.qpn == qpn {
			return q
		}
	}
}

func (t *qpTable) put(q *QP) {
	if 4*(t.n+1) > 3*len(t.slots) {
		old := t.slots
		size := max(4, 2*len(old))
		t.slots = make([]*QP, size)
		t.shift = uint8(32 - bits.TrailingZeros(uint(size)))
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
	i := t.home(q.qpn)
	for t.slots[i] != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = q
}

// remove takes q out and closes the gap, so that no probe stops short.
func (t *qpTable) remove(q *QP) {
	mask := len(t.slots) - 1
	i := t.home(q.qpn)
	for t.slots[i] != q {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j] != nil; j = (j + 1) & mask {
		if home := t.home(t.slots[j].qpn); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = nil
	t.n--
}

// using returns the queue pairs that complete to c, by number. It is for what
// happens seldom: it looks at all.
func (t *qpTable) using(c *CQ) []*QP {
	var users []*QP
	for _, q := range t.slots {
		if q != nil && (q.sendCQ == c || q.recvCQ == c) {
			users = append(users, q)
		}
	}
	slices.SortFunc(users, func(a, b *QP) int { return cmp.Compare(a.qpn, b.qpn) })
	return users
}

// broken returns the completion queues of queue pairs that have overflowed.
func (t *qpTable) broken() (cqs []*CQ) {
	for _, q := range t.slots {
		if q == nil {
			continue
		}
		for _, c := range [...]*CQ{q.sendCQ, q.recvCQ} {
			if c.Overrun() && !slices.Contains(cqs, c) {
				cqs = append(cqs, c)
			}
		}
	}
	slices.SortFunc(cqs, func(a, b *CQ) int { return cmp.Compare(a.num, b.num) })
	return cqs
}

// qpnAllocator gives out numbers in sequence from a random place, so that a
// number comes back only after all others: an old peer's retries find nobody.
// Those of a shard are its number modulo the number of shards.
type qpnAllocator struct{ last ib.QPN }

func (n *qpnAllocator) init(rand func() uint32) { n.last = ib.QPN(rand()) & ib.MaxQPN }

// next returns a number that is neither in use nor one of the three with a
// meaning of their own.
func (n *qpnAllocator) next(used *qpTable, shard, shards uint32) ib.QPN {
	for {
		n.last = (n.last + 1) & ib.MaxQPN
		if shards > 1 && uint32(n.last)%shards != shard {
			continue
		}
		if n.last > ib.QPGSI && n.last < ib.QPMulticast && used.get(n.last) == nil {
			return n.last
		}
	}
}
