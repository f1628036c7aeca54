package doctor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// row changes the good host by n: with at the rule gives want, with below, the last
// value that is still right, it gives otherwise.
type row struct {
	rule      string
	set       func(w *world, n float64)
	at        float64
	want      doctor.Status
	below     float64
	otherwise doctor.Status
}

// when makes a row of something that is so or is not.
func when(rule string, want doctor.Status, f func(*world)) row {
	return row{rule, func(w *world, n float64) {
		if n != 0 {
			f(w)
		}
	}, 1, want, 0, doctor.Pass}
}

// counts makes a row of a counter that rises; more than limit is too much.
func counts(rule string, want doctor.Status, limit float64, otherwise doctor.Status, f func(*world, float64)) row {
	return row{rule, f, limit + 1, want, limit, otherwise}
}

// of makes a function that lets a counter rise.
func of(kind func(*world) func(string, float64), name string) func(*world, float64) {
	return func(w *world, n float64) { kind(w)(name, n) }
}

func hw(w *world) func(string, float64)  { return w.hw }
func pma(w *world) func(string, float64) { return w.pma }
func eth(w *world) func(string, float64) { return w.eth }

// total is a counter of one snapshot.
func total(name string) func(*world, float64) {
	return func(w *world, n float64) { w.noBefore = true; setCounter(&w.port().HWCounters, name, uint64(n)) }
}

func totalEth(name string) func(*world, float64) {
	return func(w *world, n float64) { w.noBefore = true; setCounter(&w.net().Ethtool, name, uint64(n)) }
}

func completion(status int) func(*world) {
	return func(w *world) { w.printed(snapshot.LogEvent{Kind: "completion", Status: status}) }
}

func printed(kind string, errno int) func(*world) {
	return func(w *world) { w.printed(snapshot.LogEvent{Kind: kind, Errno: errno}) }
}

func kind(k snapshot.Kind) func(*world) { return func(w *world) { w.dev().Kind = k } }

func pfc(on [8]bool) func(*world) {
	return func(w *world) {
		w.both(func(n *snapshot.Netdev) { n.DCB.PFC = snapshot.Known(snapshot.PFC{Cap: 8, Enabled: on}) })
	}
}

func all(fs ...func(*world)) func(*world) {
	return func(w *world) {
		for _, f := range fs {
			f(w)
		}
	}
}

func first(n, of int64) (r [8]bool) {
	for i := range r {
		r[i] = int64(i) >= of && int64(i) < of+n
	}
	return r
}

var (
	noPFC     = pfc([8]bool{})
	linkLocal = func(w *world) {
		w.app().GIDIndex, w.dev().QPs = snapshot.Known(1), snapshot.Value[[]snapshot.QP]{}
	}
	lowLimit = func(w *world) { w.app().Memlock = snapshot.Known(int64(65536)) }
	leak     = func(w *world) {
		for i := range w.after.Devices {
			w.after.Devices[i].Resources = map[string]uint64{"ctx": 4027, "qp": 2}
		}
		w.dev().Resources["qp"] = 8053
	}
	busy0 = func(w *world) {
		w.eth("tx_prio3_bytes", 0)
		w.eth("rx_prio0_bytes", 91e6)
		w.eth("rx_prio3_bytes", 9e6)
	}
	bothFamilies = func(w *world) {
		p := w.port()
		p.GIDs = append(slices.Clone(p.GIDs), snapshot.GID{Index: 4, GID: "2001:0db8:0000:0000:0000:0000:0000:0001", Type: snapshot.Known("RoCE v2"), Netdev: snapshot.Known("eth0")})
	}
	drop = func(w *world) {
		w.after.Firewall.NFT = snapshot.Known([]snapshot.NFTChain{{Family: "inet", Table: "filter", Name: "input", Hook: "input", Policy: "drop"}})
	}
	addressOnly = func(hash snapshot.Hash) func(*world) {
		return func(w *world) { w.net().FlowHash["udp4"] = snapshot.Known(hash) }
	}
	veth  = func(w *world) { w.net().Driver, w.net().Virtual = snapshot.Known("veth"), snapshot.Known(true) }
	state = func(s, phys int) func(*world) {
		return func(w *world) { w.port().State, w.port().PhysState = snapshot.Known(s), snapshot.Known(phys) }
	}
	pauses = func(w *world, n float64) {
		for _, h := range []struct {
			s *snapshot.Snapshot
			v uint64
		}{{w.before, 5}, {w.after, 5 + uint64(n)}} {
			p := &h.s.Switch.Ports[0]
			p.PFCRx, p.PFCTx = snapshot.Known([8]uint64{3: h.v}), snapshot.Known([8]uint64{3: h.v})
		}
	}
	cnps = func(w *world, n float64) {
		w.app().GoodputMbps = snapshot.Known(69000.0)
		w.hw("rp_cnp_handled", n)
	}
)

// rows hold every condition of every rule at its threshold and below it. The window is
// ten seconds: a rate above 100 a second is a rise of more than 1,000.
var rows = append(moreRows, firstRows...)

