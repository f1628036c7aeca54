package packet

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// A run of RoCEv2 leaves as one frame with one envelope, which the kernel or the
// interface cuts behind its IB packets as they were: each gets the envelope again,
// with its own lengths and the next Identification. A frame at a time costs a walk
// through the stack each. A socket with notes wants one before every frame.

// maxEnvelope is the longest envelope: Ethernet with a tag, IPv6, UDP.
const maxEnvelope = ether.HeaderLen + ether.TagLen + ip.IPv6Len + ip.UDPLen

// envelopeOf returns the length of the envelope that all frames of a run have, if
// the kernel would write each as it stands there (but for the UDP checksum, which
// it fills in, and which the ICRC does not cover); 0 else: for RoCEv1, and where
// somebody has changed one frame on its way here.
func envelopeOf(b []byte, seg int) int {
	l2, typ := ether.HeaderLen, etherType(b)
	if typ == ether.TypeVLAN {
		l2, typ = ether.HeaderLen+ether.TagLen, etherType(b[ether.TagLen:])
	}
	l3 := ip.IPv4Len
	switch typ {
	case ether.TypeIPv4:
	case ether.TypeIPv6:
		l3 = ip.IPv6Len
	default:
		return 0
	}
	env, last := l2+l3+ip.UDPLen, len(b)%seg
	if seg <= env || last != 0 && last <= env {
		return 0
	}
	if !datagram(b[l2:], typ) {
		return 0
	}
	for off, i := 0, uint16(0); off < len(b); off, i = off+seg, i+1 {
		s := b[off:min(off+seg, len(b))]
		if off > 0 && !bytes.Equal(s[2*len(ether.MAC{}):l2], b[2*len(ether.MAC{}):l2]) || !follows(s[l2:], b[l2:], typ, i) {
			return 0
		}
	}
	return env
}

// datagram reports whether an IP header is one of a whole UDP datagram, without
// options.
func datagram(h []byte, typ ether.Type) bool {
	if typ == ether.TypeIPv4 {
		return h[0] == 4<<4|ip.IPv4Len/4 && h[9] == uint8(ip.ProtoUDP) && binary.BigEndian.Uint16(h[6:])&0x3FFF == 0
	}
	return h[0]>>4 == 6 && h[6] == uint8(ip.ProtoUDP)
}

// follows reports whether s, from the IP header on, is what the kernel makes of
// the i-th segment if first is the first one.
func follows(s, first []byte, typ ether.Type, i uint16) bool {
	be := binary.BigEndian
	l3, n := ip.IPv6Len, len(s)-ip.IPv6Len
	if typ == ether.TypeIPv4 {
		l3, n = ip.IPv4Len, len(s)
		if !bytes.Equal(s[:2], first[:2]) || be.Uint16(s[4:]) != be.Uint16(first[4:])+i || !bytes.Equal(s[6:10], first[6:10]) ||
			!bytes.Equal(s[12:l3], first[12:l3]) || ip.Checksum(s[:l3]) != 0 || int(be.Uint16(s[2:])) != n {
			return false
		}
	} else if !bytes.Equal(s[:4], first[:4]) || !bytes.Equal(s[6:l3], first[6:l3]) || int(be.Uint16(s[4:])) != n {
		return false
	}
	return bytes.Equal(s[l3:l3+4], first[l3:l3+4]) && int(be.Uint16(s[l3+4:])) == len(s)-l3 && be.Uint16(s[l3+6:]) == 0
}

// sum leaves the UDP checksum of a RoCEv2 frame that has none to the kernel, by a
// note, and reports whether it did. What is cut has one, and a receiver's kernel that
// merges what has one (GRO) lets what has none overtake it.
func sum(note, f []byte) bool {
	l2, typ := ether.HeaderLen, etherType(f)
	if typ == ether.TypeVLAN {
		l2, typ = ether.HeaderLen+ether.TagLen, etherType(f[ether.TagLen:])
	}
	l3 := ip.IPv4Len
	switch typ {
	case ether.TypeIPv4:
	case ether.TypeIPv6:
		l3 = ip.IPv6Len
	default:
		return false
	}
	at := l2 + l3
	if len(f) < at+ip.UDPLen || !datagram(f[l2:], typ) {
		return false
	}
	udp, be, ne := f[at:], binary.BigEndian, binary.NativeEndian
	if be.Uint16(udp[6:]) != 0 || int(be.Uint16(udp[4:])) != len(udp) {
		return false
	}
	be.PutUint16(udp[6:], pseudo(f[l2:at], len(udp)))
	clear(note)
	note[0] = needsSum
	ne.PutUint16(note[6:], uint16(at))
	ne.PutUint16(note[8:], 6)
	return true
}

