package mad

import "fmt"

// Reason says why a message was rejected (IBA vol.1 table 104).
type Reason uint16

// The reasons. What the additional information of a REJ holds, where there is
// any, is in brackets.
const (
	RejNoQP                  Reason = 1
	RejNoEEC                 Reason = 2
	RejNoResources           Reason = 3
	RejTimeout               Reason = 4 // [CA GUID of the sender]
	RejUnsupported           Reason = 5
	RejInvalidCommID         Reason = 6
	RejInvalidCommInstance   Reason = 7
	RejInvalidServiceID      Reason = 8
	RejInvalidTransport      Reason = 9
	RejStaleConnection       Reason = 10
	RejRDCNotExist           Reason = 11
	RejPrimaryGID            Reason = 12 // [acceptable GID]
	RejPrimaryLID            Reason = 13 // [acceptable LID]
	RejPrimarySL             Reason = 14 // [acceptable SL]
	RejPrimaryTrafficClass   Reason = 15 // [acceptable traffic class]
	RejPrimaryHopLimit       Reason = 16 // [acceptable hop limit]
	RejPrimaryPacketRate     Reason = 17 // [acceptable packet rate]
	RejAlternateGID          Reason = 18
	RejAlternateLID          Reason = 19
	RejAlternateSL           Reason = 20
	RejAlternateTrafficClass Reason = 21
	RejAlternateHopLimit     Reason = 22
	RejAlternatePacketRate   Reason = 23
	RejPortCMRedirect        Reason = 24 // [ClassPortInfo]
	RejPortRedirect          Reason = 25 // [GID of the port]
	RejInvalidMTU            Reason = 26 // [acceptable MTU, coded as in a REQ]
	RejInsufficientResources Reason = 27 // responder resources
	RejConsumer              Reason = 28
	RejRNRRetryCount         Reason = 29
	RejDuplicateCommID       Reason = 30
	RejInvalidClassVersion   Reason = 31 // [supported version]
	RejFlowLabel             Reason = 32 // [acceptable flow label]
	RejAlternateFlowLabel    Reason = 33
	RejVendorOption          Reason = 35
)

var reasonNames = [...]string{
	RejNoQP: "no QP available", RejNoEEC: "no EEC available", RejNoResources: "no resources available",
	RejTimeout: "timeout", RejUnsupported: "unsupported request", RejInvalidCommID: "invalid communication ID",
	RejInvalidCommInstance: "invalid communication instance", RejInvalidServiceID: "nobody listens there: invalid service ID",
	RejInvalidTransport: "invalid transport service type", RejStaleConnection: "stale connection", RejRDCNotExist: "RDC does not exist",
	RejPrimaryGID: "primary remote port GID rejected", RejPrimaryLID: "primary remote port LID rejected",
	RejPrimarySL: "invalid primary SL", RejPrimaryTrafficClass: "invalid primary traffic class",
	RejPrimaryHopLimit: "invalid primary hop limit", RejPrimaryPacketRate: "invalid primary packet rate",
	RejAlternateGID: "alternate remote port GID rejected", RejAlternateLID: "alternate remote port LID rejected",
	RejAlternateSL: "invalid alternate SL", RejAlternateTrafficClass: "invalid alternate traffic class",
	RejAlternateHopLimit: "invalid alternate hop limit", RejAlternatePacketRate: "invalid alternate packet rate",
	RejPortCMRedirect: "port and CM redirection", RejPortRedirect: "port redirection", RejInvalidMTU: "invalid path MTU",
	RejInsufficientResources: "insufficient responder resources", RejConsumer: "rejected by the consumer",
	RejRNRRetryCount: "RNR retry count rejected", RejDuplicateCommID: "duplicate local communication ID",
	RejInvalidClassVersion: "invalid class version", RejFlowLabel: "invalid primary flow label",
	RejAlternateFlowLabel: "invalid alternate flow label", RejVendorOption: "vendor option not supported",
}

func (r Reason) String() string {
	if int(r) < len(reasonNames) && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return fmt.Sprintf("reject reason %d", uint16(r))
}
