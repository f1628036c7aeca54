package listing

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func k[T any](v T) snapshot.Value[T] { return snapshot.Known(v) }

// rxe is the guest's device, whose listings Debian's programs printed.
func rxe() *snapshot.Snapshot {
	return &snapshot.Snapshot{Devices: []snapshot.Device{{
		Name: "rxe0", Index: k(0), Kind: snapshot.RXE, NodeType: k(1), NodeGUID: k("5054:00ff:fe77:0011"), SysImageGUID: k("5054:00ff:fe77:0011"),
		Attr: k(snapshot.Attr{
			"fw_ver": 0, "vendor_id": 0xffffff, "vendor_part_id": 0, "hw_ver": 0, "phys_port_cnt": 1, "max_mr_size": 1<<64 - 1, "page_size_cap": 0xfffff000,
			"max_qp": 1048560, "max_qp_wr": 1048576, "device_cap_flags": 0x01223c76, "device_cap_flags_ex": 0x01223c76, "max_sge": 32, "max_sge_rd": 32,
			"max_cq": 1048576, "max_cqe": 32767, "max_mr": 524287, "max_pd": 1048576, "max_qp_rd_atom": 128, "max_res_rd_atom": 258048,
			"max_qp_init_rd_atom": 128, "atomic_cap": 1, "max_mw": 524287, "max_mcast_grp": 8192, "max_mcast_qp_attach": 56,
			"max_total_mcast_qp_attach": 458752, "max_ah": 32767, "max_srq": 917503, "max_srq_wr": 1048576, "max_srq_sge": 27, "max_pkeys": 64,
			"local_ca_ack_delay": 15, "num_comp_vectors": 2,
		}),
		Ports: []snapshot.Port{{
			Number: 1, State: k(4), PhysState: k(5), LinkLayer: k("Ethernet"), MaxMTU: k(4096), ActiveMTU: k(4096), Width: k(1), Speed: k(1),
			Netdev: k("eth0"), NetIndex: k(2), GIDSlots: k(1024),
			Attr: snapshot.Attr{"max_msg_sz": 0x800000, "port_cap_flags": 0x10000, "max_vl_num": 1, "pkey_tbl_len": 1},
			GIDs: []snapshot.GID{
				{Index: 0, GID: "fe80:0000:0000:0000:5054:00ff:fe77:0011", Type: k("RoCE v2"), Netdev: k("eth0")},
				{Index: 1, GID: "0000:0000:0000:0000:0000:ffff:0a4d:000b", Type: k("RoCE v2"), Netdev: k("eth0")},
				{Index: 2, GID: "fd00:0077:0000:0000:0000:0000:0000:0011", Type: k("RoCE v2"), Netdev: k("eth0")},
			},
		}},
	}}}
}

// mlx5 is a device of hardware, from published output of the originals.
func mlx5() *snapshot.Snapshot {
	return &snapshot.Snapshot{Devices: []snapshot.Device{{
		Name: "mlx5_0", Index: k(0), NodeType: k(1), NodeGUID: k("946d:ae03:0090:7832"), SysImageGUID: k("946d:ae03:0090:7832"),
		Firmware: k("22.38.1900"), HCAType: k("MT4125"), HWRev: k("0"), Resources: map[string]uint64{"pd": 4, "cq": 4, "qp": 1, "cm_id": 1, "mr": 2, "ctx": 1, "srq": 2},
		Ports: []snapshot.Port{{
			Number: 1, State: k(4), PhysState: k(5), LinkLayer: k("Ethernet"), CapMask: k(uint32(0x10000)), Rate: k("100 Gb/sec (4X EDR)"), RateMbps: k(int64(100000)),
			Netdev: k("ens1f0np0"), Counters: snapshot.Counters{{Name: "port_xmit_data", Value: k(uint64(36298026860928))}, {Name: "port_xmit_wait", Value: snapshot.Unreadable[uint64]("N/A (no PMA)")}},
		}},
		QPs: k([]snapshot.QP{{Port: 1, LQPN: 30278, RQPN: k(uint32(39296)), Type: "RC", State: "RTS", RQPSN: k(uint32(164604)), SQPSN: k(uint32(658420)), PathMig: k("MIGRATED"), PDN: k(uint32(128)), PID: k(61655), Comm: "kucl-poll-event"}}),
	}}}
}

