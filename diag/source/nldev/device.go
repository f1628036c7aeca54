package nldev

import (
	"fmt"
	"strings"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func guid(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(v>>48), uint16(v>>32), uint16(v>>16), uint16(v))
}

// device reads a message of RDMA_NLDEV_CMD_GET. Capability flags and adaptive
// moderation have no place of their own in the model: they are attributes.
func device(d *netlink.AttributeDecoder) snapshot.Device {
	dev := snapshot.Device{Ports: []snapshot.Port{}}
	attr := snapshot.Attr{}
	for d.Next() {
		switch d.Type() {
		case attrDevIndex:
			dev.Index = snapshot.Known(int(d.Uint32()))
		case attrDevName:
			dev.Name = d.String()
		case attrCapFlags:
			attr["cap_flags"] = d.Uint64()
		case attrFirmware:
			if s := d.String(); s != "" {
				dev.Firmware = snapshot.Known(s)
			}
		case attrNodeGUID:
			dev.NodeGUID = snapshot.Known(guid(d.Uint64()))
		case attrSysImageGUID:
			dev.SysImageGUID = snapshot.Known(guid(d.Uint64()))
		case attrNodeType:
			dev.NodeType = snapshot.Known(int(d.Uint8()))
		case attrProtocol:
			dev.Protocol = snapshot.Known(d.String())
		case attrDIM:
			attr["adaptive_moderation"] = uint64(d.Uint8())
		}
	}
	if len(attr) > 0 {
		dev.Attr = snapshot.Known(attr)
	}
	return dev
}

// port reads a message of RDMA_NLDEV_CMD_PORT_GET. Only InfiniBand ports have
// capability flags, a subnet prefix and LIDs.
func port(d *netlink.AttributeDecoder) snapshot.Port {
	p := snapshot.Port{}
	attr := snapshot.Attr{}
	for d.Next() {
		switch d.Type() {
		case attrPortIndex:
			p.Number = int(d.Uint32())
		case attrCapFlags:
			attr["cap_flags"] = d.Uint64()
		case attrSubnetPrefix:
			attr["subnet_prefix"] = d.Uint64()
		case attrLID:
			p.LID = snapshot.Known(int(d.Uint32()))
		case attrSMLID:
			p.SMLID = snapshot.Known(int(d.Uint32()))
		case attrLMC:
			p.LMC = snapshot.Known(int(d.Uint8()))
		case attrPortState:
			p.State = snapshot.Known(int(d.Uint8()))
		case attrPhysState:
			p.PhysState = snapshot.Known(int(d.Uint8()))
		case attrNetIndex:
			p.NetIndex = snapshot.Known(int(d.Uint32()))
		case attrNetName:
			p.Netdev = snapshot.Known(d.String())
		}
	}
	if len(attr) > 0 {
		p.Attr = attr
	}
	return p
}

func system(d *netlink.AttributeDecoder) snapshot.Subsystem {
	var s snapshot.Subsystem
	for d.Next() {
		switch d.Type() {
		case attrNetnsMode:
			mode := "exclusive"
			if d.Uint8() != 0 {
				mode = "shared"
			}
			s.NetnsMode = snapshot.Known(mode)
		case attrCopyOnFork:
			s.CopyOnFork = snapshot.Known(d.Uint8() != 0)
		case attrPrivilegedQKey:
			s.PrivilegedQKey = snapshot.Known(d.Uint8() != 0)
		case attrMonitor:
			s.Monitor = snapshot.Known(d.Uint8() != 0)
		}
	}
	return s
}

func summary(d *netlink.AttributeDecoder) (name string, kinds map[string]uint64) {
	kinds = map[string]uint64{}
	for d.Next() {
		switch d.Type() {
		case attrDevName:
			name = d.String()
		case attrSummary:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if d.Type() == attrSummaryEntry {
						d.Nested(func(d *netlink.AttributeDecoder) error {
							pair(d, attrSummaryName, attrSummaryCurrent, func(k string, v uint64) { kinds[k] = v })
							return nil
						})
					}
				}
				return nil
			})
		}
	}
	return name, kinds
}

// counters reads a message of RDMA_NLDEV_CMD_STAT_GET.
func counters(d *netlink.AttributeDecoder) snapshot.Counters {
	var all snapshot.Counters
	for d.Next() {
		if d.Type() != attrHWCounters {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			all = append(all, hwCounters(d)...)
			return nil
		})
	}
	return all
}

// hwCounters reads a table of counters, in its order.
func hwCounters(d *netlink.AttributeDecoder) (all snapshot.Counters) {
	for d.Next() {
		if d.Type() != attrHWCounter {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			pair(d, attrHWCounterName, attrHWCounterValue, func(k string, v uint64) {
				all = append(all, snapshot.Counter{Name: k, Value: snapshot.Known(v)})
			})
			return nil
		})
	}
	return all
}

// statMode reads the mode of counters of queue pairs, as the rdma tool prints it: those
// that are bound by hand are off there too.
func statMode(d *netlink.AttributeDecoder) snapshot.Value[string] {
	const auto = 1
	mode, mask, told := uint32(0), uint32(0), false
	for d.Next() {
		switch d.Type() {
		case attrStatMode:
			mode, told = d.Uint32(), true
		case attrStatMask:
			mask = d.Uint32()
		}
	}
	if !told {
		return snapshot.Value[string]{}
	}
	var by []string
	for i, w := range []string{"type", "pid"} {
		if mask>>i&1 != 0 {
			by = append(by, w)
		}
	}
	if mode != auto || len(by) == 0 {
		return snapshot.Known("qp auto off")
	}
	return snapshot.Known("qp auto " + strings.Join(by, ",") + " on")
}

// optional reads a message of RDMA_NLDEV_CMD_STAT_GET_STATUS: counters that say whether
// they are on are optional.
func optional(d *netlink.AttributeDecoder) []snapshot.OptionalCounter {
	all := []snapshot.OptionalCounter{}
	for d.Next() {
		if d.Type() != attrHWCounters {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			for d.Next() {
				if d.Type() != attrHWCounter {
					continue
				}
				d.Nested(func(d *netlink.AttributeDecoder) error {
					var c snapshot.OptionalCounter
					is := false
					for d.Next() {
						switch d.Type() {
						case attrHWCounterName:
							c.Name = d.String()
						case attrHWCounterOn:
							c.On, is = d.Uint8() != 0, true
						}
					}
					if is && c.Name != "" {
						all = append(all, c)
					}
					return nil
				})
			}
			return nil
		})
	}
	return all
}

// pair reads an entry of a name and a number.
func pair(d *netlink.AttributeDecoder, nameAttr, valueAttr uint16, put func(string, uint64)) {
	var name string
	var v uint64
	for d.Next() {
		switch d.Type() {
		case nameAttr:
			name = d.String()
		case valueAttr:
			v = d.Uint64()
		}
	}
	if name != "" {
		put(name, v)
	}
}
