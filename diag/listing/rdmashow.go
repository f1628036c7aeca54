package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// devs is rdma dev show.
func (c *rdmaCommand) devs(args []string) ([]byte, error) {
	only, err := c.device(args)
	if err != nil {
		return c.errorBeside(err)
	}
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		if only != nil && d != only {
			continue
		}
		r := c.devRow(d)
		r.maybeStr("fw", d.Firmware)
		r.maybeStr("node_guid", d.NodeGUID)
		r.maybeStr("sys_image_guid", d.SysImageGUID)
		if c.form.details {
			a := d.Attr.Or(nil)
			if v, ok := a["adaptive_moderation"]; ok {
				r.onOff("adaptive-moderation", v != 0)
			}
			if v, ok := a["cap_flags"]; ok {
				r.caps(flagNames(v, rdmaDeviceCaps))
			}
		}
		rows = append(rows, r)
	}
	return c.form.print(rows), nil
}

// devRow starts a row of a device, up to its node type.
func (c *rdmaCommand) devRow(d *snapshot.Device) row {
	r := c.indexed(d)
	r.lead(fmt.Sprintf("%d: %s: ", c.index(d), d.Name))
	r.str("node_type", nodeTypeWord(d.NodeType.Or(0)))
	return r
}

// indexed starts a row with the members that name the device.
func (c *rdmaCommand) indexed(d *snapshot.Device) row {
	var r row
	r.jsonNumber("ifindex", c.index(d))
	r.jsonString("ifname", d.Name)
	return r
}

// links is rdma link show.
func (c *rdmaCommand) links(args []string) ([]byte, error) {
	only, number := (*snapshot.Device)(nil), -1
	if len(args) > 0 {
		var err error
		if only, number, err = c.link(args[0], false); err != nil {
			return c.errorBeside(err)
		}
		if len(args) > 1 {
			return nil, fail(0, "Unknown parameter '%s'.", args[1])
		}
	}
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			if only == nil || d == only && p.Number == number {
				rows = append(rows, c.linkRow(d, p))
			}
		}
	}
	return c.form.print(rows), nil
}

func (c *rdmaCommand) linkRow(d *snapshot.Device, p *snapshot.Port) row {
	r := c.indexed(d)
	r.lead(fmt.Sprintf("link %s/%d ", d.Name, p.Number))
	r.jsonNumber("port", uint64(p.Number))
	if p.LinkLayer.Or("InfiniBand") == "InfiniBand" {
		if prefix, ok := subnetPrefix(p); ok {
			r.str("subnet_prefix", prefix)
		}
		known(p.LID, func(v int) { r.num("lid", uint64(v)) })
		known(p.SMLID, func(v int) { r.num("sm_lid", uint64(v)) })
		known(p.LMC, func(v int) { r.num("lmc", uint64(v)) })
	}
	known(p.State, func(v int) { r.str("state", wordOf(portStates, v)) })
	known(p.PhysState, func(v int) { r.str("physical_state", wordOf(physStates, v)) })
	known(p.Netdev, func(v string) {
		r.str("netdev", v)
		known(p.NetIndex, func(n int) {
			if c.form.details {
				r.word("netdev_index", strconv.Itoa(n))
			}
			r.jsonNumber("netdev_index", uint64(n))
		})
	})
	if v, ok := p.Attr["cap_flags"]; ok && c.form.details {
		r.caps(flagNames(v, rdmaPortCaps))
	}
	return r
}

// subnetPrefix is the upper half of the port's first GID, or netlink's word for it.
func subnetPrefix(p *snapshot.Port) (string, bool) {
	if v, ok := p.Attr["subnet_prefix"]; ok {
		return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(v>>48), uint16(v>>32), uint16(v>>16), uint16(v)), true
	}
	if len(p.GIDs) > 0 && p.GIDs[0].Index == 0 && len(p.GIDs[0].GID) == 39 {
		return p.GIDs[0].GID[:19], true
	}
	return "", false
}

// system is rdma system show. The original has no JSON for it.
func (c *rdmaCommand) system(args []string) ([]byte, error) {
	if len(args) > 0 && shortened(args[0], "netns") == "" {
		return nil, fail(0, "Unknown parameter '%s'.", args[0])
	}
	var r row
	r.maybeStr("netns", c.s.RDMA.NetnsMode)
	known(c.s.RDMA.CopyOnFork, func(on bool) { r.onOff("copy-on-fork", on) })
	if len(r.text) == 0 {
		return nil, fail(1, "the RDMA subsystem of this host is not known")
	}
	if c.jsonAlways {
		return c.form.print([]row{r}), nil
	}
	return append([]byte(strings.TrimSuffix(string(r.text), " ")), '\n'), nil
}

// summary is rdma resource show without an object.
func (c *rdmaCommand) summary(only *snapshot.Device) []byte {
	var rows []row
	for i := range c.s.Devices {
		d := &c.s.Devices[i]
		if only != nil && d != only {
			continue
		}
		r := c.indexed(d)
		r.lead(fmt.Sprintf("%d: %s: ", c.index(d), d.Name))
		var kinds []string
		for k := range d.Resources {
			kinds = append(kinds, k)
		}
		slices.SortFunc(kinds, func(a, b string) int {
			return cmp.Or(cmp.Compare(kindRank(a), kindRank(b)), strings.Compare(a, b))
		})
		for _, k := range kinds {
			r.num(k, d.Resources[k])
		}
		rows = append(rows, r)
	}
	return c.form.print(rows)
}

func kindRank(kind string) int {
	order := []string{"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"}
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}
