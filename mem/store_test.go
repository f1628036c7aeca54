package mem

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// arena returns n bytes whose first is a multiple of 8, filled with noise.
func arena(n int) []byte {
	words := make([]uint64, (n+7)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

// Every alignment of a region, every length, every place and length of a store
// in it: the bytes of the store change and no others, be they in the region or
// around it.
func TestStoreEveryAlignment(t *testing.T) {
	const most = 20
	mem, want := arena(8+most+16), make([]byte, 8+most+16)
	src := pattern(most)
	for align := 8; align < 16; align++ {
		for size := 1; size <= most; size++ {
			region := mem[align : align+size : align+size]
			for off := range size {
				for n := 1; off+n <= size; n++ {
					copy(want, mem)
					copy(want[align+off:], src[:n])
					store(region, off, src[:n])
					if !bytes.Equal(mem, want) {
						t.Fatalf("region %d+%d, store %d+%d:\n%x\nwant\n%x", align, size, off, n, mem, want)
					}
					for i := range mem {
						mem[i] += 31 // so that the next store changes every byte
					}
				}
			}
		}
	}
}

// Stores around the size of a chunk.
func TestStoreChunks(t *testing.T) {
	for _, n := range []int{chunkBytes - 1, chunkBytes, chunkBytes + 1, chunkBytes + 8, 2*chunkBytes + 9, 3 * chunkBytes} {
		mem := arena(n + 32)
		want := bytes.Clone(mem)
		src := pattern(n)
		copy(want[11:], src)
		store(mem[5:], 6, src)
		if !bytes.Equal(mem, want) {
			t.Errorf("%d bytes: wrong", n)
		}
	}
}
