package rnic

import (
	"reflect"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/transport"
)

// Every name of every vocabulary means one counter, every counter says its unit
// and what it is, and all fit a snapshot.
func TestCounterTable(t *testing.T) {
	if len(counterTable) > maxCounters {
		t.Fatalf("%d counters, a snapshot has room for %d", len(counterTable), maxCounters)
	}
	names := map[string]string{}
	for _, c := range CounterList() {
		if c.Name == "" || c.Unit == "" || c.What == "" {
			t.Errorf("incomplete: %+v", c)
		}
		for _, n := range []string{c.Name, c.MLX5, c.Rxe, c.Ours} {
			if other, ok := names[n]; ok && other != c.Name && n != "" {
				t.Errorf("%s is a name of %s and of %s", n, other, c.Name)
			}
			names[n] = c.Name
		}
	}
	// Linux' rxe_hw_counters.c, in its order.
	for _, n := range []string{
		"sent_pkts", "rcvd_pkts", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "send_rnr_err", "rcvd_seq_err", "ack_deferred",
		"retry_exceeded_err", "retry_rnr_exceeded_err", "completer_retry_err", "send_err", "link_downed", "rdma_sends", "rdma_recvs",
	} {
		if names[n] == "" {
			t.Errorf("rxe's %s is nobody's name", n)
		}
	}
	// mlx5's of the same things.
	for _, n := range []string{
		"np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
		"local_ack_timeout_err", "rnr_nak_retry_err", "duplicate_request", "out_of_buffer", "rx_icrc_encapsulated",
		"rx_prio0_pause", "rx_prio7_pause", "tx_prio3_pause", "rx_global_pause", "tx_global_pause",
	} {
		if names[n] == "" {
			t.Errorf("mlx5's %s is nobody's name", n)
		}
	}
	// What Stats has is in the table, under some name.
	for _, s := range newAdapter(t, addrA, addrA6, nil).Stats() {
		if names[s.Name] == "" && s.Name != "rcvd_seq_err" {
			t.Errorf("%s of Stats is nobody's name", s.Name)
		}
	}
}

// A snapshot has, row by row, what was counted: each field is set to a number
// of its own, and found again under its name once.
func TestCountersReadWhatWasCounted(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	n := uint64(1000)
	set := func(v reflect.Value) {
		var walk func(v reflect.Value)
		walk = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Struct:
				for i := range v.NumField() {
					walk(reflect.NewAt(v.Field(i).Type(), v.Field(i).Addr().UnsafePointer()).Elem())
				}
			case reflect.Array:
				for i := range v.Len() {
					walk(v.Index(i))
				}
			case reflect.Pointer: // to the sum
			case reflect.Uint64:
				n++
				v.SetUint(n)
			default:
				t.Fatalf("a counter of type %v", v.Type())
			}
		}
		walk(v)
	}
	set(reflect.ValueOf(&a.count).Elem())
	set(reflect.ValueOf(&a.tcount).Elem())
	var c Counters
	a.ReadCounters(&c)
	stats := a.Stats()
	for info, v := range c.All() {
		if info.Name == "active_qps" || info.Name == "link_downed" || info.Name == "events_lost" {
			continue
		}
		for _, name := range []string{info.Name, info.MLX5, info.Rxe, info.Ours} {
			if got, ok := c.Get(name); name != "" && (!ok || got != v) {
				t.Errorf("%s is %d by All, %d %v by Get(%q)", info.Name, v, got, ok, name)
			}
		}
		old := stats.Get(info.Rxe) + stats.Get(info.Ours)
		if info.Rxe == "" && info.Ours == "" {
			if old = stats.Get(info.MLX5); old == 0 {
				old = stats.Get(info.Name)
			}
		}
		if info.Name == "nak_seq_rx" {
			old = a.tcount.Events[transport.PacketSeqErr]
		}
		if v != old || v < 1000 {
			t.Errorf("%s is %d, Stats has %d", info.Name, v, old)
		}
	}
	var later Counters
	a.count.sentPkts += 5
	a.ReadCounters(&later)
	d := later.Sub(&c)
	for info, v := range d.All() {
		want := uint64(0)
		if info.Name == "packets_tx" {
			want = 5
		}
		if v != want && !info.Gauge {
			t.Errorf("difference of %s is %d, want %d", info.Name, v, want)
		}
	}
	sum := c
	sum.Add(&later)
	x, _ := c.Get("packets_tx")
	if y, _ := sum.Get("sent_pkts"); y != 2*x+5 {
		t.Errorf("the sum of %d and %d is %d", x, x+5, y)
	}
}

func TestReadingCountersDoesNotAllocate(t *testing.T) {
	a := newAdapter(t, addrA, addrA6, nil)
	var c Counters
	if n := testing.AllocsPerRun(100, func() { a.ReadCounters(&c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReadCounters(b *testing.B) {
	a := newAdapter(b, addrA, addrA6, nil)
	var c Counters
	for b.Loop() {
		a.ReadCounters(&c)
	}
}

// The counters of queue pairs are kept apart, and their sum is the adapter's.
func TestQueuePairCounters(t *testing.T) {
	count := func(c *Config) { c.CountQPs = true }
	a, b := newHost(t, addrA, addrA6, count), newHost(t, addrB, addrB6, count)
	cable := newCable(t, a.Adapter, b.Adapter, asPackets)
	var senders, receivers []*QP
	for i := range 3 {
		x, y := a.qp(ib.RC, nil), b.qp(ib.RC, nil)
		a.connect(x, ib.GIDFromAddr(addrB), 0, y.qpn, ib.MTU1024)
		b.connect(y, ib.GIDFromAddr(addrA), 0, x.qpn, ib.MTU1024)
		senders, receivers = append(senders, x), append(receivers, y)
		for range i + 1 { // an exchange each, so that each has its ACK
			if _, err := y.PostRecv([]ib.RecvWR{{}}); err != nil {
				t.Fatal(err)
			}
			if _, err := x.Post([]ib.SendWR{{Op: ib.Send, Flags: ib.Signaled}}, nil); err != nil {
				t.Fatal(err)
			}
			cable.settle()
		}
	}
	var sum Counters
	for i, q := range senders {
		var c Counters
		a.ReadQPCounters(q, &c)
		want := uint64(i + 1)
		for _, name := range []string{"packets_tx", "packets_rx", "rdma_sends"} {
			if v, ok := c.Get(name); !ok || v != want {
				t.Errorf("sender %d: %s is %d (%v), want %d", i, name, v, ok, want)
			}
		}
		for _, name := range []string{"drop_icrc", "active_qps", "rx_prio3_pause"} {
			if v, ok := c.Get(name); ok {
				t.Errorf("sender %d has %s: %d", i, name, v)
			}
		}
		sum.Add(&c)
	}
	var all Counters
	a.ReadCounters(&all)
	for info, v := range all.All() {
		if s, _ := sum.Get(info.Name); info.PerQP && s != v {
			t.Errorf("%s is %d of the adapter, %d of its queue pairs", info.Name, v, s)
		}
	}
	var c Counters
	b.ReadQPCounters(receivers[2], &c)
	if v, _ := c.Get("rdma_recvs"); v != 3 {
		t.Errorf("receiver 2 completed %d receives, want 3", v)
	}
}
