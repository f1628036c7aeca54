package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	udpNoCheck6RX  = 102 // linux/udp.h UDP_NO_CHECK6_RX
	ipRecvFragSize = 25  // linux/in.h IP_RECVFRAGSIZE
	rcvBuffer      = 4 << 20
	hopLimit       = 64 // what Linux' RNICs send
)

// udpSocket sends and hears. It is never connected and forbids fragmentation,
// so its packets have Identification 0 and DF.
type udpSocket struct {
	c   *net.UDPConn
	raw syscall.RawConn
	at  netip.AddrPort
}

// openSocket binds a socket. The error is the errno's, with what to do where
// the port is taken.
func openSocket(at netip.AddrPort) (socket, error) {
	network := "udp6"
	if at.Addr().Is4() {
		network = "udp4"
	}
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) (err error) {
		if e := rc.Control(func(fd uintptr) { err = setUp(int(fd), at.Addr().Is4()) }); e != nil {
			return e
		}
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), network, at.String())
	if err != nil {
		return nil, err
	}
	c := pc.(*net.UDPConn)
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), uint16(c.LocalAddr().(*net.UDPAddr).Port))
	}
	return &udpSocket{c, raw, at}, nil
}

func setUp(fd int, is4 bool) error {
	type option struct{ level, name, value int }
	all := []option{
		{unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE},
		{unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, hopLimit},
		{unix.IPPROTO_UDP, udpNoCheck6RX, 1},
	}
	if is4 {
		all = []option{
			{unix.IPPROTO_IP, unix.IP_RECVTOS, 1},
			{unix.IPPROTO_IP, unix.IP_RECVTTL, 1},
			{unix.IPPROTO_IP, unix.IP_PKTINFO, 1},
			{unix.IPPROTO_IP, unix.IP_RECVERR, 1},
			{unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
			{unix.IPPROTO_IP, unix.IP_TTL, hopLimit},
		}
	}
	all = append(all, option{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1})
	// Not in every kernel: without, fragments are not told apart.
	if is4 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipRecvFragSize, 1)
	} else {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE, 1)
	}
	for _, o := range all {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return err
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, rcvBuffer)
	}
	return nil
}

func (s *udpSocket) Close() error          { return s.c.Close() }
func (s *udpSocket) local() netip.AddrPort { return s.at }

func (s *udpSocket) waiting() bool { return waiting(s.raw) }

// waiting asks for the length of the first packet that can be read.
func waiting(raw syscall.RawConn) bool {
	n := 0
	if err := raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }); err != nil {
		return false
	}
	return n > 0
}

// dropped reads SK_MEMINFO_DROPS.
func (s *udpSocket) dropped() int {
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_ = s.raw.Control(func(fd uintptr) {
		_, _, _ = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	return int(info[8])
}

func (s *udpSocket) serve(hear func(*arrival, []byte)) {
	buf, oob := make([]byte, MaxSize+1), make([]byte, 512)
	for {
		n, oobn, flags, src, err := s.c.ReadMsgUDPAddrPort(buf, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || flags&unix.MSG_TRUNC != 0 {
			continue // an ICMP error, or a packet that is none of ours
		}
		a := arrival{src: netip.AddrPortFrom(src.Addr().Unmap(), src.Port()), dst: s.at, df: -1}
		a.size = n + udpLen + ipHeader(a.src.Addr())
		a.readControl(oob[:oobn])
		if a.at == 0 {
			a.at = time.Now().UnixNano()
		}
		hear(&a, buf[:n])
	}
}

// readControl takes what the kernel says beside a packet.
func (a *arrival) readControl(oob []byte) {
	for len(oob) >= unix.CmsgLen(0) {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return
		}
		oob = rest
		switch [2]int32{h.Level, h.Type} {
		case [2]int32{unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS}:
			if len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
				a.at = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
			}
		case [2]int32{unix.IPPROTO_IP, unix.IP_TOS}:
			if len(data) >= 1 {
				a.tos = data[0]
			}
		case [2]int32{unix.IPPROTO_IP, unix.IP_TTL}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_HOPLIMIT}:
			if len(data) >= 4 {
				a.ttl = uint8(binary.NativeEndian.Uint32(data))
			}
		case [2]int32{unix.IPPROTO_IP, ipRecvFragSize}, [2]int32{unix.IPPROTO_IPV6, unix.IPV6_RECVFRAGSIZE}:
			if len(data) >= 4 {
				a.cut = int(binary.NativeEndian.Uint32(data) & 0xFFFF)
			}
		case [2]int32{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
			if len(data) >= 4 {
				a.tos = uint8(binary.NativeEndian.Uint32(data))
			}
		case [2]int32{unix.IPPROTO_IP, unix.IP_PKTINFO}:
			if len(data) >= unix.SizeofInet4Pktinfo {
				a.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(data[8:12])), a.dst.Port())
			}
		case [2]int32{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO}:
			if len(data) >= unix.SizeofInet6Pktinfo {
				to := netip.AddrFrom16([16]byte(data[:16]))
				if to.IsLinkLocalUnicast() {
					to = to.WithZone(a.src.Addr().Zone())
				}
				a.dst = netip.AddrPortFrom(to, a.dst.Port())
			}
		}
	}
}

