package handshake

// Plan is the order of steps of one perftest program, between Open and the end:
//
//	bandwidth of WRITE, READ, ATOMIC    Keys, connect, Keys, Sync; run; Sync, Reports, Done
//	bandwidth of SEND                   Keys, connect, Sync, Keys; a size: Sync, run [, Sync]; Done
//	latency of WRITE, READ, ATOMIC      Sync, Keys, connect, Keys, Sync; run; [Done]
//	latency of SEND                     Keys, connect, Sync, Keys; a size: Sync, run; Done
//
// In one-sided programs that send one way the server takes no part in the run:
// it waits in the Sync that ends it. In bidirectional bandwidth programs of
// one-sided operations each size begins with a Sync and ends with Reports (in
// sweeps with a Sync before them), and the final Sync and Reports fall away.
type Plan struct {
	// FirstSync: a key is exchanged once before the keys of all QPs.
	FirstSync bool
	// EarlySync: the Sync after connecting comes before the second keys, not after.
	EarlySync bool
	// SizeSync: each size begins with a Sync in every mode, because receives
	// must be posted before the peer sends.
	SizeSync bool
	// SizeEndSync: in sweeps each size ends with a Sync.
	SizeEndSync bool
	// Reports: the ends exchange what they measured.
	Reports bool
	// Done: the program ends with Done; otherwise the connection just closes.
	Done bool
}

// Verb is the operation that a program measures.
type Verb uint8

// The operations.
const (
	Write Verb = iota
	Read
	Send
	Atomic
)

func (v Verb) String() string {
	return [...]string{"write", "read", "send", "atomic"}[v&3]
}

// PlanOf returns the plan of ib_<verb>_lat or ib_<verb>_bw.
func PlanOf(v Verb, latency bool) Plan {
	switch {
	case v == Send && latency:
		return Plan{EarlySync: true, SizeSync: true, Done: true}
	case v == Send:
		return Plan{EarlySync: true, SizeSync: true, SizeEndSync: true, Reports: true, Done: true}
	case latency:
		return Plan{FirstSync: true, Done: v != Write}
	}
	return Plan{SizeEndSync: true, Reports: true, Done: true}
}
