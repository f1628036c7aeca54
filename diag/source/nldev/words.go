package nldev

// The words of the rdma tool.
var (
	qpStates = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	qpTypes  = []string{"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", "UNKNOWN", "RAW_PACKET", "XRC_INI", "XRC_TGT"}
	pathMig  = []string{"MIGRATED", "REARM", "ARMED"}
	srqTypes = []string{"BASIC", "XRC", "TM"}
	cmStates = []string{
		"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT",
		"ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL", "DESTROYING",
	}
	pollContexts = []string{"DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE"}
)

// word is a number's word; the rdma tool says UNKNOWN for others.
func word(all []string, i int) string {
	if i < 0 || i >= len(all) {
		return "UNKNOWN"
	}
	return all[i]
}

func qpType(i int) string {
	if i == 0xff {
		return "DRIVER"
	}
	return word(qpTypes, i)
}

func portSpace(ps uint32) string {
	switch ps {
	case 0x0002:
		return "IPoIB"
	case 0x013f:
		return "IB"
	case 0x0106:
		return "TCP"
	case 0x0111:
		return "UDP"
	}
	return "---"
}
