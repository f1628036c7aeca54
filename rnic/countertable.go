package rnic

import (
	"iter"
	"strconv"
	"unsafe"

	"github.com/verbena-rdma/verbena/transport"
	"github.com/verbena-rdma/verbena/wire/ether"
)

// qpCounts count what one queue pair sent, received and met.
type qpCounts struct {
	engine               transport.Counters
	sentPkts, rcvdPkts   uint64
	sentBytes, rcvdBytes uint64 // BTH to ICRC
	ecnMarked            uint64
	cnp, npSent          uint64
	rpHandled, rpIgnored uint64
}

// countedQP is a queue pair whose counters are asked for. Those of a simulated
// fabric have none, and no room for a pointer either.
type countedQP struct {
	QP
	counts qpCounts
}

// newQP allocates a queue pair.
func (a *Adapter) newQP() *QP {
	if !a.cfg.CountQPs {
		return new(QP)
	}
	c := new(countedQP)
	c.flags = qpCounted
	return &c.QP
}

// own returns the queue pair's counters, or some that nobody reads.
func (q *QP) own() *qpCounts {
	if q.flags&qpCounted == 0 {
		return &q.a.scratch.unread
	}
	return &(*countedQP)(unsafe.Pointer(q)).counts // newQP says that it is one
}

func (c *qpCounts) sent(packets, bytes int) {
	c.sentPkts += uint64(packets)
	c.sentBytes += uint64(bytes)
}

func (c *qpCounts) received(bytes int, marked bool) {
	c.rcvdPkts++
	c.rcvdBytes += uint64(bytes)
	if marked {
		c.ecnMarked++
	}
}

// dropped counts a packet for q that was discarded.
func (q *QP) dropped(d transport.Drop) {
	if d < transport.NumDrops {
		q.a.tcount.Drops[d]++
		q.own().engine.Drops[d]++
	}
}

// CounterInfo says what a counter is.
type CounterInfo struct {
	Name string // canonical
	MLX5 string // the same thing in mlx5_core and mlx5_ib; "" where they have none
	Rxe  string // … in rdma_rxe
	Ours string // in [Adapter.Stats]; "" where it is not there, or under a name above
	Unit string // packets, bytes, messages, …
	What string // what is counted, and where
	// PerQP says that queue pairs have it too.
	PerQP bool
	// Gauge is a level and can fall. All others only grow; they are 64 bits wide
	// and begin with 0.
	Gauge bool
}

// is reports whether the counter answers to a name in any vocabulary.
func (c *CounterInfo) is(name string) bool {
	return name != "" && (c.Name == name || c.MLX5 == name || c.Rxe == name || c.Ours == name)
}

// counterRow is a row of the table: what a counter is, and where its value is.
type counterRow struct {
	CounterInfo
	get func(a *Adapter) uint64
	qp  func(c *qpCounts) uint64 // nil: queue pairs have none
	// ether counters exist on links that carry whole frames.
	ether bool
}

// maxCounters is the room of a snapshot; a test compares it with the table.
const maxCounters = 96

// Counters is a snapshot of the counters of an adapter or of a queue pair. It
// is a plain value. The zero Counters are all 0.
type Counters struct {
	v     [maxCounters]uint64
	perQP bool
	ether bool
}

// ReadCounters takes a snapshot of the adapter's counters: a copy of some
// hundred bytes, whatever the number of queue pairs. Owner.
func (a *Adapter) ReadCounters(c *Counters) {
	c.perQP, c.ether = false, a.ether != nil
	for i := range counterTable {
		if r := &counterTable[i]; !r.ether || c.ether {
			c.v[i] = r.get(a)
		}
	}
}

// ReadQPCounters takes a snapshot of a queue pair's counters, which are kept
// where [Config].CountQPs says so; else they are all 0. Owner.
func (a *Adapter) ReadQPCounters(q *QP, c *Counters) {
	*c = Counters{perQP: true}
	if !a.cfg.CountQPs {
		return
	}
	for i := range counterTable {
		if r := &counterTable[i]; r.qp != nil {
			c.v[i] = r.qp(q.own())
		}
	}
}

// has reports whether the snapshot has a row of the table.
func (c *Counters) has(r *counterRow) bool {
	return (!c.perQP || r.qp != nil) && (!r.ether || c.ether)
}

// All goes through the counters in the order of the table: always the same.
func (c *Counters) All() iter.Seq2[CounterInfo, uint64] {
	return func(yield func(CounterInfo, uint64) bool) {
		for i := range counterTable {
			if r := &counterTable[i]; c.has(r) && !yield(r.CounterInfo, c.v[i]) {
				return
			}
		}
	}
}

