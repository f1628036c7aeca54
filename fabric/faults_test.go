package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

// upset runs two hosts at a switch for a millisecond with faults; one sends to
// the other all the time.
func upset(t *testing.T, faults, more string) (*Run, *result.Run) {
	t.Helper()
	r := loaded(t, `
topology: {kind: star, hosts: 2, rate: 100Gbps, delay: 100ns}
workload: [{kind: long, src: host0, dst: host1}]
host: {dcqcn: {preset: off}, rdma: {timeout_exp: 5, ack_every: 1}}
duration: 1ms
until: duration
faults:
`+faults+more)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	res := r.Result()
	for _, b := range res.Breaches {
		t.Errorf("%s: %s", b.Rule, b.Detail)
	}
	return r, res
}

// A link is up when nothing keeps it down any more, however the faults that
// take it down lie over each other.
func TestOverlappingOutages(t *testing.T) {
	for _, x := range []struct{ faults, want string }{
		{"- {at: 10us, kind: link-down, where: host1, for: 100us}\n- {at: 50us, kind: link-down, where: sw0-host1, for: 200us}\n", "10us down, 250us up, "},
		{"- {at: 10us, kind: link-down, where: host1, for: 300us}\n- {at: 50us, kind: link-down, where: host1, for: 20us}\n", "10us down, 310us up, "},
		{"- {at: 10us, kind: flap, where: host1, for: 10us, every: 100us, count: 3}\n- {at: 15us, kind: link-down, where: host1, for: 100us}\n", "10us down, 120us up, 210us down, 220us up, "},
		{"- {at: 10us, kind: flap, where: host1, for: 10us, every: 100us, count: 3}\n- {at: 30us, kind: link-down, where: host1}\n", "10us down, 20us up, 30us down, "},
		{"- {at: 0, kind: link-down, where: host1, for: 10us}\n- {at: 10us, kind: link-down, where: host1, for: 10us}\n", "0ps down, 20us up, "},
	} {
		_, res := upset(t, x.faults, "")
		got := ""
		for _, l := range res.Links {
			got += fmt.Sprintf("%v %s, ", l.At, map[bool]string{true: "up", false: "down"}[l.Up])
		}
		// That one begins as another ends is no outage of no length in between.
		if got != x.want && got != "0ps down, 10us up, 10us down, 20us up, " {
			t.Errorf("%s%s, want %s", x.faults, got, x.want)
		}
	}
}

// A slow receiver is as fast as before when it is over, and two are as slow as
// the slower.
func TestOverlappingSlowReceivers(t *testing.T) {
	for _, x := range []struct {
		faults, more string
		want         sim.Rate
	}{
		{"- {at: 10us, kind: slow-receiver, where: host1, rate: 10Gbps, for: 100us}\n", "hosts: [{match: host1, nic: {pcie_rate: 40Gbps}}]\n", 40 * sim.Gbps},
		{"- {at: 10us, kind: slow-receiver, where: host1, rate: 10Gbps, for: 100us}\n", "", 0},
		{"- {at: 10us, kind: slow-receiver, where: host1, rate: 10Gbps}\n- {at: 20us, kind: slow-receiver, where: host1, rate: 5Gbps, for: 10us}\n", "", 10 * sim.Gbps},
		{"- {at: 10us, kind: slow-receiver, where: host1, rate: 10Gbps, for: 30us}\n- {at: 20us, kind: slow-receiver, where: host1, rate: 20Gbps}\n", "", 20 * sim.Gbps},
		{"- {at: 10us, kind: slow-receiver, where: host1, rate: 60Gbps}\n", "hosts: [{match: host1, nic: {pcie_rate: 40Gbps}}]\n", 40 * sim.Gbps},
	} {
		r, _ := upset(t, x.faults, x.more)
		if got := r.NICs[1].Config().DrainRate; got != x.want {
			t.Errorf("%s%s: %v at the end, want %v", x.faults, x.more, got, x.want)
		}
	}
}

// Errors are in the priorities and for the time that they are given for; of
// several the worst holds.
func TestOverlappingErrors(t *testing.T) {
	for _, x := range []struct {
		faults      string
		from, until sim.Time // when frames are corrupted
	}{
		{"- {at: 0, kind: errors, where: host1, error_rate: 1, priorities: [0, 6]}\n", sim.Never, 0},
		{"- {at: 100us, kind: errors, where: host1, error_rate: 1, priorities: 3, for: 100us}\n", 100 * sim.Microsecond, 200 * sim.Microsecond},
		{
			"- {at: 100us, kind: errors, where: host1, error_rate: 1, for: 200us}\n- {at: 150us, kind: errors, where: host1, error_rate: 1/1000000, for: 10us}\n",
			100 * sim.Microsecond, 300 * sim.Microsecond,
		},
	} {
		_, res := upset(t, x.faults, "")
		last := sim.Time(0)
		for _, d := range res.Drops {
			if d.Reason == result.DropError && d.At < x.from {
				t.Errorf("%sa frame is lost at %v", x.faults, d.At)
			}
			last = max(last, d.At)
		}
		// The sender, which hears nothing, sends again every 131 us or sooner.
		if last > x.until || last < x.until-140*sim.Microsecond {
			t.Errorf("%sthe last is lost at %v, want before %v", x.faults, last, x.until)
		}
	}
}

