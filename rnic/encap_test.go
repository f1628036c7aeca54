package rnic

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// etherHost is a host on a link of whole frames; rows 0 and 1 are RoCEv2, 2 and
// 3 RoCEv1, of IPv4 and IPv6 each.
func etherHost(t testing.TB, v4, v6 netip.Addr, tagged bool, vlan uint16) *host {
	return newHost(t, v4, v6, func(c *Config) {
		c.Wire.Encap, c.Wire.Tagged, c.Wire.VLAN = frame.Ethernet, tagged, vlan
		c.LineRate = 100_000_000_000
		for _, g := range slices.Clone(c.GIDs) {
			g.Type = ib.GIDTypeRoCEv1
			c.GIDs = append(c.GIDs, g)
		}
	})
}

// carry moves everything between two hosts and shows each frame.
func carry(now clock.Time, a, b *host, see func(*roce.Envelope)) {
	r := newRun()
	for moved := true; moved; {
		moved = false
		for from, to := a, b; ; from, to = b, a {
			from.Advance(now)
			for r.Reset(); from.Egress(now, r); r.Reset() {
				moved = true
				for i := 0; i < r.N; i += r.Seg {
					var e roce.Envelope
					if e.Decode(r.Buf[i:min(i+r.Seg, r.N)]) == roce.ReasonNone && see != nil {
						see(&e)
					}
				}
				to.Ingress(now, &frame.Rx{Data: slices.Clone(r.Buf[:r.N]), Seg: r.Seg})
			}
			if from == b {
				break
			}
		}
	}
}

func TestEtherEveryEnvelope(t *testing.T) {
	for row, kind := range []roce.Kind{roce.V2IPv4, roce.V2IPv6, roce.V1, roce.V1} {
		for _, tagged := range []bool{false, true} {
			a, b := etherHost(t, addrA, addrA6, tagged, 9), etherHost(t, addrB, addrB6, tagged, 9)
			p, q := a.qp(ib.RC, nil), b.qp(ib.RC, nil)
			gidA, gidB := a.GIDs()[row].GID, b.GIDs()[row].GID
			a.connect(p, gidB, row, q.Number(), ib.MTU1024)
			b.connect(q, gidA, row, p.Number(), ib.MTU1024)
			src, from := a.mr(9001)
			dst, into := b.mr(9001)
			for i := range from {
				from[i] = byte(i*3 + 1)
			}
			wr := ib.SendWR{Op: ib.Write, Flags: ib.Signaled, SGL: []ib.SGE{{Addr: src.Base, Length: 9001, LKey: src.LKey}}, Remote: ib.Remote{Addr: dst.Base, RKey: dst.RKey}}
			if _, err := p.Post([]ib.SendWR{wr}, nil); err != nil {
				t.Fatal(err)
			}
			seen := 0
			carry(0, a, b, func(e *roce.Envelope) {
				seen++
				// Both ends of the wire agree with package roce, which shares no code with
				// the adapter's envelope.
				if e.Kind != kind || !e.Verify() || e.TTL != defaultTTL || e.Kind == roce.V2IPv4 && !e.DF {
					t.Fatalf("%v: %+v", kind, *e)
				}
				if e.Ether.Tag.VID() != 9 { // a VLAN implies a tag
					t.Fatalf("%v: tag %v", kind, e.Ether.Tag)
				}
			})
			if wcs := a.poll(); len(wcs) != 1 || wcs[0].Status != ib.Success || !slices.Equal(from, into) {
				t.Errorf("%v: %+v; %v", kind, wcs, b.Stats())
			}
			if seen < 10 {
				t.Errorf("%v: %d frames", kind, seen)
			}
		}
	}
}

