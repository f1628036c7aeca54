package nft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source/nlask"
)

// Bounds of a ruleset.
const (
	maxRules    = 20_000
	maxChains   = 10_000
	maxElements = 10_000 // of a set
	maxSets     = 1000   // whose elements are read
	maxTime     = 20 * time.Second
)

// Read returns the chains of the network namespace of the calling thread with their
// rules, in the kernel's order. Without CAP_NET_ADMIN the error is EPERM.
func Read() ([]snapshot.NFTChain, error) {
	conn, err := nlask.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	return ReadFrom(conn)
}

// ReadFrom is Read over a connection, which it closes.
func ReadFrom(conn *nlask.Conn) ([]snapshot.NFTChain, error) {
	defer conn.Close()
	r := &reader{conn: conn, end: time.Now().Add(maxTime)}
	const tries = 5
	for range tries {
		all, err := r.read()
		if !errors.Is(err, nlask.ErrChanging) {
			return all, err
		}
	}
	return nil, nlask.ErrChanging
}

// reader asks for one state of the ruleset.
type reader struct {
	conn *nlask.Conn
	end  time.Time

	asked bool
	gen   uint16 // of the ruleset, in every message
	kinds map[setKey]setKind
	sets  map[setKey]*set
}

func (r *reader) read() ([]snapshot.NFTChain, error) {
	r.asked, r.kinds, r.sets = false, nil, nil
	all, at, err := r.chains()
	if err != nil {
		return nil, err
	}
	n := 0
	err = r.dump(unix.NFT_MSG_GETRULE, 0, nil, func(family byte, d *netlink.AttributeDecoder) error {
		m, err := ruleOf(family, d)
		if err != nil {
			return err
		}
		i, ok := at[m.chain]
		if !ok {
			return nil // of ARP
		}
		for _, rule := range m.translate(r) {
			if n++; n > maxRules {
				return fmt.Errorf("more than %d rules", maxRules)
			}
			all[i].Rules = append(all[i].Rules, rule)
		}
		return r.late()
	})
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return all, nil
}

// chains returns the chains without rules, and where each is.
func (r *reader) chains() ([]snapshot.NFTChain, map[chainKey]int, error) {
	all := []snapshot.NFTChain{}
	at := map[chainKey]int{}
	err := r.dump(unix.NFT_MSG_GETCHAIN, 0, nil, func(family byte, d *netlink.AttributeDecoder) error {
		c := chainOf(family, d)
		if c.Family == "" || c.Family == "arp" {
			return nil
		}
		if len(all) >= maxChains {
			return fmt.Errorf("more than %d chains", maxChains)
		}
		at[chainKey{family, c.Table, c.Name}] = len(all)
		all = append(all, c)
		return nil
	})
	return all, at, err
}

// late says so when the ruleset takes too long.
func (r *reader) late() error {
	if time.Now().After(r.end) {
		return fmt.Errorf("the ruleset was not read within %v", maxTime)
	}
	return nil
}

// dump asks for all objects of a kind. The answer is [nlask.ErrChanging] if it is of
// another generation of the ruleset than the first one.
func (r *reader) dump(kind int, family byte, attrs []netlink.Attribute, each func(family byte, d *netlink.AttributeDecoder) error) error {
	if err := r.late(); err != nil {
		return err
	}
	b, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return err
	}
	msgs, err := r.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{family, unix.NFNETLINK_V0, 0, 0}, b...),
	})
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if len(m.Data) < 4 {
			return fmt.Errorf("a message of %d bytes, not even a head", len(m.Data))
		}
		gen := binary.BigEndian.Uint16(m.Data[2:])
		if r.asked && gen != r.gen {
			return nlask.ErrChanging
		}
		r.asked, r.gen = true, gen
		d, err := decoder(m.Data[4:])
		if err != nil {
			return err
		}
		if err := each(m.Data[0], d); err != nil {
			return err
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	return nil
}

func decoder(b []byte) (*netlink.AttributeDecoder, error) {
	d, err := netlink.NewAttributeDecoder(b)
	if err == nil {
		d.ByteOrder = binary.BigEndian
	}
	return d, err
}
