package mem

import "github.com/verbena-rdma/verbena/ib"

// PD identifies a protection domain of one adapter.
type PD uint32

// Region is a registered memory region, or what a bound memory window opens of
// one. Its fields are fixed while it is in the table.
type Region struct {
	LKey   ib.LKey
	RKey   ib.RKey // the same number as LKey
	PD     PD
	Access ib.Access
	Base   uint64 // first address of the region as work requests and peers name it
	Len    uint64 // bytes
	data   []byte // nil for phantom memory

	win   *Window // whose region this is; nil for a memory region
	open  bool    // of a window: it is bound
	qpn   ib.QPN  // … type 2: who has bound it
	bound *Window // of a memory region: the first of the windows bound to it
}

// Bytes returns the memory of the region; nil for phantom memory.
func (r *Region) Bytes() []byte { return r.data }

// Phantom reports whether the region is a length without bytes.
func (r *Region) Phantom() bool { return r.data == nil && r.Len > 0 }

// local checks an access by one's own work request. r may be nil: no region. The
// key of a window opens nothing to those.
func (r *Region) local(pd PD, addr, n uint64, need ib.Access) Fault {
	if r != nil && r.win != nil {
		return FaultKey
	}
	return r.grants(pd, addr, n, need)
}

// remote checks an access by the peer of queue pair qpn.
func (r *Region) remote(pd PD, qpn ib.QPN, addr, n uint64, need ib.Access) Fault {
	if r != nil && r.win != nil {
		if f := r.admits(qpn); f != FaultNone {
			return f
		}
	}
	return r.grants(pd, addr, n, need)
}

// grants checks an access to n bytes at addr. r may be nil: no region.
func (r *Region) grants(pd PD, addr, n uint64, need ib.Access) Fault {
	switch {
	case r == nil:
		return FaultKey
	case r.PD != pd:
		return FaultPD
	case r.Access&need != need:
		return FaultAccess
	case !r.holds(addr, n):
		return FaultRange
	}
	return FaultNone
}

// holds reports whether n bytes at addr lie in the region. Base+Len does not
// exceed 2^64, so nothing here can wrap.
func (r *Region) holds(addr, n uint64) bool {
	off := addr - r.Base
	return addr >= r.Base && off <= r.Len && n <= r.Len-off
}

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