// What is of another version, VLAN or nature than the queue pair's is dropped
// under its own name.
func TestEtherDrops(t *testing.T) {
	a := etherHost(t, addrA, addrA6, true, 9)
	q := a.qp(ib.RC, nil)
	a.connect(q, ib.GIDFromAddr(addrB), 0, 0x55, ib.MTU1024)
	good := func(k roce.Kind, vlan uint16) []byte {
		e := roce.Envelope{Kind: k, Src: ib.GIDFromAddr(addrB), Dst: ib.GIDFromAddr(addrA), DF: true, TTL: 64, SrcPort: 0xC000, DstPort: roce.Port}
		e.Ether.Tagged, e.Ether.Tag = true, ether.MakeTag(0, false, vlan)
		p := roce.NewCNP(q.Number())
		b := make([]byte, e.FrameLen(&p))
		e.Encode(b, &p)
		return b
	}
	for _, c := range []struct {
		name  string
		frame []byte
	}{
		{"rcvd_cnp", good(roce.V2IPv4, 9)},
		{"drop_roce_version", good(roce.V1, 9)},
		{"drop_vlan", good(roce.V2IPv4, 8)},
		{"drop_envelope", []byte{1, 2, 3}},
		{"drop_icrc", func() []byte { b := good(roce.V2IPv4, 9); b[len(b)-1] ^= 1; return b }()},
	} {
		before := a.Stats().Get(c.name)
		a.Ingress(0, &frame.Rx{Data: c.frame})
		if a.Stats().Get(c.name) != before+1 {
			t.Errorf("%s: not counted", c.name)
		}
	}
	for n := range len(good(roce.V2IPv4, 9)) {
		a.Ingress(0, &frame.Rx{Data: good(roce.V2IPv4, 9)[:n]})
	}
}

func TestVersionsDiffer(t *testing.T) {
	a := etherHost(t, addrA, addrA6, false, 0)
	q := a.qp(ib.RC, nil)
	a.modify(q, initAttr(ib.RC))
	attr := rtrAttr(ib.RC, ib.GIDFromAddr(addrB), 0, 0x55, ib.MTU1024)
	attr.AV.DGIDType = ib.GIDTypeRoCEv1
	if err := a.ModifyQP(0, q, &attr); !errors.Is(err, ErrPath) {
		t.Errorf("%v", err)
	}
	attr.AV.SGIDIndex = 2
	if err := a.ModifyQP(0, q, &attr); err != nil {
		t.Error(err)
	}
}

// Quanta last 512 bit times each: at 100 Gb/s, 1,000 of them 5,120 ns.
func TestQuantaExpire(t *testing.T) {
	a := etherHost(t, addrA, addrA6, false, 0)
	pfc := ether.PFC{}
	pfc.Set(3, 1000)
	pfc.Set(5, 2000)
	b := make([]byte, 64)
	a.Ingress(100, &frame.Rx{Data: b[:pfc.EncodeFrame(b, ether.MAC{})]})
	for _, c := range []struct {
		at    clock.Time
		prios uint8
		next  clock.Time
	}{{100, 1<<3 | 1<<5, 5220}, {5219, 1<<3 | 1<<5, 5220}, {5220, 1 << 5, 10340}, {10340, 0, clock.Never}} {
		a.Advance(c.at)
		if a.Paused() != c.prios || a.Deadline() != c.next {
			t.Errorf("at %d: %08b until %d, want %08b until %d", c.at, a.Paused(), a.Deadline(), c.prios, c.next)
		}
	}
	// A new frame takes the place of the old one; 0 lets go; what a program has
	// paused stays.
	a.Pause(1 << 1)
	all := ether.Pause{Quanta: 0xFFFF}
	a.Ingress(20000, &frame.Rx{Data: b[:all.EncodeFrame(b, ether.MAC{})]})
	if a.Paused() != 0xFF {
		t.Errorf("%08b", a.Paused())
	}
	all.Quanta = 0
	a.Ingress(20001, &frame.Rx{Data: b[:all.EncodeFrame(b, ether.MAC{})]})
	if a.Paused() != 1<<1 {
		t.Errorf("%08b", a.Paused())
	}
	// And out: one frame says all that was asked for.
	if err := errors.Join(a.SendPFC(1<<2, 7), a.SendPFC(1<<6, 0)); err != nil {
		t.Fatal(err)
	}
	r := newRun()
	var got ether.PFC
	if !a.Pending() || !a.Egress(0, r) || !got.Decode(r.Buf[ether.HeaderLen:r.N]) || got.Enable != 1<<2|1<<6 || got.Quanta[2] != 7 {
		t.Errorf("%+v", got)
	}
	if a.Pending() {
		t.Error("sent twice")
	}
	if udp := newAdapter(t, addrA, addrA6, nil); !errors.Is(udp.SendPFC(1, 1), ErrUnsupported) || !errors.Is(udp.SendPause(1), ErrUnsupported) {
		t.Error("PFC over a UDP link")
	}
}
