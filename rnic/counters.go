package rnic

import (
	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire"
)

// dropReason is why the adapter has discarded a packet before any engine saw
// it. Every packet received is counted once: as received by a queue pair (and
// there perhaps under a [transport.Drop]), or under one of these.
type dropReason uint8

const (
	dropShort      dropReason = iota // shorter than BTH and ICRC, or than its headers
	dropVersion                      // transport version
	dropBadOpcode                    // reserved, or of a service that is not spoken
	dropBadPad                       // more pad than bytes
	dropBadLength                    // not a multiple of 4, or bytes that the opcode does not have
	dropICRC                         // wrong ICRC
	dropNoQP                         // no queue pair of that number
	dropAddress                      // sent to an address that no row of the GID table holds
	dropManagement                   // for QP 0, or for QP 1 where nobody serves it
	dropMulticast                    // for a multicast group that nobody is attached to
	numDropReasons
)

var dropReasonNames = [numDropReasons]string{
	"drop_short", "drop_version", "drop_bad_opcode", "drop_bad_pad", "drop_bad_length", "drop_icrc",
	"drop_no_qp", "drop_address", "drop_management", "drop_multicast",
}

var reasonDrops = [wire.NumReasons]dropReason{
	wire.ReasonShort:      dropShort,
	wire.ReasonBadVersion: dropVersion,
	wire.ReasonBadOpcode:  dropBadOpcode,
	wire.ReasonBadPad:     dropBadPad,
	wire.ReasonBadLength:  dropBadLength,
}

func dropOf(r wire.Reason) dropReason { return reasonDrops[r] }

// counters are what the adapter itself counts.
type counters struct {
	sentPkts, rcvdPkts   uint64
	sentBytes, rcvdBytes uint64 // BTH to ICRC
	sentRuns             uint64
	txCopied, rxCopied   uint64 // payload bytes between registered memory and the link's buffers
	sendErr              uint64 // packets that could not be sent: no address handle, too long
	icrcSolved           uint64 // packets whose IPv4 Identification was solved from the ICRC
	ecnMarked            uint64 // packets with Congestion Experienced
	fecn, becn, cnp      uint64
	npSent               uint64 // CNPs sent
	rpHandled, rpIgnored uint64 // notifications that a reaction point has taken, or none
	cqeLost              uint64 // completions for a completion queue that was full or had been
	drops                [numDropReasons]uint64
}

func (c *counters) drop(r dropReason) { c.drops[r]++ }

// Stat is one counter.
type Stat struct {
	Name  string
	Value uint64
}

// Stats is a list of counters in a fixed order under stable names: first those
// of Linux' rxe driver, as it names them, then the others, those of DCQCN under
// mlx5's names.
type Stats []Stat

// Get returns the value of a counter; 0 if there is none of that name.
func (s Stats) Get(name string) uint64 {
	for i := range s {
		if s[i].Name == name {
			return s[i].Value
		}
	}
	return 0
}

// Stats returns all counters. Owner.
func (a *Adapter) Stats() Stats { return a.AppendStats(make(Stats, 0, 128)) }

// AppendStats appends all counters to s. Owner.
func (a *Adapter) AppendStats(s Stats) Stats {
	c, t := &a.count, &a.tcount
	s = append(s, Stats{
		{"sent_pkts", c.sentPkts},
		{"rcvd_pkts", c.rcvdPkts},
		{"duplicate_request", t.Events[transport.DuplicateRequest]},
		{"out_of_seq_request", t.Events[transport.OutOfSeqRequest]},
		{"rcvd_rnr_err", t.Events[transport.RcvdRNRErr]},
		{"send_rnr_err", t.Events[transport.SendRNRErr]},
		{"rcvd_seq_err", t.Events[transport.RcvdSeqErr]},
		{"ack_deferred", t.Events[transport.AckDeferred]},
		{"retry_exceeded_err", t.Events[transport.RetryExceededErr]},
		{"retry_rnr_exceeded_err", t.Events[transport.RetryRNRExceeded]},
		{"completer_retry_err", t.Events[transport.CompleterRetryErr]},
		{"send_err", t.Events[transport.SendErr] + c.sendErr},
		{"link_downed", 0},
		{"rdma_sends", t.Events[transport.RDMASends]},
		{"rdma_recvs", t.Events[transport.RDMARecvs]},

		{"sent_bytes", c.sentBytes},
		{"rcvd_bytes", c.rcvdBytes},
		{"sent_runs", c.sentRuns},
		{"retransmitted", t.Events[transport.Retransmitted]},
		{"local_ack_timeout_err", t.Events[transport.LocalAckTimeoutErr]},
		{"implied_nak_seq_err", t.Events[transport.ImpliedNakSeqErr]},
		{"packet_seq_err", t.Events[transport.PacketSeqErr]},
		{"icrc_solved", c.icrcSolved},
		{"rcvd_ecn_marked", c.ecnMarked},
		{"rcvd_fecn", c.fecn},
		{"rcvd_becn", c.becn},
		{"rcvd_cnp", c.cnp},
		{"np_ecn_marked_roce_packets", c.ecnMarked},
		{"np_cnp_sent", c.npSent},
		{"rp_cnp_handled", c.rpHandled},
		{"rp_cnp_ignored", c.rpIgnored},
		{"cqe_lost", c.cqeLost},
		{"events_lost", a.events.lost},
		{"tx_copied_bytes", c.txCopied},
		{"rx_copied_bytes", c.rxCopied},

		{"req_cqe_error", t.Events[transport.ReqCQEErr]},
		{"req_cqe_flush_error", t.Events[transport.ReqCQEFlush]},
		{"resp_cqe_error", t.Events[transport.RespCQEErr]},
		{"resp_cqe_flush_error", t.Events[transport.RespCQEFlush]},
		{"req_remote_access_errors", t.Events[transport.RemoteAccessErr]},
		{"req_remote_invalid_request", t.Events[transport.RemoteInvalidReqErr]},
		{"remote_op_err", t.Events[transport.RemoteOpErr]},
		{"resp_local_length_error", t.Events[transport.LocalLengthErr]},
		{"resp_remote_access_errors", t.Events[transport.RespAccessErr]},
	}...)
	for r, v := range c.drops {
		s = append(s, Stat{dropReasonNames[r], v})
	}
	for d := transport.DropNone + 1; d < transport.NumDrops; d++ {
		s = append(s, Stat{engineDropNames[d], t.Drops[d]})
	}
	if a.ether != nil {
		s = a.ether.stats(s)
	}
	return s
}

var engineDropNames = func() (n [transport.NumDrops]string) {
	for d := range n {
		n[d] = "drop_" + transport.Drop(d).String()
	}
	return n
}()
