package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/read"
	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
	"github.com/verbena-rdma/verbena/verbs/faultplan"
)

// What a fault plan breaks is what the doctor names first, from nothing but the
// counters and queue pairs that the devices' control sockets show.
func TestDoctorFindsInjectedFaults(t *testing.T) {
	writes := func(n int) func(*testing.T, *ownPair) {
		return func(t *testing.T, p *ownPair) {
			if err := p.write(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
	}
	// one posts a request at the first end and waits for its completion.
	one := func(want ib.WCStatus, wr func(p *ownPair) ib.SendWR) func(*testing.T, *ownPair) {
		return func(t *testing.T, p *ownPair) {
			if err := p.qp[0].PostSend(wr(p)); err != nil {
				t.Fatal(err)
			}
			var wcs [1]ib.WC
			if _, err := p.cq[0].Wait(t.Context(), wcs[:]); err != nil || wcs[0].Status != want {
				t.Fatalf("%v %v, want %v", wcs[0].Status, err, want)
			}
		}
	}
	rules, err := doctor.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		name    string
		plan    string // at the second end, which receives
		dcqcn   [2]bool
		traffic func(*testing.T, *ownPair)
		first   string // the rule whose finding is first
		end     int    // and the end that it is about
	}{
		{"lossy network", "{inject: lose, every: 20}", [2]bool{}, writes(20), "C13", 1},
		{"packets out of order", "{inject: reorder, distance: 3, every: 20}", [2]bool{}, writes(20), "C13", 1},
		{"packets are corrupted", "{inject: corrupt, every: 20}", [2]bool{}, writes(20), "C19", 1},
		{"packets come twice", "{inject: duplicate, every: 2}", [2]bool{}, writes(20), "C18", 1},
		{"ACKs are lost", "{inject: lose, direction: out, probability: 40%}", [2]bool{}, writes(4), "C15", 0},
		{"marks and nobody tells the sender", "{inject: mark}", [2]bool{true, false}, writes(60), "C07", 1},
		{"the network is cut", "{inject: partition}", [2]bool{}, one(ib.RetryExcErr, func(p *ownPair) ib.SendWR {
			return ib.SendWR{Op: ib.Write, SGL: p.mr[0].SGE(0, 64), Remote: p.peer.At(0)}
		}), "C16", 0},
		{"a wrong key", "", [2]bool{}, one(ib.RemAccessErr, func(p *ownPair) ib.SendWR {
			at := p.peer.At(0)
			at.RKey ^= 0x5555
			return ib.SendWR{Op: ib.Write, SGL: p.mr[0].SGE(0, 64), Remote: at}
		}), "C21", 0},
		{"a receiver that is late", "", [2]bool{}, func(t *testing.T, p *ownPair) {
			wr := ib.SendWR{Op: ib.Send, SGL: p.mr[0].SGE(0, 64), Flags: ib.Signaled}
			if err := p.qp[0].PostSend(wr); err != nil {
				t.Fatal(err)
			}
			// The receive comes when the sender has heard that there is none.
			for {
				c := p.dev[0].Counters()
				if n, ok := c.Get("rnr_nak_rx"); !ok {
					t.Fatal("no counter rnr_nak_rx")
				} else if n > 0 {
					break
				}
				p.cq[0].Poll(nil)
				if t.Context().Err() != nil {
					t.Fatal("no RNR NAK came")
				}
			}
			if err := p.qp[1].PostRecv(ib.RecvWR{SGL: p.mr[1].SGE(0, 64)}); err != nil {
				t.Fatal(err)
			}
			var wcs [1]ib.WC
			if _, err := p.cq[0].Wait(t.Context(), wcs[:]); err != nil || wcs[0].Status != ib.Success {
				t.Fatal(wcs[0].Status, err)
			}
		}, "C17", 1},
		{"a queue pair dies", "{inject: kill, qp: 1, call: post_recv}", [2]bool{}, func(t *testing.T, p *ownPair) {
			_ = p.qp[1].PostRecv(ib.RecvWR{SGL: p.mr[1].SGE(0, 64)})
			if s := p.qp[1].State(); s != ib.Error {
				t.Fatalf("the queue pair is in %v", s)
			}
		}, "A10", 1},
		{"nothing", "", [2]bool{}, writes(20), "", 0},
	} {
		// look lets the traffic run between two looks and says what is wrong with the
		// verdict, and how often the requester has waited for an answer in vain: on a host
		// without a moment for the responder the doctor says so, and is right.
		look := func(t *testing.T, port uint16) (wrong string, timeouts uint64) {
			var cfgs [2]verbs.Config
			for end, addr := range []string{"127.0.0.191", "127.0.0.192"} {
				c := verbs.Config{Addr: netip.MustParseAddr(addr), Port: port, Control: verbs.ControlOn}
				if tc.dcqcn[end] {
					c.DCQCN = verbs.DCQCN{Preset: "paper", LineRate: 10e9}
				}
				if tc.plan != "" && end == 1 {
					var err error
					if c.Faults, err = faultplan.Parse("test", []byte("seed: 1\nrules:\n  - "+tc.plan+"\n")); err != nil {
						t.Fatal(err)
					}
				}
				cfgs[end] = c
			}
			p := newPairOf(t, cfgs)
			defer p.dev[0].Close()
			defer p.dev[1].Close()
			before := ownSnapshot(t)
			tc.traffic(t, p)
			after := ownSnapshot(t)
			if len(after.Devices) != 2 {
				t.Fatalf("%d devices, want 2", len(after.Devices))
			}
			r := doctor.Examine(doctor.Input{Host: snapshot.Window{Before: before, After: after}, Prio: -1}, rules)
			var text strings.Builder
			if err := r.Text(&text, false); err != nil {
				t.Fatal(err)
			}
			c := p.dev[0].Counters()
			timeouts, ok := c.Get("ack_timeout")
			if !ok {
				t.Fatal("no counter ack_timeout")
			}
			at := after.Devices[tc.end].Name
			switch {
			case tc.first == "" && len(r.Findings) > 0:
				wrong = fmt.Sprintf("nothing is wrong, and it says:\n%s", &text)
			case tc.first != "" && (len(r.Findings) == 0 || r.Findings[0].Rule != tc.first || len(r.Findings[0].Places) != 1 || !strings.HasPrefix(r.Findings[0].Places[0]+"/", at+"/")):
				wrong = fmt.Sprintf("want %s at %s first, and it says:\n%s", tc.first, at, &text)
			}
			return wrong, timeouts
		}
		t.Run(tc.name, func(t *testing.T) {
			const tries = 8
			for try := range tries {
				wrong, timeouts := look(t, 14901+uint16(i*tries+try))
				if wrong == "" {
					return
				}
				if timeouts == 0 || try == tries-1 {
					t.Fatal(wrong)
				}
			}
		})
	}
}

// ownSnapshot is the two devices of this test as other programs see them, first that of
// 127.0.0.191, and nothing else of the host.
func ownSnapshot(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	h := hostFlags{sysfsRoot: "/sys", procRoot: "/proc"}
	live, err := h.live()
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	s := read.Host(live, read.Options{})
	own := &snapshot.Snapshot{Taken: s.Taken, Host: s.Host}
	for _, suffix := range []string{":7f00:00bf", ":7f00:00c0"} {
		for _, d := range s.Devices {
			if d.PID == os.Getpid() && len(d.Ports) == 1 && len(d.Ports[0].GIDs) > 0 && strings.HasSuffix(d.Ports[0].GIDs[0].GID, suffix) {
				own.Devices = append(own.Devices, d)
			}
		}
	}
	return own
}
