package counter

import (
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Name is a canonical name of a hardware counter of a port.
type Name string

// Canonical names. Requester is who sends requests, responder who executes them;
// errors are counted at the requester for the most part.
const (
	ECNMarkedRx      Name = "ecn_marked_rx"      // packets that came with congestion experienced
	CNPTx            Name = "cnp_tx"             // congestion notifications sent
	CNPRxHandled     Name = "cnp_rx_handled"     // congestion notifications received and obeyed
	CNPRxIgnored     Name = "cnp_rx_ignored"     // congestion notifications received and not obeyed
	OOSRx            Name = "oos_rx"             // responder: requests out of sequence
	NAKSeqRx         Name = "nak_seq_rx"         // requester: NAKs for a sequence error
	NAKSeqImplied    Name = "nak_seq_implied"    // requester: loss seen from a response out of order
	ACKTimeout       Name = "ack_timeout"        // requester: timer expired
	RetryExceeded    Name = "retry_exceeded"     // requester: gave up
	RNRNAKRx         Name = "rnr_nak_rx"         // requester: receiver was not ready
	RNRTx            Name = "rnr_tx"             // responder: no receive was posted
	RNRRetryExceeded Name = "rnr_retry_exceeded" // requester: gave up on a receiver
	DuplicateRx      Name = "duplicate_rx"       // responder: requests that it had executed
	ICRCErr          Name = "icrc_err"           // packets with a wrong invariant CRC
	AdaptiveRetrans  Name = "adp_retrans"
	SlowRestart      Name = "slow_restart"
	ActiveQPs        Name = "active_qps" // a level, not a counter

	RemoteAccessErr     Name = "remote_access_err"      // requester: refused for key, range or rights
	RemoteInvalidReqErr Name = "remote_invalid_req_err" // requester: refused as malformed
	RemoteOpErr         Name = "remote_op_err"          // requester: the responder failed
	LocalLengthErr      Name = "local_length_err"       // responder: message longer than its receive
	ReqCQEErr           Name = "req_cqe_err"            // requester: completions in error
	ReqCQEFlush         Name = "req_cqe_flush"          // requester: completions flushed
	RespCQEErr          Name = "resp_cqe_err"           // responder: completions in error
	RespCQEFlush        Name = "resp_cqe_flush"         // responder: completions flushed
	RespAccessErr       Name = "resp_remote_access_err" // responder: refused a peer's access
	ReadReqRx           Name = "read_requests_rx"       // responder
	WriteReqRx          Name = "write_requests_rx"      // responder
	AtomicReqRx         Name = "atomic_requests_rx"     // responder
	TxPackets           Name = "tx_packets"             // RDMA packets sent
	RxPackets           Name = "rx_packets"             // RDMA packets received
	TxBytes             Name = "tx_bytes"               // RDMA bytes sent
	RxBytes             Name = "rx_bytes"               // RDMA bytes received
	RxDiscards          Name = "rx_discards"            // RDMA packets dropped on arrival
	RxErrors            Name = "rx_errors"              // RDMA packets malformed on arrival
)

// Family is a group of drivers that use the same names.
type Family string

// Families.
const (
	MLX5    Family = "mlx5"
	BNXT    Family = "bnxt_re"
	IRDMA   Family = "irdma"
	RXE     Family = "rxe"
	Verbena Family = "verbena"
	Unknown Family = "" // any name of any table
)

// Of returns the family of a device, by its driver, else by the start of its name.
func Of(d *snapshot.Device) Family {
	if d.Kind == snapshot.Verbena || d.Kind == snapshot.Sim {
		return Verbena
	}
	if f := OfDriver(d.Driver.Or("")); f != Unknown {
		return f
	}
	return OfDriver(d.Name)
}

// OfDriver returns the family of a driver's name: mlx5_core, bnxt_en, ice, rdma_rxe.
func OfDriver(driver string) Family {
	switch {
	case strings.HasPrefix(driver, "mlx5"):
		return MLX5
	case strings.HasPrefix(driver, "bnxt"):
		return BNXT
	case strings.HasPrefix(driver, "irdma"), driver == "ice", driver == "i40e", driver == "idpf":
		return IRDMA
	case strings.HasPrefix(driver, "rdma_rxe"), strings.HasPrefix(driver, "rxe"):
		return RXE
	case strings.HasPrefix(driver, "verbena"):
		return Verbena
	}
	return Unknown
}

// Canonical returns the canonical name of a hardware counter. Without a family every
// table is asked; their names do not contradict each other.
func Canonical(f Family, raw string) (Name, bool) {
	if f == MLX5 || f == Unknown {
		raw = strings.TrimPrefix(raw, "vport_") // of representors
	}
	for _, t := range tables {
		if !t.of(f) {
			continue
		}
		if n, ok := t.names[raw]; ok {
			return n, true
		}
	}
	return "", false
}

// Get returns the sum of the counters of a port that have a canonical name: drivers
// split some in two. It is absent if there is none, and unreadable if one of them is.
func Get(f Family, c snapshot.Counters, name Name) snapshot.Value[uint64] {
	var sum snapshot.Value[uint64]
	for i := range c {
		if n, ok := Canonical(f, c[i].Name); !ok || n != name {
			continue
		}
		v, ok := c[i].Value.Get()
		if !ok {
			return c[i].Value
		}
		sum = snapshot.Known(sum.Or(0) + v)
	}
	return sum
}

// Raw returns the names under which a set of counters has a canonical one.
func Raw(f Family, c snapshot.Counters, name Name) []string {
	var all []string
	for i := range c {
		if n, ok := Canonical(f, c[i].Name); ok && n == name {
			all = append(all, c[i].Name)
		}
	}
	return all
}

// RawName returns the name that drivers of a family give a counter, the first in
// alphabetical order where they have several; empty if they do not count it.
func RawName(f Family, name Name) string {
	best := ""
	for _, t := range tables {
		if !t.of(f) {
			continue
		}
		for raw, n := range t.names {
			if n == name && (best == "" || raw < best) {
				best = raw
			}
		}
	}
	return best
}
