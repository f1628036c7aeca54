//go:build linux

package interop

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/udp"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// The kernel merges packets that arrive together, and tells one traffic class for
// all of them: it must not merge marked ones with others. Runs go through a router
// that marks some packets of each; what the link says of every packet is held
// against a recording from the router.
func TestMergedPacketsKeepTheirMarks(t *testing.T) {
	judge.Need(t, "tcpdump")
	h := newHop(t)
	h.router.Run("tc qdisc del dev r1 root") // one after the other they would not be merged
	src, dst := netip.MustParseAddr("10.8.1.1"), netip.MustParseAddr("10.8.2.1")
	var a, b link.Link
	var path link.Path
	var err error
	h.receiver.Do(func() { b, err = udp.Open(udp.Config{Addrs: []netip.Addr{dst}}) })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	h.sender.Do(func() {
		if a, err = udp.Open(udp.Config{Addrs: []netip.Addr{src}}); err == nil {
			path, err = a.Path(src, dst, 0xC001)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	name := filepath.Join(t.TempDir(), "marks.pcap")
	rec := h.record(name, "r1", "out")

	const runs, perRun, size = 50, 16, 1000
	const ect0, ce = 2, 3
	got := make(map[uint32]uint8) // traffic class by packet
	merged := [4]int{}            // pieces of more than one packet, by ECN
	rx := make([]frame.Rx, 16)
	tx := make([]frame.Run, 1)
	deadline := time.Now().Add(time.Minute)
	for i := range uint32(runs) {
		if a.Reserve(tx) != 1 {
			t.Fatal("Reserve")
		}
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort, r.TOS, r.Seg, r.Segs, r.N = src, dst, path.SrcPort, 26<<2|ect0, size, perRun, perRun*size
		for k := range uint32(perRun) {
			binary.BigEndian.PutUint32(r.Buf[k*size:], i*perRun+k)
		}
		if err := a.Commit(0, tx); err != nil {
			t.Fatal(err)
		}
		for len(got) < int(i+1)*perRun {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d packets have come: %+v", len(got), (i+1)*perRun, b.Counters())
			}
			if err := b.Wait(0, clock.Time(time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := b.Recv(0, rx)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range rx[:n] {
				seg := len(x.Data)
				if x.Seg != 0 {
					seg = x.Seg
					merged[x.TOS&3]++
				}
				for data := x.Data; len(data) >= size; data = data[seg:] {
					got[binary.BigEndian.Uint32(data)] = x.TOS
				}
			}
			b.Release(rx[:n])
		}
	}
	truth := map[uint32]uint8{}
	until(t, "all packets are recorded", func() bool {
		eachPacket(t, name, func(f []byte) {
			if len(f) == ethLen+ipLen+udpLen+size {
				truth[binary.BigEndian.Uint32(f[ethLen+ipLen+udpLen:])] = f[ethLen+1]
			}
		})
		return len(truth) == runs*perRun
	})
	rec()
	marks := 0
	for n, tos := range truth {
		if tos&3 == ce {
			marks++
		}
		if got[n] != tos {
			t.Errorf("packet %d left the router with traffic class %#x, the link says %#x", n, tos, got[n])
		}
	}
	if marks == 0 || marks == runs*perRun || merged[ce] == 0 || merged[ect0] == 0 {
		t.Errorf("%d of %d packets were marked; pieces merged: %d marked, %d not: this tests nothing", marks, runs*perRun, merged[ce], merged[ect0])
	}
	t.Logf("%d of %d packets marked; %d merged pieces marked, %d not", marks, runs*perRun, merged[ce], merged[ect0])
}

// eachPacket calls f with the frames of a recording that may still be written to.
func eachPacket(t *testing.T, name string, f func(frame []byte)) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		frame, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(frame)
	}
}
