package export

import (
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// wordBytes is the unit of the data counters of IBA's port counters: words of 4 bytes
// (IBA 16.1.3.5).
const wordBytes = 4

type portCounter struct {
	raw, name, help string
	factor          float64
}

// portCounters are the files of counters/ and their metrics.
var portCounters = []portCounter{
	{"port_xmit_data", "rdma_port_transmit_bytes_total", "Bytes sent.", wordBytes},
	{"port_rcv_data", "rdma_port_receive_bytes_total", "Bytes received.", wordBytes},
	{"port_xmit_packets", "rdma_port_transmit_packets_total", "Packets sent.", 1},
	{"port_rcv_packets", "rdma_port_receive_packets_total", "Packets received.", 1},
	{"unicast_xmit_packets", "rdma_port_unicast_transmit_packets_total", "Unicast packets sent.", 1},
	{"unicast_rcv_packets", "rdma_port_unicast_receive_packets_total", "Unicast packets received.", 1},
	{"multicast_xmit_packets", "rdma_port_multicast_transmit_packets_total", "Multicast packets sent.", 1},
	{"multicast_rcv_packets", "rdma_port_multicast_receive_packets_total", "Multicast packets received.", 1},
	{"symbol_error", "rdma_port_symbol_errors_total", "Minor errors of the link on one lane or more.", 1},
	{"link_error_recovery", "rdma_port_link_error_recoveries_total", "Times that the link recovered from an error.", 1},
	{"link_downed", "rdma_port_link_downed_total", "Times that the link went down since it could not recover.", 1},
	{"port_rcv_errors", "rdma_port_receive_errors_total", "Packets received with an error.", 1},
	{"port_rcv_remote_physical_errors", "rdma_port_receive_remote_physical_errors_total", "Packets received that were marked bad on the way.", 1},
	{"port_rcv_switch_relay_errors", "rdma_port_receive_switch_relay_errors_total", "Packets received that could not be forwarded.", 1},
	{"port_xmit_discards", "rdma_port_transmit_discards_total", "Packets to send that were dropped: port down or congested.", 1},
	{"port_rcv_discards", "rdma_port_receive_discards_total", "Packets received that were dropped: port down or congested.", 1},
	{"port_xmit_constraint_errors", "rdma_port_transmit_constraint_errors_total", "Packets not sent for partition or version.", 1},
	{"port_rcv_constraint_errors", "rdma_port_receive_constraint_errors_total", "Packets dropped on arrival for partition or version.", 1},
	{"local_link_integrity_errors", "rdma_port_local_link_integrity_errors_total", "Times that local physical errors passed their threshold.", 1},
	{"excessive_buffer_overrun_errors", "rdma_port_excessive_buffer_overrun_errors_total", "Times that overruns of the buffer came one after another.", 1},
	{"VL15_dropped", "rdma_port_vl15_dropped_total", "Management packets dropped for lack of buffers.", 1},
	{"port_xmit_wait", "rdma_port_transmit_wait_ticks_total", "Ticks with data to send and none sent.", 1},
}

func portCounterOf(raw string) *portCounter {
	for i := range portCounters {
		if portCounters[i].raw == raw {
			return &portCounters[i]
		}
	}
	return nil
}

// optional are mlx5's optional counters, which repeat others under a switch of their own.
var optional = map[string]string{
	"cc_rx_ce_pkts":  "rdma_cc_rx_ce_packets_total",
	"cc_rx_cnp_pkts": "rdma_cc_rx_cnp_packets_total",
	"cc_tx_cnp_pkts": "rdma_cc_tx_cnp_packets_total",
}

func (s *scrape) port(d *snapshot.Device, p *snapshot.Port) {
	at := [3]string{d.Name, strconv.Itoa(p.Number), p.Netdev.Or("")}
	s.sample("rdma_port_info", 1, at[0], at[1], at[2], p.LinkLayer.Or(""), string(d.Kind), d.Driver.Or(""), p.Rate.Or(""))
	number(s, "rdma_port_state", p.State, 1, at[:]...)
	number(s, "rdma_port_physical_state", p.PhysState, 1, at[:]...)
	number(s, "rdma_port_rate_bytes_per_second", p.RateMbps, 1e6/8, at[:]...)
	number(s, "rdma_port_active_mtu_bytes", p.ActiveMTU, 1, at[:]...)
	number(s, "rdma_port_lifespan_seconds", p.LifespanMs, 1e-3, at[:]...)
	for _, c := range p.Counters {
		if m := portCounterOf(c.Name); m != nil {
			s.reading(m.name, c.Value, m.factor, at[:]...)
			continue
		}
		s.reading("rdma_port_raw_total", c.Value, 1, at[0], at[1], at[2], c.Name)
	}
	s.hardware(counter.Of(d), p.HWCounters, at)
	s.hardware(counter.Of(d), onlyNetlink(p), at)
	if d.Kind == snapshot.Verbena {
		pfc := counter.PFCOfPort(p)
		for prio := range 8 {
			s.pause(at[0], at[2], "rx", prio, &pfc.Rx[prio])
			s.pause(at[0], at[2], "tx", prio, &pfc.Tx[prio])
		}
	}
}

// onlyNetlink are the counters of a port that have no file: those that are optional.
func onlyNetlink(p *snapshot.Port) (all snapshot.Counters) {
	for i := range p.Statistics {
		if c := &p.Statistics[i]; p.HWCounters.Get(c.Name).IsZero() {
			all = append(all, *c)
		}
	}
	return all
}

// hardware sends hw_counters: each under the driver's name, and those that have one
// under the canonical.
func (s *scrape) hardware(f counter.Family, all snapshot.Counters, at [3]string) {
	for _, c := range all {
		if m, ok := optional[c.Name]; ok {
			s.reading(m, c.Value, 1, at[:]...)
		}
		name, ok := counter.Canonical(f, c.Name)
		raw := "rdma_hw_raw_total"
		if isLevel(c.Name) {
			raw = "rdma_hw_level"
		}
		if v, known := c.Value.Get(); known && ok {
			metric := canonical(name)
			if name == counter.ActiveQPs {
				metric = "rdma_" + string(name)
			}
			s.sample(metric, float64(v), at[0], at[1], at[2], c.Name)
		}
		s.reading(raw, c.Value, 1, at[0], at[1], at[2], c.Name)
	}
}

// isLevel reports whether a driver's hw_counter goes up and down: bnxt_re has the
// objects in use and their peaks among its counters.
func isLevel(raw string) bool {
	return strings.HasPrefix(raw, "active_") || strings.HasPrefix(raw, "watermark_")
}
