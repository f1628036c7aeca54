package packet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/packet"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// wireTap hears what an interface receives, as it is: none of this link's
// code. The kernel takes tags off, and tells them beside.
type wireTap struct {
	t  testing.TB
	fd int
}

func newWireTap(t testing.TB, s *netns.Space, dev string) *wireTap {
	t.Helper()
	fd := -1
	var err error
	s.Do(func() {
		var ifi *net.Interface
		if ifi, err = net.InterfaceByName(dev); err != nil {
			return
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(deadline / time.Second)}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: ifi.Index})) // ETH_P_ALL
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &wireTap{t, fd}
}

// next returns the next frame that is no host's question for a neighbour, with its
// tag.
func (w *wireTap) next() []byte {
	w.t.Helper()
	b, ctl := make([]byte, 70<<10), make([]byte, 256)
	for {
		n, nc, _, from, err := unix.Recvmsg(w.fd, b[ether.TagLen:], ctl, 0)
		if err != nil {
			w.t.Fatalf("no more frames on the wire: %v", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		f := b[ether.TagLen:][:n]
		msgs, err := unix.ParseSocketControlMessage(ctl[:nc])
		if err != nil || len(msgs) != 1 {
			w.t.Fatalf("auxiliary data: %v, %v", msgs, err)
		}
		ne := binary.NativeEndian
		if ne.Uint32(msgs[0].Data)&0x10 != 0 { // TP_STATUS_VLAN_VALID
			f = b[:n+ether.TagLen]
			copy(f, f[ether.TagLen:][:12])
			binary.BigEndian.PutUint16(f[12:], uint16(ether.TypeVLAN))
			binary.BigEndian.PutUint16(f[14:], ne.Uint16(msgs[0].Data[16:]))
		}
		const icmp6 = 58
		if typ := ether.Type(binary.BigEndian.Uint16(f[12:])); typ == 0x0806 || typ == ether.TypeIPv6 && (f[20] == icmp6 || f[20] == 0) {
			continue // ARP, neighbour discovery and MLD
		}
		return bytes.Clone(f)
	}
}

// enveloped fills a run with packets of one envelope, Identifications counted up,
// and returns its frames as they should be on the wire.
func enveloped(r *frame.Run, kind roce.Kind, src, dst netip.Addr, tagged bool, from, to net.HardwareAddr, seg, segs, last int) (want [][]byte) {
	e := roce.Envelope{Kind: kind, Src: ib.GIDFromAddr(src), Dst: ib.GIDFromAddr(dst), TOS: 0x6A, TTL: 63, SrcPort: 0xC123, DstPort: roce.Port, DF: true, FlowLabel: 0x12345}
	if kind == roce.V2IPv4 {
		e.FlowLabel = 0
	}
	e.Ether.Tagged, e.Ether.Tag = tagged, ether.MakeTag(5, false, 0)
	r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = src, dst, e.SrcPort, uint8(e.TOS), e.TTL
	r.Seg, r.Segs, r.N = e.Len()+seg, segs, 0
	for k := range segs {
		n := seg
		if k == segs-1 {
			n = last
		}
		e.Ident = uint16(k)
		at := r.N
		r.N += e.EncodeHeaders(r.Buf[r.N:], n)
		for i := range n {
			r.Buf[r.N+i] = byte(i*7 + i>>8 + k*13)
		}
		// Of opcode and partition what a decoder asks for.
		copy(r.Buf[r.N:], []byte{0x64, 0x40, 0xFF, 0xFF, 0, 0, 0, 9})
		r.N += n
		w := bytes.Clone(r.Buf[at:r.N])
		copy(w, to)
		copy(w[6:], from)
		want = append(want, w)
	}
	return want
}

// unsummed checks and clears the UDP checksum of a frame, and reports whether
// there was one.
func unsummed(t *testing.T, f []byte) bool {
	t.Helper()
	l3 := f[ether.HeaderLen:]
	if binary.BigEndian.Uint16(f[12:]) == uint16(ether.TypeVLAN) {
		l3 = l3[ether.TagLen:]
	}
	var udp []byte
	var right uint16
	switch {
	case l3[0]>>4 == 4:
		udp = l3[ip.IPv4Len:]
	case len(l3) > ip.IPv6Len && l3[6] == uint8(ip.ProtoUDP):
		udp = l3[ip.IPv6Len:]
	default:
		return false
	}
	sum := binary.BigEndian.Uint16(udp[6:])
	udp[6], udp[7] = 0, 0
	if sum == 0 {
		return false
	}
	if l3[0]>>4 == 4 {
		right = ip.UDPChecksum4([4]byte(l3[12:]), [4]byte(l3[16:]), udp)
	} else {
		right = ip.UDPChecksum6([16]byte(l3[8:]), [16]byte(l3[24:]), udp)
	}
	if sum != right {
		t.Fatalf("UDP checksum %04x, right is %04x", sum, right)
	}
	return true
}

// What the kernel cuts is on the wire byte for byte what goes there frame by frame,
// but for the UDP checksum: that one is right, or 0. The interface segments nothing
// itself, so that this kernel does.
func TestCutAsSentOneByOne(t *testing.T) {
	c := newCable(t, 9000)
	c.a.CutsItself("v0")
	c.meet(t)
	for _, x := range []struct {
		name     string
		kind     roce.Kind
		src, dst netip.Addr
		tagged   bool
	}{
		{"IPv4", roce.V2IPv4, addrA, addrB, false},
		{"IPv6", roce.V2IPv6, addrA6, addrB6, false},
		{"IPv4 with tag", roce.V2IPv4, addrA, addrB, true},
		{"IPv6 with tag", roce.V2IPv6, addrA6, addrB6, true},
		{"RoCEv1", roce.V1, addrA6, addrB6, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}, Tag: x.tagged})
			defer func() { _ = a.Close() }()
			if _, err := a.Path(x.src, x.dst, 0xC123); err != nil {
				t.Fatal(err)
			}
			tap := newWireTap(t, c.b, "v1")
			from, to := hardware(t, c.a, "v0"), hardware(t, c.b, "v1")
			for _, s := range []struct{ seg, segs, last int }{
				{64, 1, 64}, {20, 64, 17}, {24, 2, 24}, {1040, 58, 16}, {4112, 15, 4112}, {8900, 7, 52},
			} {
				tx := make([]frame.Run, 1)
				if a.Reserve(tx) != 1 {
					t.Fatal("nothing lent")
				}
				want := enveloped(&tx[0], x.kind, x.src, x.dst, x.tagged, from, to, s.seg, s.segs, s.last)
				before := a.Counters()
				if err := a.Commit(0, tx); err != nil {
					t.Fatal(err)
				}
				if cnt := a.Counters(); cnt.TxSplit+cnt.TxRefused+cnt.TxDropped+cnt.TxTooLong != 0 || cnt.SendCalls != before.SendCalls+1 {
					t.Errorf("%+v: %+v", s, cnt)
				}
				for i := range want {
					got := tap.next()
					// All have one: a receiver that merges takes those without out of order.
					if summed := unsummed(t, got); summed != (x.kind != roce.V1) {
						t.Errorf("%+v, frame %d: UDP checksum: %v", s, i, summed)
					}
					if !bytes.Equal(got, want[i]) {
						t.Fatalf("%+v, frame %d of %d bytes, want %d:\n% x\n% x", s, i, len(got), len(want[i]), got[:80], want[i][:80])
					}
				}
			}
		})
	}
}

