package truth

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// pressed sends from host 0 to 2, which has stopped the switch, beyond XOFF, and
// from 3 to 0 beginning at phase, so that the link to host0 is busy when the
// pause wants to leave. It returns the most headroom that host0's port used, and
// how many packets were lost.
func pressed(t *testing.T, set []string, headroom string, phase sim.Time) (int64, int) {
	t.Helper()
	r := load(t, "star", append(set, "topology.hosts=4", "switch.buffer.xoff=50KB", "switch.buffer.headroom="+headroom,
		"faults=[{at: 0ns, kind: storm, where: host2, priorities: [3]}]")...)
	var flows []work.Flow
	for _, f := range []work.Flow{forever(0, 2, "in"), forever(3, 0, "back")} {
		f.Service = 1 // UC: no acknowledgements
		if f.Group == "back" {
			f.Start = phase
		}
		flows = append(flows, f)
	}
	res := r.run(t, flows, "no drop in a lossless class")
	lost := 0
	for _, d := range res.Drops {
		if d.Port == 0 && d.Reason == result.DropHeadroom {
			lost++
		}
	}
	return portNamed(t, res, "sw0/Ethernet0").Prio[3].PeakHeadroom, lost
}

// A5: with the computed headroom nothing is lost; what the worst phase takes is
// what the formula says, and with a byte less something is lost.
func TestA5Headroom(t *testing.T) {
	for _, c := range []struct {
		row           string
		rate          sim.Rate
		delay         sim.Time // ps
		frame, gap    int64
		response      sim.Time
		sets          string
		need, highest int64 // H and U of the table
	}{
		{"A5a", 100 * sim.Gbps, 963_600, 1048, 0, 0, "", 26_250, 26_200},
		{"A5b", 25 * sim.Gbps, 163_840, 1048, 0, 0, "", 3_184, 3_144},
		{"A5c", 10 * sim.Gbps, 5_012_800, 1048, 0, 0, "", 14_692, 14_672},
		{"A5d", 100 * sim.Gbps, 2_008_640, 1048, 0, 2_017_280, "", 77_592, 77_552},
		{"A5e", 400 * sim.Gbps, 501_120, 4096 + 62, gap, 0, "packet.mtu=4096 packet.payload=0 packet.header=-1 packet.control=0 packet.gap=true", 58_584, 58_212},
	} {
		t.Run(c.row, func(t *testing.T) {
			// The tables' numbers, from their formulas. With real headers the longest
			// frame is the first of a message, by its RETH of 16 bytes.
			longest := c.frame
			if c.gap > 0 {
				longest += 16
			}
			if h := theory.IdealHeadroom(int64(c.rate), int64(c.delay), longest+c.gap, 64+c.gap, int64(c.response)); h != c.need {
				t.Fatalf("H is %d, the table has %d", h, c.need)
			}
			per := func(bytes int64) int64 { return theory.Serialise(bytes, int64(c.rate)) } // ps
			x := per(64+c.gap) + 2*int64(c.delay) + int64(c.response)
			one := per(c.frame + c.gap)
			if u := c.frame * (1 + (x+one-1)/one); u != c.highest {
				t.Fatalf("U is %d, the table has %d", u, c.highest)
			}
			// The reverse frame has to begin less than this before XOFF.
			step := max(one/512, (x%one)/2)
			set := append(sets("%s", c.sets), fmt.Sprintf("topology.rate=%dGbps", c.rate/sim.Gbps), fmt.Sprintf("topology.delay=%dps", c.delay),
				fmt.Sprintf("host.nic.response_delay=%dps", c.response),
				"until=duration", fmt.Sprintf("duration=%dps", 2*theory.Serialise(100_000, int64(c.rate))+10*int64(c.delay)))
			peaks := func(headroom int64) (peak int64, lost int) {
				for phase := int64(0); phase < one; phase += step {
					p, n := pressed(t, set, fmt.Sprintf("%dB", headroom), sim.Time(phase))
					peak, lost = max(peak, p), lost+n
				}
				return peak, lost
			}
			if peak, lost := peaks(c.need); lost != 0 || peak != c.highest {
				t.Errorf("with %d B: %d packets lost, %d B used at most, want %d", c.need, lost, peak, c.highest)
			}
			if _, lost := peaks(c.highest); lost != 0 {
				t.Errorf("with %d B, which are used: %d packets lost", c.highest, lost)
			}
			if _, lost := peaks(c.highest - 1); lost == 0 {
				t.Errorf("with %d B, one less than are used: nothing is lost", c.highest-1)
			}
			if _, lost := peaks(c.need - 2*longest); lost == 0 {
				t.Errorf("with two frames less than computed: nothing is lost")
			}
		})
	}
}
