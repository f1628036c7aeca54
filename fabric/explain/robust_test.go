package explain

import (
	"bytes"
	"math"
	"testing"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"pgregory.net/rapid"
)

// Runs that were read from a file may say anything: no index, time or count in
// one makes Explain panic or hang.
func TestAnythingGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		var b bytes.Buffer
		if err := Explain(r).Text(&b, rapid.IntRange(-5, 200).Draw(t, "width")); err != nil {
			t.Fatal(err)
		}
		if err := Compare(r, anyRun(t)).Text(&b, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// The same run gives the same words.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRun(t)
		var a, b bytes.Buffer
		_ = Explain(r).Text(&a, 100)
		_ = Explain(r).Text(&b, 100)
		if a.String() != b.String() {
			t.Fatal("two texts of one run")
		}
	})
}

func anyRun(t *rapid.T) *result.Run {
	index := func(n string) int32 {
		return int32(rapid.OneOf(rapid.IntRange(-1, 4), rapid.SampledFrom([]int{-7, 1000, math.MaxInt32, math.MinInt32})).Draw(t, n))
	}
	at := func(n string) sim.Time {
		return sim.Time(rapid.OneOf(rapid.Int64Range(0, int64(ms)), rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1})).Draw(t, n))
	}
	amount := func(n string) int64 {
		return rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1 << 61})).Draw(t, n)
	}
	rate := func(n string) sim.Rate {
		return sim.Rate(rapid.SampledFrom([]int64{0, -1, 1, int64(25 * g), int64(100 * g), math.MaxInt64}).Draw(t, n))
	}
	prio := func(n string) uint8 { return rapid.SampledFrom([]uint8{3, 3, 3, 0, 7, 8, 255}).Draw(t, n) }
	hops := func(n string) []result.Hop {
		h := make([]result.Hop, rapid.IntRange(0, 4).Draw(t, n))
		for i := range h {
			h[i] = result.Hop{Node: index("hop"), Port: index("port")}
		}
		return h
	}
	r := &result.Run{End: at("end"), PausesCut: uint64(amount("cut")), Why: rapid.String().Draw(t, "why")}
	r.Shape = result.Shape{
		Preset: rapid.SampledFrom([]string{"off", "mlx5"}).Draw(t, "preset"), Payload: int(amount("payload")), Header: int(amount("header")),
		Lossless: prio("lossless"), KMin: amount("kmin"), AI: rate("ai"), IncreaseEvery: at("every"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "nodes") {
		n := result.Node{Name: rapid.String().Draw(t, "name"), Switch: rapid.Bool().Draw(t, "switch"), Tier: rapid.IntRange(-1, 2).Draw(t, "tier")}
		for range rapid.IntRange(0, 4).Draw(t, "ports") {
			p := result.Port{Peer: index("peer"), PeerPort: index("peer port"), Rate: rate("rate"), Down: at("down")}
			p.Prio[3] = result.PortPrio{
				TxBytes: uint64(amount("tx")), RxBytes: uint64(amount("rx")), RxPackets: 5, Marked: uint64(amount("marked")), PauseTx: uint64(amount("pause")),
				PausedFor: at("paused"), PeakQueue: amount("peak"),
			}
			n.Ports = append(n.Ports, p)
		}
		n.Host = result.Host{
			QPRate: rate("qp"), DrainRate: rate("drain"), PacketRate: uint64(amount("pps")),
			RxQueues: make([]result.RxQueue, rapid.IntRange(0, 3).Draw(t, "queues")),
		}
		for q := range n.Host.RxQueues {
			n.Host.RxQueues[q] = result.RxQueue{Bytes: uint64(amount("bytes")), Busy: at("busy")}
		}
		r.Nodes = append(r.Nodes, n)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "flows") {
		r.Flows = append(r.Flows, result.Flow{
			ID: int32(i), SrcNode: index("src"), DstNode: index("dst"), Bytes: amount("bytes"), Prio: prio("prio"),
			State: result.FlowState(rapid.IntRange(0, 5).Draw(t, "state")), Start: at("start"), Finish: at("finish"), Base: at("base"),
			Delivered: amount("delivered"), Packets: uint64(amount("packets")), Retransmitted: uint64(amount("again")), CNPs: uint64(amount("cnps")),
			CNPsHandled: uint64(amount("handled")), RateLimit: rate("limit"), QPs: int(amount("qps")), Path: hops("path"), Paths: rapid.IntRange(0, 2).Draw(t, "paths"),
		})
	}
	for range rapid.IntRange(0, 12).Draw(t, "pauses") {
		r.Pauses = append(r.Pauses, result.Pause{
			At: at("pause at"), Node: index("node"), Port: index("port"), Egress: index("egress"), Prio: prio("prio"), On: rapid.Bool().Draw(t, "on"),
			Cause: result.Cause(rapid.IntRange(0, 5).Draw(t, "cause")), Refresh: rapid.Bool().Draw(t, "refresh"), EgressStopped: rapid.Bool().Draw(t, "stopped"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "others") {
		r.Drops = append(r.Drops, result.Drop{At: at("drop"), Node: index("node"), Port: index("port"), Flow: index("flow"), Prio: prio("prio"), Reason: result.DropReason(rapid.IntRange(0, 12).Draw(t, "reason")), Bytes: index("bytes")})
		r.Deadlocks = append(r.Deadlocks, result.Deadlock{At: at("at"), Until: at("until"), Cycle: hops("cycle"), Prio: prio("prio")})
		r.Storms = append(r.Storms, result.Storm{From: at("from"), To: at("to"), Node: index("node"), Port: index("port"), Prio: prio("prio"), Watchdog: rapid.Bool().Draw(t, "wd")})
		r.Lossless = append(r.Lossless, result.Lossless{Node: index("node"), Port: index("port"), Prio: prio("prio"), Need: amount("need"), Have: amount("have"), Peak: amount("peak"), Dropped: uint64(amount("dropped"))})
		r.Links = append(r.Links, result.LinkChange{At: at("at"), Node: index("node"), Port: index("port"), Up: rapid.Bool().Draw(t, "up")})
		r.Series = append(r.Series, result.Series{Kind: result.SeriesKind(rapid.IntRange(0, 12).Draw(t, "kind")), Node: index("node"), Port: index("port"), Prio: 3, Flow: index("flow"), Start: at("start"), Step: at("step"), Values: []int64{amount("v"), amount("v")}})
	}
	return r
}
