package ib

import "fmt"

// EventType is the kind of an asynchronous event.
type EventType uint8

// The events, with libibverbs' numbers (ibv_event_type).
const (
	EventCQErr            EventType = 0 // a completion queue overflowed
	EventQPFatal          EventType = 1
	EventQPReqErr         EventType = 2 // the peer's request was invalid
	EventQPAccessErr      EventType = 3 // the peer's request violated access rights
	EventCommEst          EventType = 4 // first packet while in RTR
	EventSQDrained        EventType = 5 // asked for with QPAttr.SQDAsyncNotify
	EventPathMig          EventType = 6
	EventPathMigErr       EventType = 7
	EventDeviceFatal      EventType = 8
	EventPortActive       EventType = 9
	EventPortErr          EventType = 10
	EventLIDChange        EventType = 11
	EventPKeyChange       EventType = 12
	EventSMChange         EventType = 13
	EventSRQErr           EventType = 14
	EventSRQLimitReached  EventType = 15
	EventQPLastWQEReached EventType = 16
	EventClientReregister EventType = 17
	EventGIDChange        EventType = 18
	// EventPathMTU is Verbena's own: the route to a peer carries less than the
	// QP's path MTU.
	EventPathMTU EventType = 64
	// EventNoNeighbour is Verbena's own: the host that is to get the packets for a
	// peer, itself or a router, does not answer ARP or neighbour discovery.
	EventNoNeighbour EventType = 65
)

var eventNames = [...]string{
	EventCQErr: "CQ_ERR", EventQPFatal: "QP_FATAL", EventQPReqErr: "QP_REQ_ERR",
	EventQPAccessErr: "QP_ACCESS_ERR", EventCommEst: "COMM_EST", EventSQDrained: "SQ_DRAINED",
	EventPathMig: "PATH_MIG", EventPathMigErr: "PATH_MIG_ERR", EventDeviceFatal: "DEVICE_FATAL",
	EventPortActive: "PORT_ACTIVE", EventPortErr: "PORT_ERR", EventLIDChange: "LID_CHANGE",
	EventPKeyChange: "PKEY_CHANGE", EventSMChange: "SM_CHANGE", EventSRQErr: "SRQ_ERR",
	EventSRQLimitReached: "SRQ_LIMIT_REACHED", EventQPLastWQEReached: "QP_LAST_WQE_REACHED",
	EventClientReregister: "CLIENT_REREGISTER", EventGIDChange: "GID_CHANGE",
	EventPathMTU: "PATH_MTU_TOO_LARGE", EventNoNeighbour: "NO_NEIGHBOUR",
}

func (t EventType) String() string {
	if int(t) < len(eventNames) && eventNames[t] != "" {
		return eventNames[t]
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

// Event is an asynchronous event of an adapter. Element is the number of the
// QP, CQ or port that it concerns.
type Event struct {
	Type    EventType
	Element uint32
	Detail  string // what a person should know; may be empty
}
