package port

import (
	"testing"
	"unsafe"
)

// What every frame needs of a port is one line for both directions and one for
// sending.
func TestHotPartsAreCacheLines(t *testing.T) {
	const line = 64
	var p Port
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"what sending needs is at", unsafe.Offsetof(p.busy), line},
		{"a port is", unsafe.Sizeof(p), 2 * line},
	} {
		if c.got != c.want {
			t.Errorf("%s %d bytes, want %d", c.what, c.got, c.want)
		}
	}
}
