package truth

import (
	"slices"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/theory"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// incast is n senders from host first on, to host 0, at once.
func incast(first, n int, bytes int64) []work.Flow {
	var f []work.Flow
	for i := range n {
		f = append(f, write(int32(first+i), 0, bytes, "incast"))
	}
	return f
}

const megabyte = 1_000_000

func lossless(t testing.TB, res *result.Run) {
	t.Helper()
	if n := drops(res); n != 0 {
		t.Errorf("%d packets were lost", n)
	}
}

// A2a, A2b, A2c: without a pause the packets of N senders come in turn.
func TestA2StarWithoutPause(t *testing.T) {
	tx := theory.Serialise(1048, 100e9)
	for n := 2; n <= 31; n++ {
		res := load(t, "star", "topology.hosts=32").run(t, incast(1, n, megabyte))
		lossless(t, res)
		all := fcts(t, res, "incast")
		in := theory.Incast{Senders: int64(n), Size: megabyte, Packets: hpccPackets, Path: path(2, 100*sim.Gbps, sim.Microsecond)}
		last := sim.Time(in.LastCompletion(hpccAck))
		if all[n-1] != last {
			t.Errorf("A2a: %d senders: the last ends at %d ps, want %d", n, all[n-1], last)
		}
		if least := last - sim.Time(int64(n)*tx); all[0] < least {
			t.Errorf("A2b: %d senders: the first ends at %v, more than %d packets before the last", n, all[0], n)
		}
		peak := portNamed(t, res, "sw0/Ethernet0").Prio[3].PeakQueue
		if most := in.PeakQueue() + int64(n)*1048; peak < in.PeakQueue() || peak > most {
			t.Errorf("A2c: %d senders: the queue was %d B at most, want %d to %d", n, peak, in.PeakQueue(), most)
		}
		if len(res.Pauses) != 0 {
			t.Errorf("%d senders: paused, with memory without end", n)
		}
	}
}

// A2d: pauses cost the shared link nothing. A4d: nor do refreshes, and what must
// be stopped stays stopped.
func TestA2StarWithPauses(t *testing.T) {
	for n := 2; n <= 31; n++ {
		in := theory.Incast{Senders: int64(n), Size: megabyte, Packets: hpccPackets, Path: path(2, 100*sim.Gbps, sim.Microsecond)}
		for _, quanta := range []string{"65535", "200"} {
			if quanta == "200" && n != 8 {
				continue
			}
			res := load(t, "star", "topology.hosts=32", "switch.buffer.xoff=100KB", "switch.pfc.quanta="+quanta).run(t, incast(1, n, megabyte))
			lossless(t, res)
			if all := fcts(t, res, "incast"); all[n-1] != sim.Time(in.LastCompletion(hpccAck)) {
				t.Errorf("A2d: %d senders, quanta %s: the last ends at %d ps, want %d", n, quanta, all[n-1], in.LastCompletion(hpccAck))
			}
			if len(res.Pauses) < n {
				t.Errorf("%d senders: %d pauses", n, len(res.Pauses))
			}
		}
	}
}

// A2e, A2f: across leaves, with HPCC's memory. The paths collide as they like.
func TestA2T32(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16, 24} {
		res := load(t, "t32", `host.dcqcn.preset="off"`, "switch.ecn.priorities=none").run(t, incast(8, n, megabyte))
		lossless(t, res)
		in := theory.Incast{Senders: int64(n), Size: megabyte, Packets: hpccPackets, Path: path(4, 100*sim.Gbps, sim.Microsecond)}
		if all := fcts(t, res, "incast"); all[n-1] != sim.Time(in.LastCompletion(hpccAck)) {
			t.Errorf("A2e: %d senders: the last ends at %d ps, want %d", n, all[n-1], in.LastCompletion(hpccAck))
		}
	}
	res := load(t, "t32", `host.dcqcn.preset="off"`, "switch.ecn.priorities=none").run(t, incast(1, 31, megabyte))
	lossless(t, res)
	near, far := path(2, 100*sim.Gbps, sim.Microsecond), path(4, 100*sim.Gbps, sim.Microsecond)
	in := theory.Incast{Senders: 31, Size: megabyte, Packets: hpccPackets, Path: near}
	want := []sim.Time{sim.Time(in.LastDelivery() + ackTime(far, hpccAck)), sim.Time(in.LastDelivery() + ackTime(near, hpccAck))}
	if all := fcts(t, res, "incast"); !slices.Contains(want, all[30]) {
		t.Errorf("A2f: the last ends at %d ps, want %d or %d", all[30], want[0], want[1])
	}
}