var firstRows = []row{
	when("P01", doctor.Warn, func(w *world) { w.after.Devices, w.after.NICs[0].RDMA = nil, nil }),
	when("P13", doctor.Info, func(w *world) { w.after.Devices, w.after.Switch = nil, nil }),
	when("P13", doctor.Info, func(w *world) { w.after.Devices, w.after.NICs, w.after.Switch = nil, nil, nil }),
	when("P02", doctor.Fail, state(1, 3)),
	when("P02", doctor.Warn, func(w *world) {
		state(1, 2)(w)
		w.net().Addresses, w.after.App, w.dev().QPs = nil, nil, snapshot.Value[[]snapshot.QP]{}
	}),
	when("P02", doctor.Warn, state(4, 6)),
	when("P02", doctor.Info, func(w *world) {
		state(1, 2)(w)
		w.net().Addresses, w.dev().QPs, w.app().Device = []snapshot.Address{}, snapshot.Known([]snapshot.QP{}), snapshot.Known("mlx5_1")
	}),
	{"P03", func(w *world, n float64) { w.port().RateMbps = snapshot.Known(int64(n)) }, 99_999, doctor.Warn, 100_000, doctor.Pass},
	counts("P04", doctor.Fail, 0, doctor.Pass, of(pma, "link_downed")),
	counts("P04", doctor.Fail, 0, doctor.Pass, of(eth, "link_down_events_phy")),
	counts("P04", doctor.Fail, 0, doctor.Pass, func(w *world, n float64) { w.net().CarrierDownCount = snapshot.Known(1 + uint64(n)) }),
	counts("P05", doctor.Fail, 0, doctor.Pass, of(eth, "rx_pcs_symbol_err_phy")),
	counts("P05", doctor.Warn, 0, doctor.Pass, of(eth, "rx_symbol_err_phy")),
	counts("P07", doctor.Warn, 0, doctor.Pass, of(eth, "rx_crc_errors_phy")),
	counts("P09", doctor.Warn, 0, doctor.Pass, of(eth, "outbound_pci_stalled_wr_events")),
	counts("P09", doctor.Warn, 0, doctor.Pass, of(eth, "outbound_pci_stalled_rd_events")),
	counts("P09", doctor.Warn, 0, doctor.Pass, of(eth, "outbound_pci_buffer_overflow")),
	counts("P11", doctor.Warn, 0, doctor.Pass, of(eth, "module_high_temp")),
	counts("P11", doctor.Warn, 0, doctor.Pass, of(eth, "module_bus_stuck")),
	counts("P11", doctor.Warn, 0, doctor.Pass, of(eth, "module_bad_shorted")),
	counts("P11", doctor.Warn, 0, doctor.Pass, of(eth, "module_unplug")),
	when("A03", doctor.Info, noHuge),
	when("A03", doctor.Warn, all(noHuge, func(w *world) { w.app().Log = []string{"no huge pages"} })),
	counts("N08", doctor.Info, 0, doctor.Pass, func(w *world, n float64) { w.after.SNMP["Ip.FragFails"] = snapshot.Known(uint64(n)) }),
	counts("P05", doctor.Warn, 0, doctor.Pass, of(pma, "symbol_error")),
	counts("P06", doctor.Fail, 100_000, doctor.Warn, func(w *world, n float64) { w.eth("rx_bits_phy", 1e10); w.eth("rx_corrected_bits_phy", n) }),
	counts("P06", doctor.Warn, 10_000, doctor.Pass, func(w *world, n float64) { w.eth("rx_bits_phy", 1e10); w.eth("rx_corrected_bits_phy", n) }),
	// PCIe 4.0 at 16 GT/s and lane, 128b/130b, less 1.5 %: 8 lanes carry 124,140 Mb/s.
	{"P08", func(w *world, n float64) {
		w.port().RateMbps, w.dev().PCI.LinkWidth, w.dev().PCI.MaxLinkWidth = snapshot.Known(int64(n)), snapshot.Known(8), snapshot.Known(8)
	}, 124_141, doctor.Fail, 124_140, doctor.Pass},
	when("P08", doctor.Warn, func(w *world) { w.dev().PCI.LinkWidth = snapshot.Known(8) }),
	when("P08", doctor.Warn, func(w *world) { w.dev().PCI.LinkSpeed = snapshot.Known("8.0 GT/s PCIe") }),
	when("P08", doctor.Info, func(w *world) { w.dev().PCI.MaxLinkSpeed = snapshot.Known("32.0 GT/s PCIe") }),
	when("P12", doctor.Warn, func(w *world) { w.port().Rate = snapshot.Unreadable[string]("EINVAL") }),

	counts("C01", doctor.Fail, 1_000_000, doctor.Warn, of(eth, "rx_prio3_pause_duration")),
	counts("C01", doctor.Fail, 10_000, doctor.Warn, of(eth, "rx_prio3_pause")),
	counts("C01", doctor.Warn, 100_000, doctor.Pass, of(eth, "rx_prio3_pause_duration")),
	counts("C01", doctor.Warn, 1_000, doctor.Pass, of(eth, "rx_prio3_pause")),
	counts("C02", doctor.Fail, 10_000, doctor.Warn, of(eth, "tx_prio3_pause")),
	counts("C02", doctor.Warn, 100, doctor.Pass, of(eth, "tx_prio3_pause")),
	counts("C03", doctor.Fail, 8_999_999, doctor.Pass, of(eth, "tx_prio3_pause_duration")),
	counts("C03", doctor.Fail, 0, doctor.Pass, of(eth, "tx_pause_storm_error_events")),
	counts("C03", doctor.Warn, 0, doctor.Pass, of(eth, "tx_pause_storm_warning_events")),
	counts("C03 host", doctor.Fail, 10_000, doctor.Pass, pauses),
	when("C03 switch_port", doctor.Fail, func(w *world) { w.after.Switch.Ports[0].Queues[0].Status = "stormed" }),
	counts("C03 switch_port", doctor.Warn, 0, doctor.Pass, func(w *world, n float64) { w.after.Switch.Ports[0].Queues[0].Detected = uint64(n) }),
	// Ten seconds: one storm is six a minute.
	counts("C04", doctor.Fail, 0, doctor.Pass, func(w *world, n float64) {
		w.after.Switch.Ports[0].Queues[0].Detected, w.after.Switch.Ports[0].Queues[0].Restored = uint64(n), uint64(n)
	}),
	when("C05", doctor.Warn, all(noPFC, func(w *world) { w.net().Pause = snapshot.Known(snapshot.Pause{RX: true}) })),
	when("C05", doctor.Warn, all(noPFC, func(w *world) { w.eth("rx_pause_ctrl_phy", 1) })),
	counts("C05", doctor.Warn, 0, doctor.Pass, of(eth, "rx_global_pause")),
	counts("C06", doctor.Warn, 100_000, doctor.Pass, of(eth, "rx_prio3_pause_duration")),
	counts("C07", doctor.Warn, 100, doctor.Pass, of(hw, "np_ecn_marked_roce_packets")),
	counts("C08", doctor.Warn, 100, doctor.Pass, func(w *world, n float64) { w.peerHW("np_cnp_sent", n) }),
	counts("C09", doctor.Warn, 0, doctor.Pass, of(hw, "rp_cnp_ignored")),
	counts("C10", doctor.Warn, 10_000, doctor.Pass, cnps),
	{"C10", func(w *world, n float64) { cnps(w, 20_000); w.app().GoodputMbps = snapshot.Known(n) }, 69_999, doctor.Warn, 70_000, doctor.Pass},
	when("C10", doctor.Warn, func(w *world) { cnps(w, 20_000); w.port().Counters, w.before.Devices[0].Ports[0].Counters = nil, nil }),
	counts("C12", doctor.Fail, 0, doctor.Pass, of(eth, "rx_prio0_discards")),
	counts("C12", doctor.Fail, 0, doctor.Pass, of(eth, "rx_discards_phy")),
	counts("C12", doctor.Warn, 1_000, doctor.Skip, totalEth("rx_prio0_discards")),
	counts("C12", doctor.Warn, 1_000, doctor.Skip, totalEth("rx_discards_phy")),
	counts("C13", doctor.Fail, 100, doctor.Warn, func(w *world, n float64) { w.pma("port_rcv_packets", 1e6); w.hw("out_of_sequence", n) }),
	counts("C13", doctor.Warn, 0, doctor.Pass, func(w *world, n float64) { w.pma("port_rcv_packets", 1e9); w.hw("out_of_sequence", n) }),
	counts("C13", doctor.Warn, 10, doctor.Skip, func(w *world, n float64) {
		total("out_of_sequence")(w, n)
		setCounter(&w.port().Counters, "port_rcv_packets", 1e7)
	}),
	counts("C14", doctor.Warn, 0, doctor.Pass, of(hw, "packet_seq_err")),
	counts("C14", doctor.Warn, 0, doctor.Pass, of(hw, "implied_nak_seq_err")),
	counts("C14", doctor.Warn, 100, doctor.Info, total("packet_seq_err")),
	counts("C14", doctor.Warn, 100, doctor.Info, total("implied_nak_seq_err")),
	counts("C14", doctor.Info, 0, doctor.Pass, total("packet_seq_err")),
	counts("C14", doctor.Info, 0, doctor.Pass, total("implied_nak_seq_err")),
	counts("C15", doctor.Warn, 0, doctor.Pass, of(hw, "local_ack_timeout_err")),
	counts("C15", doctor.Warn, 100, doctor.Info, total("local_ack_timeout_err")),
	counts("C15", doctor.Info, 0, doctor.Pass, total("local_ack_timeout_err")),
	counts("C16", doctor.Fail, 0, doctor.Pass, of(hw, "req_transport_retries_exceeded")),
	when("C16", doctor.Fail, completion(12)),
	counts("C16", doctor.Warn, 0, doctor.Skip, total("req_transport_retries_exceeded")),
	counts("C17", doctor.Fail, 0, doctor.Pass, of(hw, "req_rnr_retries_exceeded")),
	when("C17", doctor.Fail, completion(13)),
	counts("C17", doctor.Warn, 10, doctor.Info, of(hw, "rnr_nak_retry_err")), // one a second
	counts("C17", doctor.Warn, 10, doctor.Info, of(hw, "out_of_buffer")),
	counts("C17", doctor.Info, 0, doctor.Pass, of(hw, "rnr_nak_retry_err")),
	counts("C17", doctor.Info, 0, doctor.Pass, of(hw, "out_of_buffer")),
	counts("C17", doctor.Warn, 100, doctor.Info, total("rnr_nak_retry_err")),
	counts("C17", doctor.Warn, 100, doctor.Info, total("out_of_buffer")),
	counts("C17", doctor.Info, 0, doctor.Skip, total("rnr_nak_retry_err")),
	counts("C17", doctor.Info, 0, doctor.Skip, total("out_of_buffer")),
	counts("C18", doctor.Warn, 100, doctor.Pass, of(hw, "duplicate_request")),
	counts("C19", doctor.Fail, 100, doctor.Warn, func(w *world, n float64) { w.pma("port_rcv_packets", 1e6); w.hw("rx_icrc_encapsulated", n) }),
	counts("C19", doctor.Warn, 0, doctor.Pass, func(w *world, n float64) { w.pma("port_rcv_packets", 1e9); w.hw("rx_icrc_encapsulated", n) }),
	counts("C19", doctor.Warn, 100, doctor.Skip, total("rx_icrc_encapsulated")),
	counts("C20", doctor.Info, 0, doctor.Pass, of(hw, "roce_adp_retrans")),
	counts("C20", doctor.Info, 0, doctor.Pass, of(hw, "roce_slow_restart")),
	counts("C21", doctor.Fail, 0, doctor.Pass, of(hw, "req_remote_access_errors")),
	counts("C21", doctor.Fail, 0, doctor.Pass, of(hw, "req_remote_invalid_request")),
	when("C21", doctor.Fail, completion(10)),
	when("C21", doctor.Fail, completion(9)),
	counts("C21", doctor.Warn, 100, doctor.Info, total("req_remote_access_errors")),
	counts("C21", doctor.Warn, 100, doctor.Info, total("req_remote_invalid_request")),
	counts("C21", doctor.Info, 0, doctor.Skip, total("req_remote_access_errors")),
	counts("C21", doctor.Info, 0, doctor.Skip, total("req_remote_invalid_request")),
	counts("C22", doctor.Warn, 0, doctor.Pass, func(w *world, n float64) { w.peerHW("req_remote_access_errors", n) }),

	when("L01", doctor.Warn, noPFC),
	when("L01", doctor.Fail, all(noPFC, completion(12))),
	when("L01", doctor.Fail, all(noPFC, func(w *world) { w.hw("local_ack_timeout_err", 1) })),
	when("L01", doctor.Fail, all(noPFC, func(w *world) { w.hw("packet_seq_err", 1) })),
	{"L01", func(w *world, n float64) { noPFC(w); w.app().GoodputMbps = snapshot.Known(n) }, 49_999, doctor.Fail, 50_000, doctor.Warn},
	{"L02", func(w *world, n float64) { pfc(first(int64(n), 3))(w) }, 3, doctor.Warn, 2, doctor.Pass},
	when("L02", doctor.Warn, pfc(first(1, 0))),
	when("L03", doctor.Fail, func(w *world) { w.peerNet().DCB.PFC = snapshot.Known(snapshot.PFC{Enabled: [8]bool{4: true}}) }),
	when("L04", doctor.Fail, func(w *world) { w.net().DCB.Trust = snapshot.Known("pcp") }),
	when("L05", doctor.Fail, func(w *world) { w.app().TrafficClass = snapshot.Known(0) }),
	when("L06", doctor.Warn, all(busy0, func(w *world) { w.hw("local_ack_timeout_err", 1) })),
	when("L06", doctor.Warn, all(busy0, func(w *world) { w.hw("packet_seq_err", 1) })),
	{"L06", func(w *world, n float64) {
		w.eth("rx_prio0_bytes", n)
		w.eth("rx_prio3_bytes", 1e8-n)
		w.eth("tx_prio3_bytes", 0)
		w.hw("out_of_sequence", 1)
	}, 90_000_001, doctor.Warn, 90_000_000, doctor.Pass},
	when("L07", doctor.Info, func(w *world) {
		w.net().DCB.NP = snapshot.Known(snapshot.Congestion{Params: map[string]uint64{"cnp_802p_prio": 3}})
	}),
	when("L08", doctor.Warn, func(w *world) {
		w.net().DCB.RP = snapshot.Known(snapshot.Congestion{Enabled: map[int]bool{3: false}})
	}),
	when("L10", doctor.Fail, func(w *world) { w.peerAfter.Devices[0].Ports[0].ActiveMTU = snapshot.Known(1024) }),
	when("L10", doctor.Warn, func(w *world) { w.peerNet().MTU = snapshot.Known(4200) }),
	{"L11", func(w *world, n float64) { w.port().ActiveMTU = snapshot.Known(int(n)) }, 2048, doctor.Warn, 4096, doctor.Pass},
	when("L11", doctor.Info, all(kind(snapshot.RXE), func(w *world) { w.port().ActiveMTU = snapshot.Known(1024) })),
	{"L13", func(w *world, n float64) { w.port().ActiveMTU = snapshot.Known(int(n)) }, 2048, doctor.Fail, 4096, doctor.Pass},
	{"L13 qp", func(w *world, n float64) { w.port().ActiveMTU = snapshot.Known(int(n)) }, 2048, doctor.Fail, 4096, doctor.Pass},
	when("L14", doctor.Fail, func(w *world) { w.app().GIDIndex = snapshot.Known(2) }),
	when("L14", doctor.Fail, func(w *world) { w.app().GIDIndex = snapshot.Known(9) }),
	when("L14", doctor.Fail, all(linkLocal, func(w *world) { w.app().Peer = snapshot.Known("10.7.0.2") })),
	when("L14", doctor.Fail, all(linkLocal, printed("modify_qp", 110))),
	when("L14", doctor.Fail, all(linkLocal, completion(12))),
	when("L14", doctor.Fail, all(linkLocal, completion(5))),
	when("L14", doctor.Warn, linkLocal),
	when("L15", doctor.Fail, func(w *world) { w.port().GIDs = nil }),
	when("L15", doctor.Fail, func(w *world) { w.port().GIDs = w.port().GIDs[:3] }),
	when("L16", doctor.Fail, func(w *world) { w.peerAfter.App.GIDIndex = snapshot.Known(2) }),
	when("L18", doctor.Warn, func(w *world) { w.port().CMRoCEMode = snapshot.Known("IB/RoCE v1") }),
	when("L19", doctor.Warn, func(w *world) { w.port().CMTOS = snapshot.Known(0) }),
	when("L21", doctor.Fail, func(w *world) {
		w.net().DCB.Buffer = snapshot.Known(snapshot.DCBBuffer{PrioBuffer: [8]int{3: 2}, Size: [8]uint64{130944, 130944}})
	}),
	when("L22", doctor.Warn, func(w *world) {
		w.net().DCB.ETS = snapshot.Known(snapshot.ETS{TSA: [8]string{3: "ets"}, PrioTC: [8]int{3: 3}})
	}),
	{"L23", func(w *world, n float64) { w.after.Switch.Profiles[0].Kmin = uint64(n) }, 400_001, doctor.Fail, 400_000, doctor.Pass},
	{"L23", func(w *world, n float64) { w.after.Switch.Profiles[0].Kmax = uint64(n) }, 1_000_000, doctor.Fail, 999_999, doctor.Pass},

	when("A01", doctor.Fail, all(lowLimit, printed("reg_mr", 12))),
	when("A01", doctor.Fail, all(lowLimit, printed("create_cq", 12))),
	when("A01", doctor.Fail, all(lowLimit, printed("create_qp", 12))),
	{"A01", func(w *world, n float64) { w.app().Memlock = snapshot.Known(int64(n)) }, 536870912, doctor.Warn, 536870913, doctor.Pass},
	{"A01", func(w *world, n float64) { lowLimit(w); w.app().CapEff = snapshot.Known(uint64(n)) }, 1 << 13, doctor.Warn, 1 << 14, doctor.Pass},
	when("A01", doctor.Warn, all(printed("reg_mr", 12), func(w *world) { w.app().Memlock = snapshot.Value[int64]{} })),
	when("A02", doctor.Warn, lowLimit),
	when("A04", doctor.Fail, printed("reg_mr", 22)),
	when("A04", doctor.Warn, all(printed("reg_mr", 22), func(w *world) { w.app().Env["RDMAV_HUGEPAGES_SAFE"] = "1" })),
	when("A04", doctor.Warn, all(printed("reg_mr", 12), func(w *world) { w.app().Log = append(w.app().Log, "using huge pages") })),
	counts("A05", doctor.Info, 2048*4096, doctor.Pass, func(w *world, n float64) {
		w.dev().MRs = snapshot.Known([]snapshot.MR{{Length: uint64(n)}})
		w.eth("tx_prio3_pause", 200)
	}),
	counts("A06", doctor.Warn, 800, doctor.Pass, func(w *world, n float64) { w.dev().Resources["qp"] = uint64(n) }),
	when("A07", doctor.Warn, leak),
	when("A07", doctor.Fail, all(leak, printed("create_qp", 12))),
	when("A07", doctor.Fail, all(leak, printed("open_device", 12))),
	when("A08", doctor.Warn, func(w *world) { w.setQPs("INIT", "INIT") }),
	when("A09", doctor.Warn, func(w *world) { w.setQPs("RTR", "RTR") }),
	when("A10", doctor.Warn, func(w *world) { w.setQPs("ERR", "RTS") }),
	counts("A11", doctor.Warn, 800, doctor.Pass, func(w *world, n float64) { w.dev().Resources["mr"] = uint64(n) }),
	counts("A11", doctor.Warn, 800, doctor.Pass, func(w *world, n float64) { w.dev().Resources["cq"] = uint64(n) }),
	counts("A12", doctor.Fail, 220, doctor.Pass, func(w *world, n float64) { w.app().MaxInline = snapshot.Known(int(n)) }),
	counts("A12", doctor.Fail, 32768, doctor.Pass, func(w *world, n float64) { w.app().MaxSendWR = snapshot.Known(int(n)) }),
	when("A13", doctor.Warn, noChardevs),
	when("A13", doctor.Warn, deniedChardev),
	when("A13", doctor.Fail, all(noChardevs, printed("open_device", 2))),
	when("A13", doctor.Fail, all(deniedChardev, printed("open_device", 13))),
	when("A14", doctor.Info, exclusive),
	when("A14", doctor.Fail, all(exclusive, func(w *world) { w.app().Log = []string{"wrong namespace mode"} })),

	when("N01", doctor.Info, addressOnly(snapshot.HashSource|snapshot.HashDest)),
	counts("N01", doctor.Warn, 8000, doctor.Info, func(w *world, n float64) {
		kind(snapshot.RXE)(w)
		addressOnly(snapshot.HashSource | snapshot.HashDest)(w)
		w.eth("rx0_packets", n)
		w.eth("rx1_packets", 10_000-n)
	}),
	when("N02", doctor.Info, drop),
	when("N02", doctor.Fail, all(drop, kind(snapshot.Verbena))),
	when("N02", doctor.Info, all(kind(snapshot.RXE), func(w *world) {
		w.after.Firewall.NFT = snapshot.Known([]snapshot.NFTChain{{Family: "inet", Table: "f", Name: "i", Hook: "input", Policy: "accept", Rules: []snapshot.NFTRule{{Unknown: []string{"set lookup"}, Verdict: "drop"}}}})
	})),
	when("N02", doctor.Fail, all(kind(snapshot.RXE), bothFamilies, func(w *world) {
		w.after.Firewall = snapshot.Firewall{IPTables: snapshot.Known("*filter\n:INPUT DROP [0:0]\nCOMMIT\n")}
	})),
	when("N02", doctor.Warn, all(kind(snapshot.RXE), bothFamilies, func(w *world) {
		w.after.Firewall = snapshot.Firewall{IP6Tables: snapshot.Known("*filter\n:INPUT DROP [0:0]\nCOMMIT\n")}
	})),
	when("N03", doctor.Info, dead),
	when("N03", doctor.Fail, all(dead, printed("modify_qp", 110))),
	when("N03", doctor.Fail, all(dead, func(w *world) {
		w.printed(snapshot.LogEvent{Kind: "completion", Status: 12, Peer: "10.0.0.9"})
	})),
	when("A15", doctor.Fail, printed("reg_mr", 14)),
	when("N04", doctor.Warn, func(w *world) { w.after.Netdevs[1].Addresses = []snapshot.Address{{Prefix: "10.0.0.3/24"}} }),
	when("N07", doctor.Fail, all(veth, func(w *world) { w.peerAfter.SNMP["Udp.InCsumErrors"] = snapshot.Known(uint64(10)) })),
	when("N07", doctor.Warn, all(veth, func(w *world) { w.peerAfter.SNMP["Udp.InCsumErrors"] = snapshot.Known(uint64(1)) })),
	when("N07", doctor.Info, all(veth, func(w *world) { w.after.SNMP["Udp.InCsumErrors"] = snapshot.Known(uint64(1)) })),
	counts("N09", doctor.Warn, 100, doctor.Pass, func(w *world, n float64) {
		kind(snapshot.Verbena)(w)
		w.after.SNMP["Udp.RcvbufErrors"] = snapshot.Known(uint64(n))
	}),
}

