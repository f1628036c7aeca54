package nldev

import (
	"errors"
	"syscall"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// BoundCounters returns the counters of a device that are bound to queue pairs; none of a
// kernel or driver that has no such counters.
func (c *Client) BoundCounters(index int) ([]snapshot.BoundCounter, error) {
	all := []snapshot.BoundCounter{}
	at := map[uint16]uint32{attrDevIndex: uint32(index), attrStatRes: attrQP}
	err := c.ask(cmdStat, true, at, func(d *netlink.AttributeDecoder) error {
		all = entries(d, all, attrBound, attrBoundEntry, c.bound)
		return nil
	})
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return all, nil
	}
	return all, err
}

// bound reads a counter: what it counts is a table of hardware counters, whom it counts
// one of queue pairs.
func (c *Client) bound(d *netlink.AttributeDecoder) snapshot.BoundCounter {
	var b snapshot.BoundCounter
	for d.Next() {
		switch d.Type() {
		case attrPortIndex:
			b.Port = int(d.Uint32())
		case attrBoundID:
			b.ID = d.Uint32()
		case attrType:
			b.Type = snapshot.Known(qpType(int(d.Uint8())))
		case attrQP:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				b.QPs = append(b.QPs, boundQPs(d)...)
				return nil
			})
		case attrHWCounters:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				b.Counters = append(b.Counters, hwCounters(d)...)
				return nil
			})
		default:
			c.owner(d, &b.PID, &b.Comm, &b.IsKernel)
		}
	}
	return b
}

func boundQPs(d *netlink.AttributeDecoder) (numbers []uint32) {
	for d.Next() {
		if d.Type() != attrQPEntry {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			for d.Next() {
				if d.Type() == attrLQPN {
					numbers = append(numbers, d.Uint32())
				}
			}
			return nil
		})
	}
	return numbers
}
