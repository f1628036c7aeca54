package nldev

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
)

// Client is a socket to the RDMA subsystem. It serves one goroutine at a time.
type Client struct {
	conn *nlask.Conn
	comm func(pid int) string
}

// Open opens a client in the network namespace of the calling thread; comm names a
// process by its number, empty if it is gone. The error is the system's: a kernel
// without ib_core has no such family, EPROTONOSUPPORT.
func Open(comm func(pid int) string) (*Client, error) {
	c, err := nlask.Dial(family)
	if err != nil {
		return nil, err
	}
	return New(c, comm), nil
}

// New returns a client on a connection, which it closes.
func New(c *nlask.Conn, comm func(pid int) string) *Client { return &Client{conn: c, comm: comm} }

// Close closes the socket.
func (c *Client) Close() error { return c.conn.Close() }

// ask sends a command and calls each for the attributes of every message of the
// answer.
func (c *Client) ask(cmd uint16, dump bool, attrs map[uint16]uint32, each func(*netlink.AttributeDecoder) error) error {
	flags := netlink.Request
	if dump {
		flags |= netlink.Dump
	}
	var data []byte
	for _, t := range []uint16{attrDevIndex, attrPortIndex, attrStatMode, attrStatRes} {
		if v, ok := attrs[t]; ok {
			data = binary.NativeEndian.AppendUint16(data, 8)
			data = binary.NativeEndian.AppendUint16(data, t)
			data = binary.NativeEndian.AppendUint32(data, v)
		}
	}
	msgs, err := c.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(client<<10 | cmd), Flags: flags},
		Data:   data,
	})
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if err := decode(m.Data, each); err != nil {
			return fmt.Errorf("rdma netlink command %d: %w", cmd, err)
		}
	}
	return nil
}

// decode walks attributes.
func decode(data []byte, each func(*netlink.AttributeDecoder) error) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	if err := each(d); err != nil {
		return err
	}
	return d.Err()
}

// Devices returns the devices that this namespace sees.
func (c *Client) Devices() ([]snapshot.Device, error) {
	all := []snapshot.Device{}
	err := c.ask(cmdDev, true, nil, func(d *netlink.AttributeDecoder) error {
		all = append(all, device(d))
		return nil
	})
	return all, err
}

// Ports returns the ports of a device.
func (c *Client) Ports(index int) ([]snapshot.Port, error) {
	all := []snapshot.Port{}
	err := c.ask(cmdPort, true, map[uint16]uint32{attrDevIndex: uint32(index)}, func(d *netlink.AttributeDecoder) error {
		all = append(all, port(d))
		return nil
	})
	return all, err
}

// System returns the settings of the subsystem.
func (c *Client) System() (snapshot.Subsystem, error) {
	var s snapshot.Subsystem
	err := c.ask(cmdSystem, false, nil, func(d *netlink.AttributeDecoder) error {
		s = system(d)
		return nil
	})
	return s, err
}

// Summary returns how many objects each device has, by kind.
func (c *Client) Summary() (map[string]map[string]uint64, error) {
	all := map[string]map[string]uint64{}
	err := c.ask(cmdRes, true, nil, func(d *netlink.AttributeDecoder) error {
		name, kinds := summary(d)
		all[name] = kinds
		return nil
	})
	return all, err
}

// Statistics returns the hardware counters of a port in the order of the driver.
func (c *Client) Statistics(index, port int) (snapshot.Counters, error) {
	var all snapshot.Counters
	err := c.ask(cmdStat, false, map[uint16]uint32{attrDevIndex: uint32(index), attrPortIndex: uint32(port)}, func(d *netlink.AttributeDecoder) error {
		all = append(all, counters(d)...)
		return nil
	})
	return all, err
}

// StatMode returns how a port counts beside its fixed counters: the mode of counters
// bound to queue pairs, and the optional counters. Either is left out where the kernel
// does not tell (optional counters came with Linux 5.16).
func (c *Client) StatMode(index, port int) (snapshot.StatMode, error) {
	var m snapshot.StatMode
	at := map[uint16]uint32{attrDevIndex: uint32(index), attrPortIndex: uint32(port)}
	statusErr := c.ask(cmdStatus, false, at, func(d *netlink.AttributeDecoder) error {
		m.Optional = optional(d)
		return nil
	})
	at[attrStatRes], at[attrStatMode] = attrQP, 0 // the kernel wants a mode in the question; its number does not matter
	modeErr := c.ask(cmdStat, false, at, func(d *netlink.AttributeDecoder) error {
		m.QP = statMode(d)
		return nil
	})
	if statusErr != nil && modeErr != nil {
		return m, modeErr
	}
	return m, nil
}

// rows asks for the objects of one kind.
func rows[T any](c *Client, cmd uint16, index int, table, entry uint16, row func(*netlink.AttributeDecoder) T) ([]T, error) {
	all := []T{}
	err := c.ask(cmd, true, map[uint16]uint32{attrDevIndex: uint32(index)}, func(d *netlink.AttributeDecoder) error {
		all = entries(d, all, table, entry, row)
		return nil
	})
	return all, err
}

// entries reads a table of a message.
func entries[T any](d *netlink.AttributeDecoder, all []T, table, entry uint16, row func(*netlink.AttributeDecoder) T) []T {
	for d.Next() {
		if d.Type() != table {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			for d.Next() {
				if d.Type() != entry {
					continue
				}
				d.Nested(func(d *netlink.AttributeDecoder) error {
					all = append(all, row(d))
					return nil
				})
			}
			return nil
		})
	}
	return all
}

// QPs returns the queue pairs of a device.
func (c *Client) QPs(index int) ([]snapshot.QP, error) {
	return rows(c, cmdQP, index, attrQP, attrQPEntry, c.qp)
}

// CQs returns the completion queues of a device.
func (c *Client) CQs(index int) ([]snapshot.CQ, error) {
	return rows(c, cmdCQ, index, attrCQ, attrCQEntry, c.cq)
}

// MRs returns the memory regions of a device; keys for root only.
func (c *Client) MRs(index int) ([]snapshot.MR, error) {
	return rows(c, cmdMR, index, attrMR, attrMREntry, c.mr)
}

// PDs returns the protection domains of a device.
func (c *Client) PDs(index int) ([]snapshot.PD, error) {
	return rows(c, cmdPD, index, attrPD, attrPDEntry, c.pd)
}

// CMIDs returns the identifiers of the connection manager.
func (c *Client) CMIDs(index int) ([]snapshot.CMID, error) {
	return rows(c, cmdCMID, index, attrCMID, attrCMIDEntry, c.cmid)
}

// SRQs returns the shared receive queues of a device.
func (c *Client) SRQs(index int) ([]snapshot.SRQ, error) {
	return rows(c, cmdSRQ, index, attrSRQ, attrSRQEntry, c.srq)
}

// Contexts returns the contexts that processes have opened on a device.
func (c *Client) Contexts(index int) ([]snapshot.Context, error) {
	return rows(c, cmdCTX, index, attrCTX, attrCTXEntry, c.context)
}
