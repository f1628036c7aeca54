package mem

import "github.com/verbena-rdma/verbena/ib"

// PD identifies a protection domain of one adapter.
type PD uint32

// Region is a registered memory region. Its fields are fixed at registration.
type Region struct {
	LKey   ib.LKey
	RKey   ib.RKey
	PD     PD
	Access ib.Access
	Base   uint64 // first address of the region as work requests and peers name it
	Len    uint64 // bytes
	data   []byte // nil for phantom memory
}

// Phantom reports whether the region is a length without bytes.
func (r *Region) Phantom() bool { return r.data == nil && r.Len > 0 }

// Fault says why an access to memory was refused.
type Fault uint8

// The faults. FaultNone is success.
const (
	FaultNone   Fault = iota
	FaultKey          // no region has this key
	FaultPD           // the region belongs to another protection domain
	FaultAccess       // the region does not allow this kind of access
	FaultRange        // the range leaves the region, or wraps at 2^64
	FaultAlign        // an atomic's address is not a multiple of 8
	FaultLength       // the scatter list is shorter than the data
)

// Frag is a piece of payload: bytes of registered memory, or a phantom length.
type Frag struct {
	Data    []byte // borrowed from the region; nil if phantom
	Phantom int    // bytes, if Data is nil
}

// Len returns the number of bytes.
func (f Frag) Len() int {
	if f.Data == nil {
		return f.Phantom
	}
	return len(f.Data)
}
