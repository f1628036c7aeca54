package report_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/sim"
)

var update = flag.Bool("update", false, "rewrite testdata")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const us = sim.Microsecond

// names of the sample's nodes by number.
const (
	host0 = iota // hosts 0 to 5; 0 to 2 at leaf0
	host1
	host2
	host3
	host4
	host5
	leaf0
	leaf1
	spine0
	spine1
)

// fabric wires two leaves of three hosts and two spines: ports 0 to 2 of a leaf
// are hosts, 3 and 4 spines; port i of a spine is leaf i. 100 Gb/s, 1 us.
func fabric() []result.Node {
	nodes := make([]result.Node, 10)
	for i, name := range []string{"host0", "host1", "host2", "host3", "host4", "host5", "leaf0", "leaf1", "spine0", "spine1"} {
		nodes[i] = result.Node{Name: name, Switch: i >= leaf0}
		if i >= leaf0 {
			nodes[i].Tier = 1 + (i-leaf0)/2
			nodes[i].Buffer = result.Buffer{Total: 16e6, Reserved: 1e6, Shared: 12e6, Headroom: 3e6}
		}
	}
	join := func(a, b int, an, bn string) {
		ap, bp := len(nodes[a].Ports), len(nodes[b].Ports)
		nodes[a].Ports = append(nodes[a].Ports, result.Port{Name: an, Peer: int32(b), PeerPort: int32(bp), Rate: 100 * sim.Gbps, Delay: us})
		nodes[b].Ports = append(nodes[b].Ports, result.Port{Name: bn, Peer: int32(a), PeerPort: int32(ap), Rate: 100 * sim.Gbps, Delay: us})
	}
	eth := []string{"Ethernet0", "Ethernet4", "Ethernet8", "Ethernet12", "Ethernet16"}
	for h := range 6 {
		join(leaf0+h/3, h, eth[h%3], "eth0")
	}
	for l := range 2 {
		for s := range 2 {
			join(leaf0+l, spine0+s, eth[3+s], eth[l])
		}
	}
	return nodes
}

// sample is an incast of four hosts into host0 with a victim from host5 to host1
// that is stopped with it: leaf0 stops the spines, they stop leaf1, it stops its
// hosts.
func sample() *result.Run {
	r := &result.Run{
		Name: "victim", Title: "An incast and a victim", Teaches: "PFC spreads congestion to flows that have no part in it.",
		Source: "name: victim\ntopology: {kind: spine-leaf}\n",
		Seed:   1<<63 + 7, Digest: 0xfeedface01020304, Events: 1234567, DataHops: 80000, AckHops: 5000,
		End: 500 * us, Why: "all flows finished",
		Nodes:    fabric(),
		Warnings: []string{"ecn.kmin 400 KB is above XOFF 96 KB: PFC acts before marks"},
		Shape: result.Shape{
			Preset: "mlx5", AckEvery: 16, Payload: 1000, Header: 48, Gap: 20, Lossless: 1 << 3,
			KMin: 100e3, KMax: 400e3, PMax: 0.2, AI: 5 * sim.Mbps, HAI: 50 * sim.Mbps, MinRate: 10 * sim.Mbps,
			IncreaseEvery: 300 * us, CNPEvery: 4 * us, CNPPrio: 6,
		},
	}
	for i := range 4 {
		r.Flows = append(r.Flows, result.Flow{
			ID: int32(i), Group: "incast", Src: int32(host2 + i), Dst: host0, SrcNode: int32(host2 + i), DstNode: host0,
			SrcPort: uint16(50000 + i), DstPort: 4791, Bytes: 1e6, Op: "write", Service: "RC", Prio: 3, State: result.Finished,
			Start: 0, Received: sim.Time(340+i)*us + 500, Finish: sim.Time(342+i)*us + 999, Base: 90 * us, Delivered: 1e6,
			Packets: 1000, Marks: 200, CNPs: 40, CNPsHandled: 39, MinRate: 2 * sim.Gbps, LastRate: 30 * sim.Gbps, QPs: 1, Paths: 1,
		})
	}
	r.Flows[0].Path = []result.Hop{{Node: host2}, {Node: leaf0}}
	for i := 1; i < 4; i++ {
		r.Flows[i].Path = []result.Hop{{Node: int32(host2 + i)}, {Node: leaf1, Port: 3}, {Node: spine0, Port: 0}, {Node: leaf0}}
	}
	r.Flows = append(r.Flows,
		result.Flow{
			ID: 4, Group: "victim", Src: host5, Dst: host1, SrcNode: host5, DstNode: host1, SrcPort: 50100, DstPort: 4791,
			Bytes: 2e6, Op: "write", Service: "RC", Prio: 3, State: result.Finished, Start: 10 * us, Received: 478 * us, Finish: 480 * us,
			Base: 176 * us, Delivered: 2e6, Packets: 2000, LastRate: 100 * sim.Gbps,
			Path: []result.Hop{{Node: host5}, {Node: leaf1, Port: 3}, {Node: spine0, Port: 0}, {Node: leaf0, Port: 1}},
		},
		result.Flow{
			ID: 5, Group: "tail", Src: host1, Dst: host5, SrcNode: host1, DstNode: host5, SrcPort: 50200, DstPort: 4791,
			Bytes: 4e6, Op: "send", Service: "RC", Prio: 3, State: result.Running, Start: 100 * us, Received: sim.Never, Finish: sim.Never,
			Base: 340 * us, Delivered: 1e6, Packets: 1100, Retransmitted: 100, Timeouts: 1, NAKs: 2, Silent: "waits for an ACK until 620 us",
		},
		result.Flow{
			ID: 6, Group: "tail", Src: host2, Dst: host5, SrcNode: host2, DstNode: host5, SrcPort: 50201, DstPort: 4791,
			Bytes: 4e6, Op: "send", Service: "RC", Prio: 3, State: result.Failed, Status: "RETRY_EXC", Start: 100 * us,
			Received: sim.Never, Finish: sim.Never, Base: 340 * us,
		},
		result.Flow{ID: 7, Group: "tail", SrcNode: host2, DstNode: host4, Start: 900 * us, Received: sim.Never, Finish: sim.Never, Base: 340 * us, Bytes: 4e6},
	)
	counters(r)
	pauses(r)
	series(r)
	return r
}

