package wire

import "fmt"

// Reason says why a byte string is not a packet. Such a packet is dropped and
// counted under its reason; no NAK answers it (IBA vol.1 9.6.1).
type Reason uint8

// The reasons.
const (
	ReasonNone       Reason = iota // a good packet
	ReasonShort                    // shorter than the BTH, or than the headers that the opcode asks for
	ReasonBadVersion               // transport version other than 0
	ReasonBadOpcode                // reserved, or of a service that is not spoken here
	ReasonBadPad                   // more pad bytes than bytes after the headers
	ReasonBadLength                // not a multiple of 4, or bytes after a packet that is headers only

	// NumReasons is the number of reasons, for arrays of counters.
	NumReasons = int(iota)
)

var reasonNames = [NumReasons]string{
	"none", "short packet", "bad transport version", "bad opcode", "bad pad count", "bad length",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}