func (s *udpSocket) send(b []byte, to netip.AddrPort, tos uint8) error {
	level, kind := int32(unix.IPPROTO_IP), int32(unix.IP_TOS)
	if !s.at.Addr().Is4() {
		level, kind = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	oob := make([]byte, unix.CmsgSpace(4))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(oob[unix.CmsgLen(0):], uint32(tos))
	_, _, err := s.c.WriteMsgUDPAddrPort(b, oob, to)
	return err
}

// complaints reads the socket's queue of errors (ip(7), IP_RECVERR).
func (s *udpSocket) complaints(f func(netip.AddrPort, Notice)) {
	_ = s.raw.Control(func(fd uintptr) {
		buf, oob := make([]byte, 256), make([]byte, 512)
		for range 1 << 12 {
			_, oobn, _, to, err := unix.Recvmsg(int(fd), buf, oob, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
			if err != nil {
				return
			}
			dst, ok := addrPortOf(to)
			msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
			if !ok || err != nil {
				continue
			}
			for _, m := range msgs {
				if n, ok := noticeOf(m); ok {
					f(dst, n)
				}
			}
		}
	})
}

func addrPortOf(sa unix.Sockaddr) (netip.AddrPort, bool) {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), true
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port)), true
	}
	return netip.AddrPort{}, false
}

// noticeOf reads struct sock_extended_err and the address after it.
func noticeOf(m unix.SocketControlMessage) (n Notice, ok bool) {
	const errLen = 16
	v4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
	v6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
	if !v4 && !v6 || len(m.Data) < errLen {
		return n, false
	}
	origin, typ, code := m.Data[4], m.Data[5], m.Data[6]
	info := binary.NativeEndian.Uint32(m.Data[8:])
	from := m.Data[errLen:]
	switch {
	case origin == unix.SO_EE_ORIGIN_ICMP && len(from) >= 8:
		n.From = netip.AddrFrom4([4]byte(from[4:8]))
		n.What = icmp4(typ, code)
	case origin == unix.SO_EE_ORIGIN_ICMP6 && len(from) >= 24:
		n.From = netip.AddrFrom16([16]byte(from[8:24]))
		n.What = icmp6(typ, code)
	default:
		return n, false // of this host: the send call has said it
	}
	if n.What == tooBig {
		n.MTU = int(min(info, 1<<16))
	}
	n.Count = 1
	return n, true
}

func refused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }

func inUse(err error) bool { return errors.Is(err, unix.EADDRINUSE) }

// pending reports whether an error of a send call is about an earlier packet.
func pending(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) ||
		errors.Is(err, unix.EACCES) || errors.Is(err, unix.EMSGSIZE) || errors.Is(err, unix.EPROTO) || errors.Is(err, unix.ENOPROTOOPT)
}

// errname is the name of an errno, "" for none.
func errname(err error) string {
	var no unix.Errno
	switch {
	case err == nil:
		return ""
	case errors.As(err, &no):
		return unix.ErrnoName(no)
	}
	return shown(err.Error())
}

// dialControl keeps the control channel's packets small, so that it works where
// large ones are lost.
func dialControl(_, _ string, rc syscall.RawConn) (err error) {
	if e := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 512)
	}); e != nil {
		return e
	}
	return err
}
