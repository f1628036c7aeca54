package export

import (
	"strconv"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// compatCounters are the names that node_exporter's infiniband collector gives (1.12):
// the file of counters/ or hw_counters/ and the end of the metric's name.
var compatCounters = []struct {
	raw, name string
	factor    float64
}{
	{"excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors_total", 1},
	{"link_downed", "link_downed_total", 1},
	{"link_error_recovery", "link_error_recovery_total", 1},
	{"local_link_integrity_errors", "local_link_integrity_errors_total", 1},
	{"multicast_rcv_packets", "multicast_packets_received_total", 1},
	{"multicast_xmit_packets", "multicast_packets_transmitted_total", 1},
	{"port_rcv_constraint_errors", "port_constraint_errors_received_total", 1},
	{"port_xmit_constraint_errors", "port_constraint_errors_transmitted_total", 1},
	{"port_rcv_data", "port_data_received_bytes_total", wordBytes},
	{"port_xmit_data", "port_data_transmitted_bytes_total", wordBytes},
	{"port_rcv_discards", "port_discards_received_total", 1},
	{"port_xmit_discards", "port_discards_transmitted_total", 1},
	{"port_rcv_errors", "port_errors_received_total", 1},
	{"port_rcv_packets", "port_packets_received_total", 1},
	{"port_xmit_packets", "port_packets_transmitted_total", 1},
	{"port_xmit_wait", "port_transmit_wait_total", 1},
	{"unicast_rcv_packets", "unicast_packets_received_total", 1},
	{"unicast_xmit_packets", "unicast_packets_transmitted_total", 1},
	{"port_rcv_remote_physical_errors", "port_receive_remote_physical_errors_total", 1},
	{"port_rcv_switch_relay_errors", "port_receive_switch_relay_errors_total", 1},
	{"symbol_error", "symbol_error_total", 1},
	{"VL15_dropped", "vl15_dropped_total", 1},

	{"duplicate_request", "duplicate_requests_packets_total", 1},
	{"implied_nak_seq_err", "implied_nak_seq_errors_total", 1},
	{"local_ack_timeout_err", "local_ack_timeout_errors_total", 1},
	{"np_cnp_sent", "np_cnp_packets_sent_total", 1},
	{"np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received_total", 1},
	{"out_of_buffer", "out_of_buffer_drops_total", 1},
	{"out_of_sequence", "out_of_sequence_packets_received_total", 1},
	{"packet_seq_err", "packet_sequence_errors_total", 1},
	{"req_cqe_error", "req_cqes_errors_total", 1},
	{"req_cqe_flush_error", "req_cqes_flush_errors_total", 1},
	{"req_remote_access_errors", "req_remote_access_errors_total", 1},
	{"req_remote_invalid_request", "req_remote_invalid_request_errors_total", 1},
	{"resp_cqe_error", "resp_cqes_errors_total", 1},
	{"resp_cqe_flush_error", "resp_cqes_flush_errors_total", 1},
	{"resp_local_length_error", "resp_local_length_errors_total", 1},
	{"resp_remote_access_errors", "resp_remote_access_errors_total", 1},
	{"rnr_nak_retry_err", "rnr_nak_retry_packets_received_total", 1},
	{"roce_adp_retrans", "roce_adp_retransmits_total", 1},
	{"roce_adp_retrans_to", "roce_adp_retransmits_timeout_total", 1},
	{"roce_slow_restart", "roce_slow_restart_used_total", 1},
	{"roce_slow_restart_cnps", "roce_slow_restart_cnps_total", 1},
	{"roce_slow_restart_trans", "roce_slow_restart_total", 1},
	{"rp_cnp_handled", "rp_cnp_packets_handled_total", 1},
	{"rp_cnp_ignored", "rp_cnp_ignored_packets_received_total", 1},
	{"rx_atomic_requests", "rx_atomic_requests_total", 1},
	{"rx_dct_connect", "rx_dct_connect_requests_total", 1},
	{"rx_read_requests", "rx_read_requests_total", 1},
	{"rx_write_requests", "rx_write_requests_total", 1},
	{"rx_icrc_encapsulated", "rx_icrc_encapsulated_errors_total", 1},
}

func compatMetrics() []metric {
	at := []string{"device", "port"}
	all := []metric{
		{level, "node_infiniband_info", "A device, under node_exporter's name.", []string{"device", "board_id", "firmware_version", "hca_type"}},
		{level, "node_infiniband_state_id", "Logical state of the port, under node_exporter's name.", at},
		{level, "node_infiniband_physical_state_id", "Physical state of the port, under node_exporter's name.", at},
		{level, "node_infiniband_rate_bytes_per_second", "Rate of the port, under node_exporter's name.", at},
		{level, "node_infiniband_lifespan_seconds", "How old hw_counters may be, under node_exporter's name.", at},
	}
	for _, c := range compatCounters {
		all = append(all, metric{total, "node_infiniband_" + c.name, "The driver's " + c.raw + " under node_exporter's name.", at})
	}
	return all
}

func (s *scrape) compatPort(d *snapshot.Device, p *snapshot.Port) {
	at := [2]string{d.Name, strconv.Itoa(p.Number)}
	number(s, "node_infiniband_state_id", p.State, 1, at[:]...)
	number(s, "node_infiniband_physical_state_id", p.PhysState, 1, at[:]...)
	number(s, "node_infiniband_rate_bytes_per_second", p.RateMbps, 1e6/8, at[:]...)
	number(s, "node_infiniband_lifespan_seconds", p.LifespanMs, 1e-3, at[:]...)
	for i := range compatCounters {
		c := &compatCounters[i]
		v := p.Counters.Get(c.raw)
		if v.IsZero() {
			v = p.HWCounters.Get(c.raw)
		}
		if n, ok := v.Get(); ok {
			s.sample("node_infiniband_"+c.name, float64(n)*c.factor, at[:]...)
		}
	}
}