// hardware returns the address of an interface.
func hardware(t testing.TB, s *netns.Space, dev string) net.HardwareAddr {
	t.Helper()
	var ifi *net.Interface
	var err error
	s.Do(func() { ifi, err = net.InterfaceByName(dev) })
	if err != nil {
		t.Fatal(err)
	}
	return ifi.HardwareAddr
}

// A frame that somebody has changed on its way here (package fault, or a fault) is
// not made like the others: every byte of an envelope in turn.
func TestChangedFramesLeaveAsTheyAre(t *testing.T) {
	for _, x := range []struct {
		name     string
		kind     roce.Kind
		src, dst netip.Addr
		tagged   bool
	}{{"IPv4", roce.V2IPv4, addrA, addrB, true}, {"IPv6", roce.V2IPv6, addrA6, addrB6, false}} {
		t.Run(x.name, func(t *testing.T) {
			c := newCable(t, 1500)
			c.a.CutsItself("v0")
			c.meet(t)
			a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}, Tag: x.tagged})
			if _, err := a.Path(x.src, x.dst, 0xC123); err != nil {
				t.Fatal(err)
			}
			tap := newWireTap(t, c.b, "v1")
			from, to := hardware(t, c.a, "v0"), hardware(t, c.b, "v1")
			const seg = 200
			for at := 12; ; at++ {
				for changed := range 3 {
					tx := make([]frame.Run, 1)
					if a.Reserve(tx) != 1 {
						t.Fatal("nothing lent")
					}
					want := enveloped(&tx[0], x.kind, x.src, x.dst, x.tagged, from, to, seg, 3, 100)
					if at == len(want[0])-seg {
						return
					}
					tx[0].Buf[changed*tx[0].Seg+at] ^= 1
					want[changed][at] ^= 1
					if err := a.Commit(0, tx); err != nil {
						t.Fatal(err)
					}
					for i := range want {
						got := tap.next()
						if i != changed {
							unsummed(t, got)
						}
						if l := len(want[0]) - seg; i == changed && len(got) == len(want[i]) && want[i][l-2]|want[i][l-1] == 0 {
							got[l-2], got[l-1] = 0, 0 // the kernel's, of what was there
						}
						if !bytes.Equal(got, want[i]) {
							t.Fatalf("byte %d of frame %d changed, frame %d:\n% x\n% x", at, changed, i, got[:70], want[i][:70])
						}
					}
				}
			}
		})
	}
}