func counters(r *result.Run) {
	port := func(node, port int) *result.Port { return &r.Nodes[node].Ports[port] }
	root := port(leaf0, 0)
	root.TxBusy = 345 * us
	root.Prio[3] = result.PortPrio{
		TxBytes: 4192000, TxPackets: 4000, Marked: 800, PeakQueue: 812345, MeanQueue: 301234.5, KMin: 100e3, KMax: 400e3,
	}
	port(leaf0, 3).Prio[3] = result.PortPrio{RxBytes: 3144000, RxPackets: 3000, PauseTx: 1234, ResumeTx: 1233, PeakIngress: 300e3, PeakHeadroom: 20e3, TxBytes: 100e3, TxPackets: 96, RxDrops: 2}
	port(spine0, 0).TxBusy = 300 * us
	port(spine0, 0).Prio[3] = result.PortPrio{
		TxBytes: 3144000, TxPackets: 3000, PauseRx: 1234, ResumeRx: 1233, PausedFor: 150 * us, PausedWaiting: 149 * us, PeakQueue: 420e3, MeanQueue: 99e3,
	}
	port(spine0, 1).Prio[3] = result.PortPrio{PauseTx: 12, ResumeTx: 12, RxBytes: 3144000, RxPackets: 3000, PeakIngress: 96e3}
	port(leaf1, 3).Prio[3] = result.PortPrio{
		TxBytes: 3144000, TxPackets: 3000, PauseRx: 12, ResumeRx: 12, PausedFor: 60 * us, PausedWaiting: 60 * us, PeakQueue: 300e3, MeanQueue: 20e3,
	}
	port(leaf1, 4).Prio[3] = result.PortPrio{TxBytes: 1048000, TxPackets: 1000}
	port(leaf1, 2).Prio[3] = result.PortPrio{PauseTx: 3, ResumeTx: 2, RxBytes: 1048000, RxPackets: 1000}
	port(host5, 0).Prio[3] = result.PortPrio{PauseRx: 3, ResumeRx: 2, TxBytes: 3144000, TxPackets: 3000, PausedFor: 20 * us, PeakQueue: 50e3}
	port(host0, 0).Prio[3] = result.PortPrio{RxBytes: 4192000, RxPackets: 4000, TxBytes: 21000, TxPackets: 250}
	port(leaf0, 3).GlobalPauses = 1
	port(leaf1, 4).Down = 10 * us
	r.Nodes[host0].NIC = []result.Counter{{Name: "np_ecn_marked_roce_packets", Value: 800}, {Name: "np_cnp_sent", Value: 160}}
	r.Nodes[host0].Host = result.Host{RxQueues: []result.RxQueue{{Packets: 4000, Bytes: 4192000, Busy: 100 * us}}, RxQueueRate: 40 * sim.Gbps, PacketRate: 2e6, RxBuffer: 1e6, PeakRx: 2000}
	r.Drops = []result.Drop{
		{At: 200 * us, Node: leaf0, Port: 3, Flow: 5, Prio: 3, Reason: result.DropHeadroom, Bytes: 1086},
		{At: 201 * us, Node: leaf0, Port: 3, Flow: 6, Prio: 3, Reason: result.DropHeadroom, Bytes: 1086},
		{At: 300 * us, Node: leaf1, Port: 4, Flow: -1, Prio: 6, Reason: result.DropDown, Bytes: 64},
	}
	r.Lossless = []result.Lossless{
		{Node: leaf0, Port: 3, Prio: 3, Need: 37500, Have: 18000, Peak: 20000, Dropped: 2},
		{Node: spine0, Port: 1, Prio: 3, Need: 37500, Have: 40000, Peak: 18200},
		{Node: leaf1, Port: 2, Prio: 3, Need: 37500, Have: 30000},
	}
	r.Deadlocks = []result.Deadlock{{At: 250 * us, Until: 260 * us, Prio: 3, Cycle: []result.Hop{{Node: leaf0, Port: 3}, {Node: spine0, Port: 1}, {Node: leaf1, Port: 4}}}}
	r.Storms = []result.Storm{{From: 50 * us, To: sim.Never, Node: leaf1, Port: 2, Prio: 3, Watchdog: true, Dropped: 17}}
	r.Links = []result.LinkChange{{At: 295 * us, Node: leaf1, Port: 4}, {At: 305 * us, Node: leaf1, Port: 4, Up: true, Rate: 100 * sim.Gbps}}
	r.Breaches = []result.Breach{{At: 499 * us, Rule: "bytes conserved", Node: -1, Detail: "64 bytes are missing"}}
}

