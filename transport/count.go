package transport

import "github.com/verbena-rdma/verbena/ib"

// Event is something that a protocol machine counts. The names are those that
// Linux' rxe driver gives it where it has one.
type Event uint8

// The events.
const (
	DuplicateRequest    Event = iota // request packets that came again
	OutOfSeqRequest                  // request packets after the one expected
	RcvdRNRErr                       // RNR NAKs received
	SendRNRErr                       // RNR NAKs sent
	RcvdSeqErr                       // sequence NAKs received
	AckDeferred                      // nothing defers ACKs as rxe does: always 0
	RetryExceededErr                 // requests given up after the last retry
	RetryRNRExceeded                 // … after the last RNR retry
	CompleterRetryErr                // retries begun, of whatever cause but RNR NAKs
	SendErr                          // requests that could not be sent for an error on this side
	RDMASends                        // SENDs completed
	RDMARecvs                        // receives completed
	LocalAckTimeoutErr               // timers of the local ACK timeout that ran out
	ImpliedNakSeqErr                 // answers that skipped a READ or atomic response
	PacketSeqErr                     // sequence NAKs received: mlx5's name of RcvdSeqErr
	Retransmitted                    // request packets sent again
	ReqCQEErr                        // requests completed in error, flushed ones too
	ReqCQEFlush                      // requests flushed
	RespCQEErr                       // receives completed in error, flushed ones too
	RespCQEFlush                     // receives flushed
	RemoteAccessErr                  // requests that the peer refused for key, range or rights
	RemoteInvalidReqErr              // requests that the peer refused as malformed
	RemoteOpErr                      // requests at which the peer failed
	LocalLengthErr                   // messages longer than the receive that was posted
	RespAccessErr                    // requests of the peer refused for key, range or rights
	NumEvents
)

// Counters count what happened to one queue pair, or to all of an adapter.
// Plain integers: they belong to the adapter's owner.
type Counters struct {
	Events [NumEvents]uint64
	Drops  [NumDrops]uint64
	// Sum are those of the adapter, where these are of one queue pair.
	Sum *Counters
}

// Count counts an event, for the queue pair and for the adapter.
func (c *Config) Count(e Event) {
	c.Counters.Events[e]++
	if sum := c.Counters.Sum; sum != nil {
		sum.Events[e]++
	}
}

// CountFailure counts a request that ended with st as a [SendErr] if the cause is
// on this side: what the peer refused, or never answered, was sent well.
func (c *Config) CountFailure(st ib.WCStatus) {
	switch st {
	case ib.LocLenErr, ib.LocQPOpErr, ib.LocProtErr, ib.LocAccessErr, ib.MWBindErr:
		c.Count(SendErr)
	default:
	}
}
