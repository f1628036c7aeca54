package roce

import "fmt"

// Reason says why bytes are not a RoCE packet.
type Reason uint8

// The reasons.
const (
	ReasonNone        Reason = iota
	ReasonNotRoCE            // another EtherType, protocol or UDP port
	ReasonShort              // cut, or shorter than the headers or lengths in it
	ReasonBadIP              // version, header length or the reserved flag
	ReasonBadLength          // IP, UDP and GRH lengths contradict each other, or leave no room for BTH and ICRC
	ReasonIPOptions          // IPv4 options: no ICRC is defined over them
	ReasonFragment           // an IP fragment; RoCE packets are never fragmented
	ReasonBadChecksum        // IPv4 header checksum; everything is filled nevertheless
	ReasonBadICRC            // the invariant CRC is wrong (see Verify)

	// NumReasons is the number of reasons, for arrays of counters.
	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	"none", "not RoCE", "short frame", "bad IP header", "bad length", "IP options", "IP fragment",
	"bad IP header checksum", "bad ICRC",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