// A run reaches the other end of a veth pair in one piece: nobody has cut it.
func TestRunStaysWhole(t *testing.T) {
	c := newCable(t, 9000)
	c.meet(t)
	a, b := c.open(t, 0, false)
	if _, err := a.Path(addrA, addrB, 0xC123); err != nil {
		t.Fatal(err)
	}
	tx, rx := make([]frame.Run, 1), make([]frame.Rx, 4)
	if a.Reserve(tx) != 1 {
		t.Fatal("nothing lent")
	}
	enveloped(&tx[0], roce.V2IPv4, addrA, addrB, false, hardware(t, c.a, "v0"), hardware(t, c.b, "v1"), 4112, 15, 4000)
	seg, n := tx[0].Seg, tx[0].N
	if err := a.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
	for {
		got, err := b.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if got > 0 {
			if got != 1 || rx[0].Seg != seg || len(rx[0].Data) != n {
				t.Errorf("%d pieces, the first of %d bytes in packets of %d; sent %d in %d", got, len(rx[0].Data), rx[0].Seg, n, seg)
			}
			b.Release(rx[:got])
			return
		}
		if err := b.Wait(0, clock.Never); err != nil {
			t.Fatal(err)
		}
	}
}

// A kernel that does not know how to cut says EINVAL, as this one does to a kind of
// cutting that there is not: nothing is lost, and it is told.
func TestKernelThatDoesNotCut(t *testing.T) {
	c := newCable(t, 9000)
	c.a.CutsItself("v0")
	c.meet(t)
	a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}})
	packet.UnknownCut(a)
	for _, dst := range [][2]netip.Addr{{addrA, addrB}, {addrA6, addrB6}} {
		if _, err := a.Path(dst[0], dst[1], 0xC123); err != nil {
			t.Fatal(err)
		}
	}
	tap := newWireTap(t, c.b, "v1")
	from, to := hardware(t, c.a, "v0"), hardware(t, c.b, "v1")
	for round := range 2 {
		tx := make([]frame.Run, 4)
		if a.Reserve(tx) != len(tx) {
			t.Fatal("nothing lent")
		}
		var want [][]byte
		want = append(want, enveloped(&tx[0], roce.V2IPv4, addrA, addrB, false, from, to, 1000, 1, 1000)...)
		want = append(want, enveloped(&tx[1], roce.V2IPv4, addrA, addrB, false, from, to, 500, 64, 20)...)
		want = append(want, enveloped(&tx[2], roce.V1, addrA6, addrB6, false, from, to, 4000, 10, 4000)...)
		want = append(want, enveloped(&tx[3], roce.V2IPv6, addrA6, addrB6, false, from, to, 4112, 15, 4000)...)
		if err := a.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			got := tap.next()
			if round == 0 && i == 0 {
				unsummed(t, got) // it left before the refusal
			}
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("round %d, frame %d:\n% x\n% x", round, i, got[:70], want[i][:70])
			}
		}
		if cnt := a.Counters(); cnt.TxSplit != uint64(2*(round+1)) || cnt.TxRefused+cnt.TxDropped+cnt.TxTooLong != 0 {
			t.Errorf("round %d: %+v", round, cnt)
		}
	}
	if e, ok := a.Event(); !ok || e.Kind != link.EventNoSegmentation || !errors.Is(e.Err, unix.EINVAL) {
		t.Errorf("told %v", e)
	}
	if e, ok := a.Event(); ok {
		t.Errorf("told %v too", e)
	}
}
