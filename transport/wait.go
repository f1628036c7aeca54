package transport

// Wait is what keeps the next packet of a queue pair from leaving, as far as
// its protocol knows: pauses and pacing are the adapter's.
type Wait uint8

// The reasons.
const (
	WaitIdle    Wait = iota // nothing is posted or under way
	WaitNothing             // a packet may leave now
	WaitAck                 // all that is posted has left and is not acknowledged
	WaitWindow              // room for what is in flight towards the destination, or for PSNs
	WaitRNR                 // the end of the delay that an RNR NAK asked for
	WaitCredits             // end-to-end credits
	WaitReads               // READs and ATOMICs under way: a fence, or their greatest number
	WaitState               // something is posted, and the state sends nothing
	NumWaits
)

var waitNames = [NumWaits]string{
	"nothing to send", "nothing", "acknowledgement", "window", "RNR delay", "credits", "READs under way", "state",
}

func (w Wait) String() string {
	if w < NumWaits {
		return waitNames[w]
	}
	return "unknown"
}
