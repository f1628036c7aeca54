package ip

import "fmt"

// Reason says why bytes are not the header that was asked for.
type Reason uint8

// The reasons.
const (
	ReasonNone         Reason = iota
	ReasonShort               // shorter than the header, or than the lengths in it
	ReasonBadVersion          // another IP version
	ReasonBadHeaderLen        // IPv4 header length under 20
	ReasonBadLength           // a total or UDP length under that of the header
	ReasonBadChecksum         // IPv4 header checksum; the value is filled nevertheless

	// NumReasons is the number of reasons, for arrays of counters.
	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	"none", "short header", "bad IP version", "bad IP header length", "bad length", "bad IP header checksum",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
