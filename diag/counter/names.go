package counter

// Described is a canonical name with what it counts.
type Described struct {
	Name  Name
	Help  string // one sentence
	Level bool   // it goes up and down
}

// Names returns every canonical name, in the order of the operator's interest.
func Names() []Described {
	return []Described{
		{ECNMarkedRx, "Packets that came with congestion experienced.", false},
		{CNPTx, "Congestion notifications sent.", false},
		{CNPRxHandled, "Congestion notifications received and obeyed.", false},
		{CNPRxIgnored, "Congestion notifications received and not obeyed.", false},
		{OOSRx, "Requests that arrived out of sequence (responder).", false},
		{NAKSeqRx, "NAKs received for a sequence error (requester).", false},
		{NAKSeqImplied, "Losses seen from a response out of order (requester).", false},
		{ACKTimeout, "Acknowledgements that did not come in time (requester).", false},
		{RetryExceeded, "Requests given up after all retries (requester).", false},
		{RNRNAKRx, "NAKs received since the receiver was not ready (requester).", false},
		{RNRTx, "Requests that met no posted receive (responder).", false},
		{RNRRetryExceeded, "Requests given up on a receiver that was never ready (requester).", false},
		{DuplicateRx, "Requests that had been executed already (responder).", false},
		{ICRCErr, "Packets with a wrong invariant CRC.", false},
		{AdaptiveRetrans, "Adaptive retransmissions.", false},
		{SlowRestart, "Times that slow restart was used.", false},
		{ActiveQPs, "Queue pairs in use.", true},
		{RemoteAccessErr, "Requests refused for key, range or rights (requester).", false},
		{RemoteInvalidReqErr, "Requests refused as malformed (requester).", false},
		{RemoteOpErr, "Requests at which the responder failed (requester).", false},
		{LocalLengthErr, "Messages longer than their receive (responder).", false},
		{ReqCQEErr, "Completions in error (requester).", false},
		{ReqCQEFlush, "Completions flushed (requester).", false},
		{RespCQEErr, "Completions in error (responder).", false},
		{RespCQEFlush, "Completions flushed (responder).", false},
		{RespAccessErr, "Accesses of peers that were refused (responder).", false},
		{ReadReqRx, "READ requests received.", false},
		{WriteReqRx, "WRITE requests received.", false},
		{AtomicReqRx, "ATOMIC requests received.", false},
		{TxPackets, "RDMA packets sent.", false},
		{RxPackets, "RDMA packets received.", false},
		{TxBytes, "RDMA bytes sent.", false},
		{RxBytes, "RDMA bytes received.", false},
		{RxDiscards, "RDMA packets dropped on arrival.", false},
		{RxErrors, "RDMA packets malformed on arrival.", false},
	}
}
