package swtch

import (
	"testing"
	"unsafe"
)

// In a large fabric each line of what a packet touches is a miss: what every
// packet needs of an egress, its queue and its ingress is one line each.
func TestHotPartsAreCacheLines(t *testing.T) {
	const line = 64
	var (
		e egress
		q queue
		g ingress
		w Switch
	)
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"the first queue of an egress is at", unsafe.Offsetof(e.first), line},
		{"an egress is, beyond whole lines", unsafe.Sizeof(e) % line, 0},
		{"what follows the hot part of a queue is at", unsafe.Offsetof(q.kmax), line},
		{"an ingress is", unsafe.Sizeof(g), line},
		{"the second line of a switch begins at", unsafe.Offsetof(w.routes), line},
		{"its peaks and counters begin at", unsafe.Offsetof(w.mmu) + unsafe.Offsetof(w.mmu.peakShared), 2 * line},
		{"a switch is, beyond whole lines,", unsafe.Sizeof(w) % line, 0},
	} {
		if c.got != c.want {
			t.Errorf("%s %d bytes, want %d", c.what, c.got, c.want)
		}
	}
}
