package report

import (
	"fmt"
	"net/netip"

	"github.com/verbena-rdma/verbena/ib"
)

// DevicesHead is the head of ibv_devices' list.
const DevicesHead = "    device          \t   node GUID\n    ------          \t----------------\n"

// AppendDevice appends a row of ibv_devices' list.
func AppendDevice(b []byte, name string, guid uint64) []byte {
	return fmt.Appendf(b, "    %-16s\t%016x\n", name, guid)
}

// Device is what ibv_devinfo shows of a device with one port.
type Device struct {
	Name     string
	Firmware string // our version
	GUID     uint64
	VendorID uint32
	PartID   int
	HWVer    uint32

	// The rest is shown by -v only.
	MaxMRSize                                   uint64
	PageSizes                                   uint64
	MaxQP, MaxQPWR                              int
	CapFlags                                    uint32
	MaxSGE, MaxCQ, MaxCQE, MaxMR, MaxPD         int
	MaxRdAtomic                                 int // per QP, as requester and as responder
	MaxResRdAtomic                              int // of the whole device
	MaxMW, MaxMcastGroups, MaxMcastAttach       int
	MaxAH, MaxSRQ, MaxSRQWR, MaxSRQSGE, MaxPKey int
	AckDelay                                    int
	CompVectors                                 int

	Port Port
}

// Port is what ibv_devinfo shows of a port.
type Port struct {
	Active     bool
	MaxMTU     ib.MTU
	ActiveMTU  ib.MTU
	MaxMessage uint32
	PKeys      int
	GIDs       int // length of the table
	Width      int // code: 1, 2, 4, 8 or 16
	Speed      int // code
	Table      []GIDRow
}

// GIDRow is a row of the GID table.
type GIDRow struct {
	Index int
	GID   ib.GID
	Type  ib.GIDType
}

// deviceCaps names the capability bits that ibv_devinfo knows (ibv_device_cap_flags).
var deviceCaps = []struct {
	bit  uint32
	name string
}{
	{1 << 0, "RESIZE_MAX_WR"},
	{1 << 1, "BAD_PKEY_CNTR"},
	{1 << 2, "BAD_QKEY_CNTR"},
	{1 << 3, "RAW_MULTI"},
	{1 << 4, "AUTO_PATH_MIG"},
	{1 << 5, "CHANGE_PHY_PORT"},
	{1 << 6, "UD_AV_PORT_ENFORCE"},
	{1 << 7, "CURR_QP_STATE_MOD"},
	{1 << 8, "SHUTDOWN_PORT"},
	{1 << 9, "INIT_TYPE"},
	{1 << 10, "PORT_ACTIVE_EVENT"},
	{1 << 11, "SYS_IMAGE_GUID"},
	{1 << 12, "RC_RNR_NAK_GEN"},
	{1 << 13, "SRQ_RESIZE"},
	{1 << 14, "N_NOTIFY_CQ"},
	{1 << 17, "MEM_WINDOW"},
	{1 << 18, "UD_IP_CSUM"},
	{1 << 20, "XRC"},
	{1 << 21, "MEM_MGT_EXTENSIONS"},
	{1 << 23, "MEM_WINDOW_TYPE_2A"},
	{1 << 24, "MEM_WINDOW_TYPE_2B"},
	{1 << 25, "RC_IP_CSUM"},
	{1 << 26, "RAW_IP_CSUM"},
	{1 << 29, "MANAGED_FLOW_STEERING"},
}

// Capability bits that this project's devices set.
const (
	CapBadQKeyCounter = 1 << 2
	CapPortActive     = 1 << 10
	CapSysImageGUID   = 1 << 11
	CapRNRNak         = 1 << 12
)

// Append appends what ibv_devinfo prints, or ibv_devinfo -v.
func (d Device) Append(b []byte, verbose bool) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	p("hca_id:\t%s\n", d.Name)
	p("\ttransport:\t\t\tInfiniBand (0)\n")
	if d.Firmware != "" {
		p("\tfw_ver:\t\t\t\t%s\n", d.Firmware)
	}
	p("\tnode_guid:\t\t\t%s\n", guid(d.GUID))
	p("\tsys_image_guid:\t\t\t%s\n", guid(d.GUID))
	p("\tvendor_id:\t\t\t0x%04x\n", d.VendorID)
	p("\tvendor_part_id:\t\t\t%d\n", d.PartID)
	p("\thw_ver:\t\t\t\t0x%X\n", d.HWVer)
	p("\tphys_port_cnt:\t\t\t1\n")
	if verbose {
		b = d.appendLimits(b)
	}
	b = d.Port.append(b, verbose)
	return append(b, '\n')
}

