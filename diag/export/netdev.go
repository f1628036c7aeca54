package export

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// ethtoolCounter is a statistic of a driver, and where it goes. In raw, * stands for
// digits, the value of the label lane.
type ethtoolCounter struct {
	raw    string
	kind   kind
	name   string
	help   string
	labels []string
	values []string
	factor float64
}

var (
	byDirection = []string{"direction"}
	bySeverity  = []string{"severity"}
	rx, tx      = []string{"rx"}, []string{"tx"}
	reads       = []string{"read"}
	writes      = []string{"write"}
	byCast      = []string{"direction", "cast"}
	byLane      = []string{"lane"}
	byRaw       = []string{"direction", "raw"}
)

const micro = 1e-6

// ethtool are statistics of mlx5, bnxt_en and ice beside PFC by priority, which
// counter.PFCOf knows.
var ethtool = []ethtoolCounter{
	{"rx_pause_ctrl_phy", total, "rdma_pause_frames_total", pauseHelp, byDirection, rx, 1},
	{"tx_pause_ctrl_phy", total, "rdma_pause_frames_total", pauseHelp, byDirection, tx, 1},
	{"rx_pause_frames", total, "rdma_pause_frames_total", pauseHelp, byDirection, rx, 1},
	{"tx_pause_frames", total, "rdma_pause_frames_total", pauseHelp, byDirection, tx, 1},
	{"link_xoff_rx.nic", total, "rdma_pause_frames_total", pauseHelp, byDirection, rx, 1},
	{"link_xoff_tx.nic", total, "rdma_pause_frames_total", pauseHelp, byDirection, tx, 1},
	{"rx_global_pause_duration", total, "rdma_pause_seconds_total", "Time in 802.3x pause of the whole link.", byDirection, rx, micro},
	{"tx_global_pause_duration", total, "rdma_pause_seconds_total", "Time in 802.3x pause of the whole link.", byDirection, tx, micro},
	{"tx_pause_storm_warning_events", total, "rdma_pause_storm_events_total", stormHelp, bySeverity, []string{"warning"}, 1},
	{"tx_pause_storm_error_events", total, "rdma_pause_storm_events_total", stormHelp, bySeverity, []string{"error"}, 1},

	{"outbound_pci_stalled_rd", level, "rdma_pcie_stalled_ratio", "Share of the last second in which the device had no PCIe credits.", byDirection, reads, 0.01},
	{"outbound_pci_stalled_wr", level, "rdma_pcie_stalled_ratio", "Share of the last second in which the device had no PCIe credits.", byDirection, writes, 0.01},
	{"outbound_pci_stalled_rd_events", total, "rdma_pcie_stall_events_total", "Seconds in which PCIe stalled for more than 30 per cent.", byDirection, reads, 1},
	{"outbound_pci_stalled_wr_events", total, "rdma_pcie_stall_events_total", "Seconds in which PCIe stalled for more than 30 per cent.", byDirection, writes, 1},
	{"outbound_pci_buffer_overflow", total, "rdma_pcie_buffer_overflow_total", "Packets dropped since PCIe did not take them.", nil, nil, 1},
	{"rx_pci_signal_integrity", total, "rdma_pcie_signal_integrity_errors_total", "Errors of PCIe's physical layer, seen by the device.", byDirection, rx, 1},
	{"tx_pci_signal_integrity", total, "rdma_pcie_signal_integrity_errors_total", "Errors of PCIe's physical layer, seen by the device.", byDirection, tx, 1},

	{"rx_corrected_bits_phy", total, "rdma_fec_corrected_symbols_total", "What FEC put right, in the driver's unit.", nil, nil, 1},
	{"rx_fec_corrected_blocks", total, "rdma_fec_corrected_blocks_total", "Blocks that FEC put right.", nil, nil, 1},
	{"fec_corrected_blocks", total, "rdma_fec_corrected_blocks_total", "Blocks that FEC put right.", nil, nil, 1},
	{"fec_corrected_blocks_rx", total, "rdma_fec_corrected_blocks_total", "Blocks that FEC put right.", nil, nil, 1},
	{"rx_fec_uncorrectable_blocks", total, "rdma_fec_uncorrectable_blocks_total", "Blocks that FEC could not put right.", nil, nil, 1},
	{"fec_uncorrectable_blocks", total, "rdma_fec_uncorrectable_blocks_total", "Blocks that FEC could not put right.", nil, nil, 1},
	{"rx_fec_corrected_symbols", total, "rdma_fec_corrected_symbols_total", "What FEC put right, in the driver's unit.", nil, nil, 1},
	{"rx_symbol_err_phy", total, "rdma_phy_symbol_errors_total", "Symbols received that were none.", nil, nil, 1},
	{"rx_pcs_symbol_err_phy", total, "rdma_phy_pcs_symbol_errors_total", "Errors of symbols that FEC did not put right.", nil, nil, 1},
	{"rx_crc_errors_phy", total, "rdma_phy_crc_errors_total", "Frames received with a wrong checksum.", nil, nil, 1},
	{"rx_fcs_err_frames", total, "rdma_phy_crc_errors_total", "Frames received with a wrong checksum.", nil, nil, 1},
	{"rx_crc_errors.nic", total, "rdma_phy_crc_errors_total", "Frames received with a wrong checksum.", nil, nil, 1},
	{"rx_err_lane_*_phy", total, "rdma_phy_lane_errors_total", "Errors by lane of the link.", byLane, nil, 1},
	{"link_down_events_phy", total, "rdma_phy_link_down_events_total", "Times that the link went down.", nil, nil, 1},
	{"module_bad_shorted", total, "rdma_phy_module_bad_total", "Times that the cable or module was shorted.", nil, nil, 1},

	{"rx_vport_rdma_unicast_packets", total, "rdma_vport_packets_total", vportHelp, byCast, []string{"rx", "unicast"}, 1},
	{"tx_vport_rdma_unicast_packets", total, "rdma_vport_packets_total", vportHelp, byCast, []string{"tx", "unicast"}, 1},
	{"rx_vport_rdma_multicast_packets", total, "rdma_vport_packets_total", vportHelp, byCast, []string{"rx", "multicast"}, 1},
	{"tx_vport_rdma_multicast_packets", total, "rdma_vport_packets_total", vportHelp, byCast, []string{"tx", "multicast"}, 1},
	{"rx_vport_rdma_unicast_bytes", total, "rdma_vport_bytes_total", vportBytesHelp, byCast, []string{"rx", "unicast"}, 1},
	{"tx_vport_rdma_unicast_bytes", total, "rdma_vport_bytes_total", vportBytesHelp, byCast, []string{"tx", "unicast"}, 1},
	{"rx_vport_rdma_multicast_bytes", total, "rdma_vport_bytes_total", vportBytesHelp, byCast, []string{"rx", "multicast"}, 1},
	{"tx_vport_rdma_multicast_bytes", total, "rdma_vport_bytes_total", vportBytesHelp, byCast, []string{"tx", "multicast"}, 1},

	{"rx_discards_phy", total, "rdma_netdev_discards_total", discardHelp, byRaw, rx, 1},
	{"tx_discards_phy", total, "rdma_netdev_discards_total", discardHelp, byRaw, tx, 1},
	{"rx_out_of_buffer", total, "rdma_netdev_discards_total", discardHelp, byRaw, rx, 1},
	{"rx_buffer_passed_thres_phy", total, "rdma_netdev_buffer_passed_threshold_total", "Times that the receive buffer was filled beyond its threshold.", nil, nil, 1},
	{"rx_dropped.nic", total, "rdma_netdev_discards_total", discardHelp, byRaw, rx, 1},
	{"tx_dropped_link_down.nic", total, "rdma_netdev_discards_total", discardHelp, byRaw, tx, 1},
	{"rx_total_discard_pkts", total, "rdma_netdev_discards_total", discardHelp, byRaw, rx, 1},
	{"tx_total_discard_pkts", total, "rdma_netdev_discards_total", discardHelp, byRaw, tx, 1},
}

