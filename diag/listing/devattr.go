package listing

import (
	"fmt"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// verbsCaps are the bits that ibv_devinfo knows (ibv_device_cap_flags).
var verbsCaps = []string{
	"RESIZE_MAX_WR", "BAD_PKEY_CNTR", "BAD_QKEY_CNTR", "RAW_MULTI", "AUTO_PATH_MIG", "CHANGE_PHY_PORT", "UD_AV_PORT_ENFORCE",
	"CURR_QP_STATE_MOD", "SHUTDOWN_PORT", "INIT_TYPE", "PORT_ACTIVE_EVENT", "SYS_IMAGE_GUID", "RC_RNR_NAK_GEN", "SRQ_RESIZE",
	"N_NOTIFY_CQ", "", "", "MEM_WINDOW", "UD_IP_CSUM", "", "XRC", "MEM_MGT_EXTENSIONS", "", "MEM_WINDOW_TYPE_2A",
	"MEM_WINDOW_TYPE_2B", "RC_IP_CSUM", "RAW_IP_CSUM", "", "", "MANAGED_FLOW_STEERING",
}

// deviceLines are the attributes of a line each, in the order of ibv_devinfo -v.
var (
	deviceLines1 = []string{
		"max_sge:\t\t\t", "max_sge_rd:\t\t\t", "max_cq:\t\t\t\t", "max_cqe:\t\t\t", "max_mr:\t\t\t\t", "max_pd:\t\t\t\t",
		"max_qp_rd_atom:\t\t\t", "max_ee_rd_atom:\t\t\t", "max_res_rd_atom:\t\t", "max_qp_init_rd_atom:\t\t", "max_ee_init_rd_atom:\t\t",
	}
	deviceLines2 = []string{
		"max_ee:\t\t\t\t", "max_rdd:\t\t\t", "max_mw:\t\t\t\t", "max_raw_ipv6_qp:\t\t", "max_raw_ethy_qp:\t\t",
		"max_mcast_grp:\t\t\t", "max_mcast_qp_attach:\t\t", "max_total_mcast_qp_attach:\t", "max_ah:\t\t\t\t", "max_fmr:\t\t\t", "max_srq:\t\t\t",
	}
)

// appendAttr appends what -v shows of a device.
func appendAttr(b []byte, a snapshot.Attr) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	line := func(layout string) {
		name := layout
		for i := range name {
			if name[i] == ':' {
				name = name[:i]
				break
			}
		}
		p("\t%s%d\n", layout, a[name])
	}
	p("\tmax_mr_size:\t\t\t0x%x\n", a["max_mr_size"])
	p("\tpage_size_cap:\t\t\t0x%x\n", a["page_size_cap"])
	p("\tmax_qp:\t\t\t\t%d\n\tmax_qp_wr:\t\t\t%d\n", a["max_qp"], a["max_qp_wr"])
	caps := a["device_cap_flags"]
	p("\tdevice_cap_flags:\t\t0x%08x\n", caps)
	rest := caps
	for i, name := range verbsCaps {
		if name != "" && caps>>i&1 != 0 {
			p("\t\t\t\t\t%s\n", name)
			rest &^= 1 << i
		}
	}
	if rest != 0 {
		p("\t\t\t\t\tUnknown flags: 0x%X\n", rest)
	}
	for _, l := range deviceLines1 {
		line(l)
	}
	p("\tatomic_cap:\t\t\t%s (%d)\n", atomicWord(a["atomic_cap"]), a["atomic_cap"])
	for _, l := range deviceLines2 {
		line(l)
	}
	if a["max_srq"] > 0 {
		line("max_srq_wr:\t\t\t")
		line("max_srq_sge:\t\t\t")
	}
	line("max_pkeys:\t\t\t")
	line("local_ca_ack_delay:\t\t")
	b = appendODP(b, a)
	b = appendExtended(b, a)
	p("\tnum_comp_vectors:\t\t%d\n", a["num_comp_vectors"])
	return b
}

func atomicWord(v uint64) string {
	switch v {
	case 0:
		return "ATOMIC_NONE"
	case 1:
		return "ATOMIC_HCA"
	case 2:
		return "ATOMIC_GLOB"
	}
	return "invalid atomic capability"
}