func (d Device) appendLimits(b []byte) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	p("\tmax_mr_size:\t\t\t0x%x\n", d.MaxMRSize)
	p("\tpage_size_cap:\t\t\t0x%x\n", d.PageSizes)
	p("\tmax_qp:\t\t\t\t%d\n", d.MaxQP)
	p("\tmax_qp_wr:\t\t\t%d\n", d.MaxQPWR)
	p("\tdevice_cap_flags:\t\t0x%08x\n", d.CapFlags)
	rest := d.CapFlags
	for _, c := range deviceCaps {
		if d.CapFlags&c.bit != 0 {
			p("\t\t\t\t\t%s\n", c.name)
			rest &^= c.bit
		}
	}
	// ibv_devinfo calls bits unknown only below 2^32 and where the header has none.
	if rest != 0 {
		p("\t\t\t\t\tUnknown flags: 0x%X\n", rest)
	}
	for _, l := range []struct {
		name string
		v    int
	}{
		{"max_sge:\t\t\t", d.MaxSGE},
		{"max_sge_rd:\t\t\t", d.MaxSGE},
		{"max_cq:\t\t\t\t", d.MaxCQ},
		{"max_cqe:\t\t\t", d.MaxCQE},
		{"max_mr:\t\t\t\t", d.MaxMR},
		{"max_pd:\t\t\t\t", d.MaxPD},
		{"max_qp_rd_atom:\t\t\t", d.MaxRdAtomic},
		{"max_ee_rd_atom:\t\t\t", 0},
		{"max_res_rd_atom:\t\t", d.MaxResRdAtomic},
		{"max_qp_init_rd_atom:\t\t", d.MaxRdAtomic},
		{"max_ee_init_rd_atom:\t\t", 0},
	} {
		p("\t%s%d\n", l.name, l.v)
	}
	p("\tatomic_cap:\t\t\tATOMIC_HCA (1)\n")
	for _, l := range []struct {
		name string
		v    int
	}{
		{"max_ee:\t\t\t\t", 0},
		{"max_rdd:\t\t\t", 0},
		{"max_mw:\t\t\t\t", d.MaxMW},
		{"max_raw_ipv6_qp:\t\t", 0},
		{"max_raw_ethy_qp:\t\t", 0},
		{"max_mcast_grp:\t\t\t", d.MaxMcastGroups},
		{"max_mcast_qp_attach:\t\t", d.MaxMcastAttach},
		{"max_total_mcast_qp_attach:\t", d.MaxMcastGroups * d.MaxMcastAttach},
		{"max_ah:\t\t\t\t", d.MaxAH},
		{"max_fmr:\t\t\t", 0},
		{"max_srq:\t\t\t", d.MaxSRQ},
	} {
		p("\t%s%d\n", l.name, l.v)
	}
	if d.MaxSRQ > 0 {
		p("\tmax_srq_wr:\t\t\t%d\n\tmax_srq_sge:\t\t\t%d\n", d.MaxSRQWR, d.MaxSRQSGE)
	}
	p("\tmax_pkeys:\t\t\t%d\n\tlocal_ca_ack_delay:\t\t%d\n", d.MaxPKey, d.AckDelay)
	p("\tgeneral_odp_caps:\n")
	for _, t := range []string{"rc", "uc", "ud", "xrc"} {
		p("\t%s_odp_caps:\n\t\t\t\t\tNO SUPPORT\n", t)
	}
	p("\tcompletion_timestamp_mask not supported\n\tcore clock not supported\n")
	p("\tdevice_cap_flags_ex:\t\t0x%X\n", d.CapFlags)
	p("\ttso_caps:\n\t\tmax_tso:\t\t\t0\n")
	p("\trss_caps:\n\t\tmax_rwq_indirection_tables:\t\t\t0\n\t\tmax_rwq_indirection_table_size:\t\t\t0\n\t\trx_hash_function:\t\t\t\t0x0\n\t\trx_hash_fields_mask:\t\t\t\t0x0\n")
	p("\tmax_wq_type_rq:\t\t\t0\n")
	p("\tpacket_pacing_caps:\n\t\tqp_rate_limit_min:\t0kbps\n\t\tqp_rate_limit_max:\t0kbps\n\ttag matching not supported\n")
	p("\tnum_comp_vectors:\t\t%d\n", d.CompVectors)
	return b
}

