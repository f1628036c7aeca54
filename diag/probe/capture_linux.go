package probe

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// packetSocket hears probes on every interface, whoever has the port.
type packetSocket struct {
	file *os.File
	raw  syscall.RawConn
	is4  bool
}

// openCapture opens a packet socket for the probes of one family. It needs
// CAP_NET_RAW.
func openCapture(is4 bool, port uint16) (*packetSocket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if errors.Is(err, unix.EPERM) {
		return nil, errors.New("a packet socket needs the capability CAP_NET_RAW: run as root")
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "packet")
	fail := func(err error) (*packetSocket, error) { return nil, errors.Join(err, file.Close()) }
	proto := uint16(unix.ETH_P_IPV6)
	if is4 {
		proto = unix.ETH_P_IP
	}
	prog := probeFilter(is4, port)
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}); err != nil {
		return fail(err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fail(err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, rcvBuffer)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(proto)}); err != nil {
		return fail(err)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return fail(err)
	}
	return &packetSocket{file, raw, is4}, nil
}

func htons(v uint16) uint16 {
	if cpu.IsBigEndian {
		return v
	}
	return v>>8 | v<<8
}

// probeFilter passes whole UDP packets to the port whose BTH has a probe's
// opcode and destination and whose payload begins with the magic.
func probeFilter(is4 bool, port uint16) []unix.SockFilter {
	const (
		ldb, ldh  = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		iph, ipw  = unix.BPF_LD | unix.BPF_H | unix.BPF_IND, unix.BPF_LD | unix.BPF_W | unix.BPF_IND
		ipb       = unix.BPF_LD | unix.BPF_B | unix.BPF_IND
		msh       = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH
		ldxi      = unix.BPF_LDX | unix.BPF_IMM
		jeq, jset = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret       = unix.BPF_RET | unix.BPF_K
		pktType   = 0xFFFFF000 + 4 // SKF_AD_OFF + SKF_AD_PKTTYPE
	)
	type step struct {
		op   uint16
		k    uint32
		want int // 1: go on if equal; -1: go on if not
	}
	steps := []step{
		{ldb, pktType, 0},
		{jeq, unix.PACKET_OUTGOING, -1},
	}
	if is4 {
		steps = append(steps, step{ldb, 9, 0}, step{jeq, unix.IPPROTO_UDP, 1}, step{ldh, 6, 0}, step{jset, 0x3FFF, -1}, step{msh, 0, 0})
	} else {
		steps = append(steps, step{ldb, 6, 0}, step{jeq, unix.IPPROTO_UDP, 1}, step{ldxi, ipv6Len, 0})
	}
	steps = append(steps,
		step{iph, 2, 0}, step{jeq, uint32(port), 1},
		step{ipb, udpLen, 0}, step{jeq, uint32(wire.UCSendOnly), 1},
		step{ipw, udpLen + wire.BTHLen, 0}, step{jeq, magic, 1},
	)
	prog := make([]unix.SockFilter, 0, len(steps)+2)
	for i, s := range steps {
		f := unix.SockFilter{Code: s.op, K: s.k}
		out := uint8(len(steps) - i) // to the last instruction, which drops
		switch s.want {
		case 1:
			f.Jf = out
		case -1:
			f.Jt = out
		}
		prog = append(prog, f)
	}
	return append(prog, unix.SockFilter{Code: ret, K: 1 << 16}, unix.SockFilter{Code: ret})
}

func (s *packetSocket) Close() error { return s.file.Close() }

func (s *packetSocket) waiting() bool { return waiting(s.raw) }

func (s *packetSocket) serve(hear func(*arrival, []byte)) {
	buf, oob := make([]byte, MaxSize+1), make([]byte, 256)
	for {
		var n, oobn, flags, ifindex int
		var rerr error
		err := s.raw.Read(func(fd uintptr) bool {
			var from unix.Sockaddr
			n, oobn, flags, from, rerr = unix.Recvmsg(int(fd), buf, oob, unix.MSG_DONTWAIT)
			if ll, ok := from.(*unix.SockaddrLinklayer); ok {
				ifindex = ll.Ifindex
			}
			return rerr != unix.EAGAIN
		})
		if err != nil {
			return // closed
		}
		if rerr != nil || flags&unix.MSG_TRUNC != 0 {
			continue // an interface went down, or a packet that is none of ours
		}
		a := arrival{df: -1, capture: true, ifindex: ifindex}
		a.readControl(oob[:oobn])
		if a.at == 0 {
			a.at = time.Now().UnixNano()
		}
		if payload, ok := a.readIP(buf[:n], s.is4); ok {
			a.src, a.dst = zoned(a.src, ifindex), zoned(a.dst, ifindex)
			hear(&a, payload)
		}
	}
}

// zoned gives a link-local address its interface.
func zoned(a netip.AddrPort, ifindex int) netip.AddrPort {
	if !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() {
		return a
	}
	return netip.AddrPortFrom(a.Addr().WithZone(strconv.Itoa(ifindex)), a.Port())
}

// readIP takes the IP and UDP header at the start of b and returns the rest.
func (a *arrival) readIP(b []byte, is4 bool) ([]byte, bool) {
	if is4 {
		var h ip.IPv4
		n, r := h.Decode(b)
		if r != ip.ReasonNone || len(b) < int(h.TotalLen) {
			return nil, false
		}
		a.src, a.dst = netip.AddrPortFrom(netip.AddrFrom4(h.Src), 0), netip.AddrPortFrom(netip.AddrFrom4(h.Dst), 0)
		a.tos, a.ttl, a.size = uint8(h.TOS), h.TTL, int(h.TotalLen)
		if a.df = 0; h.DF {
			a.df = 1
		}
		b = b[n:h.TotalLen]
	} else {
		var h ip.IPv6
		if h.Decode(b) != ip.ReasonNone || len(b) < ipv6Len+int(h.PayloadLen) {
			return nil, false
		}
		a.src, a.dst = netip.AddrPortFrom(netip.AddrFrom16(h.Src), 0), netip.AddrPortFrom(netip.AddrFrom16(h.Dst), 0)
		a.tos, a.ttl, a.size = uint8(h.TOS), h.HopLimit, ipv6Len+int(h.PayloadLen)
		b = b[ipv6Len : ipv6Len+int(h.PayloadLen)]
	}
	if len(b) < udpLen || int(binary.BigEndian.Uint16(b[4:])) != len(b) {
		return nil, false
	}
	a.src = netip.AddrPortFrom(a.src.Addr(), binary.BigEndian.Uint16(b))
	a.dst = netip.AddrPortFrom(a.dst.Addr(), binary.BigEndian.Uint16(b[2:]))
	return b[udpLen:], true
}
