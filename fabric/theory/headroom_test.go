package theory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// A frame is 8*len + 160 bit times, so 9216 B are 73,888, FCoE's 2300 B are
// 18,560 and the pause frame 672.
func TestFrameBits(t *testing.T) {
	equal(t, "9216 B", theory.FrameBits(9216), 73888)
	equal(t, "2300 B", theory.FrameBits(2300), 18560)
	equal(t, "64 B", theory.FrameBits(theory.PauseFrameBytes), 672)
}

// By speed; the response times are 60, 80, 118, 394 and 905 quanta.
func TestStandardDelays(t *testing.T) {
	for _, c := range []struct {
		rate, intf, resp int64
		ok               bool
	}{
		{10e9, 8192, 30720, true},
		{25e9, 6144, 40960, true},
		{40e9, 24576, 60416, true},
		{100e9, 122880, 201728, true},
		{400e9, 0, 463360, false},
		{1e9, 0, 0, false},
	} {
		intf, resp, ok := theory.StandardDelays(c.rate)
		if intf != c.intf || resp != c.resp || ok != c.ok {
			t.Errorf("%d: %d %d %v, want %d %d %v", c.rate, intf, resp, ok, c.intf, c.resp, c.ok)
		}
	}
}

// The whole sum, at 10 Gb/s, 100 m, frames of 9216 B, FCoE as the lossless class:
// 73888 + 672 + 2*5000 + 8192 + 30720 + 18560 = 142,032 bits = 17,754 B.
func TestHeadroomTerms(t *testing.T) {
	intf, resp, _ := theory.StandardDelays(10e9)
	l := theory.Link{
		Rate: 10e9, Delay: 100 * theory.CablePerMetre,
		MaxFrame: 9216, NoDropFrame: 2300, Interface: intf, Response: resp,
	}
	h := l.Headroom()
	want := theory.Headroom{MaxFrame: 73888, Pause: 672, Cable: 10000, Interface: 8192, Response: 30720, NoDropFrame: 18560}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	equal(t, "bits", h.Bits(), 142032)
	equal(t, "bytes", h.Bytes(), 17754)
	equal(t, "cells", h.Cells(208), 86)
	equal(t, "no cell", h.Cells(0), 0)
	const line = "headroom 17.8 KB = own frame 9.2 + pause frame 0.1 + cable both ways 1.2 + interface 1.0 + response 3.8 + peer's frame 2.3"
	if h.String() != line {
		t.Errorf("%s\nwant %s", h, line)
	}
}

// Cisco's white paper: 100 m are 513 ns of fibre, 641 B at 10 Gb/s, and 476 ns of copper, 595 B.
func TestCable(t *testing.T) {
	equal(t, "fibre", 100*theory.FibrePerMetre, 513*ns)
	equal(t, "copper", 100*theory.CopperPerMetre, 476*ns)
	h := theory.Link{Rate: 10e9, Delay: 100 * theory.FibrePerMetre}.Headroom()
	printed(t, "fibre, bytes one way", float64(h.Cable)/16, "641")
	h = theory.Link{Rate: 10e9, Delay: 100 * theory.CopperPerMetre}.Headroom()
	printed(t, "copper, bytes one way", float64(h.Cable)/16, "595")
}

// At 100G and 1 us HPCC's simulator reserves 37.5 KB and conweave's 27, at
// 25 ns HPCC's has 0.9 KB, less than a frame, and drops.
func TestOthersHeadroom(t *testing.T) {
	printed(t, "HPCC, KB", float64(theory.HPCCHeadroom(100e9, us))/1e3, "37.5")
	printed(t, "conweave, KB", float64(theory.ConweaveHeadroom(100e9, us, 1000))/1e3, "27")
	printed(t, "HPCC at 25 ns, KB", float64(theory.HPCCHeadroom(100e9, 25*ns))/1e3, "0.9")
	// What is needed there: 625 B of cable, two frames, a pause frame.
	ideal := theory.IdealHeadroom(100e9, 25*ns, 1068, 84, 0)
	equal(t, "ideal at 25 ns", ideal, 625+2*1068+84)
	if ideal <= theory.HPCCHeadroom(100e9, 25*ns) {
		t.Error("3 x rate x delay would do")
	}
	// With a response time, and as the terms of 802.1Qbb without an interface.
	equal(t, "ideal with response", theory.IdealHeadroom(100e9, us, 1538, 84, 2*us), 25000+25000+2*1538+84)
	h := theory.Link{Rate: 100e9, Delay: us, MaxFrame: 1518, NoDropFrame: 1518, Response: 200000}.Headroom()
	equal(t, "the same by terms", h.Bytes(), theory.IdealHeadroom(100e9, us, 1538, 84, 2*us))
}