// moreRows are those of rules about places, rails, paths and bonds.
var moreRows = []row{
	{"P10", func(w *world, n float64) { w.app().CPUs = snapshot.Known(fmt.Sprintf("%d-40", int(n))) }, 16, doctor.Warn, 15, doctor.Pass},
	{"C11", func(w *world, n float64) {
		w.eth("rx_prio3_pause_duration", 200_000)
		w.eth("rx_prio3_pause", n)
		w.hw("rp_cnp_handled", 500)
	}, 501, doctor.Warn, 500, doctor.Pass},
	when("C23", doctor.Warn, func(w *world) {
		setCounter(&w.before.Devices[0].Ports[0].HWCounters, "np_cnp_sent", 500)
		setCounter(&w.port().HWCounters, "np_cnp_sent", 3)
	}),
	when("C23", doctor.Warn, func(w *world) {
		w.pma("port_xmit_data", 0)
		w.dev().QPs = snapshot.Known([]snapshot.QP{{Port: 1, LQPN: 17, Type: "RC", State: "RTS", SQPSN: snapshot.Known(uint32(101))}})
	}),
	counts("C23", doctor.Info, 10_000, doctor.Pass, func(w *world, n float64) { w.port().LifespanMs = snapshot.Known(int(n)) }),
	counts("C24", doctor.Warn, 3_000_000_000, doctor.Pass, func(w *world, n float64) { w.pma("port_xmit_data", n) }),
	counts("C24", doctor.Info, 3_000_000_000, doctor.Pass, func(w *world, n float64) { w.pma("port_xmit_data", n); w.dev().QPs = snapshot.Known([]snapshot.QP{}) }),
	counts("L09", doctor.Warn, 50, doctor.Pass, func(w *world, n float64) {
		np(w, "min_time_between_cnps", n)
		peerNP(w, "min_time_between_cnps", n)
	}),
	when("L09", doctor.Warn, func(w *world) { rp(w, "rpg_ai_rate", 0) }),
	counts("L09", doctor.Warn, 10_000, doctor.Pass, func(w *world, n float64) { rp(w, "rpg_min_rate", n) }),
	when("L09", doctor.Info, func(w *world) { np(w, "min_time_between_cnps", 8) }),
	when("L09", doctor.Info, func(w *world) { rp(w, "rpg_ai_rate", 50) }),
	{"L12", func(w *world, n float64) { routeMTU(w, n) }, 4155, doctor.Warn, 4156, doctor.Pass},
	{"L12", func(w *world, n float64) { w.after.Switch.Ports[0].MTU = snapshot.Known(int(n)) }, 4155, doctor.Warn, 4156, doctor.Pass},
	{"L12", func(w *world, n float64) { routeMTU(w, n); completion(12)(w) }, 4155, doctor.Fail, 4156, doctor.Pass},
	{"L12", func(w *world, n float64) {
		w.after.Switch.Ports[0].MTU = snapshot.Known(int(n))
		completion(12)(w)
	}, 4155, doctor.Fail, 4156, doctor.Pass},
	when("L17", doctor.Warn, func(w *world) {
		w.app().Env["NCCL_IB_GID_INDEX"] = "3"
		w.peerAfter.Devices[0].Ports[0].GIDs[3].Index = 5
	}),
	when("L20", doctor.Warn, dcbChanged),
	when("L20", doctor.Fail, all(dcbChanged, func(w *world) { w.net().DCB.LLDPAgent = snapshot.Known("lldpad") })),
	when("L20", doctor.Fail, all(dcbChanged, firmwareDCBX)),
	when("L20", doctor.Warn, all(firmwareDCBX, func(w *world) { w.net().DCB.LLDPAgent = snapshot.Known("lldpad") })),
	// 100 Gb/s over 300 m: 2 x 12.5e9 x 1.5e-6 + 2 x 9100 = 55,700 bytes.
	{"L24", func(w *world, n float64) { w.after.Switch.Ports[0].Attrs["headroom"] = fmt.Sprint(n) }, 55_699, doctor.Fail, 55_700, doctor.Pass},
	{"L24", func(w *world, n float64) { w.after.Switch.Ports[0].Attrs["alpha"] = fmt.Sprint(n) }, 0.015625, doctor.Warn, 0.03125, doctor.Pass},
	when("L25", doctor.Warn, func(w *world) { w.net().VLAN = snapshot.Known(100) }),
	when("L25", doctor.Info, all(noPFC, func(w *world) { w.net().VLAN = snapshot.Known(100) })),
	when("L26", doctor.Warn, func(w *world) { w.dev().PCI.Virtual = snapshot.Known(true) }),
	when("L26", doctor.Warn, func(w *world) {
		w.dev().PCI.Vendor, w.dev().PCI.Device = snapshot.Known("0x15b3"), snapshot.Known("0x101e")
	}),
	when("A16", doctor.Fail, func(w *world) {
		w.app().Log = []string{"libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so'"}
	}),
	when("L05 qp", doctor.Fail, all(noAppClass, func(w *world) { secondQP(w, 3, 106); w.qp().TrafficClass = snapshot.Known(0) })),
	when("L14 qp", doctor.Fail, all(noAppIndex, func(w *world) { secondQP(w, 3, 106); w.qp().GIDIndex = snapshot.Known(0) })),
	when("L14 qp", doctor.Fail, all(noAppIndex, func(w *world) { secondQP(w, 3, 106); w.qp().GIDIndex = snapshot.Known(200) })),
	when("L14 qp", doctor.Info, all(noAppIndex, func(w *world) { secondQP(w, 3, 106); w.qp().GIDIndex = snapshot.Known(1) })),
	{"L13 qp", func(w *world, n float64) { w.peerAfter.Devices[0].Ports[0].ActiveMTU = snapshot.Known(int(n)) }, 2048, doctor.Fail, 4096, doctor.Pass},
	when("A17", doctor.Warn, printed("reg_mr", 12)),
	when("A18", doctor.Warn, printed("reg_mr", 22)),
	when("A19", doctor.Warn, completion(4)),
	when("A19", doctor.Warn, completion(1)),
	when("A20", doctor.Warn, printed("modify_qp", 110)),
	when("A21", doctor.Warn, printed("create_qp", 22)),
	when("A21", doctor.Warn, printed("create_cq", 22)),
	when("A22", doctor.Warn, printed("cm", 111)),
	when("N05", doctor.Warn, func(w *world) {
		strictFilter(w)
		w.after.Netdevs[1].Addresses = []snapshot.Address{{Prefix: "10.0.0.3/24"}}
	}),
	when("N05", doctor.Info, strictFilter),
	when("N06", doctor.Info, otherRoute),
	when("N06", doctor.Warn, all(otherRoute, printed("modify_qp", 110))),
	when("N06", doctor.Warn, all(otherRoute, completion(12))),
	when("N10", doctor.Fail, func(w *world) {
		bonded(w, "active-backup", "layer3+4")
		w.after.Netdevs[1].Bond.Active = snapshot.Known("eth9")
	}),
	when("N10", doctor.Warn, func(w *world) { bonded(w, "802.3ad", "layer3+4"); w.port().GIDs = w.port().GIDs[:2] }),
	when("N10", doctor.Info, func(w *world) { bonded(w, "802.3ad", "layer2") }),
	when("N10", doctor.Info, func(w *world) { bonded(w, "balance-xor", "layer2") }),
	when("N11", doctor.Info, noPeermem),
	when("N11", doctor.Warn, all(noPeermem, func(w *world) { w.app().Log = []string{"NET/IB : GPU Direct RDMA Disabled for HCA 0"} })),
	{"N12", func(w *world, n float64) {
		rise(&w.peerBefore.Netdevs[0].Ethtool, &w.peerNet().Ethtool, "rx_prio3_bytes", n)
		rise(&w.peerBefore.Netdevs[0].Ethtool, &w.peerNet().Ethtool, "rx_prio0_bytes", 1e9-n)
	}, 99_999_999, doctor.Warn, 100_000_000, doctor.Pass},
	when("N13", doctor.Warn, func(w *world) {
		w.app().TrafficClass = snapshot.Known(104)
		w.net().DCB.RP = snapshot.Known(snapshot.Congestion{Enabled: map[int]bool{3: false}})
	}),
}

