//go:build linux

package interop

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/link"
	"github.com/verbena-rdma/verbena/link/fault"
	"github.com/verbena-rdma/verbena/test/interop/judge"
)

// losses are what happens on the way, by name: in the language of package fault, where "out" is what we send.
var losses = []struct{ name, rules string }{
	{"a packet of ours is lost in a WRITE", "drop 3rd write out"},
	{"the last packet of ours is lost in a WRITE", "drop last write out times 1"},
	{"the only packet of ours is lost", "drop only out times 2"},
	{"a packet of the guest is lost in a WRITE", "drop 3rd write"},
	{"the last packet of the guest is lost in a WRITE", "drop last write times 1"},
	{"a packet of ours is lost in a SEND", "drop middle send times 1 out"},
	{"a packet of the guest is lost in a SEND", "drop middle send times 1"},
	{"a READ request of ours is lost", "drop 1st read-request out; drop 3rd read-request out"},
	{"a READ request of the guest is lost", "drop 1st read-request; drop 3rd read-request"},
	{"a READ response of the guest is lost in the middle", "drop 5th read-response; drop 20th read-response"},
	{"a READ response of ours is lost in the middle", "drop 5th read-response out; drop 20th read-response out"},
	{"the last READ response of the guest is lost", "drop last read-response times 1"},
	{"the last READ response of ours is lost", "drop last read-response times 1 out"},
	{"ATOMIC requests of ours are lost", "drop 2nd atomic out; drop 5th atomic out"},
	{"ATOMIC requests of the guest are lost", "drop 2nd atomic; drop 5th atomic"},
	{"ATOMIC answers of the guest are lost", "drop 1st atomic-ack; drop 4th atomic-ack"},
	{"ATOMIC answers of ours are lost", "drop 1st atomic-ack out; drop 4th atomic-ack out"},
	{"ACKs of the guest are lost", "drop every 2nd ack times 6"},
	{"ACKs of ours are lost", "drop every 2nd ack times 6 out"},
	{"every 3rd packet of ours is lost in WRITEs", "drop every 3rd write times 20 out"},
	{"every 2nd READ response of the guest is lost", "drop every 2nd read-response times 20"},
	{"every 5th READ response of the guest is lost", "drop every 5th read-response"},
	{"every 2nd READ response of ours is lost", "drop every 2nd read-response times 8 out"},
	{"NAKs of the guest are lost", "drop 3rd write out; drop nak times 1"},
	{"NAKs of ours are lost", "drop 3rd write; drop nak times 1 out"},
	{"everything comes twice", "dup 30%; dup 30% out"},
	{"packets overtake each other", "reorder 3%; reorder 3% out"},
	{"packets come late", "delay 2ms 3%; delay 2ms 3% out"},
	{"packets are corrupted", "corrupt 2%; corrupt 2% out"},
	{"some of everything", "loss 1%; loss 1% out; dup 2%; dup 2% out; reorder 1%; reorder 1% out"},
}

// TestLoss moves data both ways by every operation while the link loses, doubles and mixes up packets.
func TestLoss(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for i, l := range losses {
		t.Run(l.name, func(t *testing.T) { testLoss(t, l.rules, seed(t)<<8+uint64(i)) })
	}
	complaints(t, network(t).Guest(1))
}

func testLoss(t *testing.T, text string, seed uint64) {
	rules, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	corrupts := false
	for _, r := range rules {
		corrupts = corrupts || r.Action == fault.Corrupt
	}
	ctx := within(t, patience)
	var bad *fault.Link
	h := newHost(t, 2*dataBytes, func(l link.Link) link.Link {
		bad, err = fault.New(l, fault.Config{Rules: rules, Seed: seed})
		if err != nil {
			t.Error(err)
			return l
		}
		return bad
	})
	// A timeout of 67 ms: a guest on a busy machine seldom takes longer, and if it does nothing is wrong.
	c := newPair(ctx, h, ib.RC, ipv4, settings{mtu: ib.MTU1024, timeout: 14}, dataBytes)
	d := &mover{pair: c, ctx: ctx, rng: rand.New(rand.NewPCG(seed, 1))}
	for _, n := range []int{3, 5000, 40_000} {
		d.write(n)
		d.writeBack(n)
		d.send(n)
		d.sendBack(n)
		d.read(n)
		d.readBack(n)
		d.atomics(6)
		d.atomicsBack(6)
		if t.Failed() {
			break
		}
	}
	counts := bad.Counts()
	if counts.Dropped+counts.Duplicated+counts.Delayed+counts.Reordered+counts.Corrupted == 0 {
		t.Errorf("nothing happened on the link: %+v", counts)
	}
	s := h.dev.Stats()
	t.Logf("link %+v; we retransmitted %d, timeouts %d, NAKs received %d, duplicates %d, out of sequence %d", counts,
		s.Get("retransmitted"), s.Get("local_ack_timeout_err"), s.Get("packet_seq_err"), s.Get("duplicate_request"), s.Get("out_of_seq_request"))
	h.tidy(corrupts)
}

// atomics adds to and swaps a number in the guest's memory: each must happen once, and tell what was there.
func (d *mover) atomics(n int) {
	d.h.t.Helper()
	const at, result = 4096, 0
	want := d.rng.Uint64()
	d.p.fill(at, binary.LittleEndian.AppendUint64(nil, want))
	for i := range n {
		wr := ib.SendWR{Op: ib.FetchAdd, SGL: d.h.mr.SGE(result, 8), Remote: d.p.at(at), SwapAdd: d.rng.Uint64()}
		next := want + wr.SwapAdd
		switch i % 3 {
		case 1:
			wr.Op, wr.Compare, next = ib.CompareSwap, want, wr.SwapAdd
		case 2:
			wr.Op, wr.Compare, next = ib.CompareSwap, want+1, want // does not swap
		}
		d.post(wr)
		if got := binary.NativeEndian.Uint64(d.h.buf[result:]); got != want {
			d.h.t.Errorf("%v number %d returned %#x, want %#x", wr.Op, i, got, want)
		}
		want = next
	}
	if got := binary.LittleEndian.Uint64(d.p.dump(at, 8)); got != want {
		d.h.t.Errorf("after %d atomics the guest has %#x, want %#x", n, got, want)
	}
}

// atomicsBack is the same by the guest in our memory.
func (d *mover) atomicsBack(n int) {
	d.h.t.Helper()
	const at, result = 8192, 0
	want := d.rng.Uint64()
	// Nobody else touches the word: the guest's requests come when it is asked for them.
	binary.NativeEndian.PutUint64(d.h.buf[at:], want)
	for i := range n {
		r := request{op: ib.FetchAdd, off: result, n: 8, to: d.h.mr.Remote(at), swapAdd: d.rng.Uint64()}
		next := want + r.swapAdd
		switch i % 3 {
		case 1:
			r.op, r.compare, next = ib.CompareSwap, want, r.swapAdd
		case 2:
			r.op, r.compare, next = ib.CompareSwap, want+1, want
		}
		d.p.send(r)
		d.p.good(1)
		if got := binary.LittleEndian.Uint64(d.p.dump(result, 8)); got != want {
			d.h.t.Errorf("%v number %d returned %#x to the guest, want %#x", r.op, i, got, want)
		}
		want = next
	}
	// A message orders our memory for this goroutine.
	d.sendBack(1)
	if got := binary.NativeEndian.Uint64(d.h.buf[at:]); got != want {
		d.h.t.Errorf("after %d atomics of the guest we have %#x, want %#x", n, got, want)
	}
}
