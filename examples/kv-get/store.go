package main

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"unsafe"
)

// The store is a table of slots in registered memory that clients READ without
// the server's help. A key lives in one of the probes slots from its hash on.
//
//	slot   version:64  key length:16  value length:16  0:32  key and value, room bytes
//
// The server makes a version odd before it changes a slot and even after; a
// client that sees an odd one, or two different ones around the same bytes,
// reads again. A READ copies a slot from its start to its end, so the version
// stands at both ends.
const (
	room     = 104
	slotSize = 8 + 8 + room + 8
	probes   = 4
)

type store struct {
	mem   []byte
	slots int
}

func newStore(mem []byte) *store { return &store{mem: mem, slots: len(mem) / slotSize} }

// slotOf returns the first slot that may hold a key.
func slotOf(key string, slots int) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	return int(h.Sum64() % uint64(slots-probes+1))
}

func (s *store) slot(i int) []byte { return s.mem[i*slotSize : (i+1)*slotSize] }

// put stores a value. One goroutine puts at a time.
func (s *store) put(key, value string) error {
	if len(key) == 0 || len(key)+len(value) > room {
		return fmt.Errorf("put %q: key and value are %d bytes, can be 1 to %d", key, len(key)+len(value), room)
	}
	free := -1
	first := slotOf(key, s.slots)
	for i := first; i < first+probes; i++ {
		k, _, _ := decode(s.slot(i))
		if k == key {
			free = i
			break
		}
		if k == "" && free < 0 {
			free = i
		}
	}
	if free < 0 {
		return fmt.Errorf("put %q: its %d slots are taken", key, probes)
	}
	b := s.slot(free)
	head, tail := word(b[:8]), word(b[slotSize-8:])
	v := head.Load()
	// Readers go upwards: begin at the end, finish at the start.
	tail.Store(v + 1)
	head.Store(v + 1)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(key)))
	binary.LittleEndian.PutUint16(b[10:], uint16(len(value)))
	copy(b[16:], key)
	copy(b[16+len(key):], value)
	tail.Store(v + 2)
	head.Store(v + 2)
	return nil
}

// decode returns what a copy of a slot holds; ok is false if the server was
// changing it.
func decode(b []byte) (key, value string, ok bool) {
	v, end := binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[slotSize-8:])
	k, n := int(binary.LittleEndian.Uint16(b[8:])), int(binary.LittleEndian.Uint16(b[10:]))
	if v != end || v%2 != 0 || k+n > room {
		return "", "", false
	}
	return string(b[16 : 16+k]), string(b[16+k : 16+k+n]), true
}

func word(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))) }