// Get returns the counter of a name, which may be the canonical one, mlx5's,
// rxe's or that of [Adapter.Stats]; ok says whether the snapshot has it.
func (c *Counters) Get(name string) (v uint64, ok bool) {
	for i := range counterTable {
		if r := &counterTable[i]; r.is(name) && c.has(r) {
			return c.v[i], true
		}
	}
	return 0, false
}

// Add adds another snapshot: for a device of several adapters.
func (c *Counters) Add(o *Counters) {
	c.ether = c.ether || o.ether
	for i := range c.v {
		c.v[i] += o.v[i]
	}
}

// Sub returns what has been counted since an earlier snapshot of the same
// object. Gauges stay as they are.
func (c *Counters) Sub(before *Counters) Counters {
	d := *c
	for i := range counterTable {
		if !counterTable[i].Gauge {
			d.v[i] -= before.v[i]
		}
	}
	return d
}

// CounterList returns what each counter is, in the order of [Counters.All]. Those
// of PFC and of whole frames exist on links that carry these.
func CounterList() []CounterInfo {
	list := make([]CounterInfo, len(counterTable))
	for i := range counterTable {
		list[i] = counterTable[i].CounterInfo
	}
	return list
}

// counterTable is every counter. It is never written.
var counterTable = makeCounterTable()

func makeCounterTable() []counterRow {
	t := append(trafficRows(), protocolRows()...)
	t = append(t, congestionRows()...)
	t = append(t, houseRows()...)
	for d, name := range dropReasonNames {
		t = append(t, counterRow{
			CounterInfo: CounterInfo{Name: name, MLX5: map[dropReason]string{dropICRC: "rx_icrc_encapsulated"}[dropReason(d)], Unit: "packets", What: dropWhat[d]},
			get:         func(a *Adapter) uint64 { return a.count.drops[d] },
		})
	}
	for d := transport.DropNone + 1; d < transport.NumDrops; d++ {
		t = append(t, counterRow{
			CounterInfo: CounterInfo{Name: engineDropNames[d], Unit: "packets", What: engineDropWhat[d], PerQP: true},
			get:         func(a *Adapter) uint64 { return a.tcount.Drops[d] },
			qp:          func(c *qpCounts) uint64 { return c.engine.Drops[d] },
		})
	}
	return append(t, etherRows()...)
}

// trafficRows are packets, bytes and messages.
func trafficRows() []counterRow {
	return []counterRow{
		{
			CounterInfo: CounterInfo{Name: "packets_tx", MLX5: "rdma_tx_packets", Rxe: "sent_pkts", Unit: "packets", What: "sent, ACKs and CNPs included", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.sentPkts },
			qp:          func(c *qpCounts) uint64 { return c.sentPkts },
		},
		{
			CounterInfo: CounterInfo{Name: "packets_rx", MLX5: "rdma_rx_packets", Rxe: "rcvd_pkts", Unit: "packets", What: "received with a right ICRC for a queue pair that exists", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.rcvdPkts },
			qp:          func(c *qpCounts) uint64 { return c.rcvdPkts },
		},
		{
			CounterInfo: CounterInfo{Name: "bytes_tx", MLX5: "rdma_tx_bytes", Ours: "sent_bytes", Unit: "bytes", What: "of packets_tx, from BTH to ICRC", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.sentBytes },
			qp:          func(c *qpCounts) uint64 { return c.sentBytes },
		},
		{
			CounterInfo: CounterInfo{Name: "bytes_rx", MLX5: "rdma_rx_bytes", Ours: "rcvd_bytes", Unit: "bytes", What: "of packets_rx, from BTH to ICRC", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.rcvdBytes },
			qp:          func(c *qpCounts) uint64 { return c.rcvdBytes },
		},
		event(transport.RDMASends, CounterInfo{Name: "sends", Rxe: "rdma_sends", Unit: "messages", What: "requester: SENDs completed"}),
		event(transport.RDMARecvs, CounterInfo{Name: "recvs", Rxe: "rdma_recvs", Unit: "messages", What: "responder: receives completed"}),
		event(transport.Retransmitted, CounterInfo{Name: "retransmitted", Ours: "retransmitted", Unit: "packets", What: "requester: request packets sent again"}),
	}
}

// event is the row of something that engines count.
func event(e transport.Event, info CounterInfo) counterRow {
	info.PerQP = true
	return counterRow{
		CounterInfo: info,
		get:         func(a *Adapter) uint64 { return a.tcount.Events[e] },
		qp:          func(c *qpCounts) uint64 { return c.engine.Events[e] },
	}
}

