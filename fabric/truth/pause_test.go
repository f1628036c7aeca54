package truth

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// stormed runs host0 → host1 from 20 us on, while host1 stops its switch from
// 10 us on, and returns the switch's port to host1.
func stormed(t *testing.T, rate sim.Rate, quanta int, storm, more string) *result.PortPrio {
	t.Helper()
	text := fmt.Sprintf(`name: storm
duration: 10s
topology: {kind: star, hosts: 2, rate: %dGbps, delay: 1us}
packet: {mtu: 1024, payload: 1000, header: 48, control: 60, gap: false}
switch: {buffer: {total: 0B, headroom: auto}, ecn: {priorities: none}, pfc: {priorities: [3]}}
host: {nic: {pfc: [3], quanta: %d}, dcqcn: {preset: "off"}}
faults:
  - {at: 10us, kind: storm, where: host1, priorities: [3]%s}
%srecord: {series: none}
`, rate/sim.Gbps, quanta, storm, more)
	f := write(0, 1, megabyte, "x")
	f.Start = 20 * sim.Microsecond
	res := parse(t, "storm", text).run(t, []work.Flow{f})
	lossless(t, res) // but for the frames that the fault takes
	fcts(t, res, "x")
	return &portNamed(t, res, "sw0/Ethernet1").Prio[3]
}

// A4a, A4b: a pause that nobody repeats is over when its quanta are.
func TestA4QuantaExpire(t *testing.T) {
	for _, rate := range []sim.Rate{40 * sim.Gbps, 100 * sim.Gbps, 400 * sim.Gbps} {
		for _, quanta := range []int{65535, 1000} {
			// The first frame has arrived at 11.02 us at the latest.
			p := stormed(t, rate, quanta, "", "  - {at: 11100ns, kind: drop-next, where: host1, what: pfc, count: 1000000}\n")
			if want := sim.Time(theory.QuantaTime(int64(quanta), int64(rate))); p.PausedFor != want {
				t.Errorf("%v, %d quanta: stopped for %d ps, want %d", rate, quanta, p.PausedFor, want)
			}
		}
	}
}

// A4c: refreshed at half of its quanta, a pause holds as long as it is meant to.
func TestA4Refresh(t *testing.T) {
	const storm = 3 * sim.Millisecond
	for _, quanta := range []int{65535, 1000} {
		p := stormed(t, 100*sim.Gbps, quanta, ", for: 3ms", "")
		half := sim.Time(theory.QuantaTime(int64(quanta), 100e9)) / 2
		if frames := 1 + uint64(storm/half); p.PausedFor != storm || p.PauseRx != frames {
			t.Errorf("%d quanta: stopped for %d ps by %d frames, want %d by %d", quanta, p.PausedFor, p.PauseRx, storm, frames)
		}
	}
}
