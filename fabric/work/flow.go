package work

import "github.com/verbena-rdma/verbena/fabric/sim"

// Op is what a flow does.
type Op uint8

// The operations. Sizes are those of the data that moves; of a READ it moves
// from Dst to Src.
const (
	Write Op = iota
	Send
	Read
	TCP // lossy class, no RDMA
)

// Flow is data that moves from one endpoint to another: Bytes at Start, or
// after another flow.
type Flow struct {
	ID    int32 // its index
	Src   int32 // endpoints of the graph
	Dst   int32
	Bytes int64
	Start sim.Time
	Op    Op
	// Service is RC, UC or UD: 0, 1, 2.
	Service uint8
	// Prio is the priority it is sent in; DSCP its code point. -1: the
	// scenario's for the class.
	Prio int8
	DSCP int8
	// QPs spreads it over several queue pairs; 0 means 1.
	QPs int16
	// QP names the queue pair that flows of one Src and Dst share, so that
	// they start at the rate at which the last one ended; 0: its own.
	QP int32
	// SrcPort is the UDP source port; 0: a function of the queue pair.
	SrcPort uint16
	// After lists flows that must have finished before Start counts, which is
	// a delay then. Ring and tree steps.
	After []int32
	// Group names what the flow is part of ("incast", "victim"), for tables.
	Group string
	// Message cuts it into messages of so many bytes, posted one behind the
	// other; 0: one.
	Message int64
	// Rate limits each queue pair; 0: not.
	Rate sim.Rate
	// Endless flows are not waited for.
	Endless bool
}

// String returns "WRITE", "SEND", "READ" or "TCP".
func (o Op) String() string {
	switch o {
	case Send:
		return "SEND"
	case Read:
		return "READ"
	case TCP:
		return "TCP"
	case Write:
	}
	return "WRITE"
}
