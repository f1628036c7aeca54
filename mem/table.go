package mem

import "github.com/verbena-rdma/verbena/ib"

// Table holds the regions of one adapter and answers every access to memory.
// It has one owner at a time and is not safe for concurrent use.
type Table struct {
	rand func() uint32
	lkey map[ib.LKey]*Region
	rkey map[ib.RKey]*Region
}

// NewTable returns an empty table. rand supplies keys: unguessable for real
// adapters, seeded for simulated ones.
func NewTable(rand func() uint32) *Table { panic("to be written") }

// Register adds a region over data, whose first byte work requests name as
// address base. The table keeps data alive until Deregister. A region may be
// empty.
func (t *Table) Register(pd PD, data []byte, base uint64, access ib.Access) (*Region, error) {
	panic("to be written")
}

// RegisterPhantom adds a region of n bytes that holds no data.
func (t *Table) RegisterPhantom(pd PD, n, base uint64, access ib.Access) (*Region, error) {
	panic("to be written")
}

// Deregister removes a region: from now on its keys open nothing.
func (t *Table) Deregister(r *Region) { panic("to be written") }

// Check tests every element of a scatter/gather list against its region
// without touching memory. Elements of length 0 are not looked up.
func (t *Table) Check(pd PD, sgl []ib.SGE, need ib.Access) Fault { panic("to be written") }

// Gather appends to frags references to the n bytes that start off bytes into
// the list. It checks the elements that it touches.
func (t *Table) Gather(pd PD, sgl []ib.SGE, off uint64, n int, frags []Frag) ([]Frag, Fault) {
	panic("to be written")
}

// Scatter copies src into the list from byte off on. The last bytes become
// visible last. n is the length when src is phantom (nil).
func (t *Table) Scatter(pd PD, sgl []ib.SGE, off uint64, src []byte, n int) Fault {
	panic("to be written")
}

// Remote looks up what a peer may touch: n bytes at va under rkey. The region
// is valid until the next control call.
func (t *Table) Remote(pd PD, key ib.RKey, va, n uint64, need ib.Access) (*Region, Fault) {
	panic("to be written")
}

// At returns the n bytes at address va, which Remote has granted.
func (r *Region) At(va uint64, n int) Frag { panic("to be written") }

// WriteAt copies src (or nothing, for phantom memory) to va, which Remote has
// granted. The last bytes become visible last.
func (r *Region) WriteAt(va uint64, src []byte) { panic("to be written") }

// Atomic performs one 8-byte atomic at va and returns the value before it: the
// new value is swapAdd if compare matches (CompareSwap), or the sum (FetchAdd).
// The value is in host byte order in memory, as on every adapter.
func (t *Table) Atomic(pd PD, key ib.RKey, va uint64, op ib.WROp, compare, swapAdd uint64) (uint64, Fault) {
	panic("to be written")
}