// qp is the queue pair of the good host; secondQP puts one beside it.
func (w *world) qp() *snapshot.QP {
	qps, _ := w.dev().QPs.Get()
	return &qps[0]
}

func secondQP(w *world, index, class int) {
	qps, _ := w.dev().QPs.Get()
	q := qps[0]
	q.LQPN, q.GIDIndex, q.TrafficClass = 18, snapshot.Known(index), snapshot.Known(class)
	w.dev().QPs = snapshot.Known([]snapshot.QP{qps[0], q})
}

func noAppClass(w *world) { w.app().TrafficClass = snapshot.Value[int]{} }
func noAppIndex(w *world) { w.app().GIDIndex = snapshot.Value[int]{} }

// np, rp and peerNP set one parameter of DCQCN, and leave the others.
func np(w *world, name string, n float64)     { setParam(&w.net().DCB.NP, name, n) }
func rp(w *world, name string, n float64)     { setParam(&w.net().DCB.RP, name, n) }
func peerNP(w *world, name string, n float64) { setParam(&w.peerNet().DCB.NP, name, n) }

func setParam(v *snapshot.Value[snapshot.Congestion], name string, n float64) {
	c := v.Or(snapshot.Congestion{})
	c.Params = maps.Clone(c.Params)
	c.Params[name] = uint64(n)
	*v = snapshot.Known(c)
}

