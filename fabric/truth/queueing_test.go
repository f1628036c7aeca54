package truth

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// fan is host0 at 100 Gb/s and so many senders at 800 Gb/s around one switch: the
// senders' own links add next to nothing.
func fan(t *testing.T, senders int) rig {
	t.Helper()
	var b strings.Builder
	b.WriteString(`name: fan
duration: 10s
topology:
  kind: explicit
  delay: 1us
  nodes:
    - {name: sw0, kind: switch}
    - {name: host0, kind: host}
`)
	for i := range senders {
		fmt.Fprintf(&b, "    - {name: host%d, kind: host}\n", i+1)
	}
	b.WriteString("  links:\n    - {a: sw0, b: host0, rate: 100Gbps}\n")
	for i := range senders {
		fmt.Fprintf(&b, "    - {a: sw0, b: host%d, rate: 800Gbps}\n", i+1)
	}
	b.WriteString(`packet: {mtu: 1024, payload: 1000, header: 48, control: 60, gap: false}
switch: {buffer: {total: 0B, headroom: auto}, ecn: {priorities: none}, pfc: {priorities: [3]}}
host: {rdma: {ack_every: 1}, dcqcn: {preset: "off"}}
record: {series: none}
`)
	return parse(t, "fan", b.String())
}

// A3a, A3b: M/D/1 at the port to host0.
func TestA3PoissonWaits(t *testing.T) {
	const (
		senders = 31
		count   = 60_000
		tx      = 83_840 // ps
	)
	size, err := work.ReadCDF(strings.NewReader("1000 0\n1000 100\n"), "one packet")
	if err != nil {
		t.Fatal(err)
	}
	var sources []int32
	for i := range senders {
		sources = append(sources, int32(i+1))
	}
	for _, rho := range []float64{0.5, 0.8, 0.9} {
		// The generator takes a load of payload in parts of a million, and rounds
		// the mean gap of a source to a picosecond: that is the load that counts.
		ppm := int64(math.Round(rho * 1e6 * 1000 / 1048 / senders))
		gapOf := math.Round(1000 * 8 * 1e18 / (100e9 * float64(ppm)))
		load := senders * tx / gapOf
		p := work.Poisson{
			Sources: sources, Dests: []int32{0}, CDF: size, Rate: 100 * sim.Gbps, LoadPPM: ppm, Count: count,
			As: work.Flow{Prio: -1, DSCP: -1, Group: "x"},
		}
		stream, err := p.Stream(sim.NewRand(1, "poisson"))
		if err != nil {
			t.Fatal(err)
		}
		res := end(t, fan(t, senders).compose(t, stream))
		waits := make([]float64, 0, count)
		for i := range res.Flows {
			f := &res.Flows[i]
			if f.State != result.Finished {
				t.Fatalf("flow %d: %s", i, f.Status)
			}
			waits = append(waits, float64(f.FCT()-f.Base)/1e3)
		}
		if len(waits) != count {
			t.Fatalf("%d messages", len(waits))
		}
		want := theory.MD1Wait(load) * tx / 1e3
		in, err := theory.BatchMeans(waits[count/10:], 20, 0.99)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("A3a | ρ %.6f | %.2f ns | %v", load, want, in)
		if !in.Contains(want) {
			t.Errorf("A3a: load %.4f: a mean wait of %v ns; M/D/1 has %.2f", load, in, want)
		}
		// Little: the mean queue is the arrival rate times the wait.
		queue := portNamed(t, res, "sw0/Ethernet0").Prio[3].MeanQueue / 1048
		wantQueue, half := load*theory.MD1Wait(load), load*in.Half*1e3/tx
		t.Logf("A3b | ρ %.6f | %.4f packets | %.4f ± %.4f", load, wantQueue, queue, half)
		if math.Abs(queue-wantQueue) > half {
			t.Errorf("A3b: load %.4f: a mean queue of %.3f packets; M/D/1 has %.3f ± %.3f", load, queue, wantQueue, half)
		}
	}
}

// A3c: N*D/D/1.
func TestA3PeriodicInPhase(t *testing.T) {
	const senders = 16
	var flows []work.Flow
	for k := range 100 {
		for i := range senders {
			f := write(int32(i+1), 0, 1000, "x")
			f.Start = sim.Time(k) * 2 * sim.Microsecond
			flows = append(flows, f)
		}
	}
	res := load(t, "star", "topology.hosts=17").run(t, flows)
	want := int64(theory.NDD1Bound(senders)) * 1048
	if got := portNamed(t, res, "sw0/Ethernet0").Prio[3].PeakQueue; got != want {
		t.Errorf("A3c: %d B wait at most, want %d", got, want)
	}
}
