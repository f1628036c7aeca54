package read_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/counter"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func known[T comparable](t *testing.T, what string, v snapshot.Value[T], want T) {
	t.Helper()
	if got, ok := v.Get(); !ok || got != want {
		t.Errorf("%s is %v, want %v", what, v, want)
	}
}

func refused[T any](t *testing.T, what string, v snapshot.Value[T], want string) {
	t.Helper()
	if v.IsKnown() || v.IsZero() || v.Why() != want {
		t.Errorf("%s is %v, want it unreadable: %s", what, v, want)
	}
}

func TestMLX5(t *testing.T) {
	s := sample(t, "mlx5")
	if s.Origin != snapshot.Recorded {
		t.Errorf("origin %s", s.Origin)
	}
	known(t, "host", s.Host, "host7")
	d := s.Device("mlx5_0")
	if d == nil {
		t.Fatal("no mlx5_0")
	}
	if d.Kind != snapshot.Hardware {
		t.Errorf("kind %s", d.Kind)
	}
	known(t, "driver", d.Driver, "mlx5_core")
	known(t, "firmware", d.Firmware, "22.38.1900")
	known(t, "board", d.BoardID, "MT_0000000436")
	known(t, "uverbs", d.UVerbs, "uverbs0")
	known(t, "PCI width", d.PCI.LinkWidth, 8)
	known(t, "PCI speed", d.PCI.MaxLinkSpeed, "16.0 GT/s PCIe")
	known(t, "virtual", d.PCI.Virtual, false)
	if d.PCI.AER["correctable.BadTLP"] != 3 {
		t.Errorf("AER %v", d.PCI.AER)
	}
	p := d.Ports[0]
	known(t, "state", p.State, 4)
	known(t, "rate", p.RateMbps, 100_000)
	known(t, "width", p.Width, 2)
	known(t, "speed", p.Speed, 32)
	known(t, "cap mask", p.CapMask, 0x10000)
	known(t, "netdev", p.Netdev, "rdma0")
	known(t, "netdev index", p.NetIndex, 4)
	known(t, "slots", p.GIDSlots, 6)
	known(t, "traffic class", p.TrafficClass, 106)
	known(t, "CM mode", p.CMRoCEMode, "RoCE v2")
	known(t, "CM TOS", p.CMTOS, 106)
	known(t, "active MTU of 4200", p.ActiveMTU, 4096)
	known(t, "lifespan", p.LifespanMs, 10)
	if len(p.PKeys) != 1 || p.PKeys[0] != 0xffff {
		t.Errorf("pkeys %x", p.PKeys)
	}
	if len(p.GIDs) != 4 || p.GIDs[3].Index != 3 || p.GIDs[3].GID != "0000:0000:0000:0000:0000:ffff:c0a8:d3f2" {
		t.Fatalf("gids %v", p.GIDs)
	}
	known(t, "type", p.GIDs[3].Type, "RoCE v2")
	known(t, "words", p.Counters.Get("port_xmit_data"), 36298026860928)
	known(t, "CNPs", counter.Get(counter.Of(d), p.HWCounters, counter.CNPTx), 1333)

	down := s.Device("mlx5_1").Ports[0]
	refused(t, "rate of an empty cage", down.Rate, "EINVAL")
	if down.RateMbps.IsKnown() {
		t.Error("an unreadable rate has a number")
	}
	if got := problems(s); len(got) != 1 || !strings.Contains(got[0], "mlx5_1/ports/1/rate: EINVAL") {
		t.Errorf("problems %q", got)
	}

	n := s.Netdev("rdma0")
	known(t, "mtu", n.MTU, 4200)
	known(t, "trust", n.DCB.Trust, "dscp")
	b, _ := n.DCB.Buffer.Get()
	if b.Size[1] != 130944 || b.Total != 262016 || b.PrioBuffer[3] != 1 {
		t.Errorf("buffers %v", b)
	}
	np, _ := n.DCB.NP.Get()
	if !np.Enabled[3] || np.Enabled[4] || np.Params["cnp_dscp"] != 48 {
		t.Errorf("NP %v", np)
	}
	known(t, "agent", n.DCB.LLDPAgent, "lldpad")
	refused(t, "speed of an interface that is down", s.Netdev("rdma1").SpeedMbps, "EINVAL")

	known(t, "rp_filter", s.Sysctl["net.ipv4.conf.rdma0.rp_filter"], "1")
	known(t, "rmem", s.Sysctl["net.core.rmem_max"], "212992")
	known(t, "udp", s.SNMP["Udp.RcvbufErrors"], 5)
	known(t, "udp6", s.SNMP["Udp6.RcvbufErrors"], 4)
	if len(s.Softnet) != 1 || s.Softnet[0] != (snapshot.Softnet{CPU: 3, Processed: 10, Dropped: 1, Squeezed: 2}) {
		t.Errorf("softnet %v", s.Softnet)
	}
	if len(s.HugePages) != 1 || s.HugePages[0].SizeKB != 2048 || s.HugePages[0].Node != -1 {
		t.Errorf("huge pages %v", s.HugePages)
	}
	want := []snapshot.PCINIC{{Address: "0000:3b:00.0", Vendor: "0x15b3", Device: "0x101d", Driver: snapshot.Known("mlx5_core"), Netdevs: []string{"rdma0"}, RDMA: []string{"mlx5_0"}}}
	if len(s.NICs) != 1 || !cmp.Equal(s.NICs[0].RDMA, want[0].RDMA) || !cmp.Equal(s.NICs[0].Netdevs, want[0].Netdevs) {
		t.Errorf("NICs %v", s.NICs)
	}
}

