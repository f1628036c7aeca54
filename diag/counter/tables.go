package counter

type table struct {
	family []Family
	names  map[string]Name
}

func (t table) of(f Family) bool {
	if f == Unknown {
		return true
	}
	for _, x := range t.family {
		if x == f {
			return true
		}
	}
	return false
}

// tables are drivers' names. Our own devices count under the names of mlx5 and of
// rdma_rxe.
var tables = []table{
	{[]Family{MLX5, Verbena}, map[string]Name{
		"np_ecn_marked_roce_packets":     ECNMarkedRx,
		"np_cnp_sent":                    CNPTx,
		"rp_cnp_handled":                 CNPRxHandled,
		"rp_cnp_ignored":                 CNPRxIgnored,
		"out_of_sequence":                OOSRx,
		"packet_seq_err":                 NAKSeqRx,
		"implied_nak_seq_err":            NAKSeqImplied,
		"local_ack_timeout_err":          ACKTimeout,
		"req_transport_retries_exceeded": RetryExceeded,
		"rnr_nak_retry_err":              RNRNAKRx,
		"out_of_buffer":                  RNRTx,
		"req_rnr_retries_exceeded":       RNRRetryExceeded,
		"duplicate_request":              DuplicateRx,
		"rx_icrc_encapsulated":           ICRCErr,
		"roce_adp_retrans":               AdaptiveRetrans,
		"roce_slow_restart":              SlowRestart,
		"req_remote_access_errors":       RemoteAccessErr,
		"req_remote_invalid_request":     RemoteInvalidReqErr,
		"resp_local_length_error":        LocalLengthErr,
		"resp_remote_access_errors":      RespAccessErr,
		"req_cqe_error":                  ReqCQEErr,
		"req_cqe_flush_error":            ReqCQEFlush,
		"resp_cqe_error":                 RespCQEErr,
		"resp_cqe_flush_error":           RespCQEFlush,
		"rx_read_requests":               ReadReqRx,
		"rx_write_requests":              WriteReqRx,
		"rx_atomic_requests":             AtomicReqRx,
		"rdma_tx_packets":                TxPackets,
		"rdma_rx_packets":                RxPackets,
		"rdma_tx_bytes":                  TxBytes,
		"rdma_rx_bytes":                  RxBytes,
	}},
	{[]Family{BNXT}, map[string]Name{
		"rx_ecn_marked_pkts":     ECNMarkedRx,
		"tx_cnp_pkts":            CNPTx,
		"rx_cnp_pkts":            CNPRxHandled,
		"oos_drop_count":         OOSRx,
		"seq_err_naks_rcvd":      NAKSeqRx,
		"missing_resp":           NAKSeqImplied,
		"to_retransmits":         ACKTimeout,
		"max_retry_exceeded":     RetryExceeded,
		"rnr_naks_rcvd":          RNRNAKRx,
		"rx_out_of_buffer":       RNRTx,
		"dup_req":                DuplicateRx,
		"active_qps":             ActiveQPs,
		"remote_access_err":      RemoteAccessErr,
		"remote_invalid_req_err": RemoteInvalidReqErr,
		"remote_op_err":          RemoteOpErr,
		"rx_read_req":            ReadReqRx,
		"rx_write_req":           WriteReqRx,
		"rx_atomic_req":          AtomicReqRx,
		"tx_pkts":                TxPackets,
		"rx_pkts":                RxPackets,
		"tx_bytes":               TxBytes,
		"rx_bytes":               RxBytes,
		"rx_roce_discard_pkts":   RxDiscards,
		"rx_roce_error_pkts":     RxErrors,
	}},
	{[]Family{IRDMA}, map[string]Name{
		"RxECNMrkd":                  ECNMarkedRx,
		"cnpSent":                    CNPTx,
		"cnpHandled":                 CNPRxHandled,
		"cnpIgnored":                 CNPRxIgnored,
		"Rcvd Out of order packets":  OOSRx,
		"Nak Sequence Error":         NAKSeqRx,
		"Nak Sequence Error Implied": NAKSeqImplied,
		"RTO":                        ACKTimeout,
		"RNR received":               RNRNAKRx,
		"RNR sent":                   RNRTx,
		"CRC errors":                 ICRCErr,
	}},
	{[]Family{RXE, Verbena}, map[string]Name{
		"out_of_seq_request":     OOSRx,
		"rcvd_seq_err":           NAKSeqRx,
		"completer_retry_err":    ACKTimeout,
		"retry_exceeded_err":     RetryExceeded,
		"rcvd_rnr_err":           RNRNAKRx,
		"send_rnr_err":           RNRTx,
		"retry_rnr_exceeded_err": RNRRetryExceeded,
		"duplicate_request":      DuplicateRx,
		"sent_pkts":              TxPackets,
		"rcvd_pkts":              RxPackets,
		"sent_bytes":             TxBytes,
		"rcvd_bytes":             RxBytes,
	}},
	{[]Family{Verbena}, map[string]Name{
		"drop_icrc":       ICRCErr,
		"remote_op_err":   RemoteOpErr,
		"link_rx_dropped": RxDiscards,
	}},
}
