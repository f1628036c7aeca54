package transport

// Drop is the one reason for which a received packet was discarded by an
// engine.
type Drop uint8

// The reasons.
const (
	DropNone          Drop = iota
	DropState              // the QP's state takes no such packet
	DropOpcode             // an opcode of another transport, or out of sequence on UC and UD
	DropPSN                // ghost: outside the window of expected PSNs
	DropDuplicate          // answered or ignored duplicate
	DropLength             // payload length does not fit opcode and path MTU, or the message its RETH
	DropQKey               // Q_Key of a UD packet
	DropPKey               // partition key
	DropNoRecv             // UC and UD: no receive posted
	DropTooLong            // UC and UD: longer than the receive
	DropAccess             // UC: memory or access rights
	DropSource             // packet from a host that is not the peer
	DropGhostAck           // acknowledgement of nothing outstanding
	DropOutOfSequence      // after the expected PSN; a NAK was sent, or is outstanding
	DropRNR                // no receive posted; an RNR NAK was sent
	DropBroken             // UC: rest of a broken message
	NumDrops
)

var dropNames = [NumDrops]string{
	"none", "state", "opcode", "ghost_psn", "duplicate", "length", "qkey", "pkey", "no_recv", "too_long",
	"access", "source", "ghost_ack", "out_of_sequence", "rnr", "broken_message",
}

func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "unknown"
}
