package rnic

import (
	"errors"
	"sync"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
)

func newCQ(t testing.TB, depth int) *CQ {
	t.Helper()
	c, err := newAdapter(t, addrA, addrA6, nil).CreateCQ(depth)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompletionsComeInOrderAtEveryDepth(t *testing.T) {
	for _, depth := range []int{1, 2, 31, 32, 33, 100, 5000} {
		c := newCQ(t, depth)
		in, out := uint64(0), uint64(0)
		wcs := make([]ib.WC, 7)
		for out < uint64(3*depth+10) {
			for c.Len() < depth {
				c.add(c.of.shards[0], &ib.WC{ID: in}, false)
				in++
			}
			for range depth/2 + 1 {
				for _, wc := range wcs[:c.Poll(wcs[:min(7, depth)])] {
					if wc.ID != out {
						t.Fatalf("depth %d: completion %d, want %d", depth, wc.ID, out)
					}
					out++
				}
			}
		}
		if c.Overrun() || c.Depth() != depth {
			t.Errorf("depth %d: overrun %v, depth %d", depth, c.Overrun(), c.Depth())
		}
	}
}

func TestDeepQueueCostsNothingUntilUsed(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	if n := bytesPer(10, func() any { c, _ := a.CreateCQ(a.limits.MaxCQE); return c }); n > 64<<10 {
		t.Errorf("%d bytes", n)
	}
}

// Events are one-shot, and only for what comes after arming.
func TestArming(t *testing.T) {
	type step struct {
		do     string // arm, arm-solicited, add, add-solicited, add-error, poll
		events int    // in total, afterwards
	}
	tests := map[string][]step{
		"not armed": {{"add", 0}, {"add-error", 0}},
		"one-shot":  {{"arm", 0}, {"add", 1}, {"add", 1}, {"arm", 1}, {"add", 2}},
		"what is there already is never reported":   {{"add", 0}, {"arm", 0}, {"poll", 0}, {"add", 1}},
		"nor when it is never polled":               {{"add", 0}, {"add", 0}, {"arm", 0}, {"arm", 0}, {"add", 1}},
		"solicited only":                            {{"arm-solicited", 0}, {"add", 0}, {"add-solicited", 1}, {"add-solicited", 1}},
		"an error counts as solicited":              {{"arm-solicited", 0}, {"add", 0}, {"add-error", 1}},
		"any is not weakened to solicited":          {{"arm", 0}, {"arm-solicited", 0}, {"add", 1}},
		"solicited is strengthened to any":          {{"arm-solicited", 0}, {"add", 0}, {"arm", 0}, {"add", 1}},
		"after an event solicited is solicited":     {{"arm", 0}, {"add", 1}, {"arm-solicited", 1}, {"add", 1}, {"add-solicited", 2}},
		"an overflow tells who waits":               {{"arm", 0}, {"overflow", 1}, {"add", 1}},
		"a solicited one there already is not told": {{"add-solicited", 0}, {"arm-solicited", 0}, {"add", 0}, {"add-solicited", 1}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCQ(t, 64)
			events := 0
			c.OnEvent(func() { events++ })
			for i, s := range steps {
				switch s.do {
				case "arm":
					c.Arm(false)
				case "arm-solicited":
					c.Arm(true)
				case "add":
					c.add(c.of.shards[0], &ib.WC{}, false)
				case "add-solicited":
					c.add(c.of.shards[0], &ib.WC{}, true)
				case "add-error":
					c.add(c.of.shards[0], &ib.WC{Status: ib.WRFlushErr}, false)
				case "overflow":
					c.ring.overflow()
				case "poll":
					c.Poll(make([]ib.WC, 64))
				}
				if events != s.events {
					t.Errorf("after step %d (%s): %d events, want %d", i, s.do, events, s.events)
				}
			}
		})
	}
}

// A consumer that arms and polls again, and then waits, never waits in vain.
func TestArmThenPollLosesNoWakeUp(t *testing.T) {
	c := newCQ(t, 1<<16)
	wake := make(chan struct{}, 1)
	c.OnEvent(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	const n = 20000
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			c.add(c.of.shards[0], &ib.WC{ID: uint64(i)}, i%3 == 0)
		}
	})
	wcs := make([]ib.WC, 8)
	for got := 0; got < n; {
		k := c.Poll(wcs)
		if k == 0 {
			c.Arm(false)
			if k = c.Poll(wcs); k == 0 {
				<-wake
				continue
			}
		}
		for _, wc := range wcs[:k] {
			if wc.ID != uint64(got) {
				t.Fatalf("completion %d, want %d", wc.ID, got)
			}
			got++
		}
	}
	wg.Wait()
}

func TestOverflowLosesNothingBeforeIt(t *testing.T) {
	h := newHost(t, addrA, addrA6, nil)
	small, err := h.CreateCQ(4)
	if err != nil {
		t.Fatal(err)
	}
	q := h.qp(ib.RC, func(c *QPConfig) { c.RecvCQ = small })
	other := h.qp(ib.UD, func(c *QPConfig) { c.SendCQ = small })
	healthy := h.qp(ib.UD, nil)
	for _, x := range []*QP{q, other, healthy} {
		h.modify(x, initAttr(x.typ))
	}
	if _, err := q.PostRecv(make([]ib.RecvWR, 6)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.PostRecv(make([]ib.RecvWR, 3)); err != nil {
		t.Fatal(err)
	}
	h.Advance(0)
	h.modify(q, ib.QPAttr{Mask: ib.AttrState, State: ib.Error}) // six flushes into four places
	if !small.Overrun() || small.Len() != 4 {
		t.Fatalf("overrun %v, %d completions", small.Overrun(), small.Len())
	}
	if other.State() != ib.Error || healthy.State() != ib.Init {
		t.Errorf("states %v and %v", other.State(), healthy.State())
	}
	var events []ib.EventType
	for ev, ok := h.Event(); ok; ev, ok = h.Event() {
		events = append(events, ev.Type)
	}
	if len(events) < 1 || events[0] != ib.EventCQErr {
		t.Errorf("events %v", events)
	}
	for range 2 { // what was there stays readable, and nothing is added
		wcs := make([]ib.WC, 8)
		n := small.Poll(wcs)
		if n != 4 && n != 0 {
			t.Errorf("%d completions", n)
		}
		small.add(small.of.shards[0], &ib.WC{}, false)
	}
	if n := h.Stats().Get("cqe_lost"); n != 4 {
		t.Errorf("cqe_lost %d", n)
	}
	if wcs := h.poll(); len(wcs) != 3 { // the flushed receives of other
		t.Errorf("%d completions in the healthy queue", len(wcs))
	}
	if _, err := h.CreateQP(0, QPConfig{Type: ib.RC, PD: h.pd, SendCQ: small, RecvCQ: h.cq}); !errors.Is(err, ErrState) {
		t.Errorf("a queue pair on an overflowed queue: %v", err)
	}
}
