package uverbs

import (
	"testing"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// FuzzParse: an answer of any length gives only attributes that are whole in it.
func FuzzParse(f *testing.F) {
	f.Add(make([]byte, sizeDevice))
	f.Add(make([]byte, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, fields := range [][]field{deviceFields, extFields, portFields} {
			a := snapshot.Attr{}
			parse(a, b, fields)
			size := 0
			for _, f := range fields {
				size += f.size
				if _, ok := a[f.name]; f.name != "" && ok != (size <= len(b)) {
					t.Errorf("%s ends at byte %d of %d: %v", f.name, size, len(b), ok)
				}
			}
		}
	})
}
