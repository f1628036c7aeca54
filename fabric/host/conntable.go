package host

import "math/bits"

// connTable finds a connection by the number of its local queue pair: open
// addressing with linear probing, at most half full. A packet of a NIC with two
// connections, one that sends and one that receives, touches one cache line.
type connTable struct {
	slots []connSlot
	n     int32
	shift uint8 // 32 minus the bits of a slot's place
}

type connSlot struct {
	c   *Conn // nil: free
	qpn uint32
}

// home is where a search for a number begins (Knuth vol.3 6.4, Fibonacci
// hashing: numbers are given out in sequence).
func (t *connTable) home(qpn uint32) int { return int(qpn * 0x9E3779B1 >> t.shift) }

// get returns the connection of a number, or nil.
func (t *connTable) get(qpn uint32) *Conn {
	if len(t.slots) == 0 {
		return nil
	}
	for i := t.home(qpn); ; i++ {
		s := &t.slots[i&(len(t.slots)-1)]
		if s.c == nil || s.qpn == qpn {
			return s.c
		}
	}
}

// put adds a connection under a number that has none.
func (t *connTable) put(qpn uint32, c *Conn) {
	if 2*(int(t.n)+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]connSlot, max(4, 2*len(old)))
		t.shift = uint8(32 - bits.TrailingZeros(uint(len(t.slots))))
		for _, s := range old {
			if s.c != nil {
				t.insert(s)
			}
		}
	}
	t.insert(connSlot{c, qpn})
	t.n++
}

func (t *connTable) insert(s connSlot) {
	mask := len(t.slots) - 1
	i := t.home(s.qpn)
	for t.slots[i].c != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// remove takes a number out, if it is there, and closes the gap, so that no search
// stops short.
func (t *connTable) remove(qpn uint32) {
	if t.get(qpn) == nil {
		return
	}
	mask := len(t.slots) - 1
	i := t.home(qpn)
	for t.slots[i].qpn != qpn || t.slots[i].c == nil {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j].c != nil; j = (j + 1) & mask {
		if home := t.home(t.slots[j].qpn); (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = connSlot{}
	t.n--
}
