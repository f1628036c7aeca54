package pair_test

import (
	"net/netip"
	"testing"

	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/linktest"
	"github.com/verbena-rdma/verbena/link/pair"
)

func TestSinglesCutsMergedPieces(t *testing.T) {
	a, b := pair.New(pair.Config{Singles: true})
	defer a.Close()
	defer b.Close()
	tx := make([]frame.Run, 2)
	if n := a.Reserve(tx); n != 2 {
		t.Fatalf("Reserve = %d, want 2", n)
	}
	src, dst := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for i := range tx {
		r := &tx[i]
		r.N, r.Seg, r.Segs, r.Src, r.Dst = 10, 4, 3, src, dst
		for j := range 10 {
			r.Buf[j] = byte(16*i + j)
		}
	}
	if err := a.Commit(0, tx); err != nil {
		t.Fatal(err)
	}
	var got []byte
	var lens []int
	for rx := make([]frame.Rx, 2); ; {
		n, err := b.Recv(0, rx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		for _, r := range rx[:n] {
			if r.Seg != 0 {
				t.Errorf("merged piece: Seg %d", r.Seg)
			}
			got, lens = append(got, r.Data...), append(lens, len(r.Data))
		}
		b.Release(rx[:n])
	}
	want := []int{4, 4, 2, 4, 4, 2}
	for i := range want {
		if i >= len(lens) || lens[i] != want[i] {
			t.Fatalf("lengths %v, want %v", lens, want)
		}
	}
	for i := range got {
		if got[i] != byte(16*(i/10)+i%10) {
			t.Fatalf("byte %d is %d", i, got[i])
		}
	}
}

func open(cfg pair.Config) func(testing.TB) (a, b linktest.End) {
	return func(testing.TB) (a, b linktest.End) {
		x, y := pair.New(cfg)
		return linktest.End{Link: x, Addr: netip.MustParseAddr("10.0.0.1")},
			linktest.End{Link: y, Addr: netip.MustParseAddr("10.0.0.2")}
	}
}

func TestConformance(t *testing.T) {
	for name, cfg := range map[string]pair.Config{
		"default": {}, "singles": {Singles: true},
		"small": {Depth: 64, Caps: link.Caps{MTU: 5000, Segments: 4, RunBytes: 20000, Idents: true}},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, linktest.Suite{Open: open(cfg), Marks: true, Lossless: true, AnyAddress: true})
		})
	}
}
