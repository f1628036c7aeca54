//go:build !linux

package verbs

import (
	"errors"
	"os"
	"runtime"
	"unsafe"
)

// mapMemory takes the memory from the Go heap, aligned to a page.
func mapMemory(n int) (_ *Memory, err error) {
	page := os.Getpagesize()
	defer func() {
		if recover() != nil { // more than a slice can be
			err = errors.New("more than the address space holds")
		}
	}()
	b := make([]byte, n+page)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	return &Memory{data: b[skip : skip+n : skip+n], page: page, why: "Verbena does not ask for them on " + runtime.GOOS}, nil
}

// mapped cannot tell.
func mapped([]byte) bool { return true }

func unmapMemory([]byte) error { return nil }
