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

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// Whole frames are written as they are, each by itself, under link type
// Ethernet; tshark reads every form, and MAC control frames beside them.
func TestEthernetFrames(t *testing.T) {
	judge.Need(t, "tshark")
	name := filepath.Join(t.TempDir(), "x.pcapng")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	x, y := pair.New(pair.Config{Caps: link.Caps{Encap: frame.Ethernet}})
	a := record(t, x, f, "vrb0")
	var whole [][]byte
	commit := func(segs int, fill func(b []byte) int) {
		var tx [1]frame.Run
		if a.Reserve(tx[:]) != 1 {
			t.Fatal("Reserve lent nothing")
		}
		r := &tx[0]
		for range segs {
			r.Seg = fill(r.Buf[r.N:])
			whole = append(whole, bytes.Clone(r.Buf[r.N:r.N+r.Seg]))
			r.N += r.Seg
			r.Segs++
		}
		if err := a.Commit(clock.Time(0), tx[:]); err != nil {
			t.Fatal(err)
		}
	}
	src, dst := ib.GIDFromAddr(netip.MustParseAddr("10.0.0.1")), ib.GIDFromAddr(netip.MustParseAddr("10.0.0.2"))
	src6, dst6 := ib.GIDFromAddr(netip.MustParseAddr("2001:db8::1")), ib.GIDFromAddr(netip.MustParseAddr("2001:db8::2"))
	var want []string
	psn := 0
	for _, k := range []roce.Kind{roce.V2IPv4, roce.V2IPv6, roce.V1} {
		for _, tagged := range []bool{false, true} {
			e := roce.Envelope{Kind: k, Src: src, Dst: dst, TTL: 64, DF: true, SrcPort: 0xC0DE, DstPort: roce.Port}
			typ := "0x0800"
			switch k {
			case roce.V2IPv6:
				e.Src, e.Dst, typ = src6, dst6, "0x86dd"
			case roce.V1:
				typ = "0x8915"
			}
			line := "1|" + typ + "|||7|0x000011|"
			if tagged {
				e.Ether.Tagged, e.Ether.Tag = true, ether.MakeTag(5, false, 9)
				line = "1|0x8100|5|9|7|0x000011|"
			}
			commit(3, func(b []byte) int {
				var p wire.Packet
				p.SetOp(wire.RCWriteMiddle)
				p.PKey, p.DestQPN, p.PSN, p.Payload = ib.DefaultPKey, 0x11, ib.PSN(psn), make([]byte, 1024)
				psn++
				return e.Encode(b, &p)
			})
			want = append(want, line, line, line)
		}
	}
	pfc := ether.PFC{}
	pfc.Set(3, 100)
	commit(1, func(b []byte) int { return pfc.EncodeFrame(b, ether.MAC{2, 0, 0, 0, 0, 1}) })
	want = append(want, "1|0x8808|||||")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	_ = y.Close()

	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.LinkType() != layers.LinkTypeEthernet {
		t.Errorf("link type %v", r.LinkType())
	}
	for i := 0; ; i++ {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			if i != len(whole) {
				t.Errorf("%d of %d frames", i, len(whole))
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(whole) || !bytes.Equal(b, whole[i]) {
			t.Fatalf("frame %d: %x", i, b)
		}
	}
	args := []string{
		"-r", name, "--disable-heuristic", "rpcrdma_infiniband", "-o", "ip.check_checksum:TRUE", "-T", "fields",
		"-E", "separator=|", "-E", "occurrence=f",
	}
	for _, f := range []string{"frame.encap_type", "eth.type", "vlan.priority", "vlan.id", "infiniband.bth.opcode", "infiniband.bth.destqp", "_ws.malformed"} {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimRight(string(out), "\n"); !strings.EqualFold(got, strings.Join(want, "\n")) {
		t.Errorf("tshark:\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
