package export

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func (s *scrape) device(d *snapshot.Device, opt Options) {
	pci, numa, pid := "", "", ""
	if d.PCI != nil {
		pci = d.PCI.Address
		if n, ok := d.PCI.NUMANode.Get(); ok {
			numa = strconv.Itoa(n)
		}
		for _, name := range slices.Sorted(maps.Keys(d.PCI.AER)) {
			s.sample("rdma_pcie_aer_errors_total", float64(d.PCI.AER[name]), d.Name, name)
		}
		number(s, "rdma_pcie_link_lanes", d.PCI.LinkWidth, 1, d.Name)
		number(s, "rdma_pcie_link_lanes_max", d.PCI.MaxLinkWidth, 1, d.Name)
	}
	if d.PID != 0 {
		pid = strconv.Itoa(d.PID)
	}
	s.sample("rdma_device_info", 1, d.Name, string(d.Kind), d.Driver.Or(""), d.Firmware.Or(""), d.BoardID.Or(""),
		d.HCAType.Or(""), d.NodeGUID.Or(""), pci, numa, pid, d.Comm)
	for i := range d.Ports {
		s.port(d, &d.Ports[i])
		if opt.Compat {
			s.compatPort(d, &d.Ports[i])
		}
	}
	if opt.Compat {
		s.sample("node_infiniband_info", 1, d.Name, d.BoardID.Or(""), d.Firmware.Or(""), d.HCAType.Or(""))
	}
	s.hardware(counter.Of(d), d.Counters, [3]string{d.Name, "", ""})
	for _, kind := range slices.Sorted(maps.Keys(d.Resources)) {
		s.sample("rdma_resources", float64(d.Resources[kind]), d.Name, kind)
	}
	s.bound(d, s.qps(d, opt.PerQP))
	for i := range d.Queues {
		q := &d.Queues[i]
		index := strconv.Itoa(q.Index)
		s.sample("rdma_queue_qps", float64(q.QPs), d.Name, index)
		for _, c := range q.Counters {
			s.reading("rdma_queue_raw_total", c.Value, 1, d.Name, index, c.Name)
		}
	}
}

// qps counts queue pairs by state, and sends the counters of the first of them. Their
// numbers come and go, so that they are series on demand only. It returns how many more
// queue pairs may have samples.
func (s *scrape) qps(d *snapshot.Device, most int) (room int) {
	for _, g := range d.QPStates {
		s.sample("rdma_qps", float64(g.N), d.Name, strconv.Itoa(g.Port), g.Type, g.State)
	}
	all, ok := d.QPs.Get()
	if !ok {
		if !d.QPs.IsZero() {
			s.unreadable++
		}
		return most
	}
	type group struct {
		port      int
		typ, stat string
	}
	count := map[group]int{}
	left := 0
	for i := range all {
		q := &all[i]
		count[group{q.Port, q.Type, q.State}]++
		if len(q.Counters) == 0 {
			continue
		}
		if most == 0 {
			left++
			continue
		}
		most--
		for _, c := range q.Counters {
			s.reading("rdma_qp_raw_total", c.Value, 1, d.Name, strconv.Itoa(q.Port), strconv.FormatUint(uint64(q.LQPN), 10), c.Name)
		}
	}
	order := slices.SortedFunc(maps.Keys(count), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.typ, b.typ), cmp.Compare(a.stat, b.stat))
	})
	for _, g := range order {
		s.sample("rdma_qps", float64(count[g]), d.Name, strconv.Itoa(g.port), g.typ, g.stat)
	}
	s.sample("rdma_qps_without_counters", float64(left), d.Name)
	return most
}

// bound sends the counters that the kernel has bound to queue pairs (rdma statistic qp).
// Those of one queue pair are its counters, as a device of ours has them. A set that
// counts several is a series of its own: whose part is whose nobody knows.
func (s *scrape) bound(d *snapshot.Device, most int) {
	all, ok := d.Bound.Get()
	if !ok && !d.Bound.IsZero() {
		s.unreadable++
	}
	for i := range all[:min(len(all), most)] {
		b := &all[i]
		port := strconv.Itoa(b.Port)
		if len(b.QPs) == 1 {
			qpn := strconv.FormatUint(uint64(b.QPs[0]), 10)
			for _, c := range b.Counters {
				s.reading("rdma_qp_raw_total", c.Value, 1, d.Name, port, qpn, c.Name)
			}
			continue
		}
		id := strconv.FormatUint(uint64(b.ID), 10)
		s.sample("rdma_bound_counter_qps", float64(len(b.QPs)), d.Name, port, id)
		for _, c := range b.Counters {
			s.reading("rdma_bound_counter_raw_total", c.Value, 1, d.Name, port, id, c.Name)
		}
	}
}
