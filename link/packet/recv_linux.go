package packet

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/wire/ether"
)

// rxVec is how many frames one system call asks for.
const rxVec = 16

const (
	// fewMerged is how many are asked for where merged frames come.
	fewMerged = 4
	// rxBytes ends a Recv: more than that would push what was received first out of
	// the cache before anybody looks at it.
	rxBytes = 256 << 10
)

// maxOdd bounds the messages in one Recv that the kernel could not hand over.
const maxOdd = 64

// rxBatch is the scatter list of one recvmmsg. A message is the kernel's note
// (vnet) and the frame; what is longer than a frame of the interface can be goes
// on in rest.
type rxBatch struct {
	hdr  [rxVec]mmsghdr
	iov  [rxVec][2]unix.Iovec
	ctl  [rxVec][ctlWords]uint64
	buf  [rxVec][]byte // nil: was handed out
	rest [rxVec][]byte // stays
}

// Recv implements link.Link.
func (l *system) Recv(_ clock.Time, rx []frame.Rx) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, link.ErrClosed
	}
	// The order changes from call to call so that nobody starves.
	l.turn = !l.turn
	l.poll.Received()
	n := 0
	if l.turn {
		n = l.recvLocal(rx)
	}
	for odd, bytes := 0, 0; n < len(rx) && bytes < rxBytes; {
		want := min(rxVec, len(rx)-n)
		if l.merging {
			want = min(want, fewMerged)
		}
		l.cnt.RecvCalls++
		got, e := l.rx.receive(l.fd, want, l.rxPool.Get)
		if e == unix.EINVAL && odd < maxOdd {
			// A kernel before 6.2 has no note for merged UDP, and throws it away.
			odd++
			l.cnt.RxForeign++
			continue
		}
		for i := range got {
			if l.take(i, &rx[n]) {
				bytes += len(rx[n].Data)
				l.merging = rx[n].Seg != 0
				n++
			}
		}
		if got < want {
			break
		}
	}
	if !l.turn {
		n += l.recvLocal(rx[n:])
	}
	return n, nil
}

// recvLocal takes what this link sent to itself.
func (l *system) recvLocal(rx []frame.Rx) int {
	n := 0
	for n < len(rx) && l.local.Len() > 0 {
		rx[n] = l.local.Pop()
		l.lent = append(l.lent, rx[n].Data)
		n++
	}
	if n > 0 {
		l.localLen.Store(int32(l.local.Len()))
	}
	return n
}

// receive fills up to want messages and returns how many. It never blocks.
func (b *rxBatch) receive(fd, want int, get func() []byte) (int, unix.Errno) {
	for i := range want {
		h := &b.hdr[i].hdr
		if b.buf[i] == nil {
			if b.rest[i] == nil {
				b.rest[i] = make([]byte, maxMerged)
			}
			b.buf[i] = get()
			b.iov[i][0].Base = &b.buf[i][0]
			b.iov[i][0].SetLen(len(b.buf[i]))
			b.iov[i][1].Base = &b.rest[i][0]
			b.iov[i][1].SetLen(len(b.rest[i]))
			h.Iov = &b.iov[i][0]
			h.SetIovlen(2)
			h.Control = (*byte)(unsafe.Pointer(&b.ctl[i]))
		}
		h.SetControllen(int(unsafe.Sizeof(b.ctl[i])))
	}
	return recvmmsg(fd, b.hdr[:want])
}

// take gives message i to rx, if it is for this link.
func (l *system) take(i int, rx *frame.Rx) bool {
	b := &l.rx
	n := int(b.hdr[i].n)
	if b.hdr[i].hdr.Flags&unix.MSG_TRUNC != 0 || n < vnetLen {
		l.cnt.RxForeign++
		return false
	}
	end := min(n, len(b.buf[i]))
	data := b.buf[i][vnetLen:end:end]
	tag, tagged := b.tag(i)
	if len(data) < ether.HeaderLen || tag.VID() != l.cfg.VLAN && !control(data) || !l.mine(data) {
		return false
	}
	note := vnetOf(b.buf[i])
	switch {
	case note.merged():
		return l.split(data, b.rest[i][:n-end], note.size, tag, tagged, rx)
	case note.kind != 0 || n > end:
		// Cut or merged in a way that is none of UDP's, or longer than frames here are.
		l.cnt.RxForeign++
		return false
	}
	note.fill(data)
	if tagged {
		data = b.buf[i][vnetLen-ether.TagLen : end : end]
		insertTag(data, data[ether.TagLen:], tag)
	}
	*rx = frame.Rx{Data: data}
	l.lent = append(l.lent, b.buf[i])
	b.buf[i] = nil
	return true
}

// insertTag writes the header of the untagged frame from, with a tag, to dst:
// TagLen more than from's header. They may overlap.
func insertTag(dst, from []byte, tag ether.Tag) {
	copy(dst, from[:12])
	binary.BigEndian.PutUint16(dst[12:], uint16(ether.TypeVLAN))
	binary.BigEndian.PutUint16(dst[14:], uint16(tag))
}

// tag returns the tag that the kernel has taken off message i.
func (b *rxBatch) tag(i int) (tag ether.Tag, ok bool) {
	p := unsafe.Pointer(&b.ctl[i])
	c := (*unix.Cmsghdr)(p)
	if int(b.hdr[i].hdr.Controllen) < cmsgHeader+int(unsafe.Sizeof(auxdata{})) ||
		c.Level != unix.SOL_PACKET || c.Type != unix.PACKET_AUXDATA {
		return 0, false
	}
	aux := (*auxdata)(unsafe.Add(p, cmsgHeader))
	if aux.status&statusVLANValid == 0 {
		return 0, false
	}
	return ether.Tag(aux.vlanTCI), true
}

// etherType returns what follows an untagged header.
func etherType(b []byte) ether.Type { return ether.Type(binary.BigEndian.Uint16(b[12:])) }

func control(b []byte) bool { return etherType(b) == ether.TypeControl }

// mine reports whether an untagged frame is for an address of this link:
// several may share an interface.
func (l *system) mine(b []byte) bool {
	var dst netip.Addr
	switch t := etherType(b); t {
	case ether.TypeControl:
		return true
	case ether.TypeIPv4:
		if len(b) < ether.HeaderLen+20 {
			return false
		}
		dst = netip.AddrFrom4([4]byte(b[ether.HeaderLen+16:]))
	case ether.TypeIPv6, ether.TypeRoCEv1:
		if len(b) < ether.HeaderLen+40 {
			return false
		}
		dst = netip.AddrFrom16([16]byte(b[ether.HeaderLen+24:])).Unmap()
	default:
		return false
	}
	return l.own(dst) || dst.IsMulticast() && l.groups[dst] != nil
}

// Release implements link.Link.
func (l *system) Release([]frame.Rx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.lent {
		switch cap(b) {
		case l.rxLen:
			l.rxPool.Put(b)
		case splitLen:
			l.splitPool.Put(b)
		default:
			l.txPool.Put(b)
		}
		l.lent[i] = nil
	}
	l.lent = l.lent[:0]
}
