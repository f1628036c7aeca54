package simhost

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/fabric/result"
	"github.com/verbena-rdma/verbena/fabric/scenario"
	"github.com/verbena-rdma/verbena/fabric/sim"
	"github.com/verbena-rdma/verbena/fabric/topo"
	"github.com/verbena-rdma/verbena/ib"
)

// zeros are the counters that a NIC has also when they have not moved: results leave
// those out, and a counter that is not there is not a zero.
var zeros = []string{
	"duplicate_request", "np_cnp_sent", "np_ecn_marked_roce_packets", "out_of_seq_request", "packet_seq_err", "rcvd_bytes", "rcvd_pkts",
	"rcvd_rnr_err", "retry_exceeded_err", "rp_cnp_handled", "rp_cnp_ignored", "send_rnr_err", "sent_bytes", "sent_pkts",
}

// view is a run at one of its two instants.
type view struct {
	sc  *scenario.Scenario
	g   *topo.Graph
	r   *result.Run
	end bool // else the beginning: all counters are zero
}

func (v *view) count(n uint64) snapshot.Value[uint64] {
	if !v.end {
		n = 0
	}
	return snapshot.Known(n)
}

func microseconds(t sim.Time) uint64 { return uint64(t / sim.Microsecond) }

// device is the RDMA device of a port of a host.
func (v *view) device(node, i int32) snapshot.Device {
	n, p := &v.r.Nodes[node], &v.r.Nodes[node].Ports[i]
	h := v.sc.HostFor(n.Name)
	mtu := cmp.Or(h.MTU, v.sc.Packet.MTU)
	version := "RoCE v2"
	if h.RoCE == "v1" {
		version = "IB/RoCE v1"
	}
	addr := v.g.Endpoints[v.g.Nodes[node].Endpoint+i].Addr
	mbps := int64(p.Rate / 1_000_000)
	port := snapshot.Port{
		Number: 1, State: snapshot.Known(4), PhysState: snapshot.Known(5), LinkLayer: snapshot.Known("Ethernet"),
		Rate: snapshot.Known(fmt.Sprintf("%g Gb/sec", float64(mbps)/1000)), RateMbps: snapshot.Known(mbps),
		MaxMTU: snapshot.Known(4096), ActiveMTU: snapshot.Known(ib.MTUFor(mtu).Bytes()),
		Netdev: snapshot.Known(p.Name), GIDSlots: snapshot.Known(1), TrafficClass: snapshot.Known(int(h.RDMA.DSCP) << 2),
		GIDs: []snapshot.GID{{Index: 0, GID: netip.AddrFrom16(ib.GIDFromAddr(addr)).StringExpanded(), Type: snapshot.Known(version), Netdev: snapshot.Known(p.Name)}},
	}
	values := map[string]uint64{}
	for _, name := range zeros {
		values[name] = 0
	}
	for _, c := range n.PortNIC(int(i)) {
		values[c.Name] += c.Value
	}
	for name, value := range values {
		port.HWCounters = append(port.HWCounters, snapshot.Counter{Name: name, Value: v.count(value)})
	}
	port.HWCounters = byName(port.HWCounters)
	return snapshot.Device{
		Name: "sim_" + p.Name, Kind: snapshot.Sim, Driver: snapshot.Known("verbena"), NodeType: snapshot.Known(1), Protocol: snapshot.Known("roce"),
		Ports: []snapshot.Port{port},
	}
}

func byName(c snapshot.Counters) snapshot.Counters {
	slices.SortFunc(c, func(a, b snapshot.Counter) int { return cmp.Compare(a.Name, b.Name) })
	return c
}

// netdev is the interface of a port of a host.
func (v *view) netdev(node, i int32) snapshot.Netdev {
	p := &v.r.Nodes[node].Ports[i]
	mbps := int64(p.Rate / 1_000_000)
	return snapshot.Netdev{
		Name: p.Name, Index: snapshot.Known(int(i) + 1), OperState: snapshot.Known("up"), Carrier: snapshot.Known(true),
		SpeedMbps: snapshot.Known(mbps), Driver: snapshot.Known("verbena"),
	}
}

// ethtool are the statistics of an interface, under mlx5's names. How long it has
// stopped its neighbour is what the neighbour counts.
func (v *view) ethtool(node, i int32) snapshot.Counters {
	n, p := &v.r.Nodes[node], &v.r.Nodes[node].Ports[i]
	far := &v.r.Nodes[p.Peer].Ports[p.PeerPort]
	var out snapshot.Counters
	add := func(value uint64, format string, args ...any) {
		out = append(out, snapshot.Counter{Name: fmt.Sprintf(format, args...), Value: v.count(value)})
	}
	for _, c := range n.PortNIC(int(i)) {
		if c.Name == "rx_discards_phy" {
			add(c.Value, "rx_discards_phy")
			break
		}
	}
	for q := range p.Prio {
		c, f := &p.Prio[q], &far.Prio[q]
		add(c.RxBytes, "rx_prio%d_bytes", q)
		add(c.RxPackets, "rx_prio%d_packets", q)
		add(c.RxDrops, "rx_prio%d_discards", q)
		add(c.TxBytes, "tx_prio%d_bytes", q)
		add(c.TxPackets, "tx_prio%d_packets", q)
		add(c.PauseRx+c.ResumeRx, "rx_prio%d_pause", q)
		add(microseconds(c.PausedFor), "rx_prio%d_pause_duration", q)
		add(c.PauseTx+c.ResumeTx, "tx_prio%d_pause", q)
		add(microseconds(f.PausedFor), "tx_prio%d_pause_duration", q)
	}
	return out
}

// dcb is how the host is set up.
func (v *view) dcb(node, i int32) snapshot.DCB {
	p := &v.r.Nodes[node].Ports[i]
	h := v.sc.HostFor(v.r.Nodes[node].Name)
	pfc := snapshot.PFC{Cap: 8}
	for q := range pfc.Enabled {
		pfc.Enabled[q] = h.NIC.PFC.Has(uint8(q))
		if v.end {
			pfc.Requests[q], pfc.Indications[q] = p.Prio[q].PauseTx+p.Prio[q].ResumeTx, p.Prio[q].PauseRx+p.Prio[q].ResumeRx
		}
	}
	trust := "dscp"
	if h.RoCE == "v1" {
		trust = "pcp"
	}
	d := snapshot.DCB{
		PFC: snapshot.Known(pfc), Trust: snapshot.Known(trust),
		Apps: snapshot.Known([]snapshot.DCBApp{{Selector: "dscp", Protocol: int(h.RDMA.DSCP), Priority: int(h.RDMA.Priority)}}),
	}
	on := map[int]bool{}
	for q := range 8 {
		on[q] = !h.DCQCN.Off()
	}
	d.NP = snapshot.Known(snapshot.Congestion{Enabled: on, Params: map[string]uint64{
		"cnp_dscp": uint64(h.CNP.DSCP), "cnp_802p_prio": uint64(h.CNP.Priority),
	}})
	d.RP = snapshot.Known(snapshot.Congestion{Enabled: on})
	return d
}
