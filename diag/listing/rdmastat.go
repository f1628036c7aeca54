package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// statistic is rdma statistic: counters of ports, and how they count.
func (c *rdmaCommand) statistic(args []string) ([]byte, error) {
	if len(args) > 0 && shortened(args[0], "show", "list", "help") == "" {
		switch shortened(args[0], "qp", "mr", "mode", "set", "unset") {
		case "qp":
			return c.statisticQP(args[1:])
		case "mr":
			return c.statisticMR(args[1:])
		case "mode":
			return c.optional(args[1:])
		}
	}
	return c.object("statistic", statUsage, args, c.statistics, []string{"set", "unset"})
}

// statisticQP is rdma statistic qp.
func (c *rdmaCommand) statisticQP(args []string) ([]byte, error) {
	if len(args) == 0 {
		return c.boundCounters(nil)
	}
	switch cmd := shortened(args[0], "show", "list", "mode", "set", "bind", "unbind", "help"); cmd {
	case "show", "list":
		return c.boundCounters(args[1:])
	case "mode":
		return c.onPorts(args[1:], func(d *snapshot.Device, p *snapshot.Port) (row, bool) {
			mode, ok := p.StatMode.QP.Get()
			r := c.indexed(d)
			r.lead(fmt.Sprintf("link %s/%d ", d.Name, p.Number))
			r.jsonNumber("port", uint64(p.Number))
			r.str("mode", mode)
			return r, ok
		})
	case "help":
		return []byte(statUsage), nil
	case "":
		return nil, fail(0, "Unknown parameter '%s'.", args[0])
	default:
		return nil, fail(1, "rdma statistic qp %s changes the host: this program shows only", cmd)
	}
}

// boundCounters is rdma statistic qp show: counters that are bound to queue pairs.
func (c *rdmaCommand) boundCounters(args []string) ([]byte, error) {
	if len(args) > 0 && shortened(args[0], "link") == "" { // filters stand behind a link
		return nil, fail(0, "Unknown parameter '%s'.", args[0])
	}
	f, err := c.filters("counter", args)
	if err != nil {
		return c.errorBeside(err)
	}
	var numbers []filter // of queue pairs: all of a counter's must pass
	f.all = slices.DeleteFunc(f.all, func(x filter) bool {
		if x.key == "lqpn" {
			numbers = append(numbers, x)
		}
		return x.key == "lqpn"
	})
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		if f.device != nil && d != f.device {
			continue
		}
		bound := d.Bound
		if all, ok := bound.Get(); ok && len(numbers) > 0 {
			bound = snapshot.Known(slices.DeleteFunc(slices.Clone(all), func(x snapshot.BoundCounter) bool {
				return slices.ContainsFunc(x.QPs, func(n uint32) bool {
					return slices.ContainsFunc(numbers, func(one filter) bool { return !one.pass(uint64(n), "") })
				})
			}))
		}
		all, err := each(bound, d, "counters of queue pairs", f, func(x *snapshot.BoundCounter) int { return x.Port }, func(x *snapshot.BoundCounter) (row, subject) { return c.bound(d, x) })
		if err != nil {
			return c.errorBeside(err)
		}
		rows = append(rows, all...)
	}
	return c.form.print(rows), nil
}

func (c *rdmaCommand) bound(d *snapshot.Device, x *snapshot.BoundCounter) (row, subject) {
	r := c.onLink(d, x.Port)
	r.num("cntn", uint64(x.ID))
	r.maybeStr("qp-type", x.Type)
	r.owner(x.PID, x.Comm, x.IsKernel)
	c.counters(&r, x.Counters)
	numbers := make([]string, len(x.QPs))
	for i, n := range x.QPs {
		numbers[i] = strconv.FormatUint(uint64(n), 10)
	}
	all := strings.Join(numbers, ",")
	r.lead("\n    LQPN: <" + all + ">")
	r.key("lqpn")
	r.json = append(r.json, "["+all+"]"...)
	return r, func(key string) (uint64, string, bool) {
		switch key {
		case "cntn":
			return uint64(x.ID), "", true
		case "qp-type":
			return 0, x.Type.Or(""), x.Type.IsKnown()
		}
		return number(x.PID)
	}
}

