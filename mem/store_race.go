//go:build race

package mem

import (
	"runtime"
	"unsafe"
)

// publish writes src at byte at of an aligned word of 4 or 8 bytes, in one
// atomic step, after everything written before.
//
// The race detector takes an atomic load as an order only if it has exactly
// the address of the store, and takes a write to a word for a write to all of
// its bytes. Neither fits a word that may be polled in either width and whose
// other bytes belong to somebody else. So the order is told by hand at both
// addresses, and the store itself is hidden.
func publish(word []byte, at int, src []byte) {
	for i := 0; i < len(word); i += 4 {
		runtime.RaceReleaseMerge(unsafe.Pointer(&word[i]))
	}
	runtime.RaceDisable()
	storeWord(word, at, src)
	runtime.RaceEnable()
}
