package listing

// Words of the rdma tool.
var (
	portStates = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	physStates = []string{"NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP", "LINK_ERROR_RECOVER", "PHY_TEST", "UNKNOWN", "OPA_OFFLINE", "UNKNOWN", "OPA_TEST"}
	nodeTypes  = []string{"unknown", "ca", "switch", "router", "rnic", "usnic", "usnic_udp", "unspecified"}
)

func wordOf(words []string, i int) string {
	if i < 0 || i >= len(words) {
		return "UNKNOWN"
	}
	return words[i]
}

func nodeTypeWord(i int) string {
	if i < 0 || i >= len(nodeTypes) {
		return "unknown"
	}
	return nodeTypes[i]
}

// flagNames names the bits that are set. An empty name is a bit without one.
func flagNames(flags uint64, names []string) []string {
	var all []string
	for i := range 64 {
		if flags>>i&1 == 0 {
			continue
		}
		if i < len(names) && names[i] != "" {
			all = append(all, names[i])
		} else {
			all = append(all, "UNKNOWN")
		}
	}
	return all
}

// rdmaDeviceCaps are the kernel's device capabilities by bit, in the rdma tool's words;
// the doubled end of the seventh is the tool's.
var rdmaDeviceCaps = []string{
	"RESIZE_MAX_WR", "BAD_PKEY_CNTR", "BAD_QKEY_CNTR", "RAW_MULTI", "AUTO_PATH_MIG", "CHANGE_PHY_PORT",
	"UD_AV_PORT_ENFORCE_PORT_ENFORCE", "CURR_QP_STATE_MOD", "SHUTDOWN_PORT", "INIT_TYPE", "PORT_ACTIVE_EVENT",
	"SYS_IMAGE_GUID", "RC_RNR_NAK_GEN", "SRQ_RESIZE", "N_NOTIFY_CQ", "LOCAL_DMA_LKEY", "", "MEM_WINDOW",
	"UD_IP_CSUM", "UD_TSO", "XRC", "MEM_MGT_EXTENSIONS", "BLOCK_MULTICAST_LOOPBACK", "MEM_WINDOW_TYPE_2A",
	"MEM_WINDOW_TYPE_2B", "RC_IP_CSUM", "RAW_IP_CSUM", "CROSS_CHANNEL", "", "MANAGED_FLOW_STEERING",
	"SIGNATURE_HANDOVER", "ON_DEMAND_PAGING", "SG_GAPS_REG", "VIRTUAL_FUNCTION", "RAW_SCATTER_FCS",
	"RDMA_NETDEV_OPA_VNIC", "PCI_WRITE_END_PADDING",
}

// rdmaPortCaps are the bits of PortInfo:CapabilityMask and, from the 33rd, CapabilityMask2,
// IBA 1.6 §14.2.5.6, in the rdma tool's words and spelling.
var rdmaPortCaps = []string{
	"RESERVED", "SM", "NOTICE", "TRAP", "OPT_IPD", "AUTO_MIGR", "SL_MAP", "MKEY_NVRAM", "PKEY_NVRAM", "LED_INFO", "SM_DISABLED",
	"SYS_IMAGE_GUID", "PKEY_SW_EXT_PORT_TRAP", "CABLE_INFO", "EXTENDED_SPEEDS", "CAP_MASK2", "CM", "SNMP_TUNNEL", "REINIT",
	"DEVICE_MGMT", "VENDOR_CLASS", "DR_NOTICE", "CAP_MASK_NOTICE", "BOOT_MGMT", "LINK_LATENCY", "CLIENT_REG", "OTHER_LOCAL_CHANGES",
	"LINK_SPPED_WIDTH", "VENDOR_SPECIFIC_MADS", "MULT_PKER_TRAP", "MULT_FDB", "HIERARCHY_INFO",
	"SET_NODE_DESC", "EXT_INFO", "VIRT", "SWITCH_POR_STATE_TABLE", "LINK_WIDTH_2X", "LINK_SPEED_HDR",
}

// mtuCode is the code of a path MTU, 1 for 256 bytes to 5 for 4096; 0 for others.
func mtuCode(bytes int) int {
	for code := 1; code <= 5; code++ {
		if bytes == 128<<code {
			return code
		}
	}
	return 0
}

// widthWord and speedWord are of the codes of PortInfo, IBA 1.6 §14.2.5.6.
func widthWord(code int) string {
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

func speedWord(code int) string {
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
