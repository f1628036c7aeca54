package netns

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// MarkOver makes the namespace, a router, set Congestion Experienced on the
// ECN-capable IPv4 packets that it forwards beyond a rate in packets a second,
// with a bucket of burst packets. It is what
//
//	nft add rule ip verbena forward ip ecn != not-ect limit rate over RATE/second burst BURST packets ip ecn set ce
//
// does, without the program. A limit in bytes would not do: its bucket holds what
// the rate is in a second, and marks begin when that is gone.
func (s *Space) MarkOver(t testing.TB, rate uint64, burst uint32) {
	t.Helper()
	c, err := nftables.New(nftables.WithNetNSFd(s.fd))
	if err != nil {
		t.Fatal(err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "verbena"})
	chain := c.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	const versionAndTOS, checksum = 0, 10 // offsets in the IPv4 header
	load := &expr.Payload{OperationType: expr.PayloadLoad, DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: versionAndTOS, Len: 2}
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		load,
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: []byte{0, 3}, Xor: []byte{0, 0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0, 0}},
		&expr.Limit{Type: expr.LimitTypePkts, Rate: rate, Unit: expr.LimitTimeSecond, Burst: burst, Over: true},
		load,
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: []byte{0xFF, 0xFC}, Xor: []byte{0, 3}},
		&expr.Payload{
			OperationType: expr.PayloadWrite, SourceRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: versionAndTOS, Len: 2,
			CsumType: expr.CsumTypeInet, CsumOffset: checksum,
		},
	}})
	if err := c.Flush(); err != nil {
		t.Fatalf("nftables: %v", err)
	}
}
