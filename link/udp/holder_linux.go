package udp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// inUse explains who has the port, as far as this process may see.
func inUse(a netip.Addr, port uint16, err error) error {
	h := hostView{proc: "/proc", sys: "/sys"}
	return fmt.Errorf("open UDP link on %v: port %d is taken by %s: %w", a, port, h.holder(a, port), err)
}

// hostView is where the kernel shows its sockets and devices; tests have their
// own.
type hostView struct{ proc, sys string }

// boundSocket is one line of /proc/net/udp or udp6.
type boundSocket struct {
	addr  netip.Addr
	uid   string
	inode string
}

// holder says who has a socket on port that conflicts with a, and what to do.
func (h hostView) holder(a netip.Addr, port uint16) string {
	for _, s := range h.sockets(port) {
		if s.addr != a.WithZone("") && !s.addr.IsUnspecified() {
			continue
		}
		on := ""
		if s.addr.IsUnspecified() {
			on = " (on every address)"
		}
		pid, name, sawAll := h.process(s.inode)
		switch {
		case pid != 0 && pid == os.Getpid():
			return "this process itself" + on + "; close the device that has it, or use another address"
		case pid != 0:
			return fmt.Sprintf("process %d (%s)%s; stop it or use another address", pid, name, on)
		case h.softRoCE() != "":
			return fmt.Sprintf("most likely the kernel's soft RoCE device %s%s; remove it with \"rdma link delete %s\", or use a network namespace",
				h.softRoCE(), on, h.softRoCE())
		case sawAll:
			return "no process that is visible here" + on + ": the kernel's soft RoCE, or a process of another container; look at \"rdma link\", or use another address"
		default:
			return fmt.Sprintf("a process of user %s%s that this user may not see; ask root for \"ss -lunp sport = :%d\", or use another address", s.uid, on, port)
		}
	}
	return "a socket that is not visible here; use another address"
}

// sockets lists the UDP sockets bound to port.
func (h hostView) sockets(port uint16) []boundSocket {
	var found []boundSocket
	for _, name := range []string{"net/udp", "net/udp6"} {
		data, err := os.ReadFile(filepath.Join(h.proc, name))
		if err != nil {
			continue
		}
		for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
			// sl local_address rem_address st queues tr:when retrnsmt uid timeout inode …
			f := strings.Fields(sc.Text())
			if len(f) < 10 {
				continue
			}
			addr, p, ok := parseProcAddr(f[1])
			if ok && p == port {
				found = append(found, boundSocket{addr: addr, uid: f[7], inode: f[9]})
			}
		}
	}
	return found
}

// parseProcAddr reads "0100007F:12B7": words of the address in the machine's
// order of bytes.
func parseProcAddr(s string) (netip.Addr, uint16, bool) {
	host, port, ok := strings.Cut(s, ":")
	p, err := strconv.ParseUint(port, 16, 16)
	b, err2 := hex.DecodeString(host)
	if !ok || err != nil || err2 != nil || len(b)%4 != 0 {
		return netip.Addr{}, 0, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), uint16(p), ok
}

// process finds who has the socket. sawAll says that every process could be
// looked at.
func (h hostView) process(inode string) (pid int, name string, sawAll bool) {
	want := "socket:[" + inode + "]"
	procs, err := os.ReadDir(h.proc)
	if err != nil {
		return 0, "", false
	}
	sawAll = true
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(h.proc, p.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			sawAll = false
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == want {
				comm, _ := os.ReadFile(filepath.Join(h.proc, p.Name(), "comm"))
				return pid, strings.TrimSpace(string(comm)), true
			}
		}
	}
	return 0, "", sawAll
}

// softRoCE returns the name of a soft RoCE device of the kernel, "" if there
// is none: one that says on which network device it rides.
func (h hostView) softRoCE() string {
	dir := filepath.Join(h.sys, "class/infiniband")
	devs, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, d := range devs {
		if _, err := os.Stat(filepath.Join(dir, d.Name(), "parent")); err == nil {
			return d.Name()
		}
	}
	return ""
}
