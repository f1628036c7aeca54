//go:build !linux

package verbs

import (
	"os"
	"runtime"
	"unsafe"
)

// mapMemory takes the memory from the Go heap, aligned to a page.
func mapMemory(n int) (*Memory, error) {
	page := os.Getpagesize()
	b := make([]byte, n+page)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	return &Memory{data: b[skip : skip+n : skip+n], page: page, why: "Verbena does not ask for them on " + runtime.GOOS}, nil
}

func unmapMemory([]byte) error { return nil }