func (q Port) append(b []byte, verbose bool) []byte {
	p := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	state, code, phys, physCode := "PORT_DOWN", 1, "DISABLED", 3
	if q.Active {
		state, code, phys, physCode = "PORT_ACTIVE", 4, "LINK_UP", 5
	}
	p("\t\tport:\t1\n")
	p("\t\t\tstate:\t\t\t%s (%d)\n", state, code)
	p("\t\t\tmax_mtu:\t\t%d (%d)\n", q.MaxMTU.Bytes(), q.MaxMTU)
	p("\t\t\tactive_mtu:\t\t%d (%d)\n", q.ActiveMTU.Bytes(), q.ActiveMTU)
	p("\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x00\n\t\t\tlink_layer:\t\tEthernet\n")
	if !verbose {
		return b
	}
	p("\t\t\tmax_msg_sz:\t\t0x%x\n", q.MaxMessage)
	p("\t\t\tport_cap_flags:\t\t0x00010000\n\t\t\tport_cap_flags2:\t0x0000\n\t\t\tmax_vl_num:\t\t1 (1)\n\t\t\tbad_pkey_cntr:\t\t0x0\n\t\t\tqkey_viol_cntr:\t\t0x0\n\t\t\tsm_sl:\t\t\t0\n")
	p("\t\t\tpkey_tbl_len:\t\t%d\n\t\t\tgid_tbl_len:\t\t%d\n\t\t\tsubnet_timeout:\t\t0\n\t\t\tinit_type_reply:\t0\n", q.PKeys, q.GIDs)
	p("\t\t\tactive_width:\t\t%sX (%d)\n\t\t\tactive_speed:\t\t%s (%d)\n\t\t\tphys_state:\t\t%s (%d)\n", width(q.Width), q.Width, speed(q.Speed), q.Speed, phys, physCode)
	for _, g := range q.Table {
		b = g.append(b)
	}
	return b
}

func (g GIDRow) append(b []byte) []byte {
	if [8]byte(g.GID[8:]) == [8]byte{} {
		return b
	}
	text, kind := ntop(g.GID), ", RoCE v2"
	if g.Type != ib.GIDTypeRoCEv2 {
		text, kind = g.GID.String(), ", RoCE v1"
	}
	return fmt.Appendf(b, "\t\t\tGID[%3d]:\t\t%s%s\n", g.Index, text, kind)
}

// ntop writes a GID as inet_ntop does an IPv6 address: an IPv4-mapped one with
// its dots.
func ntop(g ib.GID) string {
	if g.Is4() {
		return "::ffff:" + g.Addr().String()
	}
	return netip.AddrFrom16(g).String()
}

// GIDText writes a GID as pingpong and ibv_devinfo do.
func GIDText(g ib.GID) string { return ntop(g) }

func guid(g uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", g>>48, g>>32&0xFFFF, g>>16&0xFFFF, g&0xFFFF)
}

func width(code int) string {
	switch code {
	case 1:
		return "1"
	case 2:
		return "4"
	case 4:
		return "8"
	case 8:
		return "12"
	case 16:
		return "2"
	}
	return "invalid width"
}

func speed(code int) string {
	switch code {
	case 1:
		return "2.5 Gbps"
	case 2:
		return "5.0 Gbps"
	case 4, 8:
		return "10.0 Gbps"
	case 16:
		return "14.0 Gbps"
	case 32:
		return "25.0 Gbps"
	case 64:
		return "50.0 Gbps"
	case 128:
		return "100.0 Gbps"
	}
	return "invalid speed"
}

// LinkRate returns the width and speed codes of InfiniBand that come closest
// to an interface's speed in Mb/s without exceeding it; 0 gives the least.
func LinkRate(mbps int) (width, speed int) {
	width, speed = 1, 1
	best := 2500
	for _, w := range []struct{ code, lanes int }{{1, 1}, {2, 4}} {
		for _, s := range []struct{ code, mbps int }{{1, 2500}, {2, 5000}, {4, 10000}, {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}} {
			if r := w.lanes * s.mbps; r <= mbps && r > best {
				best, width, speed = r, w.code, s.code
			}
		}
	}
	return width, speed
}
