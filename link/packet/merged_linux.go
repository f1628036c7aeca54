package packet

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// A sender on this machine, at the other end of a veth pair or behind a tap, may
// leave its segmentation and its checksums to hardware that is not there
// (UDP_SEGMENT, CHECKSUM_PARTIAL), and a receiving kernel may merge (GRO). The
// socket then hears one frame of up to 64 KiB. The kernel's note before each
// frame (PACKET_VNET_HDR) says so, and says the size of the segments.

const (
	// vnetLen is the length of the note: struct virtio_net_hdr.
	vnetLen = 10
	// gsoUDP is its kind of frames that are to be cut into UDP datagrams:
	// linux/virtio_net.h VIRTIO_NET_HDR_GSO_UDP_L4.
	gsoUDP = 5
	// gsoECN is a bit beside the kind: VIRTIO_NET_HDR_GSO_ECN.
	gsoECN = 0x80
	// needsSum says that the checksum is not filled in yet:
	// VIRTIO_NET_HDR_F_NEEDS_CSUM.
	needsSum = 1

	// maxMerged is the longest frame.
	maxMerged = 64<<10 + ether.HeaderLen
	// maxCut bounds the segments of one: Linux' own limit (UDP_MAX_SEGMENTS).
	maxCut = 128
	// splitLen holds the segments of one, each with an envelope.
	splitLen = maxMerged + maxCut*(ether.HeaderLen+ether.TagLen+ip.IPv6Len+ip.UDPLen)
)

// vnet is the note.
type vnet struct {
	flags, kind       uint8
	size              int // of a segment
	sumFrom, sumPlace int // what the checksum covers, and where it goes from there
}

// vnetOf reads the note, which is in the machine's byte order.
func vnetOf(b []byte) vnet {
	ne := binary.NativeEndian
	return vnet{flags: b[0], kind: b[1], size: int(ne.Uint16(b[4:])), sumFrom: int(ne.Uint16(b[6:])), sumPlace: int(ne.Uint16(b[8:]))}
}

// merged reports whether the frame is UDP datagrams in a piece.
func (v *vnet) merged() bool { return v.kind&^gsoECN == gsoUDP }

// fill completes a frame whose checksum was left to hardware. 0 says that there
// is none, as from RNICs: the ICRC covers more.
func (v *vnet) fill(b []byte) {
	if at := v.sumFrom + v.sumPlace; v.flags&needsSum != 0 && at+2 <= len(b) {
		b[at], b[at+1] = 0, 0
	}
}

// split cuts a merged frame, of which head is the begin and rest the end, into
// frames of size bytes of UDP payload, as a NIC would, and gives them to rx in
// one piece. Identifications count up, or stay: see repeat.
func (l *system) split(head, rest []byte, size int, tag ether.Tag, tagged bool, rx *frame.Rx) bool {
	at := ether.HeaderLen + ip.IPv6Len // of the UDP header
	v4 := etherType(head) == ether.TypeIPv4
	if v4 {
		at = ether.HeaderLen + ip.IPv4Len
	}
	env := at + ip.UDPLen
	if len(head) < env || v4 && head[ether.HeaderLen] != 0x45 {
		l.cnt.RxForeign++
		return false
	}
	// Bytes behind the datagram are no part of it.
	total := int(binary.BigEndian.Uint16(head[at+4:])) - ip.UDPLen
	if size <= 0 || total <= 0 || total > len(head)-env+len(rest) || (total+size-1)/size > maxCut {
		l.cnt.RxForeign++
		return false
	}
	out := l.splitPool.Get()
	extra := 0
	if tagged {
		extra = ether.TagLen
	}
	ident := binary.BigEndian.Uint16(head[ether.HeaderLen+4:])
	n, first := 0, head[env:]
	for left := total; left > 0; ident++ {
		seg := min(size, left)
		left -= seg
		f := out[n:]
		copy(f[extra:], head[:env])
		if tagged {
			insertTag(f, head, tag)
		}
		envelope(f[extra:], v4, at, seg, ident)
		n += extra + env
		k := copy(out[n:n+seg], first)
		first = first[k:]
		rest = rest[copy(out[n+k:n+seg], rest):]
		n += seg
	}
	*rx = frame.Rx{Data: out[:n], Seg: extra + env + min(size, total)}
	if v4 && n > rx.Seg {
		l.repeat(out[:n], rx.Seg, ether.HeaderLen+extra)
	}
	l.lent = append(l.lent, out)
	return true
}

// repeat gives all packets of a merged frame the Identification of the first, if
// that is what they had: the kernel merges packets of one Identification and those
// that count up, and does not tell which. The ICRC of one of them does.
func (l *system) repeat(b []byte, seg, l3 int) {
	e := &l.env
	if e.Decode(b[seg:min(2*seg, len(b))]) != roce.ReasonNone {
		return
	}
	flow, first := e.Flow(), e.Ident-1
	if flow.Verify(e.Ident, e.DF, e.IB) || !flow.Verify(first, e.DF, e.IB) {
		return
	}
	for off := seg; off < len(b); off += seg {
		h := b[off+l3:][:ip.IPv4Len]
		binary.BigEndian.PutUint16(h[4:], first)
		binary.BigEndian.PutUint16(h[10:], 0)
		binary.BigEndian.PutUint16(h[10:], ip.Checksum(h))
	}
}

// envelope makes the headers of one segment of seg bytes: lengths,
// Identification, checksums. b is as if there were no tag; the UDP header is
// at at.
func envelope(b []byte, v4 bool, at, seg int, ident uint16) {
	be := binary.BigEndian
	h := b[ether.HeaderLen:at]
	if v4 {
		be.PutUint16(h[2:], uint16(ip.IPv4Len+ip.UDPLen+seg))
		be.PutUint16(h[4:], ident)
		be.PutUint16(h[10:], 0)
		be.PutUint16(h[10:], ip.Checksum(h))
	} else {
		be.PutUint16(h[4:], uint16(ip.UDPLen+seg))
	}
	be.PutUint16(b[at+4:], uint16(ip.UDPLen+seg))
	be.PutUint16(b[at+6:], 0)
}
