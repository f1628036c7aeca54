package report

import (
	"fmt"
	"strconv"

	"github.com/verbena-rdma/verbena/ib"
)

// Line is the rule between the parts of perftest's output.
const Line = "---------------------------------------------------------------------------------------\n"

// The heads of perftest's tables.
const (
	headMB      = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
	headGb      = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
	headLatency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	headLatOver = " #bytes        #iterations       t_avg[usec]    tps average\n"
)

// WaitingCM is what a server prints before the connection manager has a client.
const WaitingCM = Line + " Waiting for client rdma_cm QP to connect\n Please run the same command with the IB/RoCE interface IP\n"

// Waiting is what a server prints before a client connects.
const Waiting = "\n************************************\n* Waiting for client to connect... *\n************************************\n"

// Header is the block in which perftest names what it is about to do.
type Header struct {
	Title        string // "RDMA_Write BW Test"
	Events       string // "rxe0_comp0" when the program sleeps on events
	Device       string
	QPs          int
	Connection   string // "RC"
	TxDepth      int    // 0 where this end does not send
	PostList     int    // shown above 1
	RecvPostList int    // shown above 1
	RxDepth      int    // 0 where this end does not receive
	CQMod        int    // 0 in latency tests
	MTU          int    // bytes
	GIDIndex     int
	Inline       int  // bytes
	OutReads     int  // above 0 in tests of READ and ATOMIC, instead of Inline
	CM           bool // the connection manager connects
	SRQ          bool
}

// Append appends the block, rules above and below.
func (h Header) Append(b []byte) []byte {
	b = append(b, Line...)
	b = fmt.Appendf(b, "                    %s\n", h.Title)
	if h.Events != "" {
		b = fmt.Appendf(b, " Test with events. Using %s\n", h.Events)
	}
	b = fmt.Appendf(b, " Dual-port       : OFF\t\tDevice         : %s\n", h.Device)
	b = fmt.Appendf(b, " Number of qps   : %d\t\tTransport type : IB\n", h.QPs)
	b = fmt.Appendf(b, " Connection type : %s\t\tUsing SRQ      : %s\n", h.Connection, onOff(h.SRQ))
	b = append(b, " PCIe relax order: Unsupported\n ibv_wr* API     : OFF\n"...)
	if h.TxDepth > 0 {
		b = fmt.Appendf(b, " TX depth        : %d\n", h.TxDepth)
	}
	if h.PostList > 1 {
		b = fmt.Appendf(b, " Post List       : %d\n", h.PostList)
	}
	if h.RecvPostList > 1 {
		b = fmt.Appendf(b, " Recv Post List  : %d\n", h.RecvPostList)
	}
	if h.RxDepth > 0 {
		b = fmt.Appendf(b, " RX depth        : %d\n", h.RxDepth)
	}
	if h.CQMod > 0 {
		b = fmt.Appendf(b, " CQ Moderation   : %d\n", h.CQMod)
	}
	b = fmt.Appendf(b, " Mtu             : %d[B]\n Link type       : Ethernet\n GID index       : %d\n", h.MTU, h.GIDIndex)
	if h.OutReads > 0 {
		b = fmt.Appendf(b, " Outstand reads  : %d\n", h.OutReads)
	} else {
		b = fmt.Appendf(b, " Max inline data : %d[B]\n", h.Inline)
	}
	qps, method := h.cm()
	b = fmt.Appendf(b, " rdma_cm QPs\t : %s\n Data ex. method : %s\n", qps, method)
	return append(b, Line...)
}

// cm says whether the connection manager connects the queue pairs, and how the
// ends talk.
func (h *Header) cm() (qps, method string) {
	if h.CM {
		return "ON", "rdma_cm"
	}
	return "OFF", "Ethernet"
}

