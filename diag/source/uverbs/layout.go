package uverbs

import (
	"encoding/binary"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Sizes of answers in bytes.
const (
	sizeDevice   = 176
	sizePort     = 40
	sizeDeviceEx = 304
)

// field is a number of an answer; the name is that of ibv_devinfo -v.
type field struct {
	name string
	size int // bytes
}

// deviceFields are struct ib_uverbs_query_device_resp.
var deviceFields = []field{
	{"fw_ver", 8},
	{"", 8},
	{"", 8},
	{"max_mr_size", 8},
	{"page_size_cap", 8},
	{"vendor_id", 4},
	{"vendor_part_id", 4},
	{"hw_ver", 4},
	{"max_qp", 4},
	{"max_qp_wr", 4},
	{"device_cap_flags", 4},
	{"max_sge", 4},
	{"max_sge_rd", 4},
	{"max_cq", 4},
	{"max_cqe", 4},
	{"max_mr", 4},
	{"max_pd", 4},
	{"max_qp_rd_atom", 4},
	{"max_ee_rd_atom", 4},
	{"max_res_rd_atom", 4},
	{"max_qp_init_rd_atom", 4},
	{"max_ee_init_rd_atom", 4},
	{"atomic_cap", 4},
	{"max_ee", 4},
	{"max_rdd", 4},
	{"max_mw", 4},
	{"max_raw_ipv6_qp", 4},
	{"max_raw_ethy_qp", 4},
	{"max_mcast_grp", 4},
	{"max_mcast_qp_attach", 4},
	{"max_total_mcast_qp_attach", 4},
	{"max_ah", 4},
	{"max_fmr", 4},
	{"", 4},
	{"max_srq", 4},
	{"max_srq_wr", 4},
	{"max_srq_sge", 4},
	{"max_pkeys", 2},
	{"local_ca_ack_delay", 1},
	{"phys_port_cnt", 1},
	{"", 4},
}

// extFields follow them in struct ib_uverbs_ex_query_device_resp.
var extFields = []field{
	{"", 4},
	{"", 4},
	{"general_odp_caps", 8},
	{"rc_odp_caps", 4},
	{"uc_odp_caps", 4},
	{"ud_odp_caps", 4},
	{"", 4},
	{"completion_timestamp_mask", 8},
	{"hca_core_clock", 8},
	{"device_cap_flags_ex", 8},
	{"rss_supported_qpts", 4},
	{"max_rwq_indirection_tables", 4},
	{"max_rwq_indirection_table_size", 4},
	{"", 4},
	{"max_wq_type_rq", 4},
	{"raw_packet_caps", 4},
	{"tm_max_rndv_hdr_size", 4},
	{"tm_max_num_tags", 4},
	{"tm_flags", 4},
	{"tm_max_ops", 4},
	{"tm_max_sge", 4},
	{"", 4},
	{"max_cq_count", 2},
	{"max_cq_period", 2},
	{"", 4},
	{"max_dm_size", 8},
	{"xrc_odp_caps", 4},
	{"", 4},
}

// portFields are struct ib_uverbs_query_port_resp.
var portFields = []field{
	{"port_cap_flags", 4},
	{"max_msg_sz", 4},
	{"bad_pkey_cntr", 4},
	{"qkey_viol_cntr", 4},
	{"gid_tbl_len", 4},
	{"pkey_tbl_len", 2},
	{"lid", 2},
	{"sm_lid", 2},
	{"state", 1},
	{"max_mtu", 1},
	{"active_mtu", 1},
	{"lmc", 1},
	{"max_vl_num", 1},
	{"sm_sl", 1},
	{"subnet_timeout", 1},
	{"init_type_reply", 1},
	{"active_width", 1},
	{"active_speed", 1},
	{"phys_state", 1},
	{"link_layer", 1},
	{"flags", 1},
	{"", 1},
}

// parse adds the named numbers of an answer as far as it goes.
func parse(to snapshot.Attr, b []byte, fields []field) {
	for _, f := range fields {
		if len(b) < f.size {
			return
		}
		if f.name != "" {
			switch f.size {
			case 1:
				to[f.name] = uint64(b[0])
			case 2:
				to[f.name] = uint64(binary.NativeEndian.Uint16(b))
			case 4:
				to[f.name] = uint64(binary.NativeEndian.Uint32(b))
			case 8:
				to[f.name] = binary.NativeEndian.Uint64(b)
			}
		}
		b = b[f.size:]
	}
}