// protocolRows are the errors and retries of the protocol.
func protocolRows() []counterRow {
	sendErr := event(transport.SendErr, CounterInfo{Name: "send_err", Rxe: "send_err", Unit: "packets", What: "could not be sent: no address handle, too long, or a local error"})
	sendErr.get = func(a *Adapter) uint64 { return a.tcount.Events[transport.SendErr] + a.count.sendErr }
	return []counterRow{
		event(transport.DuplicateRequest, CounterInfo{Name: "duplicate_rx", MLX5: "duplicate_request", Rxe: "duplicate_request", Unit: "packets", What: "responder: requests that had come before: our ACK or response was lost, or late"}),
		event(transport.OutOfSeqRequest, CounterInfo{Name: "oos_rx", MLX5: "out_of_sequence", Rxe: "out_of_seq_request", Unit: "packets", What: "responder: requests after one that is missing: the peer's packet was lost"}),
		event(transport.PacketSeqErr, CounterInfo{Name: "nak_seq_rx", MLX5: "packet_seq_err", Rxe: "rcvd_seq_err", Unit: "NAKs", What: "requester: the peer says that a packet of ours is missing"}),
		event(transport.ImpliedNakSeqErr, CounterInfo{Name: "nak_seq_implied", MLX5: "implied_nak_seq_err", Unit: "times", What: "requester: an answer skipped a READ or atomic response, which was lost"}),
		event(transport.LocalAckTimeoutErr, CounterInfo{Name: "ack_timeout", MLX5: "local_ack_timeout_err", Unit: "times", What: "requester: no answer within the local ACK timeout"}),
		event(transport.CompleterRetryErr, CounterInfo{Name: "retries", Rxe: "completer_retry_err", Unit: "times", What: "requester: went back and sent again, of whatever cause but RNR"}),
		event(transport.RetryExceededErr, CounterInfo{Name: "retry_exceeded", MLX5: "req_transport_retries_exceeded", Rxe: "retry_exceeded_err", Unit: "requests", What: "requester: given up with RETRY_EXC_ERR; the queue pair is in Error"}),
		event(transport.SendRNRErr, CounterInfo{Name: "rnr_tx", MLX5: "out_of_buffer", Rxe: "send_rnr_err", Unit: "NAKs", What: "responder: no receive was posted"}),
		event(transport.RcvdRNRErr, CounterInfo{Name: "rnr_nak_rx", MLX5: "rnr_nak_retry_err", Rxe: "rcvd_rnr_err", Unit: "NAKs", What: "requester: the peer has posted no receive"}),
		event(transport.RetryRNRExceeded, CounterInfo{Name: "rnr_retry_exceeded", MLX5: "req_rnr_retries_exceeded", Rxe: "retry_rnr_exceeded_err", Unit: "requests", What: "requester: given up with RNR_RETRY_EXC_ERR"}),
		event(transport.AckDeferred, CounterInfo{Name: "ack_deferred", Rxe: "ack_deferred", Unit: "ACKs", What: "nothing is deferred here: 0"}),
		event(transport.ReqCQEErr, CounterInfo{Name: "req_cqe_err", MLX5: "req_cqe_error", Unit: "completions", What: "requester: in error, of whatever status, flushed ones too"}),
		event(transport.ReqCQEFlush, CounterInfo{Name: "req_cqe_flush", MLX5: "req_cqe_flush_error", Unit: "completions", What: "requester: WR_FLUSH_ERR: posted behind one that failed"}),
		event(transport.RespCQEErr, CounterInfo{Name: "resp_cqe_err", MLX5: "resp_cqe_error", Unit: "completions", What: "responder: receives in error, of whatever status, flushed ones too"}),
		event(transport.RespCQEFlush, CounterInfo{Name: "resp_cqe_flush", MLX5: "resp_cqe_flush_error", Unit: "completions", What: "responder: receives with WR_FLUSH_ERR"}),
		event(transport.RemoteAccessErr, CounterInfo{Name: "remote_access_err", MLX5: "req_remote_access_errors", Unit: "requests", What: "requester: REM_ACCESS_ERR: the peer refused key, range or rights"}),
		event(transport.RemoteInvalidReqErr, CounterInfo{Name: "remote_invalid_req_err", MLX5: "req_remote_invalid_request", Unit: "requests", What: "requester: REM_INV_REQ_ERR: the peer refused it as malformed, or its receive is too short"}),
		event(transport.RemoteOpErr, CounterInfo{Name: "remote_op_err", Ours: "remote_op_err", Unit: "requests", What: "requester: REM_OP_ERR: the peer could not do it (remote_op_err of bnxt_re)"}),
		event(transport.LocalLengthErr, CounterInfo{Name: "local_length_err", MLX5: "resp_local_length_error", Unit: "messages", What: "responder: LOC_LEN_ERR: longer than the receive that was posted"}),
		event(transport.RespAccessErr, CounterInfo{Name: "resp_remote_access_err", MLX5: "resp_remote_access_errors", Unit: "requests", What: "responder: refused with a NAK for key, range or rights"}),
		sendErr,
		{
			CounterInfo: CounterInfo{Name: "link_downed", MLX5: "link_downed", Rxe: "link_downed", Unit: "times", What: "not watched here: 0"},
			get:         func(*Adapter) uint64 { return 0 },
		},
	}
}

