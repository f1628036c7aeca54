package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ip"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// recordings are captures of Linux rdma_rxe peers talking to each other.
func recordings(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../wire/testdata/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	return files
}

func lines(t *testing.T, data []byte) ([]string, Totals) {
	t.Helper()
	var out []string
	totals, err := Decode(bytes.NewReader(data), func(p *Packet) error {
		out = append(out, string(p.AppendLine(nil)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, totals
}

func TestRecordingsAreClean(t *testing.T) {
	for _, name := range recordings(t) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text, totals := lines(t, data)
		if totals.Wrong() != 0 || totals.Packets == 0 {
			t.Errorf("%s: %+v\n%s", name, totals, strings.Join(text, "\n"))
		}
		for _, l := range text {
			if !strings.HasSuffix(l, "  ok") {
				t.Errorf("%s: %s", name, l)
			}
		}
	}
}

// One changed byte under the ICRC is found, wherever it is.
func TestCorruptionIsFound(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("../../wire/testdata", filepath.Base(recordings(t)[0])))
	if err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, _, err := r.ReadPacketData()
		if err != nil {
			t.Fatal("no RoCE packet in the recording")
		}
		var e roce.Envelope
		if e.Decode(frame) != roce.ReasonNone {
			continue
		}
		first := len(frame) - len(e.IB)
		for i := first; i < len(frame); i++ {
			if i == first+4 { // FECN and BECN are not under the ICRC
				continue
			}
			bad := bytes.Clone(frame)
			bad[i] ^= 0x10
			if _, totals := lines(t, pcapOf(t, layers.LinkTypeEthernet, bad)); totals.Wrong() != 1 {
				t.Fatalf("byte %d of %d: %+v", i, len(frame), totals)
			}
		}
		return
	}
}

func pcapOf(t testing.TB, link layers.LinkType, frames ...[]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := pcapgo.NewWriter(&buf)
	if err := w.WriteFileHeader(262144, link); err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(1, int64(i)*1000), CaptureLength: len(f), Length: len(f)}
		if err := w.WritePacket(ci, f); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// merged returns the frame that a GSO send of n packets looks like on the
// sending host.
func merged(t testing.TB, n, payload int) []byte {
	t.Helper()
	env := roce.Envelope{
		Kind: roce.V2IPv4, TTL: 64, DF: true, SrcPort: 0xC123, DstPort: roce.Port,
		Src: ib.GID{10: 0xFF, 11: 0xFF, 12: 10, 15: 1}, Dst: ib.GID{10: 0xFF, 11: 0xFF, 12: 10, 15: 2},
	}
	var body []byte
	for i := range n {
		p := wire.Packet{PKey: ib.DefaultPKey, DestQPN: 0x11, PSN: ib.PSN(i), Payload: bytes.Repeat([]byte{byte(i)}, payload)}
		p.SetOp(wire.RCWriteMiddle)
		env.Ident = uint16(i)
		one := make([]byte, env.FrameLen(&p))
		if env.Encode(one, &p) == 0 {
			t.Fatal("not encoded")
		}
		body = append(body, one[env.Len():]...)
	}
	env.Ident = 0
	head := make([]byte, env.Len())
	if env.EncodeHeaders(head, len(body)) == 0 {
		t.Fatal("not encoded")
	}
	return append(head, body...)
}

func TestMergedFramesAreCut(t *testing.T) {
	text, totals := lines(t, pcapOf(t, layers.LinkTypeEthernet, merged(t, 14, 4096)))
	if totals.Merged != 1 || totals.Packets != 14 || totals.Wrong() != 0 {
		t.Fatalf("%+v\n%s", totals, strings.Join(text, "\n"))
	}
	if !strings.Contains(text[13], "1.14") {
		t.Errorf("the last packet's line does not name frame and segment: %s", text[13])
	}
}

func TestLinkTypes(t *testing.T) {
	frame := merged(t, 1, 8)
	sll := append(make([]byte, 16), frame[14:]...)
	binary.BigEndian.PutUint16(sll[14:], 0x0800)
	sll2 := append(make([]byte, 20), frame[14:]...)
	binary.BigEndian.PutUint16(sll2, 0x0800)
	for link, f := range map[layers.LinkType][]byte{
		layers.LinkTypeEthernet: frame, layers.LinkTypeRaw: frame[14:],
		layers.LinkTypeLinuxSLL: sll, layers.LinkTypeLinuxSLL2: sll2,
		layers.LinkTypeNull: append(make([]byte, 4), frame[14:]...),
	} {
		if _, totals := lines(t, pcapOf(t, link, f)); totals.Packets != 1 || totals.Wrong() != 0 {
			t.Errorf("link type %v: %+v", link, totals)
		}
	}
}

func TestTotals(t *testing.T) {
	frame := merged(t, 1, 8)
	marked := bytes.Clone(frame)
	ip.SetECN(marked[14:], ip.CE)
	other := make([]byte, 60)
	text, totals := lines(t, pcapOf(t, layers.LinkTypeEthernet, frame, marked, other))
	if totals.Packets != 2 || totals.Other != 1 || totals.CE != 1 || totals.Again != 1 || totals.Wrong() != 0 {
		t.Errorf("%+v\n%s", totals, strings.Join(text, "\n"))
	}
}

func TestNotACapture(t *testing.T) {
	for _, s := range []string{"", "abc", "not a capture at all, but long enough for a header"} {
		if _, err := Decode(strings.NewReader(s), func(*Packet) error { return nil }); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: error %v", s, err)
		}
	}
	data := pcapOf(t, layers.LinkTypeEthernet, merged(t, 2, 100))
	if _, err := Decode(bytes.NewReader(data[:len(data)-3]), func(*Packet) error { return nil }); !errors.Is(err, ErrFormat) {
		t.Errorf("a truncated file: error %v", err)
	}
}

// A file that ends inside a frame is damaged, wherever it ends; one that ends
// between two frames is not.
func TestCutFiles(t *testing.T) {
	frames := [][]byte{merged(t, 1, 33), merged(t, 1, 4)}
	var ng bytes.Buffer
	w, err := pcapgo.NewNgWriter(&ng, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[int]bool{}
	for i := range frames {
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		whole[ng.Len()] = true
		ci := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(frames[i]), Length: len(frames[i])}
		if err := w.WritePacket(ci, frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	whole[ng.Len()] = true
	const header, record = 24, 16
	classic := pcapOf(t, layers.LinkTypeEthernet, frames...)
	for name, c := range map[string]struct {
		data  []byte
		first int
		whole map[int]bool
	}{
		"pcap":   {classic, header, map[int]bool{header: true, header + record + len(frames[0]): true, len(classic): true}},
		"pcapng": {ng.Bytes(), slices.Min(slices.Collect(maps.Keys(whole))), whole},
	} {
		for n := c.first; n <= len(c.data); n++ {
			_, err := Decode(bytes.NewReader(c.data[:n]), func(*Packet) error { return nil })
			if c.whole[n] && err != nil || !c.whole[n] && !errors.Is(err, ErrFormat) {
				t.Errorf("%s cut to %d of %d bytes: error %v", name, n, len(c.data), err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(pcapOf(f, layers.LinkTypeEthernet, merged(f, 3, 256)))
	if data, err := os.ReadFile(recordings(f)[0]); err == nil && len(data) < 1<<16 {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		totals, _ := Decode(bytes.NewReader(data), func(p *Packet) error {
			n++
			if len(p.AppendLine(nil)) == 0 {
				t.Error("no line for a packet")
			}
			return nil
		})
		if totals.Packets != n {
			t.Errorf("counted %d packets of %d", totals.Packets, n)
		}
	})
}
