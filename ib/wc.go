package ib

import "fmt"

// WCStatus says how a work request ended.
type WCStatus uint8

// The statuses, with libibverbs' numbers (ibv_wc_status).
const (
	Success         WCStatus = 0
	LocLenErr       WCStatus = 1
	LocQPOpErr      WCStatus = 2
	LocEECOpErr     WCStatus = 3
	LocProtErr      WCStatus = 4
	WRFlushErr      WCStatus = 5
	MWBindErr       WCStatus = 6
	BadRespErr      WCStatus = 7
	LocAccessErr    WCStatus = 8
	RemInvReqErr    WCStatus = 9
	RemAccessErr    WCStatus = 10
	RemOpErr        WCStatus = 11
	RetryExcErr     WCStatus = 12
	RNRRetryExcErr  WCStatus = 13
	LocRDDViolErr   WCStatus = 14
	RemInvRDReqErr  WCStatus = 15
	RemAbortErr     WCStatus = 16
	InvEECNErr      WCStatus = 17
	InvEECStateErr  WCStatus = 18
	FatalErr        WCStatus = 19
	RespTimeoutErr  WCStatus = 20
	GeneralErr      WCStatus = 21
	wcStatusDefined          = 22
)

var wcStatusNames = [wcStatusDefined]string{
	"SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR",
	"MW_BIND_ERR", "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR",
	"RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR",
	"INV_EECN_ERR", "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR",
}

func (s WCStatus) String() string {
	if int(s) < len(wcStatusNames) {
		return wcStatusNames[s]
	}
	return fmt.Sprintf("WC status %d", uint8(s))
}

// WCOp says what completed.
type WCOp uint8

// The operations, with libibverbs' numbers (ibv_wc_opcode).
const (
	WCSend        WCOp = 0
	WCWrite       WCOp = 1
	WCRead        WCOp = 2
	WCCompareSwap WCOp = 3
	WCFetchAdd    WCOp = 4
	WCBindMW      WCOp = 5
	WCLocalInv    WCOp = 6
	WCFlush       WCOp = 8
	WCAtomicWrite WCOp = 9
	WCRecv        WCOp = 128
	WCRecvImm     WCOp = 129 // a WRITE with immediate consumed the receive
)

func (o WCOp) String() string {
	switch o {
	case WCSend:
		return "SEND"
	case WCWrite:
		return "RDMA_WRITE"
	case WCRead:
		return "RDMA_READ"
	case WCCompareSwap:
		return "COMP_SWAP"
	case WCFetchAdd:
		return "FETCH_ADD"
	case WCBindMW:
		return "BIND_MW"
	case WCLocalInv:
		return "LOCAL_INV"
	case WCFlush:
		return "FLUSH"
	case WCAtomicWrite:
		return "ATOMIC_WRITE"
	case WCRecv:
		return "RECV"
	case WCRecvImm:
		return "RECV_RDMA_WITH_IMM"
	}
	return fmt.Sprintf("WC opcode %d", uint8(o))
}

// WCFlags tell which optional fields of a completion are valid.
type WCFlags uint8

// The flags, with libibverbs' numbers.
const (
	WCWithGRH WCFlags = 1 << 0 // the first 40 bytes of the buffer hold a GRH
	WCWithImm WCFlags = 1 << 1
	WCWithInv WCFlags = 1 << 3
)

// WC is a work completion. When Status is not Success only ID, Status, QPN
// and VendorErr are valid.
type WC struct {
	ID        uint64
	Status    WCStatus
	Op        WCOp
	Flags     WCFlags
	Bytes     uint32 // received, read or fetched; with WCWithGRH the 40 bytes count
	Imm       uint32 // host order; with WCWithInv the invalidated RKey
	QPN       QPN    // the local queue pair
	SrcQPN    QPN    // UD: the sender
	SGIDIndex uint16
	VendorErr uint32 // the NAK syndrome or drop reason behind an error; 0 if none
}

// String says what completed and how, with the fields that are valid.
func (w WC) String() string {
	if w.Status != Success {
		s := fmt.Sprintf("%v: ID %d, QP %v", w.Status, w.ID, w.QPN)
		if w.VendorErr != 0 {
			s += fmt.Sprintf(", vendor error %#x", w.VendorErr)
		}
		return s
	}
	s := fmt.Sprintf("%v %v: ID %d, QP %v", w.Op, w.Status, w.ID, w.QPN)
	if w.Bytes != 0 {
		s += fmt.Sprintf(", %d bytes", w.Bytes)
	}
	if w.SrcQPN != 0 {
		s += fmt.Sprintf(", from QP %v", w.SrcQPN)
	}
	switch {
	case w.Flags&WCWithImm != 0:
		s += fmt.Sprintf(", immediate %#x", w.Imm)
	case w.Flags&WCWithInv != 0:
		s += fmt.Sprintf(", invalidated rkey %#x", w.Imm)
	}
	return s
}