func golden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestVerbsAsDebianPrintsThem(t *testing.T) {
	if diff := cmp.Diff(golden(t, "devices.txt"), string(Devices(rxe()))); diff != "" {
		t.Errorf("ibv_devices: -Debian +ours\n%s", diff)
	}
	out, err := DevInfo(rxe(), DevInfoOptions{Verbose: true})
	if diff := cmp.Diff(golden(t, "devinfo-v.txt"), string(out)); diff != "" || err != nil {
		t.Errorf("ibv_devinfo -v: %v -Debian +ours\n%s", err, diff)
	}
}

// Published output of the originals on hardware.
func TestHardwareAsPublished(t *testing.T) {
	s := mlx5()
	for _, tc := range []struct {
		name, want string
		out        func() ([]byte, error)
	}{
		{"rdma link", "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0np0 \n", func() ([]byte, error) { return RDMA(s, []string{"link"}) }},
		{"rdma res", "0: mlx5_0: pd 4 cq 4 qp 1 cm_id 1 mr 2 ctx 1 srq 2 \n", func() ([]byte, error) { return RDMA(s, []string{"res"}) }},
		{
			"rdma res show qp", "link mlx5_0/1 lqpn 30278 rqpn 39296 type RC state RTS rq-psn 164604 sq-psn 658420 path-mig-state MIGRATED pdn 128 pid 61655 comm kucl-poll-event \n",
			func() ([]byte, error) { return RDMA(s, []string{"res", "show", "qp"}) },
		},
		{
			"ibstat", "CA 'mlx5_0'\n\tCA type: MT4125\n\tNumber of ports: 1\n\tFirmware version: 22.38.1900\n\tHardware version: 0\n\tNode GUID: 0x946dae0300907832\n" +
				"\tSystem image GUID: 0x946dae0300907832\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 100\n\t\tBase lid: 0\n\t\tLMC: 0\n\t\tSM lid: 0\n" +
				"\t\tCapability mask: 0x00010000\n\t\tPort GUID: 0x0000000000000000\n\t\tLink layer: Ethernet\n",
			func() ([]byte, error) { return IBStat(s, IBStatOptions{}) },
		},
		{
			"perfquery -x", "# Port extended counters: mlx5_0 port 1, from sysfs counters/\nPortSelect:......................1\nCounterSelect:...................0x0000\n" +
				"PortXmitData:....................36298026860928\n# PortXmitWait: N/A (no PMA)\n",
			func() ([]byte, error) { return PerfQuery(s, "mlx5_0", 1) },
		},
	} {
		out, err := tc.out()
		if diff := cmp.Diff(tc.want, string(out)); diff != "" || err != nil {
			t.Errorf("%s: %v -want +got\n%s", tc.name, err, diff)
		}
	}
}

// A port of InfiniBand has a subnet prefix and LIDs.
func TestInfiniBandLink(t *testing.T) {
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "mlx5_2", Index: k(2), Ports: []snapshot.Port{{
		Number: 1, LinkLayer: k("InfiniBand"), State: k(4), PhysState: k(5), LID: k(13), SMLID: k(2), LMC: k(0),
		GIDs: []snapshot.GID{{Index: 0, GID: "fe80:0000:0000:0000:946d:ae03:0090:7832"}},
	}}}}}
	const want = "link mlx5_2/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 2 lmc 0 state ACTIVE physical_state LINK_UP \n"
	if out, err := RDMA(s, []string{"link"}); string(out) != want || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestShowGIDs(t *testing.T) {
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "mlx5_0", Ports: []snapshot.Port{{Number: 1, GIDs: []snapshot.GID{
		{Index: 1, GID: "fe80:0000:0000:0000:0ac0:ebff:fe21:03da", Type: k("RoCE v2"), Netdev: k("rdma0")},
		{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:c0a8:d3f2", Type: k("RoCE v2"), Netdev: k("rdma0")},
	}}}}}}
	const want = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n" +
		"mlx5_0\t1\t1\tfe80:0000:0000:0000:0ac0:ebff:fe21:03da\t\t\tv2\trdma0\n" +
		"mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c0a8:d3f2\t192.168.211.242  \tv2\trdma0\nn_gids_found=2\n"
	for _, f := range []GIDFilter{{}, {Device: "mlx5_0"}, {Device: "mlx5_0", Port: 1}} {
		out, err := ShowGIDs(s, f)
		if diff := cmp.Diff(want, string(out)); diff != "" || err != nil {
			t.Errorf("%+v: %v -want +got\n%s", f, err, diff)
		}
	}
	for _, f := range []GIDFilter{{Device: "nosuch"}, {Device: "mlx5_0", Port: 2}} {
		out, err := ShowGIDs(s, f)
		if err == nil || !strings.HasSuffix(string(out), "\nn_gids_found=0\n") || strings.Count(string(out), "\n") != 3 {
			t.Errorf("%+v: %v, %s", f, err, out)
		}
	}
}

