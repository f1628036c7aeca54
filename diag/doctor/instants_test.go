package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// statusOf is the gravest outcome of a rule about the first port, or the host.
func statusOf(r *doctor.Report, rule string) doctor.Status {
	for _, list := range [][]doctor.Finding{r.Findings, r.Passed, r.Skipped} {
		for _, f := range list {
			if f.Rule == rule && (slices.Contains(f.Places, "mlx5_0/1") || slices.Contains(f.Places, "host")) {
				return f.Status
			}
		}
	}
	return ""
}

// from lets a counter go from one value to another.
func from(before, after *snapshot.Counters, name string, was, is uint64) {
	setCounter(before, name, was)
	setCounter(after, name, is)
}

// Two readings of a counter say what rose only if it is one counter that counted all the
// time: what was reset, has come to its end, or was read a moment before is not judged
// as if it were. A rule that cannot know says SKIP, or warns by what else it knows.
func TestTwoReadings(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	hwFrom := func(name string, was, is uint64) func(*world) {
		return func(w *world) { from(&w.before.Devices[0].Ports[0].HWCounters, &w.port().HWCounters, name, was, is) }
	}
	pmaFrom := func(name string, was, is uint64) func(*world) {
		return func(w *world) { from(&w.before.Devices[0].Ports[0].Counters, &w.port().Counters, name, was, is) }
	}
	ethFrom := func(name string, was, is uint64) func(*world) {
		return func(w *world) { from(&w.before.Netdevs[0].Ethtool, &w.net().Ethtool, name, was, is) }
	}
	apart := func(d time.Duration) func(*world) {
		return func(w *world) { w.after.Taken = w.before.Taken.Add(d) }
	}
	uptimes := func(was, is float64) func(*world) {
		return func(w *world) { w.before.Uptime, w.after.Uptime = snapshot.Known(was), snapshot.Known(is) }
	}
	level := func(was, is uint64) func(*world) {
		return func(w *world) {
			for p, v := range map[*snapshot.Port]uint64{&w.before.Devices[0].Ports[0]: was, w.port(): is} {
				p.HWCounters = append(slices.Clone(p.HWCounters), snapshot.Counter{Name: "active_mrs", Value: snapshot.Known(v)})
			}
		}
	}
	drop := func(name string) func(*world) {
		return func(w *world) {
			b := &w.before.Netdevs[0]
			b.Ethtool = slices.DeleteFunc(slices.Clone(b.Ethtool), func(c snapshot.Counter) bool { return c.Name == name })
		}
	}
	for _, c := range []struct {
		name string
		set  func(*world)
		rule string
		want doctor.Status
	}{
		{"a counter of 32 bits wraps", hwFrom("out_of_sequence", 1<<32-4, 5), "C13", doctor.Warn},
		{"it seems to wrap, and another one fell", all(hwFrom("duplicate_request", 1<<32-1000, 5), hwFrom("np_cnp_sent", 70, 3)), "C18", doctor.Skip},
		{"and that is told", all(hwFrom("duplicate_request", 1<<32-1000, 5), hwFrom("np_cnp_sent", 70, 3)), "C23", doctor.Warn},
		{"a reset at an error counter that looks like a wrap", pmaFrom("symbol_error", 1<<31+5, 5), "P05", doctor.Skip},
		{"an error counter of 16 bits at its end", pmaFrom("symbol_error", 65535, 65535), "P05", doctor.Skip},
		{"one that comes to its end", pmaFrom("symbol_error", 65530, 65535), "P05", doctor.Warn},
		{"one of 8 bits at its end", pmaFrom("link_downed", 255, 255), "P04", doctor.Skip},
		{"a wider one has passed it", pmaFrom("symbol_error", 70000, 70000), "P05", doctor.Pass},
		{"a level falls", level(20, 10), "C23", doctor.Pass},

		{"one pause frame in a millisecond", all(apart(time.Millisecond), ethFrom("rx_prio3_pause", 7, 8)), "C01", doctor.Skip},
		{"a thousand in half a second", all(apart(time.Second/2), ethFrom("rx_prio3_pause", 7, 1007)), "C01", doctor.Skip},
		{"and in a second", all(apart(time.Second), ethFrom("rx_prio3_pause", 7, 1008)), "C01", doctor.Fail},
		{"the clock stood", all(apart(0), ethFrom("rx_prio3_pause", 7, 1008)), "C01", doctor.Skip},
		{"the clock was set back", all(apart(-time.Hour), uptimes(100, 110), ethFrom("rx_prio3_pause", 7, 20_007)), "C01", doctor.Fail},
		{"the clock was set back by most of the time", all(apart(time.Second), uptimes(100, 110), ethFrom("rx_prio3_pause", 7, 1_007)), "C01", doctor.Pass},
		{"the clock was set forward", all(apart(time.Hour), uptimes(100, 110), ethFrom("rx_prio3_pause", 7, 20_007)), "C01", doctor.Fail},
		{"the uptime is nonsense", all(apart(10*time.Second), uptimes(100, 1e300), ethFrom("rx_prio3_pause", 7, 20_007)), "C01", doctor.Fail},

		{"started anew: timeouts since then", all(uptimes(5000, 40), hwFrom("local_ack_timeout_err", 7, 90)), "C15", doctor.Info},
		{"started anew: nothing fell", all(uptimes(5000, 40), hwFrom("req_transport_retries_exceeded", 1, 1)), "C16", doctor.Warn},
		{"started anew: no counter is called reset", all(uptimes(5000, 40), hwFrom("out_of_sequence", 70, 3)), "C23", doctor.Skip},

		{"pauses of one priority were not read before", all(drop("rx_prio3_pause"), func(w *world) {
			setCounter(&w.net().Ethtool, "rx_prio3_pause", 1e9)
		}), "C01", doctor.Skip},
		{"nor where all are asked for", all(drop("rx_prio5_pause"), func(w *world) {
			noPFC(w)
			w.app().TrafficClass, w.dev().QPs = snapshot.Value[int]{}, snapshot.Value[[]snapshot.QP]{}
			setCounter(&w.net().Ethtool, "rx_prio5_pause", 1e9)
		}), "C01", doctor.Pass},
		{"pauses of the kernel's own count begin", func(w *world) {
			for i, n := range []*snapshot.Netdev{&w.before.Netdevs[0], w.net()} {
				n.Ethtool = slices.DeleteFunc(slices.Clone(n.Ethtool), func(c snapshot.Counter) bool { return strings.Contains(c.Name, "_pause") })
				n.DCB.PFC = snapshot.Known(snapshot.PFC{Enabled: [8]bool{3: true}, Indications: [8]uint64{3: uint64(i) * 20_000}})
			}
		}, "C01", doctor.Fail},
		{"a queue was not there before", all(drop("rx1_packets"), func(w *world) {
			setCounter(&w.net().Ethtool, "rx0_packets", 5000)
			setCounter(&w.net().Ethtool, "rx1_packets", 1e9)
			w.both(func(n *snapshot.Netdev) {
				n.FlowHash = map[string]snapshot.Value[snapshot.Hash]{"udp4": snapshot.Known(snapshot.HashSource)}
			})
			w.dev().Kind = snapshot.RXE
		}), "N01", doctor.Info},

		{"one of five packets is out of sequence", all(pmaFrom("port_rcv_packets", 0, 5), hwFrom("out_of_sequence", 0, 1)), "C13", doctor.Warn},
		{"one and no packets", hwFrom("out_of_sequence", 0, 1), "C13", doctor.Warn},
		{"one of five packets has a wrong CRC", all(pmaFrom("port_rcv_packets", 0, 5), hwFrom("rx_icrc_encapsulated", 0, 1)), "C19", doctor.Warn},
		{"a bit is corrected and none was counted", ethFrom("rx_corrected_bits_phy", 0, 1), "P06", doctor.Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.set(w)
			r := doctor.Examine(w.input(), rules)
			if got := statusOf(r, c.rule); got != c.want {
				t.Errorf("%s: %s, want %s\n%s\nskipped: %+v", c.rule, got, c.want, list(r.Findings), slices.DeleteFunc(r.Skipped, func(f doctor.Finding) bool { return f.Rule != c.rule }))
			}
		})
	}
}

// A host that was started anew between the snapshots is judged by the later one, and the
// report says so; so is a peer.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	for _, peer := range []bool{false, true} {
		w := newWorld()
		before, after := w.before, w.after
		if peer {
			before, after = w.peerBefore, w.peerAfter
		}
		before.Uptime, after.Uptime = snapshot.Known(1e6), snapshot.Known(3.5)
		r := doctor.Examine(w.input(), builtin(t))
		if len(r.Problems) != 1 || r.Problems[0].Place != "proc/uptime" {
			t.Errorf("problems %+v", r.Problems)
		}
		for _, f := range r.Findings {
			t.Errorf("%s %s: %+v", f.Status, f.Rule, f.Evidence)
		}
		if (r.Seconds > 0) != peer {
			t.Errorf("peer %v: the window has %v s", peer, r.Seconds)
		}
	}
}