func routeMTU(w *world, n float64) {
	w.after.Routes = snapshot.Known([]snapshot.Route{{Dst: "10.0.0.0/24", Dev: "eth0", MTU: int(n)}})
}

func dcbChanged(w *world) {
	w.before.Netdevs[0].DCB.PFC = snapshot.Known(snapshot.PFC{Cap: 8, Enabled: [8]bool{3: true, 4: true}})
}

func firmwareDCBX(w *world) { w.net().DCB.DCBX = snapshot.Known([]string{"lld-managed", "ieee"}) }

func strictFilter(w *world) { w.after.Sysctl["net.ipv4.conf.eth0.rp_filter"] = snapshot.Known("1") }

func otherRoute(w *world) {
	w.after.Routes = snapshot.Known([]snapshot.Route{{Dst: "10.0.0.0/24", Dev: "mgmt0"}})
}

func noPeermem(w *world) { w.after.Modules = snapshot.Known([]string{"mlx5_ib", "nvidia"}) }

// bonded makes a bond of the port's interface.
func bonded(w *world, mode, hash string) {
	for _, h := range []*snapshot.Snapshot{w.before, w.after} {
		h.Netdevs[0].Master = snapshot.Known("eth1")
		h.Netdevs[1].Bond = &snapshot.Bond{Mode: snapshot.Known(mode), HashPolicy: snapshot.Known(hash), Active: snapshot.Known("eth0"), Slaves: []string{"eth0"}}
	}
}

