package perf

import (
	"encoding/binary"
	"fmt"
)

// fill writes the pattern of a lane into b, whose first byte is at the multiple
// of 8 off.
func fill(b []byte, lane int, off uint64) {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], patternWord(lane, off+uint64(i)))
	}
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], patternWord(lane, off+uint64(i)))
	copy(b[i:], w[:])
}

// patternWord returns the eight bytes at a multiple of 8 (splitmix64).
func patternWord(lane int, off uint64) uint64 {
	z := (uint64(lane)<<40 + off/8 + 1) * 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// leastMTU divides every path MTU: so many bytes at a multiple of it came in one
// packet.
const leastMTU = 256

// laneOfPattern returns the lane whose pattern b, which is at off of its message,
// begins with, or otherwise if there is none.
func laneOfPattern(b []byte, off uint64, lanes, otherwise int) int {
	n := min(len(b), 8)
	var w [8]byte
	for lane := range lanes {
		binary.LittleEndian.PutUint64(w[:], patternWord(lane, off))
		if string(b[:n]) == string(w[:n]) {
			return lane
		}
	}
	return otherwise
}

// comparison collects what a check of memory found.
type comparison struct {
	compared, bad uint64
	detail        string
}

// check compares b, whose first byte is at the multiple of 8 off, with the
// pattern of a lane.
func (c *comparison) check(b []byte, lane int, off uint64) {
	c.compared += uint64(len(b))
	var w [8]byte
	for i := 0; i < len(b); i += 8 {
		want := patternWord(lane, off+uint64(i))
		if i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == want {
			continue
		}
		binary.LittleEndian.PutUint64(w[:], want)
		for k := i; k < min(i+8, len(b)); k++ {
			if b[k] == w[k-i] {
				continue
			}
			if c.bad == 0 {
				c.detail = fmt.Sprintf("queue pair %d, byte %d: 0x%02x instead of 0x%02x", lane+1, off+uint64(k), b[k], w[k-i])
			}
			c.bad++
		}
	}
}

// counters compares the sum of 8-byte counters, one every stride bytes, with
// what the peer has added.
func (c *comparison) counters(b []byte, stride uint64, want uint64, lane int) {
	var sum uint64
	for i := uint64(0); i+8 <= uint64(len(b)); i += stride {
		sum += binary.NativeEndian.Uint64(b[i:])
		c.compared += 8
	}
	if sum != want {
		if c.bad == 0 {
			c.detail = fmt.Sprintf("queue pair %d: the counters add up to %d instead of %d", lane+1, sum, want)
		}
		c.bad += 8
	}
}
