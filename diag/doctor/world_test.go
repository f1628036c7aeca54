package doctor_test

import (
	"fmt"
	"time"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// world is a host of whom everything is known and nothing is wrong, ten seconds apart,
// and the same of its peer. Tests change one thing.
type world struct {
	before, after         *snapshot.Snapshot
	peerBefore, peerAfter *snapshot.Snapshot
	noBefore, noPeer      bool
}

func newWorld() *world {
	t := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{
		before: goodHost(1, t), after: goodHost(1, t.Add(10*time.Second)),
		peerBefore: goodHost(2, t), peerAfter: goodHost(2, t.Add(10*time.Second)),
	}
	w.eth("rx_prio3_bytes", 1e9)
	w.eth("tx_prio3_bytes", 1e9)
	rise(&w.peerBefore.Netdevs[0].Ethtool, &w.peerNet().Ethtool, "rx_prio3_bytes", 1e9)
	for i := range w.after.Devices {
		rise(&w.before.Devices[i].Ports[0].Counters, &w.after.Devices[i].Ports[0].Counters, "port_xmit_data", 1e9)
	}
	return w
}

func (w *world) input() doctor.Input {
	in := doctor.Input{Host: snapshot.Window{Before: w.before, After: w.after}, Prio: -1}
	if w.noBefore {
		in.Host.Before = nil
	}
	if !w.noPeer {
		in.Peer = &snapshot.Window{Before: w.peerBefore, After: w.peerAfter}
	}
	return in
}

func (w *world) dev() *snapshot.Device     { return &w.after.Devices[0] }
func (w *world) port() *snapshot.Port      { return &w.after.Devices[0].Ports[0] }
func (w *world) net() *snapshot.Netdev     { return &w.after.Netdevs[0] }
func (w *world) app() *snapshot.App        { return w.after.App }
func (w *world) peerNet() *snapshot.Netdev { return &w.peerAfter.Netdevs[0] }

// both changes the port's interface at both instants: configuration, not counters.
func (w *world) both(f func(*snapshot.Netdev)) {
	f(&w.before.Netdevs[0])
	f(&w.after.Netdevs[0])
}

// hw, pma and eth let a counter rise by n in the ten seconds, from a value that says
// nothing; kinds are hw_counters, counters and ethtool -S.
func (w *world) hw(name string, n float64) {
	rise(&w.before.Devices[0].Ports[0].HWCounters, &w.port().HWCounters, name, n)
}

func (w *world) pma(name string, n float64) {
	rise(&w.before.Devices[0].Ports[0].Counters, &w.port().Counters, name, n)
}

func (w *world) eth(name string, n float64) {
	rise(&w.before.Netdevs[0].Ethtool, &w.net().Ethtool, name, n)
}

func (w *world) peerHW(name string, n float64) {
	rise(&w.peerBefore.Devices[0].Ports[0].HWCounters, &w.peerAfter.Devices[0].Ports[0].HWCounters, name, n)
}

func rise(before, after *snapshot.Counters, name string, n float64) {
	setCounter(before, name, 7)
	setCounter(after, name, 7+uint64(n))
}

func setCounter(c *snapshot.Counters, name string, v uint64) {
	for i := range *c {
		if (*c)[i].Name == name {
			(*c)[i].Value = snapshot.Known(v)
			return
		}
	}
	panic("the good host has no counter " + name)
}

// printed says that the program printed an error.
func (w *world) printed(e snapshot.LogEvent) {
	e.Line, e.Text = 1, fmt.Sprintf("%s failed: status %d errno %d", e.Kind, e.Status, e.Errno)
	w.app().Log = append(w.app().Log, e.Text)
	w.app().Events = append(w.app().Events, e)
}

func (w *world) setQPs(now, before string) {
	q := func(state string) snapshot.Value[[]snapshot.QP] {
		return snapshot.Known([]snapshot.QP{{Port: 1, LQPN: 17, Type: "RC", State: state, PathMTU: snapshot.Known(4096), GIDIndex: snapshot.Known(3), TrafficClass: snapshot.Known(106)}})
	}
	w.dev().QPs, w.before.Devices[0].QPs = q(now), q(before)
}

var (
	goodHW = []string{
		"np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "rp_cnp_ignored", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
		"local_ack_timeout_err", "req_transport_retries_exceeded", "rnr_nak_retry_err", "out_of_buffer", "req_rnr_retries_exceeded", "duplicate_request",
		"rx_icrc_encapsulated", "roce_adp_retrans", "roce_slow_restart", "req_remote_access_errors", "req_remote_invalid_request",
	}
	goodPMA = []string{"symbol_error", "link_downed", "port_rcv_packets", "port_xmit_data", "port_rcv_data", "port_xmit_discards"}
	goodEth = []string{
		"link_down_events_phy", "rx_pcs_symbol_err_phy", "rx_symbol_err_phy", "rx_crc_errors_phy", "rx_corrected_bits_phy", "rx_bits_phy",
		"tx_pause_storm_error_events", "tx_pause_storm_warning_events", "rx_pause_ctrl_phy", "rx_global_pause", "rx_discards_phy", "rx_out_of_buffer",
		"rx0_packets", "rx1_packets", "rx_prio0_discards",
		"outbound_pci_stalled_wr_events", "outbound_pci_stalled_rd_events", "outbound_pci_buffer_overflow",
		"module_high_temp", "module_bus_stuck", "module_bad_shorted", "module_unplug",
	}
)

func zeros(names []string) snapshot.Counters {
	var out snapshot.Counters
	for _, n := range names {
		out = append(out, snapshot.Counter{Name: n, Value: snapshot.Known(uint64(0))})
	}
	return out
}

func goodHost(n int, taken time.Time) *snapshot.Snapshot {
	h := &snapshot.Snapshot{
		Version: snapshot.Version, Origin: snapshot.Recorded, Host: snapshot.Known("host"), Taken: taken,
		Routes: snapshot.Known([]snapshot.Route{{Dst: "10.0.0.0/24", Dev: "eth0", MTU: 9000}, {Dst: "10.0.1.0/24", Dev: "eth1"}, {Dst: "default", Via: "10.9.0.1", Dev: "mgmt0"}}),
		Rules:  snapshot.Known([]snapshot.PolicyRule{{Table: 254}}), Neighbours: snapshot.Known([]snapshot.Neighbour{{IP: "10.0.0.9", Dev: "eth0", State: "REACHABLE"}}),
		Sysctl: map[string]snapshot.Value[string]{
			"net.ipv4.conf.eth0.arp_ignore": snapshot.Known("0"), "net.ipv4.conf.eth1.arp_ignore": snapshot.Known("0"),
			"net.ipv4.conf.eth0.rp_filter": snapshot.Known("2"), "net.ipv4.conf.eth1.rp_filter": snapshot.Known("2"),
		},
		HugePages: []snapshot.HugePages{{SizeKB: 2048, Node: -1, Total: snapshot.Known(uint64(64)), Free: snapshot.Known(uint64(64))}},
		Firewall:  snapshot.Firewall{NFT: snapshot.Known([]snapshot.NFTChain{{Family: "inet", Table: "filter", Name: "input", Hook: "input", Policy: "accept"}})},
		SNMP: map[string]snapshot.Value[uint64]{
			"Udp.InCsumErrors": snapshot.Known(uint64(0)), "Udp.RcvbufErrors": snapshot.Known(uint64(0)), "Ip.FragFails": snapshot.Known(uint64(0)),
			"Ip.FragCreates": snapshot.Known(uint64(0)), "Ip.ReasmFails": snapshot.Known(uint64(0)),
		},
		Modules:  snapshot.Known([]string{"mlx5_core", "mlx5_ib", "nvidia", "nvidia_peermem"}),
		NICs:     []snapshot.PCINIC{{Address: "0000:3b:00.0", RDMA: []string{"mlx5_0"}}},
		Chardevs: snapshot.Known([]snapshot.Chardev{{Name: "uverbs0", Mode: "0666", Open: snapshot.Known(true)}}),
		App: &snapshot.App{
			PID: snapshot.Known(42), Comm: snapshot.Known("job"), CapEff: snapshot.Known(uint64(0)), Memlock: snapshot.Known(int64(-1)), ShellLimit: snapshot.Known(int64(-1)),
			CPUs: snapshot.Known("0-3"), Env: map[string]string{"RDMAV_FORK_SAFE": "1"}, Device: snapshot.Known("mlx5_0"), Peer: snapshot.Known("10.0.0.2"),
			GIDIndex: snapshot.Known(3), TrafficClass: snapshot.Known(106), PathMTU: snapshot.Known(4096), MaxInline: snapshot.Known(100),
			MaxSendWR: snapshot.Known(128), GoodputMbps: snapshot.Known(90000.0), Log: []string{"starting"},
		},
		Switch: &snapshot.Switch{
			Ports: []snapshot.SwitchPort{{
				Name: "Ethernet0", MTU: snapshot.Known(9100), RateBps: snapshot.Known(uint64(100e9)), Attrs: map[string]string{"headroom": "200000", "alpha": "0.0625", "cable_m": "300"}, PFCRx: snapshot.Known([8]uint64{}), PFCTx: snapshot.Known([8]uint64{}),
				Queues: []snapshot.WatchdogQueue{{Queue: 3, Status: "operational"}},
			}},
			Profiles: []snapshot.ECNProfile{{Name: "p", Kmin: 200_000, Kmax: 400_000, Pmax: 0.1, XOFF: 1_000_000}},
		},
		RDMA: snapshot.Subsystem{NetnsMode: snapshot.Known("shared"), CopyOnFork: snapshot.Known(true)},
	}
	for i := range 3 {
		h.Devices = append(h.Devices, goodDevice(i, n))
		if i < 2 {
			h.Netdevs = append(h.Netdevs, goodNetdev(i, n))
		}
	}
	h.Devices[2].Ports[0].Netdev = snapshot.Value[string]{}
	h.Devices[2].Ports[0].GIDs, h.Devices[2].Ports[0].GIDSlots = nil, snapshot.Value[int]{}
	return h
}

func goodDevice(i, n int) snapshot.Device {
	eth := fmt.Sprintf("eth%d", i)
	gid := func(index int, gid, kind string) snapshot.GID {
		return snapshot.GID{Index: index, GID: gid, Type: snapshot.Known(kind), Netdev: snapshot.Known(eth)}
	}
	ll, v4 := fmt.Sprintf("fe80:0000:0000:0000:0000:0000:0000:0%d0%d", i, n), fmt.Sprintf("0000:0000:0000:0000:0000:ffff:0a00:0%d0%d", i, n)
	return snapshot.Device{
		Name: fmt.Sprintf("mlx5_%d", i), Kind: snapshot.Hardware, Driver: snapshot.Known("mlx5_core"), BoardID: snapshot.Known("MT_1"), UVerbs: snapshot.Known(fmt.Sprintf("uverbs%d", i)),
		PCI: &snapshot.PCI{
			Address: "0000:3b:00.0", NUMANode: snapshot.Known(0), LocalCPUs: snapshot.Known("0-15"), LinkSpeed: snapshot.Known("16.0 GT/s PCIe"), LinkWidth: snapshot.Known(16),
			MaxLinkSpeed: snapshot.Known("16.0 GT/s PCIe"), MaxLinkWidth: snapshot.Known(16), Virtual: snapshot.Known(false),
		},
		Attr:      snapshot.Known(snapshot.Attr{"max_inline_data": 220, "max_qp": 1000, "max_qp_wr": 32768, "max_cq": 1000, "max_mr": 1000}),
		Resources: map[string]uint64{"qp": 500, "cq": 2, "mr": 2, "ctx": 2},
		QPs:       snapshot.Known([]snapshot.QP{{Port: 1, LQPN: 17, Type: "RC", State: "RTS", SQPSN: snapshot.Known(uint32(100)), PathMTU: snapshot.Known(4096), GIDIndex: snapshot.Known(3), TrafficClass: snapshot.Known(106)}}),
		MRs:       snapshot.Known([]snapshot.MR{{MRN: 1, Length: 1 << 20}}),
		Ports: []snapshot.Port{{
			Number: 1, State: snapshot.Known(4), PhysState: snapshot.Known(5), Rate: snapshot.Known("100 Gb/sec (4X EDR)"), RateMbps: snapshot.Known(int64(100_000)),
			LinkLayer: snapshot.Known("Ethernet"), MaxMTU: snapshot.Known(4096), ActiveMTU: snapshot.Known(4096), Netdev: snapshot.Known(eth), LifespanMs: snapshot.Known(10),
			GIDs:     []snapshot.GID{gid(0, ll, "IB/RoCE v1"), gid(1, ll, "RoCE v2"), gid(2, v4, "IB/RoCE v1"), gid(3, v4, "RoCE v2")},
			GIDSlots: snapshot.Known(256), CMRoCEMode: snapshot.Known("RoCE v2"), CMTOS: snapshot.Known(106), HWCounters: zeros(goodHW), Counters: zeros(goodPMA),
		}},
	}
}

func goodNetdev(i, n int) snapshot.Netdev {
	eth := zeros(goodEth)
	for p := range 8 {
		for _, s := range []string{"rx_prio%d_bytes", "tx_prio%d_bytes", "rx_prio%d_pause", "tx_prio%d_pause", "rx_prio%d_pause_duration", "tx_prio%d_pause_duration"} {
			eth = append(eth, zeros([]string{fmt.Sprintf(s, p)})...)
		}
	}
	np := map[int]bool{}
	apps := []snapshot.DCBApp{}
	for p := range 8 {
		np[p] = true
	}
	for d := range 64 {
		apps = append(apps, snapshot.DCBApp{Selector: "dscp", Protocol: d, Priority: d / 8})
	}
	return snapshot.Netdev{
		Name: fmt.Sprintf("eth%d", i), Index: snapshot.Known(i + 2), OperState: snapshot.Known("up"), Carrier: snapshot.Known(true), CarrierDownCount: snapshot.Known(uint64(1)), MTU: snapshot.Known(9000),
		SpeedMbps: snapshot.Known(int64(100_000)), Driver: snapshot.Known("mlx5_core"), Virtual: snapshot.Known(false), VLAN: snapshot.Known(0), VLANEgressQoS: snapshot.Known(""),
		Addresses: []snapshot.Address{{Prefix: fmt.Sprintf("10.0.%d.%d/24", i, n)}}, Ethtool: eth, Features: map[string]bool{"tx-checksum-ipv4": true},
		Pause:    snapshot.Known(snapshot.Pause{}),
		FlowHash: map[string]snapshot.Value[snapshot.Hash]{"udp4": snapshot.Known(snapshot.HashSource | snapshot.HashDest | snapshot.HashL4Src | snapshot.HashL4Dst)},
		DCB: snapshot.DCB{
			DCBX: snapshot.Known([]string{"host", "ieee"}), PFC: snapshot.Known(snapshot.PFC{Cap: 8, Enabled: [8]bool{3: true}}), Apps: snapshot.Known(apps), Trust: snapshot.Known("dscp"),
			ETS:       snapshot.Known(snapshot.ETS{TSA: [8]string{"ets", "ets", "ets", "ets", "ets", "ets", "ets", "ets"}, TCBW: [8]int{3: 50, 0: 50}, PrioTC: [8]int{0, 1, 2, 3, 4, 5, 6, 7}}),
			Buffer:    snapshot.Known(snapshot.DCBBuffer{PrioBuffer: [8]int{3: 1}, Size: [8]uint64{130944, 130944}, Total: 262016}),
			NP:        snapshot.Known(snapshot.Congestion{Enabled: np, Params: map[string]uint64{"cnp_802p_prio": 6, "cnp_dscp": 48, "min_time_between_cnps": 4}}),
			RP:        snapshot.Known(snapshot.Congestion{Enabled: np, Params: map[string]uint64{"rpg_ai_rate": 5, "rpg_min_rate": 1}}),
			LLDPAgent: snapshot.Known(""),
		},
	}
}