// Endpoint is one queue pair as perftest prints it.
type Endpoint struct {
	Side     string // "local" or "remote"
	LID      uint16
	QPN      ib.QPN
	PSN      ib.PSN
	OutReads int // shown with ShowOut
	RKey     ib.RKey
	Addr     uint64
	GID      ib.GID
	ShowOut  bool // READ
	ShowRKey bool // WRITE and READ
}

// Append appends the two lines of an endpoint.
func (e Endpoint) Append(b []byte) []byte {
	b = fmt.Appendf(b, " %s address: LID %s QPN %s PSN %s", e.Side, hex(uint64(e.LID), 4), hex(uint64(e.QPN), 6), hex(uint64(e.PSN), 6))
	if e.ShowOut {
		b = fmt.Appendf(b, " OUT %s", hex(uint64(e.OutReads), 4))
	}
	if e.ShowRKey {
		b = fmt.Appendf(b, " RKey %s VAddr %s", hex(uint64(e.RKey), 8), hex(e.Addr, 16))
	}
	b = append(b, "\n GID: "...)
	for i, o := range e.GID {
		if i > 0 {
			b = append(b, ':')
		}
		b = fmt.Appendf(b, "%02d", o)
	}
	return append(b, '\n')
}

// hex formats as C's %#0<width>x does: no 0x before a zero, and the 0x counts
// in the width.
func hex(v uint64, width int) string {
	if v == 0 {
		return fmt.Sprintf("%0*d", width, 0)
	}
	return fmt.Sprintf("0x%0*x", width-2, v)
}

// BandwidthHead returns the head of the table, in gigabits or mebibytes.
func BandwidthHead(gbits bool) string {
	if gbits {
		return headGb
	}
	return headMB
}

// Append appends the row of perftest's table.
func (r Bandwidth) Append(b []byte, gbits bool) []byte {
	unit := MiBps
	if gbits {
		unit = Gbps
	}
	peak, avg, rate := unit(r.PeakBytesPerSec), unit(r.BytesPerSec), r.MsgPerSec/1e6
	if gbits && avg < 0.1 {
		return fmt.Appendf(b, " %-7d    %d           %-7.6f            %-7.6f            %-7.6f\n", r.Bytes, r.Iters, peak, avg, rate)
	}
	return fmt.Appendf(b, " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n", r.Bytes, r.Iters, peak, avg, rate)
}

// LatencyHead returns the head of the table of a test over a number of
// iterations, or over a time.
func LatencyHead(over bool) string {
	if over {
		return headLatOver
	}
	return headLatency
}

// Append appends the row of perftest's table; over as for [LatencyHead].
func (r Latency) Append(b []byte, over bool) []byte {
	if over {
		return fmt.Appendf(b, " %-7d       %d            %-7.2f        %-7.2f\n", r.Bytes, r.Iters, Usec(r.Average), r.PerSec)
	}
	return fmt.Appendf(b, " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
		r.Bytes, r.Iters, Usec(r.Min), Usec(r.Max), Usec(r.Typical), Usec(r.Average), Usec(r.Stdev), Usec(r.P99), Usec(r.P999))
}

// AppendSamples appends the list of perftest's -H (sorted, without the slowest
// two) or -U (in the order of measuring).
func (r Latency) AppendSamples(b []byte, sorted bool) []byte {
	s := r.Raw
	if sorted {
		s = r.Sorted[:max(len(r.Sorted)-tail, 0)]
	}
	b = append(b, "#, usec\n"...)
	for i, d := range s {
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, ", "...)
		b = strconv.AppendFloat(b, Usec(d), 'g', 6, 64)
		b = append(b, '\n')
	}
	return b
}

// Title returns the title of perftest's header: operation is "RDMA_Write",
// "RDMA_Read", "Send" or "Atomic FETCH_AND_ADD".
func Title(operation string, latency, both bool, postList int) string {
	t := operation + " "
	if latency {
		return t + "Latency Test"
	}
	if both {
		t += "Bidirectional "
	}
	if postList > 1 {
		t += "Post List "
	}
	return t + "BW Test"
}
