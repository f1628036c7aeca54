//go:build !race

package mem

// publish writes src at byte at of an aligned word of 4 or 8 bytes, in one
// atomic step, after everything written before.
func publish(word []byte, at int, src []byte) { storeWord(word, at, src) }