// unsum takes that back.
func unsum(note, f []byte) {
	if at := int(binary.NativeEndian.Uint16(note[6:])); note[0] == needsSum {
		f[at+6], f[at+7] = 0, 0
	}
}

// pseudo returns the sum of the pseudo header of a UDP datagram of n bytes, header
// included, behind an IP header: where the kernel goes on with the checksum.
func pseudo(l3 []byte, n int) uint16 {
	addrs := l3[8:]
	if len(l3) == ip.IPv4Len {
		addrs = l3[12:]
	}
	s := uint32(ip.ProtoUDP) + uint32(n)
	for i := 0; i < len(addrs); i += 2 {
		s += uint32(binary.BigEndian.Uint16(addrs[i:]))
	}
	s = s&0xFFFF + s>>16
	return uint16(s&0xFFFF + s>>16)
}

// queueRun puts a run with envelopes of env bytes into the batch as one frame.
func (l *system) queueRun(r *frame.Run, env int, dst ether.MAC) {
	b := &l.tx
	if !b.room(r.Segs + 1) {
		l.flush()
	}
	m := &b.msg[b.n]
	m.buf, m.seg = r.Buf[:r.N], r.Seg
	head := m.head[:vnetLen+env]
	h := head[vnetLen:]
	copy(h, r.Buf[:env])
	copy(h, dst[:])
	copy(h[6:], l.mac[:])
	whole(h, r.N-r.Segs*env)
	at := env - ip.UDPLen
	ne := binary.NativeEndian
	head[0], head[1] = needsSum, b.kind
	ne.PutUint16(head[2:], uint16(env))
	ne.PutUint16(head[4:], uint16(r.Seg-env))
	ne.PutUint16(head[6:], uint16(at))
	ne.PutUint16(head[8:], 6)
	b.part(head)
	for off := 0; off < r.N; off += r.Seg {
		b.part(r.Buf[off+env : min(off+r.Seg, r.N)])
	}
	b.end()
}

// whole makes an envelope one of n bytes, and writes the sum of the pseudo header
// where the kernel goes on with the checksum.
func whole(h []byte, n int) {
	be := binary.BigEndian
	l3 := h[ether.HeaderLen:]
	if etherType(h) == ether.TypeVLAN {
		l3 = l3[ether.TagLen:]
	}
	udp := l3[len(l3)-ip.UDPLen:]
	be.PutUint16(udp[4:], uint16(ip.UDPLen+n))
	l3 = l3[:len(l3)-ip.UDPLen]
	if len(l3) == ip.IPv4Len {
		be.PutUint16(l3[2:], uint16(len(l3)+ip.UDPLen+n))
		be.PutUint16(l3[10:], 0)
		be.PutUint16(l3[10:], ip.Checksum(l3))
	} else {
		be.PutUint16(l3[4:], uint16(ip.UDPLen+n))
	}
	be.PutUint16(udp[6:], pseudo(l3, ip.UDPLen+n))
}

// refusesCut reports whether an error can mean that the system does not cut:
// kernels before 6.2 do not know how, others have no such interface.
func refusesCut(e unix.Errno) bool {
	return e == unix.EINVAL || e == unix.EIO || e == unix.EOPNOTSUPP || e == unix.ENOPROTOOPT || e == unix.EMSGSIZE
}

// stopCutting sends what is left of the batch from message at on frame by frame,
// and from now on everything: the system has refused to cut. Once in the life of a
// link.
func (l *system) stopCutting(at int, e unix.Errno) {
	b := &l.tx
	rest := append([]txMsg(nil), b.msg[at:b.n]...)
	b.reset()
	l.whole = true
	l.event(link.Event{Kind: link.EventNoSegmentation, Src: l.cfg.Addrs[0], Dst: l.lastDst, Err: e})
	for i := range rest {
		m := &rest[i]
		if m.seg == 0 {
			unsum(m.head[:vnetLen], m.buf)
			l.queue(m.buf, ether.MAC(m.buf))
			continue
		}
		l.cnt.TxSplit++
		for off := 0; off < len(m.buf); off += m.seg {
			l.queue(m.buf[off:min(off+m.seg, len(m.buf))], ether.MAC(m.head[vnetLen:]))
		}
	}
	l.flush()
}
