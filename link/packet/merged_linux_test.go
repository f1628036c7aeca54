package packet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/packet"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// The kernel's own senders: UDP sockets with segmentation left to a veth pair,
// which leaves it to nobody. Each packet arrives with the headers that a NIC would
// have given it, Identifications counted up, and its bytes.
func TestMergedFramesAreCut(t *testing.T) {
	c := newCable(t, 9000)
	c.meet(t)
	a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}})
	for _, x := range []struct {
		name     string
		src, dst netip.Addr
		kind     roce.Kind
	}{{"IPv4", addrB, addrA, roce.V2IPv4}, {"IPv6", addrB6, addrA6, roce.V2IPv6}} {
		t.Run(x.name, func(t *testing.T) {
			var l link.Link
			var err error
			c.b.Do(func() {
				if l, err = udp.Open(udp.Config{Addrs: []netip.Addr{x.src}}); err == nil {
					_, err = l.Path(x.src, x.dst, 0xC000) // opens a socket
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			merged := 0
			for _, s := range []struct{ seg, segs, last int }{
				{64, 1, 64}, {20, 64, 17}, {1024, 2, 1024}, {1044, 60, 16}, {4140, 15, 2000}, {8900, 7, 8900},
			} {
				tx := make([]frame.Run, 1)
				if l.Reserve(tx) != 1 {
					t.Fatal("nothing lent")
				}
				r := &tx[0]
				r.Src, r.Dst, r.SrcPort, r.TOS = x.src, x.dst, 0xC000, 0x6A
				r.Seg, r.Segs, r.N = s.seg, s.segs, s.seg*(s.segs-1)+s.last
				for i := range r.N {
					r.Buf[i] = byte(i*7 + i>>8)
				}
				want := append([]byte(nil), r.Buf[:r.N]...)
				c.b.Do(func() { err = l.Commit(0, tx) })
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < s.segs; {
					rx := make([]frame.Rx, 8)
					n, err := a.Recv(0, rx)
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range rx[:n] {
						seg := f.Seg
						if seg == 0 {
							seg = len(f.Data)
						} else {
							merged++
						}
						for d := f.Data; len(d) > 0; d = d[min(seg, len(d)):] {
							var e roce.Envelope
							if why := e.Decode(d[:min(seg, len(d))]); why != roce.ReasonNone {
								t.Fatalf("%+v, packet %d: %v", s, i, why)
							}
							n := s.seg
							if i == s.segs-1 {
								n = s.last
							}
							if e.Kind != x.kind || e.Src.Addr() != x.src || e.Dst.Addr() != x.dst || e.SrcPort != 0xC000 || e.TOS != 0x6A || e.UDPChecksum != 0 ||
								x.kind == roce.V2IPv4 && (int(e.Ident) != i || !e.DF) || !bytes.Equal(e.IB, want[i*s.seg:][:n]) {
								t.Fatalf("%+v, packet %d: %+v", s, i, e)
							}
							i++
						}
					}
					a.Release(rx[:n])
					if n == 0 {
						if err := a.Wait(0, clock.Never); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			// Else this test has tested nothing: a kernel that cuts before the cable.
			if merged == 0 {
				t.Error("no frame came in a piece")
			}
		})
	}
}

// What a socket of the kernel makes of our frames: the other direction.
func TestUDPSocketHears(t *testing.T) {
	c := newCable(t, 9000)
	c.meet(t)
	a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}})
	for _, x := range []struct{ src, dst netip.Addr }{{addrA, addrB}, {addrA6, addrB6}} {
		var l link.Link
		var err error
		c.b.Do(func() { l, err = udp.Open(udp.Config{Addrs: []netip.Addr{x.dst}}) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Path(x.src, x.dst, 0xC000); err != nil {
			t.Fatal(err)
		}
		tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
		got := sendOne(t, a, l, x.src, x.dst, tx, rx)
		want := roce.NewCNP(5)
		e := roce.Envelope{Kind: roce.V2IPv4, Src: ib.GIDFromAddr(x.src), Dst: ib.GIDFromAddr(x.dst), SrcPort: 0xC000, DstPort: roce.Port, DF: true}
		if x.src.Is6() {
			e.Kind = roce.V2IPv6
		}
		whole := make([]byte, e.FrameLen(&want))
		e.Encode(whole, &want)
		if !bytes.Equal(got, whole[e.Len():]) || rx[0].Src.WithZone("") != x.src || rx[0].SrcPort != 0xC000 || rx[0].TTL != 64 {
			t.Errorf("%x from %v", got, rx[0].Src)
		}
		l.Release(rx)
		_ = l.Close()
	}
}

// A checksum that was left to hardware is not taken for a wrong one, nor kept.
func TestPartialChecksum(t *testing.T) {
	c := newCable(t, 1500)
	c.meet(t)
	a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA}})
	var fd int
	var err error
	c.b.Do(func() { fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	body := bytes.Repeat([]byte{1, 2, 3, 4}, 10)
	if err := unix.Sendto(fd, body, 0, &unix.SockaddrInet4{Port: roce.Port, Addr: addrA.As4()}); err != nil {
		t.Fatal(err)
	}
	rx := make([]frame.Rx, 1)
	for {
		n, err := a.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			break
		}
		if err := a.Wait(0, clock.Never); err != nil {
			t.Fatal(err)
		}
	}
	var e roce.Envelope
	if why := e.Decode(rx[0].Data); why != roce.ReasonNone || !bytes.Equal(e.IB, body) {
		t.Fatalf("%v %+v", why, e)
	}
	udpLen := rx[0].Data[len(rx[0].Data)-len(body)-ip.UDPLen:]
	if sum := ip.UDPChecksum4(addrB.As4(), addrA.As4(), udpLen); e.UDPChecksum != 0 && e.UDPChecksum != sum {
		t.Errorf("checksum %04x, right is %04x or none", e.UDPChecksum, sum)
	}
	a.Release(rx)
}

// What a kernel has merged (GRO) may have had one Identification, as single sends of
// a socket have, or counted ones. The frame is the same, and so are the packets that
// the link makes of it: those whose ICRC is right.
func TestMergedIdentifications(t *testing.T) {
	c := newCable(t, 9000)
	c.meet(t)
	a := open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA}})
	fd := -1
	var err error
	c.b.Do(func() {
		var ifi *net.Interface
		if ifi, err = net.InterfaceByName("v1"); err != nil {
			return
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err == nil {
			err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1), unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifi.Index}))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	for _, x := range []struct {
		name    string
		ident   func(i int) uint16 // as sent
		corrupt int                // this one's ICRC is wrong; -1: none
		want    func(i int) uint16
	}{
		{"counted", func(i int) uint16 { return 0xFFFE + uint16(i) }, -1, func(i int) uint16 { return 0xFFFE + uint16(i) }},
		{"one", func(int) uint16 { return 7 }, -1, func(int) uint16 { return 7 }},
		{"zero", func(int) uint16 { return 0 }, 3, func(int) uint16 { return 0 }},
		{"counted, one wrong", func(i int) uint16 { return uint16(i) }, 1, func(i int) uint16 { return uint16(i) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			const segs = 5
			note := make([]byte, 10, 1000)
			var ibs [][]byte
			b := note
			for i := range segs {
				e := roce.Envelope{Kind: roce.V2IPv4, Src: ib.GIDFromAddr(addrB), Dst: ib.GIDFromAddr(addrA), SrcPort: 0xC000, DstPort: roce.Port, DF: true, TTL: 64, Ident: x.ident(i)}
				e.Ether.Src, e.Ether.Dst = ether.MAC(hardware(t, c.b, "v1")), ether.MAC(hardware(t, c.a, "v0"))
				p := roce.NewCNP(ib.QPN(i + 1))
				f := make([]byte, e.FrameLen(&p))
				e.Encode(f, &p)
				if i == x.corrupt {
					f[len(f)-1] ^= 1
				}
				if i == 0 {
					b = append(b, f[:e.Len()]...)
				}
				ibs = append(ibs, f[e.Len():])
				b = append(b, f[e.Len():]...)
			}
			ip4, udp := b[10+14:][:20], b[10+34:]
			binary.BigEndian.PutUint16(ip4[2:], uint16(len(b)-10-14))
			binary.BigEndian.PutUint16(ip4[10:], 0)
			binary.BigEndian.PutUint16(ip4[10:], ip.Checksum(ip4))
			binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
			note[0], note[1] = 1, 5 // VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_UDP_L4
			for i, v := range []int{42, len(ibs[0]), 34, 6} {
				binary.NativeEndian.PutUint16(note[2+2*i:], uint16(v))
			}
			if _, err := unix.Write(fd, b); err != nil {
				t.Fatal(err)
			}
			rx := make([]frame.Rx, 4)
			n := 0
			for n == 0 {
				if n, err = a.Recv(0, rx); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					if err := a.Wait(0, clock.Never); err != nil {
						t.Fatal(err)
					}
				}
			}
			i := 0
			for d := rx[0].Data; len(d) > 0; i++ {
				k := min(rx[0].Seg, len(d))
				var e roce.Envelope
				if why := e.Decode(d[:k]); why != roce.ReasonNone || e.Ident != x.want(i) || !bytes.Equal(e.IB, ibs[i]) || e.Verify() != (i != x.corrupt) {
					t.Errorf("packet %d: %v %+v", i, why, e)
				}
				d = d[k:]
			}
			if n != 1 || i != segs {
				t.Errorf("%d packets in %d pieces", i, n)
			}
			a.Release(rx[:n])
		})
	}
}