// congestionRows are ECN, CNPs and DCQCN.
func congestionRows() []counterRow {
	return []counterRow{
		{
			CounterInfo: CounterInfo{Name: "ecn_marked_rx", MLX5: "np_ecn_marked_roce_packets", Ours: "rcvd_ecn_marked", Unit: "packets", What: "notification point: came with Congestion Experienced (rx_ecn_marked_pkts of bnxt_re)", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.ecnMarked },
			qp:          func(c *qpCounts) uint64 { return c.ecnMarked },
		},
		{
			CounterInfo: CounterInfo{Name: "cnp_tx", MLX5: "np_cnp_sent", Unit: "packets", What: "notification point: CNPs sent", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.npSent },
			qp:          func(c *qpCounts) uint64 { return c.npSent },
		},
		{
			CounterInfo: CounterInfo{Name: "cnp_rx", Ours: "rcvd_cnp", Unit: "packets", What: "CNPs received", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.cnp },
			qp:          func(c *qpCounts) uint64 { return c.cnp },
		},
		{
			CounterInfo: CounterInfo{Name: "cnp_rx_handled", MLX5: "rp_cnp_handled", Unit: "packets", What: "reaction point: notifications that lowered a rate", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.rpHandled },
			qp:          func(c *qpCounts) uint64 { return c.rpHandled },
		},
		{
			CounterInfo: CounterInfo{Name: "cnp_rx_ignored", MLX5: "rp_cnp_ignored", Unit: "packets", What: "reaction point: notifications that met none: DCQCN is off, or the queue pair does not send", PerQP: true},
			get:         func(a *Adapter) uint64 { return a.count.rpIgnored },
			qp:          func(c *qpCounts) uint64 { return c.rpIgnored },
		},
		{
			CounterInfo: CounterInfo{Name: "fecn_rx", Ours: "rcvd_fecn", Unit: "packets", What: "came with FECN in the BTH"},
			get:         func(a *Adapter) uint64 { return a.count.fecn },
		},
		{
			CounterInfo: CounterInfo{Name: "becn_rx", Ours: "rcvd_becn", Unit: "packets", What: "came with BECN in the BTH"},
			get:         func(a *Adapter) uint64 { return a.count.becn },
		},
	}
}

// houseRows are what only a software adapter has to tell.
func houseRows() []counterRow {
	return []counterRow{
		{
			CounterInfo: CounterInfo{Name: "active_qps", Unit: "queue pairs", What: "that exist now, in whatever state", Gauge: true},
			get:         func(a *Adapter) uint64 { return uint64(a.qps.len()) },
		},
		{
			CounterInfo: CounterInfo{Name: "runs_tx", Ours: "sent_runs", Unit: "runs", What: "of packets, each sent with one call: packets_tx ÷ runs_tx is the batch"},
			get:         func(a *Adapter) uint64 { return a.count.sentRuns },
		},
		{
			CounterInfo: CounterInfo{Name: "copied_tx", Ours: "tx_copied_bytes", Unit: "bytes", What: "of payload copied from registered memory"},
			get:         func(a *Adapter) uint64 { return a.count.txCopied },
		},
		{
			CounterInfo: CounterInfo{Name: "copied_rx", Ours: "rx_copied_bytes", Unit: "bytes", What: "of payload copied to registered memory"},
			get:         func(a *Adapter) uint64 { return a.count.rxCopied },
		},
		{
			CounterInfo: CounterInfo{Name: "icrc_solved", Ours: "icrc_solved", Unit: "packets", What: "whose IPv4 Identification was solved from the ICRC"},
			get:         func(a *Adapter) uint64 { return a.count.icrcSolved },
		},
		{
			CounterInfo: CounterInfo{Name: "cqe_lost", Ours: "cqe_lost", Unit: "completions", What: "for a completion queue that had overflowed"},
			get:         func(a *Adapter) uint64 { return a.count.cqeLost },
		},
		{
			CounterInfo: CounterInfo{Name: "events_lost", Ours: "events_lost", Unit: "events", What: "asynchronous events that nobody fetched in time"},
			get:         func(a *Adapter) uint64 { return a.events.lost },
		},
	}
}