// appendODP appends on-demand paging.
func appendODP(b []byte, a snapshot.Attr) []byte {
	const indent = "\t\t\t\t\t"
	general := []string{"ODP_SUPPORT", "ODP_SUPPORT_IMPLICIT"}
	b = append(b, "\tgeneral_odp_caps:\n"...)
	for i, name := range general {
		if a["general_odp_caps"]>>i&1 != 0 {
			b = append(b, indent+name+"\n"...)
		}
	}
	names := []string{"SUPPORT_SEND", "SUPPORT_RECV", "SUPPORT_WRITE", "SUPPORT_READ", "SUPPORT_ATOMIC", "SUPPORT_SRQ"}
	for _, t := range []string{"rc", "uc", "ud", "xrc"} {
		b = fmt.Appendf(b, "\t%s_odp_caps:\n", t)
		v := a[t+"_odp_caps"]
		if v == 0 {
			b = append(b, indent+"NO SUPPORT\n"...)
		}
		for i, name := range names {
			if v>>i&1 != 0 {
				b = append(b, indent+name+"\n"...)
			}
		}
	}
	return b
}

// appendExtended appends what ibv_query_device_ex added. What only a vendor's library
// tells (TSO, hashing, pacing) is zero here.
func appendExtended(b []byte, a snapshot.Attr) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	if v := a["completion_timestamp_mask"]; v != 0 {
		p("\tcompletion timestamp_mask:\t\t\t0x%016x\n", v)
	} else {
		p("\tcompletion_timestamp_mask not supported\n")
	}
	if v := a["hca_core_clock"]; v != 0 {
		p("\thca_core_clock:\t\t\t%dkHZ\n", v)
	} else {
		p("\tcore clock not supported\n")
	}
	if v := a["raw_packet_caps"]; v != 0 {
		p("\traw packet caps:\n")
		for i, name := range []string{"C-VLAN stripping offload", "Scatter FCS offload", "IP csum offload", "Delay drop"} {
			if v>>i&1 != 0 {
				p("\t\t\t\t\t%s\n", name)
			}
		}
	}
	ex := a["device_cap_flags_ex"]
	if _, ok := a["device_cap_flags_ex"]; !ok {
		ex = a["device_cap_flags"]
	}
	p("\tdevice_cap_flags_ex:\t\t0x%X\n", ex)
	if ex>>34&1 != 0 {
		p("\t\t\t\t\tRAW_SCATTER_FCS\n")
	}
	if ex>>36&1 != 0 {
		p("\t\t\t\t\tPCI_WRITE_END_PADDING\n")
	}
	if rest := ex >> 32 << 32 &^ (1<<34 | 1<<36); rest != 0 {
		p("\t\t\t\t\tUnknown flags: 0x%X\n", rest)
	}
	p("\ttso_caps:\n\t\tmax_tso:\t\t\t%d\n", a["max_tso"])
	p("\trss_caps:\n\t\tmax_rwq_indirection_tables:\t\t\t%d\n\t\tmax_rwq_indirection_table_size:\t\t\t%d\n\t\trx_hash_function:\t\t\t\t0x%x\n\t\trx_hash_fields_mask:\t\t\t\t0x%x\n",
		a["max_rwq_indirection_tables"], a["max_rwq_indirection_table_size"], a["rx_hash_function"], a["rx_hash_fields_mask"])
	p("\tmax_wq_type_rq:\t\t\t%d\n", a["max_wq_type_rq"])
	p("\tpacket_pacing_caps:\n\t\tqp_rate_limit_min:\t%dkbps\n\t\tqp_rate_limit_max:\t%dkbps\n", a["qp_rate_limit_min"], a["qp_rate_limit_max"])
	if a["tm_max_num_tags"] == 0 {
		p("\ttag matching not supported\n")
	} else {
		p("\ttag matching caps:\n\t\tmax_rndv_hdr_size:\t%d\n\t\tnum_tags:\t\t%d\n\t\tmax_ops:\t\t%d\n\t\tmax_sge:\t\t%d\n",
			a["tm_max_rndv_hdr_size"], a["tm_max_num_tags"], a["tm_max_ops"], a["tm_max_sge"])
	}
	if a["max_cq_count"] != 0 || a["max_cq_period"] != 0 {
		p("\n\tcq moderation caps:\n\t\tmax_cq_count:\t%d\n\t\tmax_cq_period:\t%d us\n\n", a["max_cq_count"], a["max_cq_period"])
	}
	if v := a["max_dm_size"]; v != 0 {
		p("\tmaximum available device memory:\t%dBytes\n\n", v)
	}
	return b
}
