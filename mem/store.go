package mem

import (
	"sync/atomic"
	"unsafe"
)

// What a program that polls may rely on: a store of n bytes ends with one
// atomic write to the aligned 8-byte word that holds the last byte, or the
// aligned 4-byte word where the region does not contain the larger. A program
// that sees the new value by an atomic load of that word, or of the aligned
// 4-byte word in it that holds the last byte, sees all bytes of the store.
// Bytes of the word that do not belong to the store keep their values, even if
// another goroutine changes them at the same time.
//
// At ragged edges, where not even a 4-byte word around the last byte lies in
// the region, the last byte is written last but plainly.
//
// The race detector knows of this order: see publish in store_race.go.

// chunkBytes is the most that is copied in one go: a copy cannot be preempted.
const chunkBytes = 256 << 10

func copyChunks(dst, src []byte) {
	for len(src) > chunkBytes {
		copy(dst, src[:chunkBytes])
		dst, src = dst[chunkBytes:], src[chunkBytes:]
	}
	copy(dst, src)
}

// store copies src to data[off:], which has room; data is a whole region. src
// is not empty.
func store(data []byte, off int, src []byte) {
	end := off + len(src)
	base := uintptr(unsafe.Pointer(&data[0]))
	for size := 8; size >= 4; size /= 2 {
		// The aligned word around the last byte, as an index; negative if it
		// begins before the region.
		word := end - 1 - int((base+uintptr(end-1))&uintptr(size-1))
		if word < 0 || word+size > len(data) {
			continue
		}
		body := max(word-off, 0)
		copyChunks(data[off:], src[:body])
		publish(data[word:word+size], off+body-word, src[body:])
		return
	}
	copyChunks(data[off:], src[:len(src)-1])
	data[end-1] = src[len(src)-1]
}

// storeWord writes src at byte at of an aligned word of 4 or 8 bytes, in one
// atomic step.
func storeWord(word []byte, at int, src []byte) {
	p := unsafe.Pointer(&word[0])
	if len(word) == 4 {
		merge32((*uint32)(p), at, src)
		return
	}
	if at == 4 && len(src) == 4 {
		merge32((*uint32)(unsafe.Pointer(&word[4])), 0, src) // leave the other half alone
		return
	}
	if at == 0 && len(src) == 4 {
		merge32((*uint32)(p), 0, src)
		return
	}
	merge64((*uint64)(p), at, src)
}

func merge64(p *uint64, at int, src []byte) {
	var w uint64
	b := (*[8]byte)(unsafe.Pointer(&w))
	if len(src) == 8 {
		copy(b[:], src)
		atomic.StoreUint64(p, w)
		return
	}
	for {
		w = atomic.LoadUint64(p)
		old := w
		copy(b[at:], src)
		if atomic.CompareAndSwapUint64(p, old, w) {
			return
		}
	}
}

func merge32(p *uint32, at int, src []byte) {
	var w uint32
	b := (*[4]byte)(unsafe.Pointer(&w))
	if len(src) == 4 {
		copy(b[:], src)
		atomic.StoreUint32(p, w)
		return
	}
	for {
		w = atomic.LoadUint32(p)
		old := w
		copy(b[at:], src)
		if atomic.CompareAndSwapUint32(p, old, w) {
			return
		}
	}
}