func TestInfiniBand(t *testing.T) {
	s := sample(t, "ib")
	d := s.Devices[0]
	p := d.Ports[0]
	known(t, "lid", p.LID, 13)
	known(t, "sm lid", p.SMLID, 2)
	known(t, "virtual", d.PCI.Virtual, true)
	known(t, "speed", p.Speed, 64)
	known(t, "largest count", p.Counters.Get("port_rcv_data"), 1<<64-1)
	if p.Netdev.IsKnown() || p.ActiveMTU.IsKnown() {
		t.Errorf("an InfiniBand port has interface %v and MTU %v", p.Netdev, p.ActiveMTU)
	}
	if len(s.Problems) != 0 {
		t.Errorf("problems %q", problems(s))
	}
}

func TestDriversWithOddCounters(t *testing.T) {
	for _, c := range []struct {
		tree   string
		family counter.Family
		want   map[counter.Name]uint64
		raw    map[string]uint64
	}{
		{"bnxt_re", counter.BNXT, map[counter.Name]uint64{counter.OOSRx: 5, counter.CNPTx: 6, counter.ActiveQPs: 12}, nil},
		{"irdma", counter.IRDMA, map[counter.Name]uint64{counter.RNRTx: 11, counter.NAKSeqRx: 12, counter.CNPRxHandled: 13}, nil},
		{"hfi1", counter.Unknown, nil, map[string]uint64{"SDma0,1 Int": 5, "RxCtxFull,7": 6}},
		{"rxe", counter.RXE, map[counter.Name]uint64{counter.DuplicateRx: 2, counter.TxPackets: 1}, nil},
	} {
		t.Run(c.tree, func(t *testing.T) {
			d := sample(t, c.tree).Devices[0]
			if f := counter.Of(&d); f != c.family {
				t.Errorf("family %q, want %q", f, c.family)
			}
			hw := d.Ports[0].HWCounters
			for name, want := range c.want {
				known(t, string(name), counter.Get(c.family, hw, name), want)
			}
			for name, want := range c.raw {
				known(t, name, hw.Get(name), want)
			}
		})
	}
}

func TestNoPMA(t *testing.T) {
	s := sample(t, "mlx4_vf")
	p := s.Devices[0].Ports[0]
	refused(t, "counter", p.Counters.Get("port_rcv_data"), "N/A (no PMA)")
	known(t, "counter beside it", p.Counters.Get("symbol_error"), 0)
	if len(s.Problems) != 2 {
		t.Errorf("problems %q, want one for each of two counters", problems(s))
	}
}

func TestRXE(t *testing.T) {
	s := sample(t, "rxe")
	d := s.Devices[0]
	if d.Kind != snapshot.RXE {
		t.Errorf("kind %s", d.Kind)
	}
	known(t, "index", d.Index, 0)
	known(t, "netdev", d.Ports[0].Netdev, "eth0")
	known(t, "active MTU of 1500", d.Ports[0].ActiveMTU, 1024)
	qps, ok := d.QPs.Get()
	if !ok || len(qps) != 2 || qps[0].LQPN != 17 || qps[0].State != "RTR" || !qps[1].IsKernel {
		t.Errorf("QPs %v", d.QPs)
	}
	known(t, "remote", qps[0].RQPN, 18)
	refused(t, "MRs", d.MRs, "permission denied")
	if d.CQs.IsKnown() || !strings.Contains(d.CQs.Why(), "cut") {
		t.Errorf("CQs of a cut answer: %v", d.CQs)
	}
	if !d.PDs.IsZero() {
		t.Errorf("PDs that nobody recorded: %v", d.PDs)
	}
	known(t, "hash", s.Netdev("eth0").FlowHash["udp4"], snapshot.HashSource|snapshot.HashDest)
	if s.Netdev("eth0").Why != "not supported" {
		t.Errorf("why no statistics: %q", s.Netdev("eth0").Why)
	}
	nft, _ := s.Firewall.NFT.Get()
	if len(nft) != 1 || nft[0].Rules[0].Verdict != "drop" {
		t.Errorf("firewall %v", nft)
	}
	if got := problems(s); len(got) != 1 || !strings.HasPrefix(got[0], "rdma/res/cq/rxe0") {
		t.Errorf("problems %q, want the one cut answer", got)
	}
}