var (
	noChardevs    = func(w *world) { w.after.Chardevs = snapshot.Known([]snapshot.Chardev{}) }
	deniedChardev = func(w *world) {
		w.after.Chardevs = snapshot.Known([]snapshot.Chardev{{Name: "uverbs0", Mode: "0600", Open: snapshot.Unreadable[bool]("EACCES")}})
	}
	noHuge    = func(w *world) { w.after.HugePages[0].Free = snapshot.Known(uint64(0)) }
	exclusive = func(w *world) { w.after.RDMA.NetnsMode = snapshot.Known("exclusive") }
	dead      = func(w *world) {
		w.after.Neighbours = snapshot.Known([]snapshot.Neighbour{{IP: "10.0.0.9", Dev: "eth0", State: "FAILED"}})
	}
)

// where are the things of the good host that the rows are about.
var where = map[doctor.Each]string{
	doctor.EachHost: "host", doctor.EachDevice: "mlx5_0", doctor.EachPort: "mlx5_0/1", doctor.EachNetdev: "eth0", doctor.EachQP: "mlx5_0 QP 17",
	doctor.EachSwitchPort: "switch port Ethernet0", doctor.EachProfile: "ECN profile p",
}

// rule finds the rule of a row: an id, or an id and what it looks at.
func (r *row) find(rules []*doctor.Rule) *doctor.Rule {
	id, each, _ := strings.Cut(r.rule, " ")
	for _, x := range rules {
		if x.ID == id && (each == "" || string(x.Each) == each) {
			return x
		}
	}
	return nil
}

