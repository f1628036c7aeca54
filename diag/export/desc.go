package export

import (
	"slices"
	"strings"

	"github.com/verbena-rdma/verbena/diag/counter"
)

// described is a metric and the text of it that is always the same.
type described struct {
	metric
	number int
	head   string   // the lines of its help and type
	order  []int    // the labels, by their place in metric.labels, in the order of the text
	before []string // what stands before the value of each
}

// descs are all metrics there can be.
type descs struct {
	all    []*described
	by     map[string]*described
	sorted []int // numbers in the order of names
}

func newDescs(opt Options) *descs {
	d := &descs{by: map[string]*described{}}
	for _, m := range metrics {
		d.add(m)
	}
	for _, c := range counter.Names() {
		if c.Level {
			d.add(metric{level, "rdma_" + string(c.Name), c.Help, portRaw})
			continue
		}
		d.add(metric{total, canonical(c.Name), c.Help, portRaw})
	}
	for _, p := range portCounters {
		d.add(metric{total, p.name, p.help, port})
	}
	for _, e := range ethtool {
		if _, there := d.by[e.name]; !there {
			d.add(metric{e.kind, e.name, e.help, append([]string{"device", "netdev"}, e.labels...)})
		}
	}
	for _, n := range netdevCounters {
		d.add(metric{total, n.name, n.help, netdev})
	}
	if opt.Compat {
		for _, m := range compatMetrics() {
			d.add(m)
		}
	}
	for i := range d.all {
		d.sorted = append(d.sorted, i)
	}
	slices.SortFunc(d.sorted, func(a, b int) int { return strings.Compare(d.all[a].name, d.all[b].name) })
	return d
}

func (d *descs) add(m metric) {
	help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(m.help)
	x := &described{metric: m, number: len(d.all), head: "# HELP " + m.name + " " + help + "\n# TYPE " + m.name + " " + string(m.kind) + "\n"}
	for i := range m.labels {
		x.order = append(x.order, i)
	}
	slices.SortFunc(x.order, func(a, b int) int { return strings.Compare(m.labels[a], m.labels[b]) })
	sign := "{"
	for _, i := range x.order {
		x.before = append(x.before, sign+m.labels[i]+`="`)
		sign = `",`
	}
	d.all = append(d.all, x)
	d.by[m.name] = x
}

// canonical is the metric of a canonical counter.
func canonical(n counter.Name) string { return "rdma_" + string(n) + "_total" }

// metric is a row of the table of metrics.
type metric struct {
	kind   kind
	name   string
	help   string
	labels []string
}

// kind is the type of a metric in the text.
type kind string

const (
	total kind = "counter"
	level kind = "gauge"
)

// Sets of labels.
var (
	none    []string
	port    = []string{"device", "port", "netdev"}
	portRaw = []string{"device", "port", "netdev", "raw"}
	netdev  = []string{"device", "netdev"}
	pause   = []string{"device", "netdev", "direction", "priority"}
)

// metrics are those whose names are not in a table of their own.
var metrics = []metric{
	{level, "rdma_device_info", "A device; the value is 1.", []string{"device", "kind", "driver", "firmware", "board_id", "hca_type", "node_guid", "pci", "numa_node", "pid", "comm"}},
	{level, "rdma_port_info", "A port, to join others with by device and port; the value is 1.", []string{"device", "port", "netdev", "link_layer", "kind", "driver", "rate"}},
	{level, "rdma_port_state", "Logical state: 1 down, 2 init, 3 armed, 4 active, 5 active_defer.", port},
	{level, "rdma_port_physical_state", "Physical state: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 error recovery, 7 test.", port},
	{level, "rdma_port_rate_bytes_per_second", "Signalling rate of the link, in bytes.", port},
	{level, "rdma_port_active_mtu_bytes", "Payload of a packet at most.", port},
	{level, "rdma_port_lifespan_seconds", "How old the hw_counters that are read may be.", port},
	{total, "rdma_port_raw_total", "A counter of counters/ that has no metric of its own, as the driver counts it.", portRaw},
	{total, "rdma_hw_raw_total", "A counter of hw_counters/, under the driver's own name.", portRaw},
	{level, "rdma_hw_level", "A value of hw_counters/ that is a level and no counter, under the driver's own name.", portRaw},

	{total, "rdma_cc_rx_ce_packets_total", "Packets that came with congestion experienced: mlx5's optional counter.", port},
	{total, "rdma_cc_rx_cnp_packets_total", "Congestion notifications received: mlx5's optional counter.", port},
	{total, "rdma_cc_tx_cnp_packets_total", "Congestion notifications sent: mlx5's optional counter.", port},

	{level, "rdma_resources", "Objects of a device by kind: qp, cq, mr, pd, cm_id, ctx, srq.", []string{"device", "kind"}},
	{level, "rdma_qps", "Queue pairs by port, type and state.", []string{"device", "port", "type", "state"}},
	{total, "rdma_qp_raw_total", "A counter of one queue pair, on demand.", []string{"device", "port", "qpn", "raw"}},
	{level, "rdma_bound_counter_qps", "Queue pairs that a bound counter counts together, on demand.", []string{"device", "port", "counter"}},
	{total, "rdma_bound_counter_raw_total", "A bound counter of several queue pairs, on demand.", []string{"device", "port", "counter", "raw"}},
	{level, "rdma_qps_without_counters", "Queue pairs that have counters and are left out of rdma_qp_raw_total.", []string{"device"}},
	{level, "rdma_queue_qps", "Queue pairs of a shard of a device of ours.", []string{"device", "queue"}},
	{total, "rdma_queue_raw_total", "A counter of a shard of a device of ours.", []string{"device", "queue", "raw"}},

	{total, "rdma_pfc_frames_total", "PFC frames by priority: received, the peer stops us; transmitted, we cannot drain.", pause},
	{total, "rdma_pfc_pause_seconds_total", "Time in pause by priority; its rate is the share of time.", pause},
	{total, "rdma_pfc_transitions_total", "Changes from running to paused by priority.", pause},
	{total, "rdma_pfc_discards_total", "Frames of a priority that were dropped on arrival.", pause},
	{level, "rdma_pfc_enabled", "Whether PFC is on for a priority, 1 or 0.", []string{"device", "netdev", "priority"}},

	{total, "rdma_pcie_aer_errors_total", "Errors that PCIe's advanced error reporting has counted, by its name.", []string{"device", "raw"}},
	{level, "rdma_pcie_link_lanes", "Lanes of the PCIe link.", []string{"device"}},
	{level, "rdma_pcie_link_lanes_max", "Lanes of PCIe that the device can use.", []string{"device"}},

	{level, "rdma_netdev_carrier", "Whether the interface has carrier, 1 or 0.", netdev},
	{level, "rdma_netdev_mtu_bytes", "MTU of the interface.", netdev},
	{total, "rdma_netdev_carrier_changes_total", "Changes of carrier.", netdev},

	{level, "rdma_exporter_build_info", "The program; the value is 1.", []string{"version"}},
	{total, "rdma_exporter_scrapes_total", "Scrapes so far, this one included.", none},
	{level, "rdma_exporter_scrape_duration_seconds", "Time that this scrape took, reading the host included.", none},
	{level, "rdma_exporter_problems", "Places of the host that could not be read in this scrape.", none},
	{level, "rdma_exporter_unreadable_values", "Values that have no sample in this scrape since they could not be read.", none},
	{level, "rdma_exporter_samples_left_out", "Samples that this scrape leaves out: too many, or one twice.", none},
	{level, "rdma_exporter_devices", "RDMA devices that were found.", none},
}
