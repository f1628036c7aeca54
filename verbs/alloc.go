package verbs

import (
	"fmt"
	"sync"
	"unsafe"
)

// Memory is page-aligned memory outside the Go heap, for regions: the garbage
// collector never looks at it, and it has huge pages where there are any.
type Memory struct {
	data   []byte // as asked for; nil when closed; under mappings.mu
	mapped []byte // as mapped; nil on the heap
	size   int    // bytes of data
	page   int    // size of its pages
	why    string // why they are not huge
	users  int    // regions that lie in it; under mappings.mu
}

// Alloc returns n zero bytes of page-aligned memory, n ≥ 1, touched once so that
// no transfer pays for the first touch of a page. Memory of at least one huge
// page (2 MiB on most machines) lies on huge pages where the system has any: of
// the reserved pool, or transparent ones. [Memory.String] says what it got, and
// why.
func Alloc(n int) (*Memory, error) {
	if n < 1 {
		return nil, errorf(ErrInvalid, "allocate memory: %d bytes, must be at least 1", n)
	}
	m, err := mapMemory(n)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of memory: %w", n, err)
	}
	m.size = n
	mappings.add(m)
	return m, nil
}

// Bytes returns the memory, nil after Close. What it returned before must not be
// touched after Close.
func (m *Memory) Bytes() []byte {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	return m.data
}

// HugePages reports whether the memory lies on huge pages.
func (m *Memory) HugePages() bool { return m.why == "" }

// String says what the memory is in plain words.
func (m *Memory) String() string {
	s := fmt.Sprintf("%d bytes on pages of %d KiB", m.size, m.page>>10)
	if m.why != "" {
		s += ": no huge pages, " + m.why
	}
	return s
}

// Close gives the memory back to the system. It matches ErrBusy while a memory
// region lies in it: close that first. A second Close does nothing.
func (m *Memory) Close() error {
	open, err := mappings.remove(m)
	if !open || m.mapped == nil {
		return err
	}
	return unmapMemory(m.mapped)
}

func (m *Memory) contains(p uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
	return p >= start && p-start < uintptr(len(m.data))
}

// drop says that a region no longer lies in the memory, if it did.
func (m *Memory) drop() {
	if m == nil {
		return
	}
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	m.users--
}

// mappings knows the memory that Alloc has given out, so that none is unmapped
// under a region: a device that touches it would crash the program. It is a
// property of the process, as the address space is.
var mappings mappingSet

type mappingSet struct {
	mu  sync.Mutex
	set map[*Memory]struct{}
}

func (s *mappingSet) add(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = make(map[*Memory]struct{})
	}
	s.set[m] = struct{}{}
}

// hold returns the memory that buf lies in, with one more user, or nil.
func (s *mappingSet) hold(buf []byte) *Memory {
	if cap(buf) == 0 {
		return nil
	}
	p := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.set {
		if m.contains(p) {
			m.users++
			return m
		}
	}
	return nil
}

// remove forgets m and its bytes; open reports that it was there.
func (s *mappingSet) remove(m *Memory) (open bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.users > 0 {
		return false, errorf(ErrBusy, "close memory of %d bytes: %d memory regions lie in it; close those first", m.size, m.users)
	}
	_, open = s.set[m]
	delete(s.set, m)
	m.data = nil
	return open, nil
}
