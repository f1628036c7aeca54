package perf

import (
	"errors"
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/perf/handshake"
	"github.com/verbena-rdma/verbena/verbs"
)

// lossy opens devices whose incoming packets meet with rules.
func lossy(t *testing.T, rules string, seed uint64) func(verbs.Config) (*verbs.Device, error) {
	t.Helper()
	parsed, err := fault.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg verbs.Config) (*verbs.Device, error) {
		cfg.Wrap = func(l link.Link) link.Link {
			f, err := fault.New(l, fault.Config{Rules: parsed, Seed: seed})
			if err != nil {
				t.Error(err)
				return l
			}
			return f
		}
		return verbs.Open(cfg)
	}
}

// TestDataSurvivesLoss: reliable tests end as without loss, their data intact.
func TestDataSurvivesLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for retransmissions")
	}
	for _, v := range []handshake.Verb{handshake.Write, handshake.Read, handshake.Send, handshake.Atomic} {
		c := Defaults(v, false)
		c.Iters = 100
		if v != handshake.Atomic {
			c.Size = 20000
		}
		s := c
		c.Open, s.Open = lossy(t, "loss 1%", 11), lossy(t, "loss 1%", 12)
		t.Run(c.Name(), func(t *testing.T) {
			ce, se := pairOf(t, c, s)
			if ce.err != nil || se.err != nil {
				t.Fatalf("client: %v, server: %v", ce.err, se.err)
			}
			if ce.o.Verified == nil || !*ce.o.Verified {
				t.Errorf("%+v", ce.o)
			}
		})
	}
}

// TestLossIsReported: where nothing repeats lost messages, the receiver says how
// many there were and ends in success.
func TestLossIsReported(t *testing.T) {
	for _, q := range []ib.QPType{ib.UC, ib.UD} {
		c := Defaults(handshake.Send, false)
		c.Conn, c.Iters, c.Size, c.SizeSet = q, 300, 512, true
		s := c
		s.Open = lossy(t, "loss 20%", 5)
		t.Run(q.String(), func(t *testing.T) {
			ce, se := pairOf(t, c, s)
			if ce.err != nil || se.err != nil {
				t.Fatalf("client: %v, server: %v", ce.err, se.err)
			}
			want := fmt.Sprintf("%d of 300 messages were lost: %v does not repeat them\n", se.o.Lost, q)
			if se.o.Lost < 20 || se.notes != want {
				t.Errorf("lost %d, noted %q", se.o.Lost, se.notes)
			}
			if b := se.o.Bandwidth[0]; b.Iters+se.o.Lost != 300 || b.BytesPerSec <= 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// TestDeadWayIsExplained: nothing comes through from the start.
func TestDeadWayIsExplained(t *testing.T) {
	c := Defaults(handshake.Write, false)
	c.Iters, c.Timeout = 20, 8
	s := c
	s.Open = lossy(t, "loss 100%", 5)
	ce, se := pairOf(t, c, s)
	oneLineError(t, "client", ce.err, "RETRY_EXC_ERR", "RDMA_WRITE 1 of 20", "likely:")
	oneLineError(t, "server", se.err, "peer closed the connection")
}

// TestSpoiltDataIsCaught: one wrong byte at the receiver is found, and both
// ends say so.
func TestSpoiltDataIsCaught(t *testing.T) {
	for _, v := range []handshake.Verb{handshake.Write, handshake.Read, handshake.Atomic} {
		for _, lat := range []bool{false, true} {
			c := Defaults(v, lat)
			c.Iters = 20
			if v != handshake.Atomic {
				c.Size = 100
			}
			s := c
			spoil := func(b []byte) { // the first byte of either part
				b[0] ^= 1
				b[len(b)/2] ^= 1
			}
			if v == handshake.Read {
				c.spoil = spoil
			} else {
				s.spoil = spoil
			}
			t.Run(c.Name(), func(t *testing.T) {
				ce, se := pairOf(t, c, s)
				for name, e := range map[string]end{"client": ce, "server": se} {
					if !errors.Is(e.err, ErrVerify) || e.o.Verified == nil || *e.o.Verified {
						t.Errorf("%s: %v", name, e.err)
					}
				}
			})
		}
	}
}
