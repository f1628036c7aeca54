package packet_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/internal/need"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/linktest"
	"github.com/verbena-rdma/verbena/link/packet"
	"github.com/verbena-rdma/verbena/test/interop/netns"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

var (
	addrA  = netip.MustParseAddr("10.9.0.1")
	addrB  = netip.MustParseAddr("10.9.0.2")
	addrA6 = netip.MustParseAddr("2001:db8:9::1")
	addrB6 = netip.MustParseAddr("2001:db8:9::2")
)

// cable is two namespaces joined by a veth pair with addresses of both
// families.
type cable struct{ a, b *netns.Space }

func newCable(t testing.TB, mtu int) cable {
	c := cable{netns.New(t), netns.New(t)}
	netns.Join(c.a, "v0", c.b, "v1")
	for _, e := range []struct {
		s      *netns.Space
		dev    string
		v4, v6 netip.Addr
	}{{c.a, "v0", addrA, addrA6}, {c.b, "v1", addrB, addrB6}} {
		e.s.Run(fmt.Sprintf("ip link set %s mtu %d", e.dev, mtu),
			fmt.Sprintf("ip addr add %v/24 dev %s", e.v4, e.dev),
			fmt.Sprintf("ip addr add %v/64 dev %s nodad", e.v6, e.dev))
	}
	return c
}

func open(t testing.TB, s *netns.Space, cfg packet.Config) link.Link {
	t.Helper()
	var l link.Link
	var err error
	s.Do(func() { l, err = packet.Open(cfg) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (c cable) open(t testing.TB, vlan uint16, tag bool) (a, b link.Link) {
	t.Helper()
	return open(t, c.a, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrA6}, VLAN: vlan, Tag: tag}),
		open(t, c.b, packet.Config{Interface: "v1", Addrs: []netip.Addr{addrB, addrB6}, VLAN: vlan, Tag: tag})
}

// meet lets the hosts know each other: the first question to an interface that
// has just come up may be lost, and the next comes a second later.
func (c cable) meet(t testing.TB) {
	t.Helper()
	a, b := c.open(t, 0, false)
	for _, x := range []struct {
		l        link.Link
		src, dst netip.Addr
	}{{a, addrA, addrB}, {a, addrA6, addrB6}, {b, addrB, addrA}, {b, addrB6, addrA6}} {
		if _, err := x.l.Path(x.src, x.dst, 0xC000); err != nil {
			t.Fatal(err)
		}
		other := a
		if x.l == a {
			other = b
		}
		// It waits for the neighbour and leaves then.
		tx, rx := make([]frame.Run, 1), make([]frame.Rx, 1)
		sendOne(t, x.l, other, x.src, x.dst, tx, rx)
		other.Release(rx)
	}
	_, _ = a.Close(), b.Close()
}

// framer stands where the adapter stands: it puts an envelope around each
// packet of the suite and takes it off again.
type framer struct {
	link.Link
	kind roce.Kind
	caps link.Caps
	bufs map[*byte][]byte // the link's, by the suite's
}

func newFramer(l link.Link, kind roce.Kind) *framer {
	f := &framer{Link: l, kind: kind, caps: l.Caps(), bufs: map[*byte][]byte{}}
	over := f.envelope(netip.IPv4Unspecified(), netip.IPv4Unspecified()).Len()
	f.caps.MTU -= over
	f.caps.RunBytes -= over * f.caps.Segments
	return f
}

func (f *framer) Caps() link.Caps { return f.caps }

func (f *framer) envelope(src, dst netip.Addr) *roce.Envelope {
	e := &roce.Envelope{Kind: f.kind, Src: ib.GIDFromAddr(src), Dst: ib.GIDFromAddr(dst), DstPort: roce.Port, DF: true}
	e.Ether.Tagged, e.Ether.Tag = f.caps.Tagged, ether.MakeTag(3, false, f.caps.VLAN)
	return e
}

func (f *framer) Path(src, dst netip.Addr, port uint16) (link.Path, error) {
	p, err := f.Link.Path(src, dst, port)
	p.MTU -= f.envelope(src, dst).Len()
	return p, err
}

func (f *framer) Reserve(tx []frame.Run) int {
	n := f.Link.Reserve(tx)
	for i := range tx[:n] {
		own := make([]byte, f.caps.RunBytes)
		f.bufs[&own[0]] = tx[i].Buf
		tx[i].Buf = own
	}
	return n
}

func (f *framer) Commit(now clock.Time, tx []frame.Run) error {
	for i := range tx {
		r := &tx[i]
		if r.Buf == nil {
			continue
		}
		own := r.Buf
		r.Buf = f.bufs[&own[0]]
		delete(f.bufs, &own[0])
		if r.Segs < 1 || r.Segs > f.caps.Segments || r.Seg < 1 || r.N > len(own) || r.N > r.Seg*r.Segs || r.N <= r.Seg*(r.Segs-1) ||
			!r.Src.IsValid() || !r.Dst.IsValid() {
			continue // nonsense: the link's to refuse
		}
		e := f.envelope(r.Src, r.Dst)
		e.SrcPort, e.TOS, e.TTL = r.SrcPort, ip.TOS(r.TOS), r.TTL
		if r.TTL == 0 {
			e.TTL = 64
		}
		at := 0
		for k := range r.Segs {
			e.Ident = uint16(k) // see link.Caps
			seg := own[k*r.Seg : min((k+1)*r.Seg, r.N)]
			at += e.EncodeHeaders(r.Buf[at:], len(seg))
			at += copy(r.Buf[at:], seg)
		}
		r.Seg, r.N = r.Seg+e.Len(), at
	}
	return f.Link.Commit(now, tx)
}

func (f *framer) Recv(now clock.Time, rx []frame.Rx) (int, error) {
	n, err := f.Link.Recv(now, rx)
	for i := range rx[:n] {
		data, seg := rx[i].Data, rx[i].Seg
		if seg == 0 {
			seg = len(data)
		}
		var out frame.Rx
		for ; len(data) > 0; data = data[min(seg, len(data)):] {
			var e roce.Envelope
			if why := e.Decode(data[:min(seg, len(data))]); why != roce.ReasonNone {
				return 0, errors.New(why.String())
			}
			if e.Ether.Tagged != f.caps.Tagged || e.Ether.Tagged && e.Ether.Tag != ether.MakeTag(3, false, f.caps.VLAN) {
				return 0, fmt.Errorf("tag %v %v", e.Ether.Tagged, e.Ether.Tag)
			}
			if out.Data == nil && len(data) > seg {
				out.Seg = len(e.IB)
			}
			out.Data = append(out.Data, e.IB...)
			out.Src, out.Dst, out.SrcPort, out.TOS, out.TTL = e.Src.Addr(), e.Dst.Addr(), e.SrcPort, uint8(e.TOS), e.TTL
		}
		rx[i] = out
	}
	return n, err
}

func TestConformance(t *testing.T) {
	for _, k := range []struct {
		name string
		kind roce.Kind
		vlan uint16
		tag  bool
		v6   bool
	}{
		{"IPv4", roce.V2IPv4, 0, false, false},
		{"IPv6 in VLAN 7", roce.V2IPv6, 7, false, true},
		{"priority tag", roce.V2IPv4, 0, true, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := newCable(t, 9000)
			var last []link.Link
			c.meet(t)
			linktest.Run(t, linktest.Suite{
				Open: func(t testing.TB) (linktest.End, linktest.End) {
					// An address has one RNIC at a time.
					for _, l := range last {
						_ = l.Close()
					}
					a, b := c.open(t, k.vlan, k.tag)
					last = []link.Link{a, b}
					x, y := addrA, addrB
					if k.v6 {
						x, y = addrA6, addrB6
					}
					return linktest.End{Link: newFramer(a, k.kind), Addr: x}, linktest.End{Link: newFramer(b, k.kind), Addr: y}
				},
				Marks: true, Lossless: true, Allocs: true,
			})
		})
	}
}

