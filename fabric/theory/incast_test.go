package theory_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/verbena-rdma/verbena/fabric/theory"
)

// Seen in two simulators: 16 x 1000 x 1064 B = 1362 + 8 = 1370 us in htsim, exact; 1341 + 8 = 1349
// for 1048 B, and 1336 seen in HPCC's simulator, whose 83.84 ns are 83.
func TestIncast16(t *testing.T) {
	for _, c := range []struct {
		name string
		k    theory.Packets
		tick int64
		want string
	}{
		{"htsim", htsim, 0, "1370"},
		{"HPCC's packets, exact", hpcc, 0, "1349"},
		{"HPCC's simulator", hpcc, ns, "1336"},
	} {
		in := theory.Incast{Senders: 16, Size: 1e6, Packets: c.k, Path: t32(c.tick)}
		// The printed ideal leaves the first packet's way out: 0.25 to 0.3 us.
		printed(t, c.name, float64(in.LastCompletion(0)-3*firstTx(t32(c.tick), c.k))/1e6, c.want)
	}
	in := theory.Incast{Senders: 16, Size: 1e6, Packets: hpcc, Path: t32(0)}
	// 16,000 packets, three more transmissions of the first, 4 us.
	equal(t, "exact", in.LastDelivery(), 16003*83840+4*us)
	equal(t, "completion", in.LastCompletion(60), 16003*83840+8*us+4*4800)
	equal(t, "queue", in.PeakQueue(), 15*1048000)
	// 31 senders: 2579 us seen there without congestion control.
	in = theory.Incast{Senders: 31, Size: 1e6, Packets: hpcc, Path: t32(ns)}
	near(t, "incast31, HPCC's simulator", float64(in.LastCompletion(60))/1e6, 2579, 0.005)
	// 2645 us seen in htsim, where 31 x 1000 x 85.12 ns + 8 us are 2646.7.
	in = theory.Incast{Senders: 31, Size: 1e6, Packets: htsim, Path: t32(0)}
	near(t, "incast31, htsim", float64(in.LastCompletion(0))/1e6, 2645, 0.001)
}

// Against a switch simulated packet by packet: senders in step, store-and-forward,
// one shared last link.
func TestIncastEqualsPacketByPacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := theory.Incast{
			Senders: rapid.Int64Range(1, 9).Draw(t, "senders"),
			Packets: theory.Packets{Payload: 1000, Header: rapid.Int64Range(0, 80).Draw(t, "header")},
			Size:    rapid.Int64Range(0, 20000).Draw(t, "size"),
			Path: theory.Path{Hops: []theory.Hop{
				{Rate: 100e9, Delay: rapid.Int64Range(0, us).Draw(t, "delay")},
				{Rate: rapid.SampledFrom([]int64{40e9, 100e9}).Draw(t, "last"), Delay: 700 * ns},
			}},
		}
		k, a, b := in.Packets, in.Path.Hops[0], in.Path.Hops[1]
		var sent, free, queued, gone, peak int64
		n := k.Count(in.Size)
		for i := range n {
			bytes := k.Full()
			if i == n-1 {
				bytes = k.Last(in.Size)
			}
			sent += theory.Serialise(bytes, a.Rate)
			for range in.Senders {
				free = max(free, sent+a.Delay) + theory.Serialise(bytes, b.Rate)
			}
			queued += in.Senders * bytes
			gone = max(0, (sent-theory.Serialise(min(k.Full(), k.Wire(in.Size)), a.Rate))*b.Rate/(8*theory.Second))
			peak = max(peak, queued-gone)
		}
		if got, want := in.LastDelivery(), free+b.Delay; got != want {
			t.Fatalf("%+v: %d, packet by packet %d", in, got, want)
		}
		if got := in.PeakQueue(); got > peak || got < peak-(in.Senders+1)*k.Full() {
			t.Fatalf("%+v: peak queue %d, packet by packet %d", in, got, peak)
		}
	})
}

// A burst at line rate beside a stream at line rate stays in the queue whole;
// half as fast, too; beside half a stream, nothing is left of it.
func TestBurstPeak(t *testing.T) {
	near(t, "line rate", theory.BurstPeak(128e3, 100e9, 100e9, 100e9), 128e3, 1e-12)
	near(t, "half a burst", theory.BurstPeak(128e3, 50e9, 100e9, 100e9), 128e3, 1e-12)
	near(t, "half of both", theory.BurstPeak(128e3, 100e9, 50e9, 100e9), 64e3, 1e-12)
	near(t, "room", theory.BurstPeak(128e3, 50e9, 50e9, 100e9), 0, 0)
	near(t, "nothing", theory.BurstPeak(1, 0, 1, 1), 0, 0)
}

// The orders of magnitude that go with the measured runs: a victim alone takes 2 MB x 1.048 / 100G + base = about 176 us; 340 with
// one incast flow in its NIC. 256 KB at 7.7 to 10 Gb/s take 210 to 270 us,
// 21 at line rate; 64 KB every 500 us are 1 % load, 32 KB every 100 us 2.6 %.
func TestArithmeticOfMeasuredRuns(t *testing.T) {
	alone := float64(t32(0).Completion(hpcc, 2e6, 60)) / 1e6
	printed(t, "victim alone, us", alone, "176")
	near(t, "victim with one more", 2*float64(hpcc.Wire(2e6))*8/100e9*1e6+8, 340, 0.02)
	at := func(rate float64) float64 { return 256 * 1024 * 8 / rate * 1e6 }
	printed(t, "256 KB at 10 Gb/s", at(10e9)/10, "21")
	printed(t, "256 KB at 7.7 Gb/s", at(7.7e9)/10, "27")
	printed(t, "256 KB at 100 Gb/s", at(100e9), "21")
	printed(t, "64 KB in 500 us, %", 64*1024*8/500e-6/100e9*100, "1")
	printed(t, "32 KB in 100 us, %", 32*1024*8/100e-6/100e9*100, "2.6")
	printed(t, "128 KB in 400 us, %", 128*1024*8/400e-6/100e9*100, "2.6")
	// What whole nanoseconds do to 1048 B at 400 Gb/s and to 60 B at 100.
	printed(t, "400G, %", (20.96/20-1)*100, "4.8")
	printed(t, "ACK, %", (4.8/4-1)*100, "20")
	// Packet-hops: data and ACK over four links.
	equal(t, "incast16", 16*1000*4*2, 128e3)
	equal(t, "perm64_10m", 64*10000*4*2, 5.12e6)
	equal(t, "1024 hosts, six links", 1024*1000*6*2, 12.288e6)
}

// firstTx is one transmission of a full packet on the path.
func firstTx(p theory.Path, k theory.Packets) int64 {
	one := theory.Path{Hops: []theory.Hop{{Rate: p.Hops[0].Rate}}, Tick: p.Tick}
	return one.Delivery(k, k.Payload)
}
