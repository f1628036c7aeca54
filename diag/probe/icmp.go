package probe

import "fmt"

// What ICMP errors say.
const (
	tooBig      = "too big"
	portUnreach = "port unreachable"
	prohibited  = "prohibited by a filter"
)

// icmp4 names an ICMP error (RFC 792, RFC 1812 §5.2.7.1).
func icmp4(typ, code uint8) string {
	switch {
	case typ == 3 && code == 4:
		return tooBig
	case typ == 3 && code == 3:
		return portUnreach
	case typ == 3 && (code == 9 || code == 10 || code == 13):
		return prohibited
	case typ == 3 && code == 0:
		return "net unreachable"
	case typ == 3 && code == 1:
		return "host unreachable"
	case typ == 3 && code == 2:
		return "protocol unreachable"
	case typ == 11:
		return "time exceeded"
	}
	return fmt.Sprintf("ICMP type %d code %d", typ, code)
}

// icmp6 names an ICMPv6 error (RFC 4443 §3).
func icmp6(typ, code uint8) string {
	switch {
	case typ == 2:
		return tooBig
	case typ == 1 && code == 4:
		return portUnreach
	case typ == 1 && (code == 1 || code == 5 || code == 6):
		return prohibited
	case typ == 1 && code == 0:
		return "no route"
	case typ == 1 && code == 3:
		return "host unreachable"
	case typ == 3:
		return "time exceeded"
	}
	return fmt.Sprintf("ICMPv6 type %d code %d", typ, code)
}
