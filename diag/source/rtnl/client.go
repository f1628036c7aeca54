package rtnl

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/source/nlask"
)

const (
	familyRoute = 0
	getLink     = 18
	getAddr     = 22
	getRoute    = 26
	getNeigh    = 30
	getRule     = 34

	inet  = 2
	inet6 = 10
)

// Client is a socket. It serves one goroutine at a time.
type Client struct {
	conn  *nlask.Conn
	names map[int]string // interfaces by index
}

// Open opens a client in the network namespace of the calling thread.
func Open() (*Client, error) {
	c, err := nlask.Dial(familyRoute)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// New returns a client on a connection, which it closes.
func New(c *nlask.Conn) *Client { return &Client{conn: c} }

// Close closes the socket.
func (c *Client) Close() error { return c.conn.Close() }

// dump asks for all objects of a kind and family, and calls each with the fixed part
// of a message and its attributes.
func (c *Client) dump(kind uint16, head []byte, each func(fixed []byte, d *netlink.AttributeDecoder)) error {
	msgs, err := c.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | netlink.Dump},
		Data:   head,
	})
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if err := decode(m.Data, len(head), each); err != nil {
			return fmt.Errorf("route netlink command %d: %w", kind, err)
		}
	}
	return nil
}

func decode(data []byte, fixed int, each func([]byte, *netlink.AttributeDecoder)) error {
	if len(data) < fixed {
		return fmt.Errorf("a message of %d bytes, not %d", len(data), fixed)
	}
	d, err := netlink.NewAttributeDecoder(data[fixed:])
	if err != nil {
		return err
	}
	each(data[:fixed], d)
	return d.Err()
}

// name returns an interface's name.
func (c *Client) name(index int) string {
	if c.names == nil {
		if _, err := c.Links(); err != nil {
			c.names = map[int]string{}
		}
	}
	if n, ok := c.names[index]; ok {
		return n
	}
	if index == 0 {
		return ""
	}
	return "if" + strconv.Itoa(index)
}

func addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// prefix formats an address and its length.
func prefix(b []byte, bits, family int) string {
	a := addr(b)
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
		if family == inet6 {
			a = netip.IPv6Unspecified()
		}
	}
	if bits == 0 && a.IsUnspecified() {
		return "default"
	}
	return a.String() + "/" + strconv.Itoa(bits)
}