// judge returns what one rule says of the good host's first thing; none if it does not
// apply.
func judge(w *world, r *doctor.Rule) doctor.Finding {
	rep := doctor.Examine(w.input(), []*doctor.Rule{r})
	for _, f := range slices.Concat(rep.Findings, rep.Passed, rep.Skipped) {
		if slices.Contains(f.Places, where[r.Each]) {
			return f
		}
	}
	return doctor.Finding{Status: "none"}
}

// Nothing is wrong with the good host, and every rule can say so: it has all sources.
func TestGoodHostPasses(t *testing.T) {
	for _, r := range builtin(t) {
		w := newWorld()
		switch {
		case r.ID == "P01":
			w.after.Devices = nil
		case r.Scope == doctor.Software:
			w.dev().Kind = snapshot.RXE
		case r.Scope == doctor.Ours:
			w.dev().Kind = snapshot.Verbena
		}
		if f := judge(w, r); f.Status != doctor.Pass {
			t.Errorf("%s (%s): %s %s %s, evidence %v", r.ID, r.Each, f.Status, f.Condition, f.Missing, f.Evidence)
		}
	}
}

// Each condition of each rule holds above its threshold and not at it.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	held := map[string]bool{}
	for i := range rows {
		row := &rows[i]
		r := row.find(rules)
		if r == nil {
			t.Errorf("row %d: no rule %s", i, row.rule)
			continue
		}
		w := newWorld()
		row.set(w, row.at)
		f := judge(w, r)
		if f.Status != row.want {
			t.Errorf("row %d, %s with %v: %s %s, want %s", i, row.rule, row.at, f.Status, f.Missing, row.want)
		}
		if f.Status != doctor.Skip && f.Status != doctor.Pass && (len(f.Evidence) == 0 || f.Cause == "" || strings.Contains(f.Cause+f.Why, "<")) {
			t.Errorf("row %d, %s: evidence %v, cause %q, why %q", i, row.rule, f.Evidence, f.Cause, f.Why)
		}
		held[fmt.Sprint(r.ID, r.Each, f.Status, f.Condition)] = true

		w = newWorld()
		row.set(w, row.below)
		if r.ID == "P01" {
			w.after.Devices = nil
		}
		if f := judge(w, r); f.Status != row.otherwise {
			t.Errorf("row %d, %s with %v: %s %s %s, want %s", i, row.rule, row.below, f.Status, f.Condition, f.Missing, row.otherwise)
		}
	}
	for _, r := range rules {
		for status, conds := range map[doctor.Status]doctor.Cond{doctor.Fail: r.Fail, doctor.Warn: r.Warn, doctor.Info: r.Info} {
			for _, c := range conds {
				if !held[fmt.Sprint(r.ID, r.Each, status, c)] {
					t.Errorf("%s (%s): no row makes it %s by %s", r.ID, r.Each, status, c)
				}
			}
		}
	}
}

