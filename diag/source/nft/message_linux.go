package nft

import (
	"fmt"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

var families = map[byte]string{
	unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6", unix.NFPROTO_INET: "inet",
	unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_ARP: "arp",
}

// chainKey names a chain.
type chainKey struct {
	family      byte
	table, name string
}

func chainOf(family byte, d *netlink.AttributeDecoder) snapshot.NFTChain {
	c := snapshot.NFTChain{Family: families[family]}
	policy := uint32(1) // NF_ACCEPT
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_CHAIN_TABLE:
			c.Table = d.String()
		case unix.NFTA_CHAIN_NAME:
			c.Name = d.String()
		case unix.NFTA_CHAIN_POLICY:
			policy = d.Uint32()
		case unix.NFTA_CHAIN_HOOK:
			d.Nested(func(d *netlink.AttributeDecoder) error { hookOf(family, d, &c); return nil })
		}
	}
	if c.Hook != "" {
		c.Policy = map[bool]string{true: "accept", false: "drop"}[policy != 0]
	}
	return c
}

// hookOf reads where a base chain hangs. A chain of several devices lists them.
func hookOf(family byte, d *netlink.AttributeDecoder, c *snapshot.NFTChain) {
	const devs = 4
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_HOOK_HOOKNUM:
			c.Hook = hook(family, d.Uint32())
		case unix.NFTA_HOOK_PRIORITY:
			c.Prio = int(int32(d.Uint32()))
		case unix.NFTA_HOOK_DEV:
			c.Dev = d.String()
		case devs:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					if c.Dev != "" {
						c.Dev += ","
					}
					c.Dev += d.String()
				}
				return nil
			})
		}
	}
}

func hook(family byte, h uint32) string {
	names := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	if family == unix.NFPROTO_NETDEV {
		names = []string{"ingress", "egress"}
	}
	if int(h) < len(names) {
		return names[h]
	}
	return fmt.Sprintf("hook %d", h)
}

// ruleMessage is a rule with its expressions in the kernel's order; one that cannot be
// decoded is its name.
type ruleMessage struct {
	chain  chainKey
	handle uint64
	exprs  []any // expr.Any or string
}

func ruleOf(family byte, d *netlink.AttributeDecoder) (ruleMessage, error) {
	m := ruleMessage{chain: chainKey{family: family}}
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_RULE_TABLE:
			m.chain.table = d.String()
		case unix.NFTA_RULE_CHAIN:
			m.chain.name = d.String()
		case unix.NFTA_RULE_HANDLE:
			m.handle = d.Uint64()
		case unix.NFTA_RULE_EXPRESSIONS:
			d.Nested(func(d *netlink.AttributeDecoder) error {
				for d.Next() {
					d.Nested(func(d *netlink.AttributeDecoder) error {
						m.exprs = append(m.exprs, expression(family, d))
						return nil
					})
				}
				return nil
			})
		}
	}
	return m, d.Err()
}

// expression reads a name and what belongs to it.
func expression(family byte, d *netlink.AttributeDecoder) any {
	name, data := "", []byte(nil)
	for d.Next() {
		switch d.Type() {
		case unix.NFTA_EXPR_NAME:
			name = d.String()
		case unix.NFTA_EXPR_DATA:
			data = d.Bytes()
		}
	}
	if name == "byteorder" {
		return byteorderOf(data)
	}
	e := blank(name)
	if e == nil || !unmarshal(family, data, e) {
		return name
	}
	// A verdict is an immediate value of the verdict register.
	if i, ok := e.(*expr.Immediate); ok && i.Register == unix.NFT_REG_VERDICT {
		v := &expr.Verdict{}
		if !unmarshal(family, data, v) {
			return "verdict"
		}
		return v
	}
	return e
}

// byteorder turns the bytes of a register around, which the library does not decode.
type byteorder struct{ from, to uint32 }

func byteorderOf(data []byte) any {
	const sreg, dreg = 1, 2
	d, err := decoder(data)
	if err != nil {
		return "byteorder"
	}
	var b byteorder
	for d.Next() {
		switch d.Type() {
		case sreg:
			b.from = d.Uint32()
		case dreg:
			b.to = d.Uint32()
		}
	}
	if d.Err() != nil {
		return "byteorder"
	}
	return b
}

// unmarshal decodes an expression. The library trusts the kernel and takes some lengths
// for granted; a message that breaks that is not decoded.
func unmarshal(family byte, data []byte, e expr.Any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return expr.Unmarshal(family, data, e) == nil
}

// blank is an expression that is understood, to be filled in.
func blank(name string) expr.Any {
	switch name {
	case "bitwise":
		return &expr.Bitwise{}
	case "cmp":
		return &expr.Cmp{}
	case "counter":
		return &expr.Counter{}
	case "ct":
		return &expr.Ct{}
	case "immediate":
		return &expr.Immediate{}
	case "limit":
		return &expr.Limit{}
	case "log":
		return &expr.Log{}
	case "lookup":
		return &expr.Lookup{}
	case "masq":
		return &expr.Masq{}
	case "match":
		return &expr.Match{}
	case "meta":
		return &expr.Meta{}
	case "nat":
		return &expr.NAT{}
	case "notrack":
		return &expr.Notrack{}
	case "payload":
		return &expr.Payload{}
	case "range":
		return &expr.Range{}
	case "redir":
		return &expr.Redir{}
	case "reject":
		return &expr.Reject{}
	case "target":
		return &expr.Target{}
	}
	return nil
}
