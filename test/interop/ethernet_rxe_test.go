//go:build linux

package interop

import (
	"fmt"
	"testing"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/test/interop/judge"
	"github.com/verbena-rdma/verbena/verbs"
)

// The Ethernet device towards Linux' rdma_rxe: RoCEv2 whose every header is ours.
// rdma_rxe leaves IPv4 Identifications to its kernel, so our exact check of the
// ICRC is one of the header that we see, and its check is one of the header that we
// write.

// ethernet is the device of these tests.
var ethernet = verbs.Config{Ethernet: true}

func TestEthernetAgainstPingpong(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, typ := range []ib.QPType{ib.RC, ib.UC, ib.UD} {
		for _, fam := range allFamilies {
			t.Run(fmt.Sprintf("%v/%v", typ, fam), func(t *testing.T) { pingpong(t, typ, fam, ethernet) })
		}
	}
}

// Random bytes both ways by every operation.
func TestEthernetDataAgainstRxe(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	for _, x := range []struct {
		typ ib.QPType
		mtu ib.MTU
		fam family
	}{
		{ib.RC, ib.MTU4096, ipv4},
		{ib.RC, ib.MTU1024, ipv6},
		{ib.UC, ib.MTU2048, ipv4},
		{ib.UD, ib.MTU1024, ipv4},
		{ib.UD, ib.MTU1024, ipv6},
	} {
		t.Run(fmt.Sprintf("%v/%d/%v", x.typ, x.mtu.Bytes(), x.fam), func(t *testing.T) { testData(t, x.typ, x.mtu, x.fam, ethernet) })
	}
}

// Multicast with mckey: our frames carry the group's MAC address, and what it sends
// passes the interface's filter.
func TestEthernetMulticast(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	mckeyGroup(t, ethernet)
	program, err := cmPeerProgram()
	if err != nil {
		t.Fatal(err)
	}
	b := &cmBench{net: network(t), program: program, ethernet: true}
	b.mckey(t, "239.77.2.2")
	complaints(t, b.net.Guest(1))
}

// Connections by the manager, with rping.
func TestEthernetConnectionManager(t *testing.T) {
	judge.Need(t, "rxe", "rdma-core")
	program, err := cmPeerProgram()
	if err != nil {
		t.Fatal(err)
	}
	b := &cmBench{net: network(t), program: program, ethernet: true}
	for _, c := range conversations() {
		if c.name != "rping" {
			continue
		}
		for _, fam := range allFamilies {
			t.Run(fmt.Sprintf("%v/they serve", fam), func(t *testing.T) { b.theyServe(t, c, fam) })
			t.Run(fmt.Sprintf("%v/we serve", fam), func(t *testing.T) { b.weServe(t, c, fam) })
		}
	}
	complaints(t, b.net.Guest(1))
}

// Our programs with -d packet:… against Debian's, in both directions.
func TestEthernetPrograms(t *testing.T) {
	judge.Need(t, "rxe", "perftest", "rdma-core")
	b := &bench{net: network(t), gids: hostGIDs(t, ethernet), packet: true}
	named := map[string]program{}
	for _, p := range programs() {
		named[p.name] = p
	}
	for _, r := range []run{
		{program: named["rc-pingpong"], size: 4096, mtu: ib.MTU1024, fam: ipv4},
		{program: named["ud-pingpong"], size: 1000, mtu: ib.MTU1024, fam: ipv6},
		{program: named["write-bw-RC"], size: 64 << 10, mtu: ib.MTU4096, fam: ipv4, qps: 4},
		{program: named["read-bw-RC"], size: 64 << 10, mtu: ib.MTU1024, fam: ipv6},
		{program: named["send-lat-UD"], size: 1024, mtu: ib.MTU2048, fam: ipv4},
		{program: named["atomic-lat-RC-FETCH_AND_ADD"], size: 8, mtu: ib.MTU1024, fam: ipv4},
	} {
		if r.name == "" {
			t.Fatal("a program that there is not")
		}
		r.qps = max(r.qps, 1)
		for _, r.weServe = range []bool{true, false} {
			t.Run(r.String(), func(t *testing.T) { b.run(t, r) })
		}
	}
	complaints(t, b.net.Guest(1))
}
