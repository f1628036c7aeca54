package dcbnl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
)

const (
	familyRoute = 0
	getDCB      = 78
	cmdIEEEGet  = 21
	cmdGetDCBX  = 22

	attrIfname = 1
	attrIEEE   = 13
	attrDCBX   = 14

	ieeeETS      = 1
	ieeePFC      = 2
	ieeeApps     = 3
	ieeeMaxRate  = 7
	ieeeBuffer   = 10
	ieeeAppTrust = 11
)

// Client is a socket. It serves one goroutine at a time.
type Client struct{ conn *nlask.Conn }

// Open opens a client in the network namespace of the calling thread.
func Open() (*Client, error) {
	c, err := nlask.Dial(familyRoute)
	if err != nil {
		return nil, err
	}
	return New(c), nil
}

// New returns a client on a connection, which it closes.
func New(c *nlask.Conn) *Client { return &Client{c} }

// Close closes the socket.
func (c *Client) Close() error { return c.conn.Close() }

// Get returns what an interface has. The error is errno's, EOPNOTSUPP for a driver
// without DCB. Where only one of the two questions is answered, what the other one asks
// for is unreadable, with the reason, unless the driver does not have it.
func (c *Client) Get(ifname string) (snapshot.DCB, error) {
	var dcb snapshot.DCB
	ieee := c.ask(cmdIEEEGet, ifname, &dcb)
	dcbx := c.ask(cmdGetDCBX, ifname, &dcb)
	switch {
	case ieee != nil && dcbx != nil:
		return snapshot.DCB{}, ieee
	case ieee != nil && !errors.Is(ieee, syscall.EOPNOTSUPP):
		dcb.PFC, dcb.ETS = snapshot.Unreadable[snapshot.PFC](ieee.Error()), snapshot.Unreadable[snapshot.ETS](ieee.Error())
		dcb.Apps = snapshot.Unreadable[[]snapshot.DCBApp](ieee.Error())
	case dcbx != nil && !errors.Is(dcbx, syscall.EOPNOTSUPP) && !dcb.DCBX.IsKnown():
		dcb.DCBX = snapshot.Unreadable[[]string](dcbx.Error())
	}
	return dcb, nil
}

// PFC returns what an interface has in the IEEE standard's terms, PFC among it: one question
// where Get has two.
func (c *Client) PFC(ifname string) (snapshot.DCB, error) {
	var dcb snapshot.DCB
	err := c.ask(cmdIEEEGet, ifname, &dcb)
	return dcb, err
}

// request is a dcbmsg with the name of the interface.
func request(cmd byte, ifname string) []byte {
	b := []byte{0, cmd, 0, 0}
	n := 4 + len(ifname) + 1
	b = binary.NativeEndian.AppendUint16(b, uint16(n))
	b = binary.NativeEndian.AppendUint16(b, attrIfname)
	b = append(append(b, ifname...), 0)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// ask sends a question and adds the answer to dcb.
func (c *Client) ask(cmd byte, ifname string, dcb *snapshot.DCB) error {
	msgs, err := c.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: getDCB, Flags: netlink.Request},
		Data:   request(cmd, ifname),
	})
	if err != nil {
		return err
	}
	if len(msgs) == 0 {
		return errors.New("no answer")
	}
	return parse(msgs[0].Data, dcb)
}

// parse reads an answer: a dcbmsg and attributes.
func parse(b []byte, dcb *snapshot.DCB) error {
	if len(b) < 4 {
		return fmt.Errorf("an answer of %d bytes, not even a header", len(b))
	}
	d, err := netlink.NewAttributeDecoder(b[4:])
	if err != nil {
		return err
	}
	for d.Next() {
		switch d.Type() {
		case attrIEEE:
			d.Nested(func(d *netlink.AttributeDecoder) error { return ieee(d, dcb) })
		case attrDCBX:
			dcb.DCBX = snapshot.Known(modes(d.Uint8()))
		}
	}
	return d.Err()
}

func modes(bits uint8) []string {
	all := []string{}
	for i, name := range []string{"host", "lld-managed", "cee", "ieee", "static"} {
		if bits>>i&1 != 0 {
			all = append(all, name)
		}
	}
	return all
}

