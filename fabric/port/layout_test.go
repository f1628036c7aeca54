package port

import (
	"testing"
	"unsafe"
)

// What every frame needs of a port is one line for both directions, one for
// sending, and one of counters for each priority. The stride of ports that lie
// together is an odd number of lines, so that their hot lines share no set of
// a cache.
func TestHotPartsAreCacheLines(t *testing.T) {
	const line = 64
	var p Port
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"what sending needs is at", unsafe.Offsetof(p.busy), line},
		{"counters are at", unsafe.Offsetof(p.Stats), 2 * line},
		{"counters of a priority are", unsafe.Sizeof(PrioStats{}), line},
		{"a port is, beyond an odd number of lines,", unsafe.Sizeof(p) % (2 * line), line},
	} {
		if c.got != c.want {
			t.Errorf("%s %d bytes, want %d", c.what, c.got, c.want)
		}
	}
}
