package rnic

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/ib"
)

// A queue that is resized at any moment against a list: order, contents,
// overflow, and the events of what was armed before.
func TestResizeAgainstModel(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 100).Draw(t, "depth")
		c, err := a.CreateCQ(depth)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.DestroyCQ(c) }()
		start := rapid.Uint32().Draw(t, "position")
		c.ring.head.Store(start)
		c.ring.tail.Store(start)
		events, wantEvents := 0, 0
		c.OnEvent(func() { events++ })
		var list []uint64
		armed, next := false, uint64(1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"add", "add", "add", "poll", "resize", "arm"}).Draw(t, "do") {
			case "add":
				if len(list) == depth {
					continue // an overflow ends the queue: tested elsewhere
				}
				c.add(c.of.shards[0], &ib.WC{ID: next}, false)
				list = append(list, next)
				next++
				if armed {
					armed = false
					wantEvents++
				}
			case "poll":
				wcs := make([]ib.WC, rapid.IntRange(0, 20).Draw(t, "n"))
				n := c.Poll(wcs)
				if n != min(len(wcs), len(list)) {
					t.Fatalf("%d completions, want %d of %d", n, len(wcs), len(list))
				}
				for i, wc := range wcs[:n] {
					if wc.ID != list[i] {
						t.Fatalf("completion %d, want %d", wc.ID, list[i])
					}
				}
				list = list[n:]
			case "resize":
				n := rapid.IntRange(-1, 300).Draw(t, "depth")
				ok := n >= 1 && n >= len(list)
				if err := a.ResizeCQ(c, n); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
					t.Fatalf("resize to %d with %d waiting: %v", n, len(list), err)
				}
				if ok {
					depth = n
				}
			case "arm":
				c.Arm(false)
				armed = true
			}
			if c.Len() != len(list) || c.Depth() != depth || events != wantEvents {
				t.Fatalf("%d of %d, %d events; want %d of %d, %d", c.Len(), c.Depth(), events, len(list), depth, wantEvents)
			}
		}
	})
}

func TestResizeRefusals(t *testing.T) {
	c := newCQ(t, 4)
	a := c.of.shards[0]
	for _, n := range []int{0, a.limits.MaxCQE + 1} {
		if err := a.ResizeCQ(c, n); !errors.Is(err, ErrInvalid) {
			t.Errorf("to %d: %v", n, err)
		}
	}
	if err := a.ResizeCQ(c, a.limits.MaxCQE); err != nil {
		t.Error(err)
	}
	if err := a.ResizeCQ(c, 2); err != nil {
		t.Error(err)
	}
	for range 3 {
		c.add(c.of.shards[0], &ib.WC{}, false)
	}
	if err := a.ResizeCQ(c, 10); !c.Overrun() || !errors.Is(err, ErrState) {
		t.Errorf("of an overflowed queue: %v", err)
	}
	if err := a.DestroyCQ(c); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{a.ResizeCQ(c, 1), a.ResizeCQ(nil, 1)} {
		if !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
}