// A rule for hardware says nothing of software devices, and the other way round.
func TestScopes(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	judged := 0
	for i := range rows {
		row := &rows[i]
		r := row.find(rules)
		if r == nil {
			continue
		}
		for _, k := range []snapshot.Kind{snapshot.Hardware, snapshot.RXE, snapshot.SIW, snapshot.Verbena, snapshot.Sim} {
			w := newWorld()
			row.set(w, row.at)
			if len(w.after.Devices) == 0 {
				continue
			}
			w.dev().Kind = k
			applies := r.Scope == doctor.Both || r.Scope == doctor.Hardware && !k.Software() || r.Scope == doctor.Software && k.Software() ||
				r.Scope == doctor.Ours && (k == snapshot.Verbena || k == snapshot.Sim)
			if f := judge(w, r); !applies && f.Status != "none" {
				t.Errorf("%s, which is for %s, says %s of a device of kind %s", row.rule, r.Scope, f.Status, k)
			} else if applies && r.Scope != doctor.Both && f.Status != row.want {
				t.Errorf("%s, which is for %s, says %s of a device of kind %s, want %s", row.rule, r.Scope, f.Status, k, row.want)
			}
			judged++
		}
	}
	if judged < 500 {
		t.Errorf("only %d judged", judged)
	}
}