const (
	pauseHelp      = "802.3x pause frames, which stop the whole link."
	stormHelp      = "Times that the device has sent pause for too long."
	vportHelp      = "RDMA packets of the function."
	vportBytesHelp = "RDMA bytes of the function."
	discardHelp    = "Frames that the interface dropped, by the driver's name."
)

// netdevCounters are the kernel's statistics of an interface; for software devices they
// are the link's.
var netdevCounters = []struct{ raw, name, help string }{
	{"rx_bytes", "rdma_netdev_receive_bytes_total", "Bytes received by the interface, as the kernel counts them."},
	{"tx_bytes", "rdma_netdev_transmit_bytes_total", "Bytes sent by the interface, as the kernel counts them."},
	{"rx_packets", "rdma_netdev_receive_packets_total", "Frames received by the interface, as the kernel counts them."},
	{"tx_packets", "rdma_netdev_transmit_packets_total", "Frames sent by the interface, as the kernel counts them."},
	{"rx_errors", "rdma_netdev_receive_errors_total", "Frames received with an error."},
	{"tx_errors", "rdma_netdev_transmit_errors_total", "Frames not sent for an error."},
	{"rx_dropped", "rdma_netdev_receive_dropped_total", "Frames received and dropped by the kernel."},
	{"tx_dropped", "rdma_netdev_transmit_dropped_total", "Frames to send that the kernel dropped."},
}