// etherRows exist on links that carry whole frames.
func etherRows() []counterRow {
	row := func(info CounterInfo, get func(e *etherCounters) uint64) counterRow {
		return counterRow{CounterInfo: info, ether: true, get: func(a *Adapter) uint64 { return get(&a.ether.count) }}
	}
	t := []counterRow{
		row(CounterInfo{Name: "drop_envelope", Unit: "frames", What: "Ethernet, IP or UDP header that is none of RoCE"}, func(e *etherCounters) uint64 { return e.envelope }),
		row(CounterInfo{Name: "drop_vlan", Unit: "frames", What: "of another VLAN"}, func(e *etherCounters) uint64 { return e.vlan }),
		row(CounterInfo{Name: "drop_roce_version", Unit: "frames", What: "RoCEv1 for a queue pair of RoCEv2, or the other way"}, func(e *etherCounters) uint64 { return e.version }),
		row(CounterInfo{Name: "global_pause_rx", MLX5: "rx_global_pause", Unit: "frames", What: "PAUSE received: the neighbour stops us"}, func(e *etherCounters) uint64 { return e.rxGlobal }),
		row(CounterInfo{Name: "global_pause_tx", MLX5: "tx_global_pause", Unit: "frames", What: "PAUSE sent: we stop the neighbour"}, func(e *etherCounters) uint64 { return e.txGlobal }),
	}
	for p := range ether.Priorities {
		n := strconv.Itoa(p)
		t = append(t, row(CounterInfo{Name: "pause_rx_prio" + n, MLX5: rxPauseNames[p], Unit: "frames", What: "PFC received that names priority " + n + ": the neighbour stops it"},
			func(e *etherCounters) uint64 { return e.rxPause[p] }))
	}
	for p := range ether.Priorities {
		n := strconv.Itoa(p)
		t = append(t, row(CounterInfo{Name: "pause_tx_prio" + n, MLX5: txPauseNames[p], Unit: "frames", What: "PFC sent that names priority " + n + ": we stop the neighbour"},
			func(e *etherCounters) uint64 { return e.txPause[p] }))
	}
	return t
}

// dropWhat says what packets of each reason are: none has reached a queue pair.
var dropWhat = [numDropReasons]string{
	dropShort:      "shorter than their headers",
	dropVersion:    "transport version other than 0",
	dropBadOpcode:  "reserved opcode, or of a service that is not spoken",
	dropBadPad:     "more pad than payload",
	dropBadLength:  "length not a multiple of 4, or payload that the opcode has not",
	dropICRC:       "wrong ICRC: corrupted on the way",
	dropNoQP:       "no queue pair of that number",
	dropAddress:    "sent to an address that no row of the GID table has",
	dropManagement: "for QP 0, or for QP 1 where nobody serves it",
	dropMulticast:  "for a multicast group that nobody is attached to",
}

// engineDropWhat is the same of what a queue pair has dropped.
var engineDropWhat = [transport.NumDrops]string{
	transport.DropState:         "the queue pair's state takes no such packet",
	transport.DropOpcode:        "opcode of another transport, or out of sequence on UC and UD",
	transport.DropPSN:           "ghosts: PSN outside the window",
	transport.DropDuplicate:     "duplicates, answered or ignored",
	transport.DropLength:        "length does not fit opcode, path MTU or RETH",
	transport.DropQKey:          "UD: wrong Q_Key",
	transport.DropPKey:          "wrong partition key",
	transport.DropNoRecv:        "UC and UD: no receive was posted",
	transport.DropTooLong:       "UC and UD: longer than the receive",
	transport.DropAccess:        "UC: rkey, range or access rights",
	transport.DropSource:        "from a host that is not the peer",
	transport.DropGhostAck:      "acknowledge nothing that is outstanding",
	transport.DropOutOfSequence: "after the expected PSN; a NAK was sent, or is outstanding",
	transport.DropRNR:           "no receive was posted; an RNR NAK was sent",
	transport.DropBroken:        "UC: rest of a broken message",
}
