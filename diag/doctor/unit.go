package doctor

import "strings"

// units are those of facts and counters by the end of their names; the first that fits
// holds.
var units = []struct{ end, unit string }{
	{"_mbps", "Mb/s"},
	{"rp_ai_rate", "Mb/s"},
	{"rp_min_rate", "Mb/s"},
	{"gap_us", "µs"},
	{"pause_rx_us", "µs"},
	{"pause_tx_us", "µs"},
	{"lifespan_ms", "ms"},
	{"window.seconds", "s"},
	{"ets_share", "%"},
	{"pause_rx", "frames"},
	{"pause_tx", "frames"},
	{"port_xmit_data", "words of 4 bytes"},
	{"port_rcv_data", "words of 4 bytes"},
	{"mtu", "bytes"},
	{"_bytes", "bytes"},
	{"memlock", "bytes, -1 is no limit"},
	{"largest_reg", "bytes"},
	{"max_inline", "bytes"},
	{"buffer_size", "bytes"},
	{"headroom", "bytes"},
	{"headroom_need", "bytes"},
	{"profile.kmin", "bytes"},
	{"profile.kmax", "bytes"},
	{"profile.xoff", "bytes"},
}

// unitOf is the unit of a fact or counter; empty for numbers of things and for texts.
func unitOf(name string) string {
	for _, u := range units {
		if strings.HasSuffix(name, u.end) {
			return u.unit
		}
	}
	return ""
}
