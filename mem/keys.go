package mem

import "math/bits"

// keys finds regions by key: open addressing, linear probing, at most half full.
type keys struct {
	slots []slot
	shift uint8 // 32 - log2(len(slots))
	n     int
}

// slot holds a region under its key; key 0 is an empty slot.
type slot struct {
	key uint32
	r   *Region
}

func (k *keys) find(key uint32) *Region {
	s := k.slots
	if len(s) == 0 {
		return nil
	}
	for i := k.home(key); ; i++ {
		e := &s[i&(len(s)-1)]
		if e.key == key || e.key == 0 {
			return e.r // nil in an empty slot
		}
	}
}

// findUpper returns what has a key with the upper 24 bits of key, or nil.
func (k *keys) findUpper(key uint32) *Region {
	s := k.slots
	if len(s) == 0 {
		return nil
	}
	for i := k.home(key); ; i++ {
		e := &s[i&(len(s)-1)]
		if e.key>>tagBits == key>>tagBits || e.key == 0 {
			return e.r
		}
	}
}

// replace puts another region under a present key.
func (k *keys) replace(key uint32, r *Region) {
	i := k.home(key)
	for k.slots[i&(len(k.slots)-1)].key != key {
		i++
	}
	k.slots[i&(len(k.slots)-1)].r = r
}

// home returns where a key would best be, by its upper bits. Multiplying spreads
// the keys of a source that is not random.
func (k *keys) home(key uint32) int { return int(key >> tagBits * 0x9E3779B1 >> k.shift) }

func (k *keys) insert(key uint32, r *Region) {
	if 2*(k.n+1) > len(k.slots) {
		k.grow()
	}
	k.put(key, r)
	k.n++
}

func (k *keys) put(key uint32, r *Region) {
	mask := len(k.slots) - 1
	i := k.home(key) & mask
	for k.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	k.slots[i] = slot{key, r}
}

func (k *keys) grow() {
	old := k.slots
	n := max(8, 2*len(old))
	k.slots = make([]slot, n)
	k.shift = uint8(32 - bits.Len32(uint32(n-1)))
	for _, e := range old {
		if e.key != 0 {
			k.put(e.key, e.r)
		}
	}
}

// remove takes a present key out and moves what stands behind it closer to
// home, so that no search ends early.
func (k *keys) remove(key uint32) {
	mask := len(k.slots) - 1
	hole := k.home(key) & mask
	for k.slots[hole].key != key {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; k.slots[i].key != 0; i = (i + 1) & mask {
		if away := (i - k.home(k.slots[i].key)) & mask; away >= (i-hole)&mask {
			k.slots[hole] = k.slots[i]
			hole = i
		}
	}
	k.slots[hole] = slot{}
	k.n--
}
