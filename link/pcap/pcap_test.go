package pcap_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/internal/ident"
	"github.com/verbena-rdma/verbena/link/internal/roce"
	"github.com/verbena-rdma/verbena/link/linktest"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/link/pcap"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/icrc"
	"github.com/verbena-rdma/verbena/wire/ip"
)

// file is a file in memory.
type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error { f.closed = true; return nil }

func record(t testing.TB, inner link.Link, w io.WriteCloser, name string) *pcap.Link {
	t.Helper()
	l, err := pcap.New(inner, w, pcap.Config{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// train sends packets of QP 0x11 in one run.
func train(t testing.TB, l link.Link, now clock.Time, src, dst netip.Addr, op wire.Opcode, payloads ...int) {
	t.Helper()
	var tx [1]frame.Run
	if l.Reserve(tx[:]) != 1 {
		t.Fatal("Reserve lent nothing")
	}
	r := &tx[0]
	r.Src, r.Dst, r.SrcPort, r.TOS, r.TTL = src, dst, 0xC0DE, 0x6A, 17
	for i, n := range payloads {
		roce.Append(r, op, 0x11, ib.PSN(100+i), n)
	}
	if err := l.Commit(now, tx[:]); err != nil {
		t.Fatal(err)
	}
}

func drain(t testing.TB, l link.Link, now clock.Time) (packets int) {
	t.Helper()
	for rx := make([]frame.Rx, 4); ; {
		n, err := l.Recv(now, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return packets
		}
		for _, x := range rx[:n] {
			packets++
			if x.Seg > 0 {
				packets += (len(x.Data)+x.Seg-1)/x.Seg - 1
			}
		}
		l.Release(rx[:n])
	}
}

// seen is one packet of a capture.
type seen struct {
	out     bool
	at      time.Time
	psn     int
	ident   uint16
	tos     uint8
	ttl     uint8
	right   bool // ICRC
	comment string
	missed  uint64
	iface   int
}

func read(t testing.TB, data []byte) []seen {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []seen
	for {
		b, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		s := dissect(t, b)
		s.out = opts.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound
		s.at, s.comment, s.iface = ci.Timestamp, strings.Join(opts.Comments, "; "), ci.InterfaceIndex
		if opts.DropCount != nil {
			s.missed = *opts.DropCount
		}
		all = append(all, s)
	}
}

// dissect checks every length and checksum of a frame.
func dissect(t testing.TB, b []byte) (s seen) {
	t.Helper()
	var eth ether.Header
	n, ok := eth.Decode(b)
	if !ok {
		t.Fatalf("frame of %d bytes", len(b))
	}
	b = b[n:]
	var flow icrc.Flow
	df := false
	var src, dst netip.Addr
	switch eth.Type {
	case ether.TypeIPv4:
		var h ip.IPv4
		n, reason := h.Decode(b)
		if reason != ip.ReasonNone || int(h.TotalLen) != len(b) || h.Proto != ip.ProtoUDP {
			t.Fatalf("IPv4: %v, length %d of %d", reason, h.TotalLen, len(b))
		}
		s.ident, s.tos, s.ttl, df = h.ID, uint8(h.TOS), h.TTL, h.DF
		src, dst = netip.AddrFrom4(h.Src), netip.AddrFrom4(h.Dst)
		b = b[n:]
	case ether.TypeIPv6:
		var h ip.IPv6
		if reason := h.Decode(b); reason != ip.ReasonNone || int(h.PayloadLen) != len(b)-ip.IPv6Len || h.NextHeader != ip.ProtoUDP {
			t.Fatalf("IPv6: %v, length %d of %d", reason, h.PayloadLen, len(b))
		}
		s.tos, s.ttl = uint8(h.TOS), h.HopLimit
		src, dst = netip.AddrFrom16(h.Src), netip.AddrFrom16(h.Dst)
		b = b[ip.IPv6Len:]
		if c := ip.UDPChecksum6(h.Src, h.Dst, b); c != uint16(b[6])<<8|uint16(b[7]) {
			t.Errorf("UDP checksum over IPv6 is wrong")
		}
	default:
		t.Fatalf("EtherType %v", eth.Type)
	}
	var u ip.UDP
	if reason := u.Decode(b); reason != ip.ReasonNone || int(u.Len) != len(b) || u.DstPort != 4791 {
		t.Fatalf("UDP: %v, length %d of %d, port %d", reason, u.Len, len(b), u.DstPort)
	}
	b = b[ip.UDPLen:]
	flow = roce.Flow(src, dst, u.SrcPort)
	s.right = flow.Verify(s.ident, df, b)
	s.psn = int(b[9])<<16 | int(b[10])<<8 | int(b[11])
	return s
}

func TestBothDirectionsHaveRightICRCs(t *testing.T) {
	for _, c := range []struct{ src, dst string }{{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}} {
		src, dst := netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst)
		var fa, fb file
		x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
		a, b := record(t, x, &fa, "a"), record(t, y, &fb, "b")
		train(t, a, 1000, src, dst, wire.RCSendMiddle, 256, 256, 256, 31)
		train(t, a, 2000, src, dst, wire.RCAck)
		train(t, a, 2000, src, dst, wire.RCSendOnly, 5)
		if n := drain(t, b, 5000); n != 5 {
			t.Fatalf("%d packets arrived", n)
		}
		for _, l := range []link.Link{a, b} {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []*file{&fa, &fb} {
			all := read(t, f.Bytes())
			if len(all) != 5 || !f.closed {
				t.Fatalf("%d packets in the file, closed: %v", len(all), f.closed)
			}
			for i, s := range all {
				want := []int{100, 101, 102, 103, 100}[i]
				if !s.right || s.psn != want || s.tos != 0x6A || s.ttl != 17 || s.comment != "" || s.out != (f == &fa) {
					t.Errorf("%v packet %d: %+v", src, i, s)
				}
				if i < 4 && src.Is4() && s.ident != uint16(i) {
					t.Errorf("packet %d has Identification %d", i, s.ident)
				}
			}
			if f == &fa && all[4].at.Sub(all[0].at) != time.Microsecond {
				t.Errorf("times differ by %v, want 1 µs", all[4].at.Sub(all[0].at))
			}
		}
	}
}

// A peer's Identification is anything; one that fits is found, and where none
// does, that is remarked.
func TestUnknownIdentification(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var f file
	x, y := pair.New(pair.Config{})
	b := record(t, y, &f, "b")
	for _, spoil := range []func(p []byte){
		func(p []byte) { ident.Move(p, 0, 0xBEEF) },
		func(p []byte) { p[30] ^= 4 },
	} {
		var tx [1]frame.Run
		x.Reserve(tx[:])
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort = src, dst, 0xC0DE
		roce.Append(r, wire.RCSendOnly, 0x11, 1, 100)
		spoil(r.Buf[:r.N])
		_ = x.Commit(0, tx[:])
	}
	drain(t, b, 0)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_ = x.Close()
	all := read(t, f.Bytes())
	if len(all) != 2 {
		t.Fatalf("%d packets", len(all))
	}
	if s := all[0]; !s.right || s.ident != 0xBEEF || s.comment != "" {
		t.Errorf("unknown Identification: %+v", s)
	}
	if s := all[1]; s.right || !strings.Contains(s.comment, "ICRC wrong") {
		t.Errorf("spoilt packet: %+v", s)
	}
}

func TestSeveralLinksInOneFile(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	var f file
	w, err := pcap.NewWriter(&f)
	if err != nil {
		t.Fatal(err)
	}
	x, y := pair.New(pair.Config{})
	a, err := w.Wrap(x, pcap.Config{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.Wrap(y, pcap.Config{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	train(t, a, 0, src, dst, wire.RCSendOnly, 64)
	drain(t, b, 0)
	_, _ = a.Close(), b.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	all := read(t, f.Bytes())
	if len(all) != 2 || all[0].iface == all[1].iface {
		t.Errorf("%+v", all)
	}
	if _, err := w.Wrap(x, pcap.Config{}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Wrap after Close: %v", err)
	}
}

// stuck is a file that does not take anything until it is let go.
type stuck struct {
	file
	gate chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.gate
	return s.file.Write(b)
}

// A file that is slower than the link costs records, not memory or time.
func TestSlowFile(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	f := &stuck{gate: make(chan struct{})}
	x, y := pair.New(pair.Config{})
	b := record(t, y, f, "b")
	sent := 0
	for range 1200 {
		train(t, x, 0, src, dst, wire.RCSendMiddle, 4096, 4096, 4096, 4096)
		sent += drain(t, b, 0)
	}
	missed := b.Stats().Missed
	if missed == 0 {
		t.Error("nothing missed")
	}
	close(f.gate)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Written+s.Missed != uint64(sent) || s.Failed != 0 {
		t.Errorf("stats %+v, sent %d", s, sent)
	}
	if all := read(t, f.Bytes()); uint64(len(all)) != b.Stats().Written {
		t.Errorf("%d packets in the file, stats %+v", len(all), b.Stats())
	}
}

// full is a file on a full disk.
type full struct{ file }

var errFull = errors.New("no space left")

func (*full) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsAreReportedAtClose(t *testing.T) {
	src, dst := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	f := &full{}
	x, y := pair.New(pair.Config{})
	b := record(t, y, f, "b")
	for range 10 {
		train(t, x, 0, src, dst, wire.RCSendMiddle, 4096, 4096, 4096, 4096)
		if n := drain(t, b, 0); n != 4 {
			t.Fatalf("%d packets: the path suffers from the file", n)
		}
	}
	if err := b.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v, want %v", err, errFull)
	}
	if s := b.Stats(); s.Failed == 0 || !f.closed {
		t.Errorf("stats %+v, closed %v", s, f.closed)
	}
	if err := b.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestConformance(t *testing.T) {
	linktest.Run(t, linktest.Suite{Marks: true, Lossless: true, AnyAddress: true, Allocs: true, Open: func(tb testing.TB) (a, b linktest.End) {
		x, y := pair.New(pair.Config{})
		return linktest.End{Link: record(tb, x, &file{}, "a"), Addr: netip.MustParseAddr("10.0.0.1")},
			linktest.End{Link: record(tb, y, &file{}, "b"), Addr: netip.MustParseAddr("10.0.0.2")}
	}})
}

// The judge is tshark: every packet is understood, none is malformed.
func TestTshark(t *testing.T) {
	judge.Need(t, "tshark")
	name := filepath.Join(t.TempDir(), "x.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	x, y := pair.New(pair.Config{Caps: link.Caps{Idents: true}})
	a := record(t, x, f, "vrb0")
	n := 0
	for _, addr := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"2001:db8::1", "2001:db8::2"}} {
		train(t, a, clock.Time(n), netip.MustParseAddr(addr[0]), netip.MustParseAddr(addr[1]), wire.RCWriteMiddle, 1024, 1024, 1000)
		train(t, a, clock.Time(n), netip.MustParseAddr(addr[0]), netip.MustParseAddr(addr[1]), wire.RCReadRespMiddle, 256)
		n += 4
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	_ = y.Close()
	out, err := exec.Command("tshark", "-r", name, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp",
		"-e", "_ws.malformed", "-e", "_ws.expert.severity", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := strings.Repeat("7\t0x000011\t\t\n", 3) + "14\t0x000011\t\t\n"
	if got := tail(string(out)); got != want+want {
		t.Errorf("tshark:\n%s\nwant\n%s", got, want+want)
	}
}

// tail leaves out what tshark says about running as root.
func tail(s string) string {
	var keep []string
	for _, line := range strings.SplitAfter(s, "\n") {
		if strings.Contains(line, "\t") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "")
}