// netdevs sends the interfaces that carry RDMA: those of ports, and below a bond or VLAN
// of theirs, where the hardware counts.
func (s *scrape) netdevs(host *snapshot.Snapshot) {
	device := map[string]string{}
	for i, name := range host.Labels() {
		for j := range host.Devices[i].Ports {
			n := host.Devices[i].Ports[j].Netdev.Or("")
			if _, taken := device[n]; n != "" && !taken {
				device[n] = name
			}
		}
	}
	below := map[string]string{}
	for i := range host.Netdevs {
		n := &host.Netdevs[i]
		if d, ok := device[n.Master.Or("")]; ok && n.Master.IsKnown() {
			below[n.Name] = d
		}
		if d, ok := device[n.Name]; ok && n.Parent.Or("") != "" {
			below[n.Parent.Or("")] = d
		}
	}
	for i := range host.Netdevs {
		n := &host.Netdevs[i]
		d, ok := device[n.Name]
		if !ok {
			d, ok = below[n.Name]
		}
		if ok {
			s.netdev(n, d)
		}
	}
}

func (s *scrape) netdev(n *snapshot.Netdev, device string) {
	if up, ok := n.Carrier.Get(); ok {
		s.sample("rdma_netdev_carrier", flag(up), device, n.Name)
	}
	number(s, "rdma_netdev_mtu_bytes", n.MTU, 1, device, n.Name)
	s.reading("rdma_netdev_carrier_changes_total", n.CarrierChanges, 1, device, n.Name)
	for _, c := range netdevCounters {
		s.reading(c.name, n.Statistics.Get(c.raw), 1, device, n.Name)
	}
	pfc := counter.PFCOf(n)
	for prio := range 8 {
		s.pause(device, n.Name, "rx", prio, &pfc.Rx[prio])
		s.pause(device, n.Name, "tx", prio, &pfc.Tx[prio])
	}
	if dcb, ok := n.DCB.PFC.Get(); ok {
		for prio, on := range dcb.Enabled {
			s.sample("rdma_pfc_enabled", flag(on), device, n.Name, strconv.Itoa(prio))
		}
	}
	for i := range n.Ethtool {
		s.ethtool(device, n.Name, &n.Ethtool[i])
	}
}

func (s *scrape) pause(device, netdev, direction string, prio int, p *counter.Pause) {
	at := [4]string{device, netdev, direction, strconv.Itoa(prio)}
	s.reading("rdma_pfc_frames_total", p.Frames, 1, at[:]...)
	s.reading("rdma_pfc_pause_seconds_total", p.DurationUS, micro, at[:]...)
	s.reading("rdma_pfc_transitions_total", p.Transitions, 1, at[:]...)
	s.reading("rdma_pfc_discards_total", p.Discards, 1, at[:]...)
}

func (s *scrape) ethtool(device, netdev string, c *snapshot.Counter) {
	for i := range ethtool {
		e := &ethtool[i]
		digits, ok := e.matches(c.Name)
		if !ok {
			continue
		}
		var room [5]string
		labels := append(append(room[:0], device, netdev), e.values...)
		switch len(e.labels) - len(e.values) {
		case 1:
			if digits == "" {
				digits = c.Name // of the label raw
			}
			labels = append(labels, digits)
		default:
		}
		s.reading(e.name, c.Value, e.factor, labels...)
		return
	}
}

// matches reports whether a statistic is this one, and the digits where * stands.
func (e *ethtoolCounter) matches(raw string) (digits string, ok bool) {
	head, tail, pattern := strings.Cut(e.raw, "*")
	if !pattern {
		return "", raw == e.raw
	}
	rest, ok := strings.CutPrefix(raw, head)
	if !ok {
		return "", false
	}
	if digits, ok = strings.CutSuffix(rest, tail); !ok || digits == "" || len(digits) > 2 {
		return "", false
	}
	_, err := strconv.Atoi(digits)
	return digits, err == nil
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