// One link with two addresses reaches itself without the kernel.
func TestItself(t *testing.T) {
	s := netns.New(t)
	netns.Join(s, "v0", s, "v1")
	s.Run("ip addr add 10.9.0.1/24 dev v0", "ip addr add 10.9.0.2/24 dev v0")
	var last link.Link
	linktest.Run(t, linktest.Suite{
		Open: func(t testing.TB) (linktest.End, linktest.End) {
			if last != nil {
				_ = last.Close()
			}
			last = open(t, s, packet.Config{Interface: "v0", Addrs: []netip.Addr{addrA, addrB}})
			f := newFramer(last, roce.V2IPv4)
			return linktest.End{Link: f, Addr: addrA}, linktest.End{Link: f, Addr: addrB}
		},
		Marks: true, Lossless: true, Allocs: true,
	})
}

const unprivilegedEnv = "VERBENA_TEST_UNPRIVILEGED"

// Without the capability the error says what to do.
func TestUnprivileged(t *testing.T) {
	if os.Getenv(unprivilegedEnv) != "" {
		_, err := packet.Open(packet.Config{Interface: "lo", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		fmt.Printf("said: %v, EPERM %v\n", err, errors.Is(err, unix.EPERM))
		os.Exit(0)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnprivileged$")
	cmd.Env = append(os.Environ(), unprivilegedEnv+"=1")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		need.Missing(t, "cannot run as nobody: %v\n%s", err, out)
	}
	for _, want := range []string{"open packet link on lo", "CAP_NET_RAW", "setcap cap_net_raw+ep", "sudo", "--cap-add NET_RAW", "UDP link", "EPERM true"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q does not say %q", out, want)
		}
	}
}
