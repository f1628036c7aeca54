package nldev

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/mdlayher/netlink"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// owner reads who made an object: a process, or the kernel with the name of a module.
func (c *Client) owner(d *netlink.AttributeDecoder, pid *snapshot.Value[int], comm *string, kernel *bool) {
	switch d.Type() {
	case attrPID:
		n := int(d.Uint32())
		*pid = snapshot.Known(n)
		if c.comm != nil {
			*comm = c.comm(n)
		}
	case attrKernName:
		*comm, *kernel = d.String(), true
	}
}

func (c *Client) qp(d *netlink.AttributeDecoder) snapshot.QP {
	var q snapshot.QP
	subtype := ""
	for d.Next() {
		switch d.Type() {
		case attrPortIndex:
			q.Port = int(d.Uint32())
		case attrLQPN:
			q.LQPN = d.Uint32()
		case attrRQPN:
			q.RQPN = snapshot.Known(d.Uint32())
		case attrRQPSN:
			q.RQPSN = snapshot.Known(d.Uint32())
		case attrSQPSN:
			q.SQPSN = snapshot.Known(d.Uint32())
		case attrPathMig:
			q.PathMig = snapshot.Known(word(pathMig, int(d.Uint8())))
		case attrType:
			q.Type = qpType(int(d.Uint8()))
		case attrState:
			q.State = word(qpStates, int(d.Uint8()))
		case attrSubtype:
			subtype = d.String()
		case attrPDN:
			q.PDN = snapshot.Known(d.Uint32())
		default:
			c.owner(d, &q.PID, &q.Comm, &q.IsKernel)
		}
	}
	if q.Type == "DRIVER" && subtype != "" {
		q.Type = subtype
	}
	return q
}

func (c *Client) cq(d *netlink.AttributeDecoder) snapshot.CQ {
	var q snapshot.CQ
	for d.Next() {
		switch d.Type() {
		case attrCQN:
			q.CQN = d.Uint32()
		case attrCQE:
			q.CQE = d.Uint32()
		case attrUsers:
			q.Users = snapshot.Known(d.Uint64())
		case attrPollCtx:
			q.PollCtx = snapshot.Known(word(pollContexts, int(d.Uint8())))
		case attrDIM:
			q.AdaptiveMod = snapshot.Known(d.Uint8() != 0)
		case attrCTXN:
			q.CTXN = snapshot.Known(d.Uint32())
		default:
			c.owner(d, &q.PID, &q.Comm, &q.IsKernel)
		}
	}
	return q
}

func (c *Client) mr(d *netlink.AttributeDecoder) snapshot.MR {
	var m snapshot.MR
	for d.Next() {
		switch d.Type() {
		case attrMRN:
			m.MRN = d.Uint32()
		case attrMRLength:
			m.Length = d.Uint64()
		case attrIOVA:
			m.IOVA = snapshot.Known(d.Uint64())
		case attrLKey:
			m.LKey = snapshot.Known(d.Uint32())
		case attrRKey:
			m.RKey = snapshot.Known(d.Uint32())
		case attrPDN:
			m.PDN = snapshot.Known(d.Uint32())
		default:
			c.owner(d, &m.PID, &m.Comm, &m.IsKernel)
		}
	}
	return m
}

func (c *Client) pd(d *netlink.AttributeDecoder) snapshot.PD {
	var p snapshot.PD
	for d.Next() {
		switch d.Type() {
		case attrPDN:
			p.PDN = d.Uint32()
		case attrLocalDMALKey:
			p.LocalKey = snapshot.Known(d.Uint32())
		case attrUsers:
			p.Users = snapshot.Known(d.Uint64())
		case attrCTXN:
			p.CTXN = snapshot.Known(d.Uint32())
		default:
			c.owner(d, &p.PID, &p.Comm, &p.IsKernel)
		}
	}
	return p
}

func (c *Client) cmid(d *netlink.AttributeDecoder) snapshot.CMID {
	var id snapshot.CMID
	for d.Next() {
		switch d.Type() {
		case attrCMIDN:
			id.CMIDN = d.Uint32()
		case attrPortIndex:
			id.Port = int(d.Uint32())
		case attrLQPN:
			id.LQPN = snapshot.Known(d.Uint32())
		case attrType:
			id.Type = snapshot.Known(qpType(int(d.Uint8())))
		case attrState:
			id.State = snapshot.Known(word(cmStates, int(d.Uint8())))
		case attrPS:
			id.PS = snapshot.Known(portSpace(d.Uint32()))
		case attrSource:
			id.Source = address(d.Bytes())
		case attrDest:
			id.Dest = address(d.Bytes())
		default:
			c.owner(d, &id.PID, &id.Comm, &id.IsKernel)
		}
	}
	return id
}

func (c *Client) srq(d *netlink.AttributeDecoder) snapshot.SRQ {
	var s snapshot.SRQ
	kernel := false
	for d.Next() {
		switch d.Type() {
		case attrSRQN:
			s.SRQN = d.Uint32()
		case attrType:
			s.Type = snapshot.Known(word(srqTypes, int(d.Uint8())))
		case attrPDN:
			s.PDN = snapshot.Known(d.Uint32())
		case attrCQN:
			s.CQN = snapshot.Known(d.Uint32())
		case attrQP:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				s.LQPNs = ranges(d)
				return nil
			})
		default:
			c.owner(d, &s.PID, &s.Comm, &kernel)
		}
	}
	return s
}

// ranges reads the queue pairs of a shared receive queue, single or from and to.
func ranges(d *netlink.AttributeDecoder) [][2]uint32 {
	var all [][2]uint32
	for d.Next() {
		if d.Type() != attrQPEntry {
			continue
		}
		d.Nested(func(d *netlink.AttributeDecoder) error {
			var r [2]uint32
			for d.Next() {
				switch d.Type() {
				case attrLQPN:
					r[0] = d.Uint32()
					r[1] = r[0]
				case attrMinRange:
					r[0] = d.Uint32()
				case attrMaxRange:
					r[1] = d.Uint32()
				}
			}
			all = append(all, r)
			return nil
		})
	}
	return all
}

func (c *Client) context(d *netlink.AttributeDecoder) snapshot.Context {
	var x snapshot.Context
	kernel := false
	for d.Next() {
		switch d.Type() {
		case attrCTXN:
			x.CTXN = d.Uint32()
		default:
			c.owner(d, &x.PID, &x.Comm, &kernel)
		}
	}
	return x
}

// address reads a sockaddr: family in the host's order, port and address in the
// network's. The form is that of the rdma tool, address:port, IPv6 in brackets.
func address(b []byte) snapshot.Value[string] {
	const inet, inet6 = 2, 10
	if len(b) < 8 {
		return snapshot.Value[string]{}
	}
	port := strconv.Itoa(int(binary.BigEndian.Uint16(b[2:])))
	switch binary.NativeEndian.Uint16(b) {
	case inet:
		return snapshot.Known(netip.AddrFrom4([4]byte(b[4:8])).String() + ":" + port)
	case inet6:
		if len(b) < 24 {
			return snapshot.Value[string]{}
		}
		return snapshot.Known("[" + netip.AddrFrom16([16]byte(b[8:24])).String() + "]:" + port)
	}
	return snapshot.Value[string]{}
}
