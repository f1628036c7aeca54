package nft

import (
	"testing"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/verbena-rdma/verbena/diag/source/nlask"
	"github.com/verbena-rdma/verbena/diag/source/nlask/nlfake"
)

func attrs(t testing.TB, all ...netlink.Attribute) []byte {
	t.Helper()
	b, err := netlink.MarshalAttributes(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ruleBytes is a rule as the kernel sends it.
func ruleBytes(t testing.TB, exprs ...expr.Any) []byte {
	t.Helper()
	var list []netlink.Attribute
	for _, e := range exprs {
		b, err := expr.Marshal(unix.NFPROTO_INET, e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, netlink.Attribute{Type: unix.NLA_F_NESTED | 1, Data: b})
	}
	return attrs(t,
		netlink.Attribute{Type: unix.NFTA_RULE_TABLE, Data: []byte("t\x00")},
		netlink.Attribute{Type: unix.NFTA_RULE_CHAIN, Data: []byte("i\x00")},
		netlink.Attribute{Type: unix.NFTA_RULE_HANDLE, Data: []byte{0, 0, 0, 0, 0, 0, 0, 5}},
		netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_RULE_EXPRESSIONS, Data: attrs(t, list...)})
}

func setBytes(t testing.TB, flags byte) []byte {
	t.Helper()
	return attrs(t,
		netlink.Attribute{Type: unix.NFTA_SET_TABLE, Data: []byte("t\x00")},
		netlink.Attribute{Type: unix.NFTA_SET_NAME, Data: []byte("s\x00")},
		netlink.Attribute{Type: unix.NFTA_SET_FLAGS, Data: []byte{0, 0, 0, flags}},
		netlink.Attribute{Type: unix.NFTA_SET_KEY_LEN, Data: []byte{0, 0, 0, 2}})
}

func elementBytes(t testing.TB, keys ...[]byte) []byte {
	t.Helper()
	var list []netlink.Attribute
	for _, k := range keys {
		key := attrs(t, netlink.Attribute{Type: unix.NFTA_DATA_VALUE, Data: k})
		list = append(list, netlink.Attribute{Type: unix.NLA_F_NESTED | 1, Data: attrs(t, netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_SET_ELEM_KEY, Data: key})})
	}
	return attrs(t, netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_SET_ELEM_LIST_ELEMENTS, Data: attrs(t, list...)})
}

// FuzzRuleset feeds any bytes as rules, sets and elements: no panic, and no more rules
// than a lookup is split into.
func FuzzRuleset(f *testing.F) {
	dport := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}
	port := []byte{0x12, 0xb7}
	drop := &expr.Verdict{Kind: expr.VerdictDrop}
	f.Add(ruleBytes(f, dport, &expr.Cmp{Register: 1, Data: port}, drop), setBytes(f, 0), elementBytes(f, port))
	f.Add(ruleBytes(f, dport, &expr.Lookup{SourceRegister: 1, SetName: "s"}, drop), setBytes(f, 4), elementBytes(f, port, []byte{0x20, 0}))
	f.Add(ruleBytes(f, dport, &expr.Lookup{SourceRegister: 1, DestRegister: 0, IsDestRegSet: true, SetName: "s"}), setBytes(f, 8), elementBytes(f, port))
	f.Add(ruleBytes(f, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Range{Register: 1, FromData: []byte{1}, ToData: []byte{9}}, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: []byte{1, 0, 0, 0}, Xor: make([]byte, 4)}, &expr.Counter{Packets: 7}, &expr.Reject{}), setBytes(f, 0x80), elementBytes(f, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	chain := attrs(f, netlink.Attribute{Type: unix.NFTA_CHAIN_TABLE, Data: []byte("t\x00")}, netlink.Attribute{Type: unix.NFTA_CHAIN_NAME, Data: []byte("i\x00")})
	f.Fuzz(func(t *testing.T, rule, set, elements []byte) {
		k := &nlfake.Kernel{Answer: func(_ int, q netlink.Message) func() (nlfake.Reply, bool) {
			b := map[netlink.HeaderType][]byte{unix.NFT_MSG_GETCHAIN: chain, unix.NFT_MSG_GETRULE: rule, unix.NFT_MSG_GETSET: set, unix.NFT_MSG_GETSETELEM: elements}[q.Header.Type&0xff]
			return nlfake.Answers(q, q.Header.Type-1, append([]byte{unix.NFPROTO_INET, 0, 0, 1}, b...))
		}}
		all, err := ReadFrom(k.Dial(nlask.Limits{}))
		if err != nil {
			return
		}
		for _, c := range all {
			if len(c.Rules) > maxWays*2 {
				t.Errorf("%d rules of one", len(c.Rules))
			}
		}
	})
}