func pauses(r *result.Run) {
	r.Pauses = []result.Pause{
		{At: 20 * us, Node: leaf0, Port: 3, Egress: 0, Held: 96100, Limit: 96000, Prio: 3, On: true},
		{At: 40 * us, Node: spine0, Port: 1, Egress: 0, Held: 90100, Limit: 90000, Prio: 3, On: true, EgressStopped: true},
		{At: 60 * us, Node: leaf1, Port: 2, Egress: 3, Held: 80100, Limit: 80000, Prio: 3, On: true, EgressStopped: true},
		{At: 70 * us, Node: leaf0, Port: 3, Egress: 0, Held: 96100, Limit: 96000, Prio: 3, On: true, Refresh: true},
		{At: 80 * us, Node: leaf1, Port: 2, Egress: 3, Held: 70000, Limit: 80000, Prio: 3},
		{At: 100 * us, Node: spine0, Port: 1, Egress: 0, Held: 70000, Limit: 90000, Prio: 3, EgressStopped: true},
		{At: 170 * us, Node: leaf0, Port: 3, Egress: 0, Held: 70000, Limit: 96000, Prio: 3},
		{At: 180 * us, Node: host4, Port: 0, Egress: -1, Held: 5000, Limit: 4000, Prio: 3, On: true, Cause: result.CauseSlowReceiver},
		{At: 185 * us, Node: host4, Port: 0, Egress: -1, Held: 1000, Limit: 4000, Prio: 3, Cause: result.CauseSlowReceiver},
		{At: 190 * us, Node: spine1, Port: 0, Egress: 1, On: true, Cause: result.CauseGlobal},
	}
	r.PausesCut = 5
}

func series(r *result.Run) {
	tent := func(n, top int64) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = top * min(int64(i), n-1-int64(i)) * 2 / n
		}
		return v
	}
	add := func(k result.SeriesKind, node, port, flow int32, v []int64) {
		r.Series = append(r.Series, result.Series{Kind: k, Node: node, Port: port, Prio: 3, Flow: flow, Step: 5 * us, Values: v})
	}
	add(result.QueueBytes, leaf0, 0, -1, tent(101, 812345))
	add(result.QueueBytes, spine0, 0, -1, tent(101, 420000))
	add(result.QueueBytes, leaf1, 3, -1, tent(101, 300000))
	add(result.PortRate, leaf0, 0, -1, tent(101, 97e9))
	add(result.FlowRate, -1, 0, 0, tent(101, 25e9))
	add(result.FlowRate, -1, 0, 4, tent(101, 60e9))
	add(result.FlowRC, -1, 0, 0, tent(101, 100e9))
	add(result.FlowAlpha, -1, 0, 0, tent(101, 1<<32))
	add(result.MarkRate, leaf0, 0, -1, tent(101, 50))
	add(result.MarkRate, spine0, 0, -1, tent(101, 5))
	add(result.CNPRate, -1, 0, 0, tent(101, 4))
	add(result.PausedShare, spine0, 0, -1, tent(101, 5e6))
	add(result.BufferShared, leaf0, 0, -1, tent(101, 2e6))
	add(result.HostQueue, host0, 0, -1, tent(101, 2000))
}
