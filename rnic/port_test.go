package rnic

import (
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

// Source ports are in the range of RNICs, and spread: queue pairs made one after
// the other have ports of their own, and of queue pairs anywhere each port's last bits are
// as frequent as the others.
func TestSourcePortsSpread(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, qpn := range map[string]func(i uint32) ib.QPN{
		"one after the other": func(i uint32) ib.QPN { return ib.QPN(0x123F00 + i) },
		"every fourth":        func(i uint32) ib.QPN { return ib.QPN(0x7FF + 4*i) },
		"anywhere":            func(uint32) ib.QPN { return ib.QPN(rnd.Uint32()) & ib.MaxQPN },
	} {
		const n, bins = 1024, 16
		seen := map[uint16]bool{}
		var low [bins]int // by the port's last bits
		for i := range uint32(n) {
			port := a.portOf(qpn(i))
			if port < 0xC000 {
				t.Fatalf("%s: port %#x", name, port)
			}
			seen[port] = true
			low[port%bins]++
		}
		if len(seen) < n*9/10 {
			t.Errorf("%s: %d queue pairs have %d ports", name, n, len(seen))
		}
		if name != "every fourth" { // which has every fourth port
			for i, k := range low {
				if k < n/bins/2 || k > n/bins*2 {
					t.Errorf("%s: %d of %d ports end in %#x", name, k, n, i)
				}
			}
		}
	}
}

// A flow label decides the port, whichever queue pair has it (IBA vol.1 annex
// A17.4.7); a port given by the configuration decides everything.
func TestFlowLabelIsTheSourcePort(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	for _, c := range []struct {
		label uint32
		want  uint16
	}{{0, 0xD234}, {1, 0xC001}, {0x3FFF, 0xFFFF}, {0x4000, 0xC001}, {0x12345, 0xE341}, {0xFFFFF, 0xFFC0}} {
		av := &ib.AV{DGID: ib.GIDFromAddr(addrB), FlowLabel: c.label}
		if p, _, err := a.resolve(av, 0xD234); err != nil || p.sport != c.want {
			t.Errorf("label %#x: port %#x, %v; want %#x", c.label, p.sport, err, c.want)
		}
	}
	b := newAdapter(t, addrA, addrA6, func(c *Config) { c.SrcPort = 0xC123 })
	if p, _, _ := b.resolve(&ib.AV{DGID: ib.GIDFromAddr(addrB), FlowLabel: 5}, b.portOf(77)); p.sport != 0xC123 {
		t.Errorf("port %#x", p.sport)
	}
}
