package doctor_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/doctor"
	"github.com/verbena-rdma/verbena/diag/joblog"
	"github.com/verbena-rdma/verbena/diag/snapshot"
)

func memlock(n int64) func(*world) {
	return func(w *world) { w.app().Memlock = snapshot.Known(n) }
}

func ipcLock(w *world) {
	w.app().Memlock, w.app().CapEff = snapshot.Known(int64(8<<20)), snapshot.Known(uint64(1<<14))
}

// logged are lines as users have met and published them (the address says where; paths
// and host names are made up where they were long), on a host of which nothing else is
// wrong but what set changes. rule is what must come first; empty for nothing.
var logged = []struct {
	line, from string
	set        func(*world)
	rule       string
}{
	// Registration.
	{"misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "NVIDIA/nccl-tests#206", memlock(8 << 20), "A01"},
	{"misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "the same, unlimited", memlock(-1), "A17"},
	{"misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "the same, with CAP_IPC_LOCK", ipcLock, "A17"},
	{"misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "the same, no process known", nil, "A01"},
	{"[1643394930.91] [n3:1292923:0] ib_md.c:816 UCX ERROR ibv_reg_mr(address=0x7f56f0f20ba0, length=3491136, access=0xf) failed: Cannot allocate memory", "openucx/ucx#6264", memlock(-1), "A17"},
	{" infiniband mlx5_0: create_mkey_callback:131:(pid 2298062): async reg mr failed. status -12", "openucx/ucx#6264", memlock(-1), "A17"},
	{"fi_mr_reg failed, ret is:-12, Cannot allocate memory", "ofiwg/libfabric#6437", memlock(65536), "A01"},
	{"Couldn't allocate MR", "zrlio/softiwarp#23", memlock(65536), "A01"},
	{"misc/ibvwrap.cc:182 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Invalid argument ", "NVIDIA/nccl#1842", memlock(-1), "A18"},
	{"ib_md.c:309 UCX ERROR ibv_reg_mr(address=0x7f1bd4000000, length=8470528, access=0xf) failed: Bad address", "openucx/ucx#8999", memlock(-1), "A15"},
	{"libfabric::efa:mr:efa_mr_reg_impl():893<warn> Unable to register MR of 11279546368 bytes: Bad address, flags 0", "ofiwg/libfabric#12019", memlock(-1), "A15"},
	{"NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address", "flagos-ai/FlagCX#61", nil, "A15"},
	// Creation.
	{"UCX ERROR mlx5_0: ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)", "openucx/ucx#8229", memlock(65536), "A01"},
	{"ibv_create_cq failed: errno=12 (Cannot allocate memory); dev=mlx5_0 max_cqe=4096", "ROCm/mori#384", memlock(-1), "A21"},
	{"Unable to create QP.", "linux-rdma/perftest#105", nil, "A21"},
	{"Unable to create QP.", "linux-rdma/perftest#139", func(w *world) { w.app().MaxInline = snapshot.Known(220); setMaxInline(w, 101) }, "A12"},
	{"RDMAConnectedSocketImplqueue pair create failed", "ceph/ceph#33882", nil, "A21"},
	{"libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open shared object file", "rdma-core", nil, "A16"},
	// Connecting.
	{"misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable", "NVIDIA/nccl-tests#185", nil, "A20"},
	{"ibvwrap.cc: NCCL WARN Call to ibv_modify_qp failed with error Connection timed out", "NVIDIA/nccl#769", func(w *world) { w.app().GIDIndex = snapshot.Known(1) }, "L14"},
	{"Failed to modify QP to RTR: Connection timed out", "uccl-project/uccl#641", nil, "A20"},
	{"Failed to modify QP to RTR: Connection timed out", "the same, a dead neighbour", dead, "N03"},
	{"C++ exception with description \"ibv_modify_qp failed (errno 19) (Ib failure: No such device)\" thrown in the test body.", "microsoft/mscclpp#431", nil, "A20"},
	{"[Rank    0]: Error 22 (Invalid argument) at (GPI2_IB.c:813):Failed to modify QP (libibverbs)", "cc-hpc-itwm/GPI-2#47", nil, "A20"},
	{"src/modules/transport/ibrc/ibrc.cpp:417: non-zero status: 101 ibv_modify_qp failed", "deepseek-ai/DeepEP#321", nil, "A20"},
	{"E1204 rdma_endpoint.cpp:440] [Handshake] Failed to modify QP to INIT, check local context port num: Invalid argument [22]", "kvcache-ai/Mooncake#1143", nil, "A20"},
	{"modify_qp_to_rtr failed to transition to RTR state: (110) Connection timed out", "ceph, msg/async/rdma", nil, "A20"},
	{"Event: RDMA_CM_EVENT_REJECTED; error: -111.", "linux-rdma/perftest#54", nil, "A22"},
	{"rdma_resolve_addr: No such device", "rdma_cm programs", nil, "A22"},
	// Transfers.
	{"n4:3468:3905 [4] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid ::ffff:10.0.0.1 remoteGids::ffff:10.0.0.2", "NVIDIA/nccl#1405", nil, "C16"},
	{"NCCL WARN NET/IB: Got completion from peer 10.0.0.2<41234> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 req_type=Send hca mlx5_0", "NVIDIA/nccl, 2.27", nil, "C16"},
	{"NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", "NVIDIA/nccl#426", nil, "C16"},
	{"F20250821 13:22:09.976752 3186121 rdma_io.cc:811] Check failed: wc->status == IBV_WC_SUCCESS RC send CQ state error: 12, 0", "uccl-project/uccl#293", nil, "C16"},
	{"[qp_impl.hpp:140] poll till completion error: 12 transport retry counter exceeded", "minghust/ford#2", nil, "C16"},
	{"rdma.c:3778:nvmf_rdma_log_wc_status: *ERROR*: Error on CQ 0xffff4c0921f0, (qp state 1 ibv_state 6) request 0x281468000176408, type SEND, opcode 0, status: (12): transport retry counter exceeded rqpair 0x2c1cc180 byte_len 4096", "spdk/spdk#2261", nil, "C16"},
	{"xio_rdma_datapath.c:635 [ERROR] - [client] - state:3, rdma_hndl:0x248cb00, rdma_task:0x7f438614fe90, wr_id:0x7f438614fb70, err:transport retry counter exceeded, vendor_err:0x81, byte_len:28, opcode:0x0", "accelio/accelio#88", nil, "C16"},
	{"nvme nvme0: SEND for CQE 0x00000000b1a1 failed with status transport retry counter exceeded (12)", "the kernel's nvme-rdma", nil, "C16"},
	{" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81", "zrlio/softiwarp#27", nil, "C16"},
	{"rc_verbs_iface.c:47 UCX ERROR Send completion with error: transport retry counter exceeded", "openucx/ucx#857", nil, "C16"},
	{"rc_verbs_iface.c:47 UCX ERROR Send completion with error: local QP operation error", "openucx/ucx#857", nil, "A19"},
	{"nvme_rdma.c:1748:nvme_rdma_qpair_process_completions: *ERROR*: CQ error on Queue Pair 0x7efd94490ac0, Opcode 128, Response Index 139627583889688 (4): local protection error", "spdk/spdk#961", nil, "A19"},
	{"  Failed status 4: wr_id 0 syndrom 0x51", "linux-rdma/perftest#173", nil, "A19"},
	{"[[27217,0],12][btl_openib_component.c:3556:handle_wc] from n27 to: n27 error polling LP CQ with status REMOTE ACCESS ERROR status number 10 for wr_id 19059c8 opcode 4  vendor error 136 qp_idx 3", "open-mpi/ompi#4529", nil, "C21"},
	{" Failed status 13: wr_id 0 syndrom 0x87", "perftest", nil, "C17"},
	// What is healthy, or says nothing of RDMA by itself.
	{"NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "NCCL", nil, ""},
	{"NCCL INFO NCCL_IB_TIMEOUT set by environment to 18.", "NVIDIA/nccl#1814", nil, ""},
	{"NCCL INFO NCCL_IB_RETRY_CNT set by environment to 15.", "NVIDIA/nccl#1814", nil, ""},
	{"NCCL INFO transport/net_ib.cc:579 -> 2", "NVIDIA/nccl-tests#185", nil, ""},
	{"misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n3<41109>", "NVIDIA/nccl-tests#185", nil, ""},
	{"EAL: No free hugepages reported in hugepages-1048576kB", "spdk/spdk#936", nil, ""},
	{"ib_device.c:132 UCX WARN IB Async event on mlx5_0: SRQ-attached QP 0xa18 was flushed", "openucx/ucx#857", nil, ""},
	{"libfabric:72089:core:core:fi_getinfo_():889<warn> fi_getinfo: provider ofi_mrail returned -61 (No data available)", "aws/libfabric#3", nil, ""},
	{"Couldn't connect to 192.168.125.211:18515", "linux-rdma/perftest#228", nil, ""},
	{"uct_mem.c:293 UCX DEBUG could not allocate memory with any of the provided methods", "openucx/ucx#9736", nil, ""},
	{" 65536      5000           10881.92            10881.92		   0.174111", "perftest", nil, ""},
}

func setMaxInline(w *world, n uint64) {
	for _, h := range []*snapshot.Snapshot{w.before, w.after} {
		for i := range h.Devices {
			a := snapshot.Attr{}
			for k, v := range h.Devices[i].Attr.Or(nil) {
				a[k] = v
			}
			a["max_inline_data"] = n
			h.Devices[i].Attr = snapshot.Known(a)
		}
	}
}

// Lines that users have published give the finding that their threads came to, or none.
func TestLoggedLines(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	distinct := map[string]bool{}
	for _, c := range logged {
		distinct[c.line] = true
		w := newWorld()
		w.after.HugePages[0].Total, w.after.HugePages[0].Free = snapshot.Known(uint64(0)), snapshot.Known(uint64(0))
		lines := strings.Split(c.line, "\n")
		w.after.App = &snapshot.App{Log: lines, Events: joblog.Parse(lines)}
		if c.set != nil {
			c.set(w)
		}
		r := doctor.Examine(w.input(), rules)
		var found []doctor.Finding
		for _, f := range r.Findings {
			if f.Status != doctor.Info {
				found = append(found, f)
			}
		}
		switch {
		case c.rule == "" && len(found) > 0:
			t.Errorf("%s: %q gives %s, want nothing", c.from, c.line, list(found))
		case c.rule != "" && (len(found) == 0 || found[0].Rule != c.rule):
			t.Errorf("%s: %q gives %s, want %s first; events %+v", c.from, c.line, list(found), c.rule, w.app().Events)
		}
	}
	if len(distinct) < 45 {
		t.Errorf("%d distinct lines", len(distinct))
	}
}
