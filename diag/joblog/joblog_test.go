package joblog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/verbena-rdma/verbena/diag/joblog"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Lines as programs print them, and what they say.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want snapshot.LogEvent
	}{
		// NCCL, new and old.
		{
			"n1:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1234> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
			snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 129, Peer: "10.0.0.1"},
		},
		{
			"NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 32630, vendor err 129",
			snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 129},
		},
		{
			"NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
			snapshot.LogEvent{Kind: "modify_qp", Errno: 110},
		},
		{
			"NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3",
			snapshot.LogEvent{Kind: "modify_qp", Errno: 110, State: "RTR", Device: "mlx5_0"},
		},
		{
			"NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
			snapshot.LogEvent{Kind: "reg_mr", Errno: 12},
		},
		// UCX: the syndrome is mlx5's.
		{
			"[1700.1] [n1:77:0] ib_mlx5_log.c:171 UCX ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
			snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 0x81, Device: "mlx5_0"},
		},
		{
			"UCX ERROR Remote access on mlx5_1:1/RoCE (synd 0x13 vend 0x88 hw_synd 0/0)",
			snapshot.LogEvent{Kind: "completion", Status: 10, Vendor: 0x88, Device: "mlx5_1"},
		},
		{
			"UCX ERROR ibv_reg_mr(address=0x7f, length=39845888, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 524288 kbytes)",
			snapshot.LogEvent{Kind: "reg_mr", Errno: 12, Bytes: 39845888},
		},
		{
			"UCX ERROR mlx5_0: ibv_create_cq(cqe=4096) failed: Cannot allocate memory",
			snapshot.LogEvent{Kind: "create_cq", Errno: 12, Device: "mlx5_0"},
		},
		// perftest and the pingpongs.
		{" Failed status 12: wr_id 0 syndrom 0x81", snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 0x81}},
		{"Failed status transport retry counter exceeded (12) for wr_id 2", snapshot.LogEvent{Kind: "completion", Status: 12}},
		{"Failed to modify QP to RTR", snapshot.LogEvent{Kind: "modify_qp", State: "RTR"}},
		{"Unable to create QP.", snapshot.LogEvent{Kind: "create_qp"}},
		{"Couldn't register MR", snapshot.LogEvent{Kind: "reg_mr"}},
		// Mooncake.
		{
			"E0101 rdma_endpoint.cpp:1] Failed to modify QP to RTR, check mtu, gid, peer lid, peer qp num: Connection timed out [110]",
			snapshot.LogEvent{Kind: "modify_qp", State: "RTR", Errno: 110},
		},
		// Open MPI, MVAPICH, Gloo.
		{
			"error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 1 opcode 0 vendor error 129 qp_idx 3",
			snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 129},
		},
		{
			"[n1:mpi_rank_0] Got completion with error 12, vendor code=0x81, dest rank=1",
			snapshot.LogEvent{Kind: "completion", Status: 12, Vendor: 0x81},
		},
		{"IBV_WC_LOC_LEN_ERR on the receive queue: error", snapshot.LogEvent{Kind: "completion", Status: 1}},
		{"rdma_create_ep: No such device failed", snapshot.LogEvent{Kind: "open_device", Errno: 19}},
		{"RDMA_CM_EVENT_UNREACHABLE, error -110", snapshot.LogEvent{Kind: "cm", Errno: 110}},
	} {
		got := joblog.Parse([]string{"fine", c.line})
		if len(got) != 1 {
			t.Errorf("%q gave %d events", c.line, len(got))
			continue
		}
		if got[0].Line != 2 || got[0].Text != strings.TrimSpace(c.line) {
			t.Errorf("line %d %q", got[0].Line, got[0].Text)
		}
		if d := cmp.Diff(c.want, got[0], cmpopts.IgnoreFields(snapshot.LogEvent{}, "Line", "Text")); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.line, d)
		}
	}
}

// What programs print in health is no event.
func TestHealthyLines(t *testing.T) {
	for _, line := range []string{
		"NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
		"NCCL INFO NET/IB: Dev 0 Port 1 qpn 77 mtu 5 GID 3",
		" 65536      1000             92.10              92.05              0.175571",
		"local address:  LID 0x0000, QPN 0x000011, PSN 0x3bd2ac, GID ::ffff:10.77.0.11",
		"ibv_reg_mr 4096 bytes ok",
		"",
		strings.Repeat("error ", 10_000),
	} {
		if got := joblog.Parse([]string{line}); len(got) != 0 {
			t.Errorf("%.80q gave %+v", line, got)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	lines := make([]string, 5000)
	for i := range lines {
		lines[i] = "Failed status 12"
	}
	got := joblog.Parse(lines)
	if len(got) != joblog.MaxEvents || got[len(got)-1].Line != 5000 {
		t.Errorf("%d events, the last of line %d", len(got), got[len(got)-1].Line)
	}
}

// What programs print of their choices, where they say one thing.
func TestChosen(t *testing.T) {
	for _, c := range []struct {
		log  string
		want joblog.Settings
	}{
		{"n1:1:2 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 3.\nn1:1:2 [0] NCCL INFO NCCL_IB_TC set by environment to 106.", joblog.Settings{GIDIndex: snapshot.Known(3), TrafficClass: snapshot.Known(106)}},
		{"NCCL INFO NET/IB: Dev 0 Port 1 qpn 77 mtu 5 GID 3 (0/0)", joblog.Settings{GIDIndex: snapshot.Known(3)}},
		{"NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 1042 mtu 3 query_ece={supported=0} GID 1 (80FE/1) fifoRkey=0x1", joblog.Settings{GIDIndex: snapshot.Known(1)}},
		{"NCCL INFO NCCL_IB_TC set by environment to 106.\nNCCL INFO NCCL_IB_TC set by environment to 0.", joblog.Settings{}},
		{"Call to ibv_modify_qp failed with 110 Connection timed out, next state RTR, local GID index 1, local GID fe80::1", joblog.Settings{GIDIndex: snapshot.Known(1)}},
		{"NET/IB Call to ibv_modify_qp failed with 110 Connection timed out, next state RTR, local GID index 1, local GID fe80::1", joblog.Settings{GIDIndex: snapshot.Known(1)}},
		{
			" Dual-port       : OFF          Device         : mlx5_0\n Mtu             : 1024[B]\n Link type       : Ethernet\n GID index       : 3\n Max inline data : 0[B]",
			joblog.Settings{GIDIndex: snapshot.Known(3), PathMTU: snapshot.Known(1024), Device: snapshot.Known("mlx5_0")},
		},
		{" Dual-port       : OFF\t\tDevice         : siw_ens33\n Mtu             : 1024[B]\n Gid index       : 0", joblog.Settings{GIDIndex: snapshot.Known(0), PathMTU: snapshot.Known(1024), Device: snapshot.Known("siw_ens33")}},
		{"NCCL_IB_TC set by environment to 99999999999999999999\n GID index : many\n Mtu : 12345678[B]\n Device : ", joblog.Settings{}},
		{strings.Repeat("NET/IB qpn 1 mtu 1 ", 10_000), joblog.Settings{}},
	} {
		if got := joblog.Chosen(strings.Split(c.log, "\n")); got != c.want {
			t.Errorf("%.80q gave %+v, want %+v", c.log, got, c.want)
		}
	}
}
