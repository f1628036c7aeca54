package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// maxRules is how many rules are read of a host.
const maxRules = 20_000

var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	nftables.TableFamilyBridge: "bridge", nftables.TableFamilyNetdev: "netdev", nftables.TableFamilyARP: "arp",
}

// Read returns the chains of the network namespace of the calling thread with their
// rules, in the kernel's order. Without CAP_NET_ADMIN the error is EPERM.
func Read() ([]snapshot.NFTChain, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	chains, err := conn.ListChains()
	if err != nil {
		return nil, err
	}
	raw, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	all := []snapshot.NFTChain{}
	sets := &sets{conn: conn, known: map[string]*set{}}
	rules := 0
	for _, c := range chains {
		s := chain(c)
		if c.Table.Family == nftables.TableFamilyARP {
			continue
		}
		list, err := conn.GetRules(c.Table, c)
		if err != nil {
			return nil, fmt.Errorf("chain %s: %w", c.Name, err)
		}
		names, err := expressions(raw, c)
		if err != nil {
			return nil, fmt.Errorf("chain %s: %w", c.Name, err)
		}
		for _, r := range list {
			if rules++; rules > maxRules {
				return nil, fmt.Errorf("more than %d rules", maxRules)
			}
			t := translator{table: c.Table, sets: sets, regs: map[uint32]field{}}
			t.rule.Handle = r.Handle
			for _, e := range r.Exprs {
				t.expr(e)
			}
			for _, name := range names[r.Handle] {
				if !understood[name] {
					t.unknown(name)
				}
			}
			s.Rules = append(s.Rules, t.done())
		}
		all = append(all, s)
	}
	return all, nil
}

func chain(c *nftables.Chain) snapshot.NFTChain {
	s := snapshot.NFTChain{Family: families[c.Table.Family], Table: c.Table.Name, Name: c.Name, Dev: c.Device}
	if c.Hooknum == nil {
		return s
	}
	s.Hook = hook(c.Table.Family, *c.Hooknum)
	s.Policy = "accept"
	if c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
		s.Policy = "drop"
	}
	if c.Priority != nil {
		s.Prio = int(*c.Priority)
	}
	return s
}

func hook(family nftables.TableFamily, h nftables.ChainHook) string {
	names := []string{"prerouting", "input", "forward", "output", "postrouting", "ingress"}
	if family == nftables.TableFamilyNetdev {
		names = []string{"ingress", "egress"}
	}
	if int(h) < len(names) {
		return names[h]
	}
	return fmt.Sprintf("hook %d", h)
}

// understood are the expressions that the library decodes; it leaves out the others in
// silence, which would make a rule look wider than it is.
var understood = map[string]bool{
	"ct": true, "range": true, "meta": true, "cmp": true, "counter": true, "objref": true, "payload": true, "lookup": true,
	"immediate": true, "bitwise": true, "redir": true, "nat": true, "limit": true, "quota": true, "dynset": true, "log": true,
	"exthdr": true, "match": true, "target": true, "connlimit": true, "queue": true, "flow_offload": true, "reject": true,
	"masq": true, "hash": true, "fib": true, "rt": true, "socket": true, "tproxy": true, "notrack": true, "dup": true,
	"cthelper": true, "synproxy": true, "ctexpect": true, "secmark": true, "cttimeout": true, "numgen": true, "byteorder": true,
}

// expressions returns the names of the expressions of each rule by its handle.
func expressions(conn *netlink.Conn, c *nftables.Chain) (map[uint64][]string, error) {
	const (
		getRule                             = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
		tableAttr, chainAttr, handle, exprs = 1, 2, 3, 4
		nameAttr                            = 1
	)
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: tableAttr, Data: append([]byte(c.Table.Name), 0)},
		{Type: chainAttr, Data: append([]byte(c.Name), 0)},
	})
	if err != nil {
		return nil, err
	}
	msgs, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: getRule, Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{byte(c.Table.Family), unix.NFNETLINK_V0, 0, 0}, attrs...),
	})
	if err != nil {
		return nil, err
	}
	all := map[uint64][]string{}
	for _, m := range msgs {
		if len(m.Data) < 4 {
			continue
		}
		d, err := netlink.NewAttributeDecoder(m.Data[4:])
		if err != nil {
			return nil, err
		}
		d.ByteOrder = binary.BigEndian
		var h uint64
		var names []string
		for d.Next() {
			switch d.Type() {
			case handle:
				h = d.Uint64()
			case exprs:
				d.Nested(func(d *netlink.AttributeDecoder) error {
					for d.Next() {
						d.Nested(func(d *netlink.AttributeDecoder) error {
							for d.Next() {
								if d.Type() == nameAttr {
									names = append(names, d.String())
								}
							}
							return nil
						})
					}
					return nil
				})
			}
		}
		if err := d.Err(); err != nil {
			return nil, err
		}
		all[h] = names
	}
	return all, nil
}
