package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/perf/handshake"
)

func TestRefusals(t *testing.T) {
	const (
		w, r, s, a = handshake.Write, handshake.Read, handshake.Send, handshake.Atomic
	)
	for _, tc := range []struct {
		verb    handshake.Verb
		latency bool
		set     func(*Config)
		say     string
	}{
		{w, false, func(c *Config) { c.Iters = 4 }, "-n 4"},
		{w, false, func(c *Config) { c.Size = 0 }, "-s 0"},
		{w, false, func(c *Config) { c.Size = 1 << 31 }, "-s"},
		{w, false, func(c *Config) { c.MTU = 1500 }, "-m 1500"},
		{w, false, func(c *Config) { c.Conn = ib.UD }, "-c UD"},
		{r, false, func(c *Config) { c.Conn = ib.UC }, "-c UC"},
		{a, false, func(c *Config) { c.Conn = ib.UC }, "-c UC"},
		{a, false, func(c *Config) { c.All = true }, "-a"},
		{a, true, func(c *Config) { c.Size = 16 }, "-s"},
		{w, false, func(c *Config) { c.CompareSwap = true }, "-A"},
		{w, true, func(c *Config) { c.Both = true }, "-b"},
		{s, true, func(c *Config) { c.QPs = 2 }, "-q"},
		{s, true, func(c *Config) { c.PostList = 2 }, "-l"},
		{s, true, func(c *Config) { c.NoPeak = true }, "-N"},
		{w, false, func(c *Config) { c.Histogram = true }, "-H"},
		{w, false, func(c *Config) { c.Unsorted = true }, "-U"},
		{w, false, func(c *Config) { c.Events = true }, "-e"},
		{s, false, func(c *Config) { c.Events = true; c.Duration = 4 * time.Second }, "-e"},
		{w, false, func(c *Config) { c.All = true; c.Duration = 4 * time.Second }, "-a"},
		{w, false, func(c *Config) { c.Duration, c.Margin = 4*time.Second, 2*time.Second }, "-f"},
		{r, false, func(c *Config) { c.Inline = 100 }, "-I"},
		{w, false, func(c *Config) { c.OutReads = 3 }, "-o"},
		{w, false, func(c *Config) { c.Timeout = 32 }, "-u"},
		{w, false, func(c *Config) { c.SL = 8 }, "-S"},
		{w, false, func(c *Config) { c.QPs = 0 }, "-q 0"},
		{w, false, func(c *Config) { c.TxDepth = 20000 }, "-t"},
		{w, false, func(c *Config) { c.IBPort = 2 }, "-i 2"},
		{w, false, func(c *Config) { c.GIDIndex = 100 }, "-x 100"},
		{w, false, func(c *Config) { c.Port = 70000 }, "-p"},
		{w, false, func(c *Config) { c.PostList, c.Iters = 3, 1000 }, "-l"},
		{w, false, func(c *Config) { c.PostList, c.CQMod, c.Iters = 10, 7, 1000 }, "-l 10"},
		{w, false, func(c *Config) { c.PostList, c.TxDepth = 50, 10 }, "-l"},
		{w, false, func(c *Config) { c.Shards = -1 }, "--shards -1: must be between 0 and 64"},
		{w, false, func(c *Config) { c.Shards = 1000 }, "--shards 1000: must be between 0 and 64"},
		{s, false, func(c *Config) { c.Conn, c.Size, c.SizeSet = ib.UD, 4097, true }, "-s 4097"},
		{s, true, func(c *Config) { c.Conn, c.Size, c.SizeSet, c.MTU = ib.UD, 1025, true, 1024 }, "-s 1025: on UD a message is one packet, at most the path MTU of 1024"},
		{w, true, func(c *Config) { c.MinGbps = 1 }, "--min-bw"},
		{w, true, func(c *Config) { c.LimitBW = 1 }, "-w"},
		{w, false, func(c *Config) { c.MaxLat = 1 }, "--max-lat"},
		{w, false, func(c *Config) { c.BothParts = true }, "--report-both"},
	} {
		c := Defaults(tc.verb, tc.latency)
		tc.set(&c)
		err := c.Complete()
		if !errors.Is(err, ErrUsage) || !strings.HasPrefix(err.Error(), tc.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, want %q: %v", c.Name(), tc.say, err)
		}
	}
}

// TestDefaultsOfPerftest holds the numbers that perftest shows in its header
// for the same options.
func TestDefaultsOfPerftest(t *testing.T) {
	for _, tc := range []struct {
		verb                        handshake.Verb
		latency                     bool
		set                         func(*Config)
		iters                       uint64
		tx, rx, mod, inline, margin int
	}{
		{handshake.Write, false, func(*Config) {}, 5000, 128, 512, 1, 0, -1},
		{handshake.Write, false, func(c *Config) { c.Size = 64 }, 5000, 128, 512, 100, 0, -1},
		{handshake.Send, false, func(c *Config) { c.Iters = 5 }, 5, 5, 6, 1, 0, -1},
		{handshake.Send, false, func(c *Config) { c.Conn, c.Size = ib.UD, 512 }, 1000, 128, 1000, 100, 0, -1},
		{handshake.Send, true, func(*Config) {}, 1000, 1, 512, 1, 236, -1},
		{handshake.Write, true, func(*Config) {}, 1000, 1, 512, 1, 220, -1},
		{handshake.Send, true, func(c *Config) { c.Conn = ib.UD }, 1000, 1, 1000, 1, 188, -1},
		{handshake.Read, false, func(c *Config) { c.PostList, c.Iters = 10, 20 }, 20, 20, 20, 10, 0, -1},
		{handshake.Write, false, func(c *Config) { c.Duration = 10 * time.Second }, 5000, 128, 512, 1, 0, 2},
	} {
		c := Defaults(tc.verb, tc.latency)
		tc.set(&c)
		if err := c.Complete(); err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		if c.Iters != tc.iters || c.TxDepth != tc.tx || c.CQMod != tc.mod || c.Inline != tc.inline || (tc.verb == handshake.Send && c.RxDepth != tc.rx) {
			t.Errorf("%s: iterations %d, tx %d, rx %d, moderation %d, inline %d; want %+v", c.Name(), c.Iters, c.TxDepth, c.RxDepth, c.CQMod, c.Inline, tc)
		}
		if tc.margin >= 0 && c.Margin != time.Duration(tc.margin)*time.Second {
			t.Errorf("margin %v", c.Margin)
		}
	}
}

func TestExplainEveryStatus(t *testing.T) {
	for s := ib.LocLenErr; s <= ib.GeneralErr; s++ {
		if e := Explain(s, 14, 7); e == "" || strings.Contains(e, "\n") {
			t.Errorf("%v: %q", s, e)
		}
	}
	if e := Explain(ib.RetryExcErr, 14, 7); !strings.Contains(e, "537ms") || !strings.Contains(e, "4791") {
		t.Errorf("%q", e)
	}
}

// However short the timeout, the explanation names the time and, where it is
// what went wrong, the option.
func TestExplainShortTimeouts(t *testing.T) {
	for exp := range uint8(32) {
		e := Explain(ib.RetryExcErr, exp, 7)
		if strings.Contains(e, "about 0s") && exp != 0 {
			t.Errorf("-u %d: %s", exp, e)
		}
		if short := exp > 0 && exp <= 10; short != strings.Contains(e, "too short") {
			t.Errorf("-u %d: %s", exp, e)
		}
	}
}
