package fault_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/clock"
	"github.com/verbena-rdma/verbena/frame"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/pair"
	"github.com/verbena-rdma/verbena/wire"
	"github.com/verbena-rdma/verbena/wire/ether"
	"github.com/verbena-rdma/verbena/wire/roce"
)

// envelopes are the forms in which a packet stands in a frame.
func envelopes() map[string]roce.Envelope {
	all := map[string]roce.Envelope{}
	for _, k := range []roce.Kind{roce.V2IPv4, roce.V2IPv6, roce.V1} {
		for _, tagged := range []bool{false, true} {
			e := roce.Envelope{Kind: k, Src: ib.GIDFromAddr(here), Dst: ib.GIDFromAddr(there), TOS: 2, TTL: 64, DF: true, SrcPort: 0xC0DE, DstPort: roce.Port}
			if k == roce.V2IPv6 {
				e.Src[0], e.Dst[0] = 0xFD, 0xFD
			}
			e.Ether.Tagged, e.Ether.Tag = tagged, ether.MakeTag(3, false, 7)
			all[fmt.Sprintf("%v tag=%v", k, tagged)] = e
		}
	}
	return all
}

func etherPair() (a, b *pair.Link) {
	return pair.New(pair.Config{Caps: link.Caps{Encap: frame.Ethernet}})
}

// sendFrames commits count frames of READ responses with PSNs from psn, segs a
// run.
func sendFrames(t testing.TB, l link.Link, e roce.Envelope, psn, count, segs int) {
	t.Helper()
	for count > 0 {
		var tx [1]frame.Run
		if l.Reserve(tx[:]) != 1 {
			t.Fatal("Reserve lent nothing")
		}
		r := &tx[0]
		r.Src, r.Dst, r.SrcPort = e.Src.Addr(), e.Dst.Addr(), e.SrcPort
		for range min(segs, count) {
			var p wire.Packet
			p.SetOp(wire.RCReadRespMiddle)
			p.PKey, p.DestQPN, p.PSN, p.Payload = ib.DefaultPKey, qpn, ib.PSN(psn), bytes.Repeat([]byte{byte(psn)}, 256)
			e.Ident = uint16(psn * 77)
			r.Seg = e.Encode(r.Buf[r.N:], &p)
			r.N += r.Seg
			r.Segs++
			psn++
			count--
		}
		if err := l.Commit(0, tx[:]); err != nil {
			t.Fatal(err)
		}
	}
}

// framesOf takes what is there, each frame copied.
func framesOf(t testing.TB, l link.Link, now clock.Time) (all [][]byte) {
	t.Helper()
	for {
		var rx [3]frame.Rx
		n, err := l.Recv(now, rx[:])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		for _, p := range rx[:n] {
			seg := p.Seg
			if seg == 0 {
				seg = len(p.Data)
			}
			for b := range slices.Chunk(p.Data, seg) {
				all = append(all, slices.Clone(b))
			}
		}
		l.Release(rx[:n])
	}
}

// The rules find opcode, QPN, PSN and peer in whole frames of each form, in both
// directions, and what they let pass is as it was.
func TestRulesOverEthernet(t *testing.T) {
	for name, e := range envelopes() {
		for _, c := range []struct{ rules, at0, later string }{
			{"drop 3rd read-response qp=0x11", "0 1 3 4 5 6 7 8 9", ""},
			{"drop 3rd read-response qp=0x12", "0 1 2 3 4 5 6 7 8 9", ""},
			{"drop psn=2..4", "0 1 5 6 7 8 9", ""},
			{"drop opcode=0x0e middle", "", ""},
			{"drop first last only", "0 1 2 3 4 5 6 7 8 9", ""},
			{"drop 3rd write", "0 1 2 3 4 5 6 7 8 9", ""},
			{"dup 3rd; dup 4th", "0 1 2 2 3 3 4 5 6 7 8 9", ""},
			{"reorder 2 3rd", "0 1 3 4 2 5 6 7 8 9", ""},
			{"delay 1ms psn=2", "0 1 3 4 5 6 7 8 9", "2"},
			{"drop 3rd peer=PEER", "0 1 3 4 5 6 7 8 9", ""},
			{"drop 3rd peer=192.0.2.0/24", "0 1 2 3 4 5 6 7 8 9", ""},
		} {
			for _, out := range []string{"", " out"} {
				for _, segs := range []int{1, 4, 10} {
					peer := e.Src.Addr()
					if out != "" {
						peer = e.Dst.Addr()
					}
					rules := strings.ReplaceAll(strings.ReplaceAll(c.rules, ";", out+";")+out, "PEER", peer.String())
					t.Run(fmt.Sprintf("%s/%s/segs=%d", name, rules, segs), func(t *testing.T) {
						a, b := etherPair()
						var tx, rx link.Link = a, b
						if out != "" {
							tx = around(t, a, rules, 1)
						} else {
							rx = around(t, b, rules, 1)
						}
						sendFrames(t, tx, e, 0, 10, segs)
						first := framesOf(t, rx, 0)
						const later = clock.Time(time.Millisecond)
						if err := tx.Commit(later, nil); err != nil {
							t.Fatal(err)
						}
						second := framesOf(t, rx, later)
						for i, want := range []string{c.at0, c.later} {
							var w []string
							for _, f := range [][][]byte{first, second}[i] {
								var g roce.Envelope
								if why := g.Decode(f); why != roce.ReasonNone || !g.Verify() || g.Ether != etherOf(e, g) || g.TOS != 2 {
									t.Fatalf("%v: %+v", why, g)
								}
								psn := int(g.IB[11])
								if e.Kind == roce.V2IPv4 && int(g.Ident) != psn*77 {
									t.Errorf("PSN %d has Identification %d", psn, g.Ident)
								}
								w = append(w, fmt.Sprint(psn))
							}
							if got := strings.Join(w, " "); got != want {
								t.Errorf("%s, want %s", got, want)
							}
						}
					})
				}
			}
		}
	}
}