// statisticMR is rdma statistic mr: the memory regions, without the counters of page
// faults that only some drivers have and a snapshot does not hold. Every argument is a filter there, even show.
func (c *rdmaCommand) statisticMR(args []string) ([]byte, error) {
	switch {
	case len(args) == 1:
		return nil, fail(1, "No filter data was supplied to filter option %s", args[0])
	case len(args)%2 != 0:
		return nil, fail(1, "There is filter option without data")
	}
	f, err := c.filters("mr", args)
	if err != nil {
		return c.errorBeside(err)
	}
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		if f.device != nil && d != f.device {
			continue
		}
		all, err := each(d.MRs, d, "mr", f, nil, func(m *snapshot.MR) (row, subject) {
			_, s := c.mr(d, m)
			r := c.onDev(d)
			r.num("mrn", uint64(m.MRN))
			return r, s
		})
		if err != nil {
			return c.errorBeside(err)
		}
		rows = append(rows, all...)
	}
	return c.form.print(rows), nil
}

// optional is rdma statistic mode: the optional counters that are on, or all of them.
func (c *rdmaCommand) optional(args []string) ([]byte, error) {
	name, all := "optional-counters", false
	if len(args) > 0 && shortened(args[0], "link", "supported") == "supported" {
		name, all, args = "supported optional-counters", true, args[1:]
	}
	return c.onPorts(args, func(d *snapshot.Device, p *snapshot.Port) (row, bool) {
		var names []string
		for _, o := range p.StatMode.Optional {
			if all || o.On {
				names = append(names, o.Name)
			}
		}
		var r row // without the device's index
		r.jsonString("ifname", d.Name)
		r.lead(fmt.Sprintf("link %s/%d ", d.Name, p.Number))
		r.jsonNumber("port", uint64(p.Number))
		indent := c.form.indent()
		r.lead(name + " " + indent + strings.Join(names, ","+indent))
		r.list(name, names)
		return r, len(names) > 0
	})
}

func (c *rdmaCommand) statistics(args []string) ([]byte, error) {
	return c.onPorts(args, c.statRow)
}

// counters appends counters; in pretty text each has a line.
func (c *rdmaCommand) counters(r *row, all snapshot.Counters) {
	for _, x := range all {
		known(x.Value, func(v uint64) {
			r.lead(c.form.indent())
			r.num(x.Name, v)
		})
	}
}

// onPorts prints a row of every port, or with [link [DEV[/PORT]]] of some.
func (c *rdmaCommand) onPorts(args []string, make func(*snapshot.Device, *snapshot.Port) (row, bool)) ([]byte, error) {
	only, number := (*snapshot.Device)(nil), -1
	if len(args) > 0 {
		if shortened(args[0], "link") == "" {
			return nil, fail(0, "Unknown parameter '%s'.", args[0])
		}
		if len(args) > 1 {
			var err error
			if only, number, err = c.link(args[1], true); err != nil {
				return c.errorBeside(err)
			}
		}
	}
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			if only != nil && (d != only || number >= 0 && p.Number != number) {
				continue
			}
			if r, ok := make(d, p); ok {
				rows = append(rows, r)
			}
		}
	}
	return c.form.print(rows), nil
}

// statRow has the counters in the order of the driver where netlink told it.
func (c *rdmaCommand) statRow(d *snapshot.Device, p *snapshot.Port) (row, bool) {
	counters := p.Statistics
	if len(counters) == 0 {
		counters = p.HWCounters
	}
	if len(counters) == 0 {
		return row{}, false
	}
	var r row
	r.lead(fmt.Sprintf("link %s/%d ", d.Name, p.Number))
	r.jsonString("ifname", d.Name)
	r.jsonNumber("port", uint64(p.Number))
	c.counters(&r, counters)
	return r, true
}
