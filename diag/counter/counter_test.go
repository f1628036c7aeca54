package counter_test

import (
	"testing"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		family counter.Family
		raw    string
		want   counter.Name
	}{
		{counter.MLX5, "np_ecn_marked_roce_packets", counter.ECNMarkedRx},
		{counter.MLX5, "vport_out_of_buffer", counter.RNRTx}, // of a representor
		{counter.BNXT, "rx_ecn_marked_pkts", counter.ECNMarkedRx},
		{counter.IRDMA, "Rcvd Out of order packets", counter.OOSRx},
		{counter.RXE, "rcvd_seq_err", counter.NAKSeqRx},
		{counter.Verbena, "np_cnp_sent", counter.CNPTx},
		{counter.Verbena, "rcvd_pkts", counter.RxPackets},
		{counter.Unknown, "RxECNMrkd", counter.ECNMarkedRx},
		{counter.RXE, "np_cnp_sent", ""}, // rxe has no such thing
		{counter.MLX5, "lifespan", ""},
	} {
		got, ok := counter.Canonical(c.family, c.raw)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s %q is %q, want %q", c.family, c.raw, got, c.want)
		}
	}
}

func TestUnreadableIsNotZero(t *testing.T) {
	set := snapshot.Counters{{Name: "np_cnp_sent", Value: snapshot.Unreadable[uint64]("N/A (no PMA)")}}
	if v := counter.Get(counter.MLX5, set, counter.CNPTx); v.IsKnown() || v.IsZero() {
		t.Errorf("an unreadable counter is %v", v)
	}
	if v := counter.Get(counter.MLX5, set, counter.OOSRx); !v.IsZero() {
		t.Errorf("a counter that is not there is %v", v)
	}
}

func TestPFC(t *testing.T) {
	known := snapshot.Known[uint64]
	n := &snapshot.Netdev{Ethtool: snapshot.Counters{
		{Name: "rx_prio3_pause", Value: known(1)},
		{Name: "rx_prio3_pause_duration", Value: known(2)},
		{Name: "rx_prio3_pause_transition", Value: known(3)},
		{Name: "tx_prio4_pause", Value: known(4)},
		{Name: "rx_prio0_buf_discard", Value: known(5)},
		{Name: "rx_prio0_discards", Value: known(6)},
		{Name: "tx_pfc_ena_frames_pri5", Value: known(7)},
		{Name: "pfc_pri6_rx_duration_us", Value: known(8)},
		{Name: "rx_priority_7_xoff.nic", Value: known(9)},
		{Name: "rx_prio9_pause", Value: known(10)}, // no priority
		{Name: "rx_global_pause", Value: known(11)},
	}}
	p := counter.PFCOf(n)
	for _, c := range []struct {
		what string
		v    snapshot.Value[uint64]
		want uint64
	}{
		{"rx 3 frames", p.Rx[3].Frames, 1},
		{"rx 3 duration", p.Rx[3].DurationUS, 2},
		{"rx 3 transitions", p.Rx[3].Transitions, 3},
		{"tx 4 frames", p.Tx[4].Frames, 4},
		{"rx 0 discards", p.Rx[0].Discards, 11},
		{"tx 5 frames", p.Tx[5].Frames, 7},
		{"rx 6 duration", p.Rx[6].DurationUS, 8},
		{"rx 7 frames", p.Rx[7].Frames, 9},
	} {
		if got, ok := c.v.Get(); !ok || got != c.want {
			t.Errorf("%s is %v, want %d", c.what, c.v, c.want)
		}
	}
	if p.Tx[3].Frames.IsKnown() {
		t.Error("a counter of the other direction")
	}
	// Without statistics the frames are those that the kernel asks the driver for.
	bare := &snapshot.Netdev{DCB: snapshot.DCB{PFC: snapshot.Known(snapshot.PFC{Requests: [8]uint64{3: 12}})}}
	if got := counter.PFCOf(bare).Tx[3].Frames.Or(0); got != 12 {
		t.Errorf("frames sent %d, want 12", got)
	}
}

// Counters of a port do not wrap; those that stand at their end say nothing.
func TestPortDelta(t *testing.T) {
	for _, c := range []struct {
		name   string
		was    uint64
		is     uint64
		want   uint64
		cannot bool
	}{
		{"symbol_error", 3, 5, 2, false},
		{"symbol_error", 65535, 65535, 0, true},
		{"symbol_error", 65536, 65536, 0, false}, // a wider one
		{"link_downed", 254, 255, 1, false},
		{"link_downed", 255, 255, 0, true},
		{"link_downed", 255, 0, 0, true},
		{"port_xmit_data", 1<<32 - 1, 1<<32 - 1, 0, true},
		{"port_xmit_data", 1<<32 - 1, 1 << 33, 1<<32 + 1, false},
		{"port_xmit_data", 1<<32 - 1, 7, 0, true},
		{"unicast_rcv_packets", 65535, 65535, 0, false},
	} {
		d := counter.PortDelta(c.name, snapshot.Known(c.was), snapshot.Known(c.is))
		if got, ok := d.Get(); ok == c.cannot || got != c.want {
			t.Errorf("%s from %d to %d: %v", c.name, c.was, c.is, d)
		}
	}
	if d := counter.PortDelta("symbol_error", snapshot.Value[uint64]{}, snapshot.Known(uint64(1))); d.IsKnown() {
		t.Error("a counter without an earlier value rose")
	}
}

// A counter that fell from the upper half of 32 bits wrapped, unless another one of its
// set fell that cannot have: then all were reset. Levels fall in good health.
func TestDeltaOfASet(t *testing.T) {
	set := func(v ...uint64) snapshot.Counters {
		var out snapshot.Counters
		for i, name := range []string{"rx_cnp_pkts", "dup_req", "active_mrs"}[:len(v)] {
			out = append(out, snapshot.Counter{Name: name, Value: snapshot.Known(v[i])})
		}
		return out
	}
	for _, c := range []struct {
		before, after snapshot.Counters
		want          uint64
		ok            bool
	}{
		{set(1<<32-1, 7, 9), set(4, 7, 9), 5, true},
		{set(1<<32-1, 7, 9), set(4, 7, 3), 5, true},
		{set(1<<32-1, 7, 9), set(4, 6, 9), 0, false},
		{set(5, 7, 9), set(9, 6, 9), 4, true},
		{set(5, 7, 9), set(4, 7, 9), 0, false},
		{set(), set(4, 7, 9), 0, false},
	} {
		d := counter.Delta(counter.BNXT, c.before, c.after, counter.CNPRxHandled)
		if got, ok := d.Get(); ok != c.ok || got != c.want {
			t.Errorf("from %v to %v: %v", c.before, c.after, d)
		}
	}
}