// etherOf is the Ethernet header that a frame in envelope e has.
func etherOf(e, got roce.Envelope) ether.Header {
	h := e.Ether
	h.Type = got.Ether.Type
	if !h.Tagged {
		h.Tag = 0
	}
	return h
}

// A damaged frame differs in one bit between BTH and ICRC, a marked one in ECN
// and the header checksum, which is right.
func TestFramesAreSpoiledWhereTheyShould(t *testing.T) {
	for name, e := range envelopes() {
		for _, rules := range []string{"corrupt 2nd", "corrupt 2nd out", "ce 2nd", "ce 2nd out", "delay 1ms 2nd out; ce 2nd out", "delay 1ms 2nd; ce 2nd; dup 2nd"} {
			a, b := etherPair()
			plainA, plainB := etherPair()
			sendFrames(t, plainA, e, 0, 3, 3)
			want := framesOf(t, plainB, 0)[1]
			var tx, rx link.Link = a, b
			if strings.Contains(rules, "out") {
				tx = around(t, a, rules, 5)
			} else {
				rx = around(t, b, rules, 5)
			}
			sendFrames(t, tx, e, 0, 3, 3)
			got := framesOf(t, rx, 0)
			if err := tx.Commit(clock.Time(time.Millisecond), nil); err != nil {
				t.Fatal(err)
			}
			got = append(got, framesOf(t, rx, clock.Time(time.Millisecond))...)
			n := 0
			for _, f := range got {
				var g roce.Envelope
				if why := g.Decode(f); why != roce.ReasonNone {
					t.Fatalf("%s, %s: %v", name, rules, why)
				}
				if len(f) != len(want) || g.IB[20] != 1 && g.IB[21] != 1 { // payload of PSN 1
					continue
				}
				n++
				if strings.HasPrefix(rules, "corrupt") {
					diff := 0
					for i := range f {
						d := bits.OnesCount8(f[i] ^ want[i])
						if diff += d; d != 0 && i < g.Len() {
							t.Errorf("%s, %s: byte %d of the envelope is damaged", name, rules, i)
						}
					}
					if diff != 1 || g.Verify() {
						t.Errorf("%s, %s: %d bits differ", name, rules, diff)
					}
					continue
				}
				if g.TOS != 3 || !g.Verify() || !bytes.Equal(g.IB, want[g.Len():]) {
					t.Errorf("%s, %s: TOS %d", name, rules, g.TOS)
				}
			}
			if wantN := 1 + strings.Count(rules, "dup"); n != wantN || len(got) != 2+wantN {
				t.Errorf("%s, %s: %d of %d frames", name, rules, n, len(got))
			}
		}
	}
}

// No rule sees what is no packet.
func TestControlFramesPass(t *testing.T) {
	pfc := ether.PFC{}
	pfc.Set(3, 100)
	for _, rules := range []string{"drop", "drop out"} {
		a, b := etherPair()
		var tx, rx link.Link = a, b
		if strings.Contains(rules, "out") {
			tx = around(t, a, rules, 1)
		} else {
			rx = around(t, b, rules, 1)
		}
		var run [1]frame.Run
		if tx.Reserve(run[:]) != 1 {
			t.Fatal("nothing lent")
		}
		n := pfc.EncodeFrame(run[0].Buf, ether.MAC{})
		run[0].N, run[0].Seg, run[0].Segs = n, n, 1
		want := slices.Clone(run[0].Buf[:n])
		if err := tx.Commit(0, run[:]); err != nil {
			t.Fatal(err)
		}
		sendFrames(t, tx, envelopes()["RoCEv1 tag=false"], 0, 3, 3)
		if got := framesOf(t, rx, 0); len(got) != 1 || !bytes.Equal(got[0], want) {
			t.Errorf("%s: %d frames", rules, len(got))
		}
	}
}
