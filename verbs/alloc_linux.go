package verbs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// mapMemory maps n bytes: on reserved huge pages, else on transparent ones,
// else on whatever there is.
func mapMemory(n int) (*Memory, error) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	small := os.Getpagesize()
	if n < hugePage {
		b, err := unix.Mmap(-1, 0, roundUp(n, small), prot, flags|unix.MAP_POPULATE)
		if err != nil {
			return nil, err
		}
		return &Memory{data: b[:n:n], mapped: b, page: small, why: "it is less than one of 2 MiB"}, nil
	}
	if b, err := unix.Mmap(-1, 0, roundUp(n, hugePage), prot, flags|unix.MAP_HUGETLB|unix.MAP_POPULATE|21<<unix.MAP_HUGE_SHIFT); err == nil {
		return &Memory{data: b[:n:n], mapped: b, page: hugePage}, nil
	}

	// One huge page more, so that the memory can start on a boundary of one.
	b, err := unix.Mmap(-1, 0, roundUp(n, hugePage)+hugePage, prot, flags)
	if err != nil {
		return nil, err
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int(-addr & (hugePage - 1))
	m := &Memory{data: b[skip : skip+n : skip+n], mapped: b, page: small}
	advised := unix.Madvise(b[skip:skip+roundUp(n, hugePage)], unix.MADV_HUGEPAGE)
	if unix.Madvise(m.data, unix.MADV_POPULATE_WRITE) != nil {
		for i := 0; i < n; i += small {
			m.data[i] = 0
		}
	}
	switch kib, err := hugeKiB(addr, addr+uintptr(len(b))); {
	case err == nil && kib > 0:
		m.page = hugePage
	case advised != nil:
		m.why = fmt.Sprintf("none are reserved (vm.nr_hugepages) and transparent ones are refused: %v", advised)
	default:
		m.why = "none are reserved (vm.nr_hugepages) and the system gave no transparent ones" + thpSetting()
	}
	return m, nil
}

// mapped reports whether all pages of b are mapped: a device that touched others
// would crash the program. An asynchronous msync looks, and does nothing else.
func mapped(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	start := p &^ uintptr(os.Getpagesize()-1)
	_, _, e := unix.Syscall(unix.SYS_MSYNC, start, uintptr(len(b))+p-start, unix.MS_ASYNC)
	return e != unix.ENOMEM
}

func unmapMemory(b []byte) error { return unix.Munmap(b) }

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// thpSetting returns the system's setting in brackets, if it can be read.
func thpSetting() string {
	text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return ""
	}
	return " (transparent_hugepage/enabled is " + strings.TrimSpace(string(text)) + ")"
}

// hugeKiB returns how much of the mappings in [from, to) lies on transparent
// huge pages.
func hugeKiB(from, to uintptr) (int, error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	inside, sum := false, 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if a, b, ok := mapRange(line); ok {
			inside = a < to && b > from
		} else if rest, ok := strings.CutPrefix(line, "AnonHugePages:"); ok && inside {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			sum += n
		}
	}
	return sum, nil
}

// mapRange reads the first line of a mapping: "from-to perms …".
func mapRange(line string) (from, to uintptr, ok bool) {
	span, _, _ := strings.Cut(line, " ")
	lo, hi, ok := strings.Cut(span, "-")
	if !ok {
		return 0, 0, false
	}
	a, err1 := strconv.ParseUint(lo, 16, 64)
	b, err2 := strconv.ParseUint(hi, 16, 64)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil
}