// Each fault that loses the next packets loses as many as it says, beside others
// at the same link.
func TestDropsNextToEachOther(t *testing.T) {
	const storm = "- {at: 300us, kind: storm, where: host1, priorities: 3, for: 100us}\n"
	for _, x := range []struct {
		faults string
		want   int // packets that are lost; of pauses, those that get through
	}{
		{"- {at: 10us, kind: drop-next, where: host1, what: data, count: 1}\n- {at: 10us, kind: drop-next, where: host1, what: data, count: 2}\n", 3},
		{"- {at: 10us, kind: drop-next, where: host1, what: ack, count: 5}\n- {at: 50us, kind: drop-next, where: host1, what: data}\n", 6},
		{storm + "- {at: 300us, kind: drop-next, where: host1, what: pfc, priorities: 3}\n", 0},
		{storm + "- {at: 300us, kind: drop-next, where: host1, what: pfc, priorities: [0, 1, 2]}\n", 1},
		{storm + "- {at: 300us, kind: drop-next, where: host1, what: pfc}\n", 0},
	} {
		r, res := upset(t, x.faults, "")
		n := 0
		for _, d := range res.Drops {
			if d.Reason == result.DropFault {
				n++
			}
		}
		if strings.Contains(x.faults, "pfc") {
			n = int(res.Nodes[r.Graph.Node("sw0")].Ports[1].Prio[3].PauseRx)
		}
		if n != x.want {
			t.Errorf("%s%d, want %d", x.faults, n, x.want)
		}
	}
}

// A storm goes on after its link was down, and ends with the last of several.
func TestStormsGoOn(t *testing.T) {
	for _, x := range []struct {
		faults string
		want   []bool // stopped at 250, 450 and 950 us
	}{
		{"- {at: 100us, kind: storm, where: host1, priorities: 3}\n- {at: 200us, kind: link-down, where: host1, for: 10us}\n", []bool{true, true, true}},
		{"- {at: 100us, kind: storm, where: host1, priorities: 3, for: 300us}\n- {at: 200us, kind: storm, where: host1, for: 600us}\n", []bool{true, true, false}},
		{"- {at: 100us, kind: storm, where: host1, priorities: 3, for: 200us}\n- {at: 290us, kind: link-down, where: host1, for: 20us}\n", []bool{true, false, false}},
	} {
		r := loaded(t, "topology: {kind: star, hosts: 2}\nworkload: [{kind: long, src: host0, dst: host1}]\nduration: 1ms\nfaults:\n"+x.faults)
		var got []bool
		sw := r.Graph.Node("sw0")
		for _, at := range []sim.Time{250, 450, 950} {
			r.S.Run(at * sim.Microsecond)
			got = append(got, r.Ports[sw][1].Classes()&(1<<3) != 0)
		}
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%s%s", x.faults, d)
		}
	}
}

// A reroute takes away the routes of a bounce: who starts after it goes up and then
// down. It is told, and what was told changes the digest.
func TestReroute(t *testing.T) {
	const text = `
topology: {kind: bounce, hosts_per_leaf: 1}
workload:
  - {name: before, kind: long, src: host0, dst: host2, bytes: 10KB}
  - {name: after, kind: long, src: host0, dst: host2, bytes: 10KB, start: 100us}
faults: [{at: 50us, kind: reroute}]
`
	r := loaded(t, text)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	res := r.Result()
	for i, hops := range []int{6, 4} {
		if f := &res.Flows[i]; f.State != result.Finished || len(f.Path) != hops {
			t.Errorf("%s: %v, %d hops, want %d", f.Group, f.State, len(f.Path), hops)
		}
	}
	if len(res.Reroutes) != 1 || res.Reroutes[0].At != 50*sim.Microsecond {
		t.Errorf("told: %v", res.Reroutes)
	}
	none := loaded(t, strings.Replace(text, "faults: [{at: 50us, kind: reroute}]", "", 1))
	if err := none.Finish(); err != nil {
		t.Fatal(err)
	}
	if n := len(none.Result().Flows[1].Path); n != 6 {
		t.Errorf("without it: %d hops", n)
	}
}
