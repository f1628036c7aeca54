package mem

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/verbena-rdma/verbena/ib"
)

// atomicLen is the width in bytes of an atomic operation.
const atomicLen = 8

// Remote looks up what the peer of queue pair qpn may touch: n bytes at va under
// key. The region is valid until the next control call.
//
// A request for 0 bytes touches nothing, so its key and address are not looked
// at (IBA vol.1 9.7.4.1, C9-88): the answer is nil and FaultNone, and the
// methods At and WriteAt of a nil region do nothing.
func (t *Table) Remote(pd PD, qpn ib.QPN, key ib.RKey, va, n uint64, need ib.Access) (*Region, Fault) {
	if n == 0 {
		return nil, FaultNone
	}
	r := t.lookup(uint32(key))
	if f := r.remote(pd, qpn, va, n, need); f != FaultNone {
		return nil, f
	}
	return r, FaultNone
}

// At returns the n bytes at address va, which Remote has granted. A range that
// is not in the region gives the empty Frag.
func (r *Region) At(va uint64, n int) Frag {
	if n <= 0 || r == nil || !r.holds(va, uint64(n)) {
		return Frag{}
	}
	return r.frag(va-r.Base, uint64(n))
}

// ReadAt returns the n bytes at address va for the answer to a peer, which Remote
// has granted. What a window opens that another shard may bind anew, it copies
// into *buf, which it makes long enough: whoever sends them later must not look
// at memory that is open no longer. It returns FaultKey if the window is that
// already. The rest is as in At.
func (r *Region) ReadAt(va uint64, n int, buf *[]byte) (Frag, Fault) {
	f := r.At(va, n)
	if f.Data == nil || r.win == nil || !r.enter() {
		return f, FaultNone
	}
	fault := r.current()
	if fault == FaultNone {
		if cap(*buf) < n {
			*buf = make([]byte, n)
		}
		f.Data = (*buf)[:copy((*buf)[:n], f.Data)]
	}
	r.exit()
	if fault != FaultNone {
		return Frag{}, fault
	}
	return f, FaultNone
}

func (r *Region) frag(off, n uint64) Frag {
	if r.data == nil {
		return Frag{Phantom: int(n)}
	}
	return Frag{Data: r.data[off : off+n : off+n]}
}

// WriteAt copies src (or nothing, for phantom memory) to va, which Remote has
// granted. The last bytes become visible last: see store.go. A range that is
// not in the region changes nothing. It returns FaultKey, and has written
// nothing, if another shard has unbound the window meanwhile.
func (r *Region) WriteAt(va uint64, src []byte) Fault {
	if len(src) == 0 || r == nil || !r.holds(va, uint64(len(src))) {
		return FaultNone
	}
	if r.win == nil || !r.enter() {
		r.write(va-r.Base, src, true)
		return FaultNone
	}
	f := r.current()
	if f == FaultNone {
		r.write(va-r.Base, src, true)
	}
	r.exit()
	return f
}

// write copies src to byte off; with last its end becomes visible last.
func (r *Region) write(off uint64, src []byte, last bool) {
	switch {
	case r.data == nil:
	case last:
		store(r.data, int(off), src)
	default:
		copyChunks(r.data[off:], src)
	}
}

// Atomic performs one 8-byte atomic at va and returns the value before it: the
// new value is swapAdd if compare matches (CompareSwap), or the sum (FetchAdd).
// The value is in host byte order in memory, as on every adapter. It is atomic
// with respect to every user of sync/atomic in the process. It needs remote
// atomic access.
//
// FaultAlign is for an address that is not a multiple of 8, be it the peer's or
// the memory's behind it, and is looked for after all other faults. Phantom
// memory is 0 always.
func (t *Table) Atomic(pd PD, qpn ib.QPN, key ib.RKey, va uint64, op ib.WROp, compare, swapAdd uint64) (uint64, Fault) {
	r := t.lookup(uint32(key))
	if f := r.remote(pd, qpn, va, atomicLen, ib.RemoteAtomic); f != FaultNone {
		return 0, f
	}
	if va%atomicLen != 0 {
		return 0, FaultAlign
	}
	if r.data == nil {
		return 0, FaultNone
	}
	p := unsafe.Pointer(&r.data[va-r.Base])
	if uintptr(p)%atomicLen != 0 {
		return 0, FaultAlign
	}
	if r.win == nil || !r.enter() {
		return atomically((*uint64)(p), op, compare, swapAdd)
	}
	f := r.current()
	var was uint64
	if f == FaultNone {
		was, f = atomically((*uint64)(p), op, compare, swapAdd)
	}
	r.exit()
	return was, f
}

func atomically(word *uint64, op ib.WROp, compare, swapAdd uint64) (uint64, Fault) {
	switch op {
	case ib.FetchAdd:
		return atomic.AddUint64(word, swapAdd) - swapAdd, FaultNone
	case ib.CompareSwap:
		return compareSwap(word, compare, swapAdd), FaultNone
	default:
		return 0, FaultAccess // no atomic operation
	}
}

// AtomicWrite stores the 8 bytes of src at va in one step, as one user of
// sync/atomic would (IBA vol.1 1.5, annex A19). src is nil for a phantom payload. It
// needs remote write access; FaultAlign is as in Atomic.
func (t *Table) AtomicWrite(pd PD, qpn ib.QPN, key ib.RKey, va uint64, src []byte) Fault {
	r := t.lookup(uint32(key))
	if f := r.remote(pd, qpn, va, atomicLen, ib.RemoteWrite); f != FaultNone {
		return f
	}
	if va%atomicLen != 0 {
		return FaultAlign
	}
	if r.data == nil || src == nil {
		return FaultNone
	}
	p := unsafe.Pointer(&r.data[va-r.Base])
	if uintptr(p)%atomicLen != 0 {
		return FaultAlign
	}
	word, v := (*uint64)(p), binary.NativeEndian.Uint64(src)
	if r.win == nil || !r.enter() {
		atomic.StoreUint64(word, v)
		return FaultNone
	}
	f := r.current()
	if f == FaultNone {
		atomic.StoreUint64(word, v)
	}
	r.exit()
	return f
}

// Flush checks a request to flush n bytes at va under key, or with whole all of
// the region; need names the placements as access flags. There is nothing to do
// besides: what was written is visible, and no memory here is persistent.
func (t *Table) Flush(pd PD, qpn ib.QPN, key ib.RKey, va, n uint64, whole bool, need ib.Access) Fault {
	r := t.lookup(uint32(key))
	if whole && r != nil {
		va, n = r.Base, 0
	}
	return r.remote(pd, qpn, va, n, need)
}

// compareSwap returns the value before.
func compareSwap(word *uint64, compare, swap uint64) uint64 {
	for {
		old := atomic.LoadUint64(word)
		if old != compare || atomic.CompareAndSwapUint64(word, compare, swap) {
			return old
		}
	}
}
