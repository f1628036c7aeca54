package fabric

import (
	"testing"

	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/work"
)

// In steady state, with DCQCN, PFC and the shared buffer on, neither packets nor
// events allocate.
func TestPacketHopsDoNotAllocate(t *testing.T) {
	sc, g := t32(t, "host.dcqcn.preset=mlx5", "host.rdma.ack_every=16")
	var flows []work.Flow
	for i := range int32(32) {
		flows = append(flows, work.Flow{Src: i, Dst: (i + 8) % 32, Bytes: 100_000_000, Prio: -1, DSCP: -1})
	}
	r, err := New(sc, g, &work.List{Flows: flows})
	if err != nil {
		t.Fatal(err)
	}
	r.S.Run(2 * sim.Millisecond) // queues, rings and pools have grown
	before := r.S.Events()
	// The watch, every 20 us, may allocate: a handful in 100,000 events.
	if n := testing.AllocsPerRun(3, func() { r.S.RunSome(sim.Never, 100_000) }); n > 100 {
		t.Errorf("%.0f allocations in 100,000 events", n)
	}
	if r.S.Events()-before < 400_000 {
		t.Errorf("only %d events", r.S.Events()-before)
	}
}