func TestFlowHash(t *testing.T) {
	s := &snapshot.Snapshot{Netdevs: []snapshot.Netdev{{Name: "eth0", FlowHash: map[string]snapshot.Value[snapshot.Hash]{
		"udp4": k(snapshot.HashSource | snapshot.HashDest | snapshot.HashL4Src | snapshot.HashL4Dst), "udp6": snapshot.Unreadable[snapshot.Hash]("not supported"),
	}}}}
	const want = "UDP over IPV4 flows use these fields for computing Hash flow key:\nIP SA\nIP DA\nL4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n\n"
	if out, err := FlowHash(s, "eth0", "udp4"); string(out) != want || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := FlowHash(s, "eth0", "udp6"); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("udp6: %v", err)
	}
}

func TestPFC(t *testing.T) {
	s := &snapshot.Snapshot{Netdevs: []snapshot.Netdev{{Name: "eth0", DCB: snapshot.DCB{
		DCBX: k([]string{"host", "ieee"}), Trust: k("dscp"),
		PFC: k(snapshot.PFC{Cap: 8, Delay: 4096, Enabled: [8]bool{3: true}}), Buffer: k(snapshot.DCBBuffer{PrioBuffer: [8]int{3: 1}, Size: [8]uint64{130944, 130944}, Total: 262016}),
	}}}}
	const want = "pfc-cap 8 macsec-bypass off delay 4096 \nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off \n"
	if out, err := DCBPFC(s, "eth0", false, false); string(out) != want || err != nil {
		t.Errorf("dcb: got %q, %v", out, err)
	}
	out, err := MlnxQoS(s, "eth0")
	for _, line := range []string{
		"DCBX mode: OS controlled\n", "Priority trust state: dscp\n", "\tprio:0 dscp:07,06,05,04,03,02,01,00,\n", "Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016\n",
		"PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   1   0   0   0   0   \n\tbuffer      0   0   0   1   0   0   0   0   \n",
	} {
		if err != nil || !strings.Contains(string(out), line) {
			t.Errorf("mlnx_qos lacks %q: %v\n%s", line, err, out)
		}
	}
}

// What the original refuses, with its words and its status.
func TestRefusals(t *testing.T) {
	for line, want := range map[string]struct {
		text   string
		status int
	}{
		"foo":                      {"Unknown object 'foo'.", 0},
		"link foo":                 {"Unknown link command 'foo'.", 0},
		"link show nodev":          {"Wrong device name", 1},
		"dev show nodev":           {"Wrong device name - nodev", 1},
		"res show qp foo 1":        {"Unsupported filter option: foo", 1},
		"res show qp lqpn abc":     {`lqpn filter accepts "1234567890,-" characters only`, 1},
		"res show qp lqpn":         {"No filter data was supplied to filter option lqpn", 1},
		"-x":                       {"Unknown option.", 1},
		"link add r type rxe":      {"rdma link add changes the host: this program shows only", 1},
		"statistic show link nono": {"Wrong device name", 1},
	} {
		_, err := RDMA(rxe(), strings.Fields(line))
		var e *Error
		if !errors.As(err, &e) || e.Text != want.text || e.Status != want.status {
			t.Errorf("rdma %s: %v", line, err)
		}
	}
}

// A snapshot that knows nothing prints without failing.
func TestNothingIsKnown(t *testing.T) {
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Name: "x", Ports: []snapshot.Port{{}, {Number: -1, State: k(-7), PhysState: k(99), GIDs: []snapshot.GID{{GID: "nonsense"}}}}}}}
	for _, line := range []string{"link", "-d link", "-j link", "dev", "-d dev", "res", "res show qp", "-jp res show srq", "statistic", "system"} {
		_, _ = RDMA(s, strings.Fields(line))
	}
	if _, err := DevInfo(s, DevInfoOptions{Verbose: true}); err != nil {
		t.Error(err)
	}
	if _, err := IBStat(s, IBStatOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := ShowGIDs(s, GIDFilter{}); err != nil {
		t.Error(err)
	}
	if _, err := PerfQuery(s, "", 0); err == nil {
		t.Error("perfquery without an active port said nothing")
	}
}
