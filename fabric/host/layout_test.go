package host

import (
	"testing"
	"unsafe"
)

// What every packet needs of a NIC and of a connection is two cache lines each.
func TestHotPartsAreCacheLines(t *testing.T) {
	const line = 64
	var (
		n NIC
		c Conn
	)
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"the second line of a NIC begins at", unsafe.Offsetof(n.conns), line},
		{"a NIC is, beyond an odd number of lines,", unsafe.Sizeof(n) % (2 * line), line},
		{"the second line of a connection begins at", unsafe.Offsetof(c.Packets), line},
		{"a connection is, beyond whole lines,", unsafe.Sizeof(c) % line, 0},
	} {
		if c.got != c.want {
			t.Errorf("%s %d bytes, want %d", c.what, c.got, c.want)
		}
	}
	if at := unsafe.Offsetof(n.lossy); at > 2*line {
		t.Errorf("what few packets need begins at %d", at)
	}
}