func ieee(d *netlink.AttributeDecoder, dcb *snapshot.DCB) error {
	for d.Next() {
		b := d.Bytes()
		switch d.Type() {
		case ieeeETS:
			if len(b) < 59 {
				return short("ETS", b, 59)
			}
			dcb.ETS = snapshot.Known(ets(b))
		case ieeePFC:
			if len(b) < 136 {
				return short("PFC", b, 136)
			}
			dcb.PFC = snapshot.Known(pfc(b))
		case ieeeMaxRate:
			if len(b) < 64 {
				return short("rate limits", b, 64)
			}
			var r [8]uint64
			for i := range r {
				r[i] = binary.NativeEndian.Uint64(b[8*i:])
			}
			dcb.MaxRate = snapshot.Known(r)
		case ieeeBuffer:
			if len(b) < 44 {
				return short("buffers", b, 44)
			}
			dcb.Buffer = snapshot.Known(buffer(b))
		case ieeeApps:
			apps := []snapshot.DCBApp{}
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if b := d.Bytes(); len(b) >= 4 {
						apps = append(apps, app(b))
					}
				}
				return nil
			})
			dcb.Apps = snapshot.Known(apps)
		case ieeeAppTrust:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if b := d.Bytes(); len(b) >= 1 && dcb.Trust.IsZero() {
						dcb.Trust = snapshot.Known(selector(b[0], 1))
					}
				}
				return nil
			})
		}
	}
	return nil
}

func short(what string, b []byte, want int) error {
	return fmt.Errorf("%s of %d bytes, not %d", what, len(b), want)
}

// pfc reads struct ieee_pfc: capability, mask, MACsec bypass, delay, and frames sent
// and received by priority.
func pfc(b []byte) snapshot.PFC {
	p := snapshot.PFC{Cap: int(b[0]), MBC: b[2] != 0, Delay: int(binary.NativeEndian.Uint16(b[4:]))}
	for i := range 8 {
		p.Enabled[i] = b[1]>>i&1 != 0
		p.Requests[i] = binary.NativeEndian.Uint64(b[8+8*i:])
		p.Indications[i] = binary.NativeEndian.Uint64(b[72+8*i:])
	}
	return p
}

// ets reads struct ieee_ets: willing, capability, credit-based shaper, then arrays of
// eight: bandwidth sent, bandwidth received, algorithm, class of a priority.
func ets(b []byte) snapshot.ETS {
	e := snapshot.ETS{Willing: b[0] != 0, Cap: int(b[1]), CBS: b[2] != 0}
	for i := range 8 {
		e.TCBW[i] = int(b[3+i])
		switch b[19+i] {
		case 0:
			e.TSA[i] = "strict"
		case 1:
			e.TSA[i] = "cbs"
		case 2:
			e.TSA[i] = "ets"
		case 255:
			e.TSA[i] = "vendor"
		default:
			e.TSA[i] = fmt.Sprintf("reserved %d", b[19+i])
		}
		e.PrioTC[i] = int(b[27+i])
	}
	return e
}

func buffer(b []byte) snapshot.DCBBuffer {
	var x snapshot.DCBBuffer
	for i := range 8 {
		x.PrioBuffer[i] = int(b[i])
		x.Size[i] = uint64(binary.NativeEndian.Uint32(b[8+4*i:]))
	}
	x.Total = uint64(binary.NativeEndian.Uint32(b[40:]))
	return x
}

func app(b []byte) snapshot.DCBApp {
	proto := int(binary.NativeEndian.Uint16(b[2:]))
	return snapshot.DCBApp{Selector: selector(b[0], proto), Priority: int(b[1]), Protocol: proto}
}

// selector names the kinds of an application entry; the one of EtherType 0 is the
// default priority.
func selector(s uint8, proto int) string {
	switch s {
	case 1:
		if proto == 0 {
			return "default"
		}
		return "ethtype"
	case 2:
		return "stream-port"
	case 3:
		return "dgram-port"
	case 4:
		return "port"
	case 5:
		return "dscp"
	case 255:
		return "pcp"
	}
	return fmt.Sprintf("selector %d", s)
}
