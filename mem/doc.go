// Package mem owns registered memory: regions, windows, their keys, access checks, and
// the movement of bytes between scatter/gather lists and packets.
//
//	work request ── lkey, address, length ──▶ Check, Gather, Scatter ─┐
//	                                                                  ├─▶ Region ─▶ bytes
//	peer's request ── rkey, address, length ─▶ Remote, Atomic ────────┘
//
// Every access goes through a [Table], which finds the region by its key and
// then checks protection domain, access rights and range, in this order. A
// refused access changes no byte and is told as a [Fault]: what becomes of it
// (a completion status, a NAK, a silent drop) is the engine's business.
//
// Sending side: Gather returns references, the caller makes the one copy.
// Receiving side: Scatter and WriteAt are the one copy.
//
// A program may poll memory that a peer writes. It polls the last bytes of what
// it expects with an atomic load of an aligned 4-byte or 8-byte word; store.go
// says what it may rely on then. Memory of a phantom region is a length without
// bytes: the checks are the same and nothing is copied.
//
// The package has no lock: a table has one owner at a time. It must never
// touch a byte outside a region, and allocates only in registration.
//
// Read region.go and fault.go, table.go (keys, registration, look-up), sgl.go
// (the local side), remote.go (the peer's side), window.go (rights that
// work requests give and take back), store.go (the order in which
// bytes become visible).
package mem
