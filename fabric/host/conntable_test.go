package host

import (
	"testing"

	"pgregory.net/rapid"
)

// The table says what a map says, whatever comes and goes.
func TestConnTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table connTable
		model := map[uint32]*Conn{}
		// Few numbers, some of which share their home.
		number := rapid.OneOf(rapid.Uint32Range(17, 40), rapid.Map(rapid.Uint32Range(0, 20), func(n uint32) uint32 { return n << 19 }))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			q := number.Draw(t, "number")
			if rapid.Bool().Draw(t, "remove") {
				table.remove(q)
				delete(model, q)
			} else if model[q] == nil {
				c := new(Conn)
				table.put(q, c)
				model[q] = c
			}
			if int(table.n) != len(model) {
				t.Fatalf("%d connections, %d in the model", table.n, len(model))
			}
			for q := range uint32(64) {
				for _, q := range [...]uint32{q, q << 19} {
					if table.get(q) != model[q] {
						t.Fatalf("number %#x: wrong connection", q)
					}
				}
			}
		}
	})
}
