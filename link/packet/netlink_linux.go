package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netlink is a socket to the kernel's routing tables (RFC 3549).
type netlink struct {
	mu  sync.Mutex // Close may come at any time
	fd  int
	seq uint32
	out []byte
	in  [8192]byte
}

// open opens the socket; groups is what it hears unasked.
func (n *netlink) open(groups uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("bind netlink socket: %w", err)
	}
	// The kernel answers within the call; this is for the case that it does not.
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	n.fd = fd
	return nil
}

func (n *netlink) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd >= 0 {
		_ = unix.Close(n.fd)
		n.fd = -1
	}
}

// attr is one attribute.
type attr struct {
	typ  uint16
	data []byte
}

// ask sends one request with a fixed part and attributes and returns the first
// answer, without its netlink header; nil for a mere acknowledgement. What it
// returns is valid until the next call.
func (n *netlink) ask(typ, flags uint16, fixed []byte, attrs ...attr) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd < 0 {
		return nil, unix.EBADF
	}
	n.seq++
	ne := binary.NativeEndian
	b := append(n.out[:0], make([]byte, unix.SizeofNlMsghdr)...)
	b = append(b, fixed...)
	for _, a := range attrs {
		b = ne.AppendUint16(b, uint16(unix.SizeofRtAttr+len(a.data)))
		b = ne.AppendUint16(b, a.typ)
		b = append(b, a.data...)
		for len(b)%unix.NLMSG_ALIGNTO != 0 {
			b = append(b, 0)
		}
	}
	ne.PutUint32(b, uint32(len(b)))
	ne.PutUint16(b[4:], typ)
	ne.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
	ne.PutUint32(b[8:], n.seq)
	n.out = b
	if err := unix.Sendto(n.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	for {
		got, _, err := unix.Recvfrom(n.fd, n.in[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("netlink: %w", err)
		}
		for _, m := range messages(n.in[:got]) {
			if m.seq != n.seq {
				continue // late answer to a question that was given up
			}
			if m.typ != unix.NLMSG_ERROR {
				return m.body, nil
			}
			if len(m.body) < 4 {
				return nil, unix.EPROTO
			}
			if code := int32(ne.Uint32(m.body)); code != 0 {
				return nil, unix.Errno(-code)
			}
			return nil, nil
		}
	}
}

// message is one netlink message.
type message struct {
	typ  uint16
	seq  uint32
	body []byte
}

// messages cuts what was received in one piece.
func messages(b []byte) (all []message) {
	ne := binary.NativeEndian
	for len(b) >= unix.SizeofNlMsghdr {
		n := int(ne.Uint32(b))
		if n < unix.SizeofNlMsghdr || n > len(b) {
			return all
		}
		all = append(all, message{ne.Uint16(b[4:]), ne.Uint32(b[8:]), b[unix.SizeofNlMsghdr:n]})
		b = b[min((n+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1), len(b)):]
	}
	return all
}

// attrs calls f with each attribute of b.
func attrs(b []byte, f func(typ uint16, data []byte)) {
	ne := binary.NativeEndian
	for len(b) >= unix.SizeofRtAttr {
		n := int(ne.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return
		}
		f(ne.Uint16(b[2:])&^unix.NLA_F_NESTED, b[unix.SizeofRtAttr:n])
		b = b[min((n+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
}

// bytesOf returns the bytes of a fixed part.
func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
