package joblog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/verbena-rdma/verbena/diag/snapshot"
)

// Bounds of one log.
const (
	MaxEvents = 1000 // the last ones are kept
	maxLine   = 4000 // bytes of a line that are looked at
)

// Kinds of events.
const (
	Completion = "completion"
	ModifyQP   = "modify_qp"
	RegMR      = "reg_mr"
	CreateQP   = "create_qp"
	CreateCQ   = "create_cq"
	OpenDevice = "open_device"
	GID        = "gid"
	CM         = "cm"
	Hang       = "hang"
)

// Parse returns the errors in the lines of a log, in their order; lines count from 1.
func Parse(lines []string) []snapshot.LogEvent {
	var all []snapshot.LogEvent
	for i, line := range lines {
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "")
		}
		e, ok := event(line)
		if !ok {
			continue
		}
		e.Line, e.Text = i+1, strings.TrimSpace(line)
		if len(all) == 2*MaxEvents {
			all = append(all[:0], all[MaxEvents:]...)
		}
		all = append(all, e)
	}
	return all[max(0, len(all)-MaxEvents):]
}

// event reads one line.
func event(line string) (snapshot.LogEvent, bool) {
	low := strings.ToLower(line)
	if !suspicious(low) {
		return snapshot.LogEvent{}, false
	}
	e := snapshot.LogEvent{Kind: kind(low)}
	if e.Kind == "" {
		return e, false
	}
	if e.Kind == Completion {
		e.Status, e.Vendor = status(low), vendor(low)
		if e.Status == 5 && e.Vendor == 0 && !strings.Contains(low, "fail") && !strings.Contains(low, "error") {
			return e, false
		}
	} else {
		e.Errno = errno(line, low)
	}
	if e.Kind == ModifyQP {
		e.State = target(line)
	}
	if e.Kind == RegMR {
		e.Bytes = size(low)
	}
	e.Device, e.Peer = device(line), peer(line)
	return e, true
}

// suspicious is the cheap question: does the line tell of a failure at all?
func suspicious(low string) bool {
	for _, w := range []string{"fail", "error", "got completion", "couldn't", "could not", "cannot", "can't", "unable", "exceeded", "timeout", "timed out", "flush", "rejected", "unreachable", "no such device", "no available", "hang", "not found", "invalid"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// kinds are words by which a call or an event is known, the first that matches holds.
// All words of a row must be there.
var kinds = []struct {
	kind  string
	words []string
}{
	{RegMR, []string{"reg_mr"}},
	{RegMR, []string{"register", "memory"}},
	{RegMR, []string{"register mr"}},
	{RegMR, []string{"reg mr failed"}}, // the kernel's driver
	{RegMR, []string{"create_mkey", "failed"}},
	{RegMR, []string{"allocate mr"}},
	{RegMR, []string{"memory registration"}},
	{RegMR, []string{"fi_mr_reg"}},
	{CreateCQ, []string{"create_cq"}},
	{CreateCQ, []string{"create cq"}},
	{CreateCQ, []string{"create completion queue"}},
	{CreateQP, []string{"create_qp"}},
	{CreateQP, []string{"create qp"}},
	{CreateQP, []string{"create queue pair"}},
	{CreateQP, []string{"queue pair create"}},
	{ModifyQP, []string{"transition to rtr"}},
	{ModifyQP, []string{"transition to rts"}},
	{ModifyQP, []string{"transition to init"}},
	{ModifyQP, []string{"modify_qp"}},
	{ModifyQP, []string{"modify", "qp"}},
	{ModifyQP, []string{"modify", "queue pair"}},
	{ModifyQP, []string{"qp to rtr"}},
	{ModifyQP, []string{"qp to rts"}},
	{ModifyQP, []string{"qp to init"}},
	{OpenDevice, []string{"open_device"}},
	{OpenDevice, []string{"open", "device", "ib"}},
	{OpenDevice, []string{"get context for"}},
	{OpenDevice, []string{"no ib devices"}},
	{OpenDevice, []string{"no rdma device"}},
	{OpenDevice, []string{"ib device", "not found"}},
	{OpenDevice, []string{"rdma_create_ep"}},
	{GID, []string{"query_gid"}},
	{GID, []string{"gid index"}},
	{GID, []string{"gid_index"}},
	{GID, []string{"local gid"}},
	{GID, []string{"invalid gid"}},
	{GID, []string{"gid", "not found"}},
	{Completion, []string{"retry count", "exceeded"}},
	{Completion, []string{"retries exceeded"}},
	{Completion, []string{"retry exceeded"}},
	{Completion, []string{"ibv_wc_"}},
	{Completion, []string{"got completion", "status"}},
	{Completion, []string{"got completion", "error"}},
	{Completion, []string{"completion with error"}},
	{Completion, []string{"completion", "vendor"}},
	{Completion, []string{"failed status"}},
	{Completion, []string{"polling", "cq", "status"}},
	{Completion, []string{"work completion"}},
	{Completion, []string{"synd 0x"}},
	{Completion, []string{"local protection"}},
	{Completion, []string{"local length"}},
	{Completion, []string{"local qp operation"}},
	{Completion, []string{"request flushed"}},
	{Completion, []string{"wr flush"}},
	{Completion, []string{"remote access error"}},
	{Completion, []string{"remote invalid"}},
	{Completion, []string{"remote operation error"}},
	{Completion, []string{"prov_errno"}},
	{CM, []string{"rdma_cm"}},
	{CM, []string{"rdma_connect"}},
	{CM, []string{"rdma_resolve"}},
	{CM, []string{"rdma_accept"}},
	{CM, []string{"rdma_bind"}},
	{CM, []string{"rdmacm"}},
	{CM, []string{"hca's through the link"}},
	{Hang, []string{"collective operation timeout"}},
	{Hang, []string{"watchdog", "timeout"}},
	{Hang, []string{"hang"}},
	{Hang, []string{"handshake", "timed out"}},
	{Hang, []string{"handshake", "timeout"}},
}

func kind(low string) string {
	for _, k := range kinds {
		all := true
		for _, w := range k.words {
			all = all && strings.Contains(low, w)
		}
		if all {
			return k.kind
		}
	}
	return ""
}

// words of a status: those of ibv_wc_status_str and the names of the enumeration.
var words = []struct {
	text   string
	status int
}{
	{"rnr retry count", 13},
	{"rnr_retry_exc", 13},
	{"receiver not ready", 13},
	{"transport retry count", 12},
	{"wc_retry_exc", 12},
	{"retry count exceeded", 12},
	{"retry counter exceeded", 12},
	{"retry exceeded", 12},
	{"retries exceeded", 12},
	{"local length", 1},
	{"loc_len", 1},
	{"local qp operation", 2},
	{"loc_qp_op", 2},
	{"local protection", 4},
	{"loc_prot", 4},
	{"flush", 5},
	{"bind error", 6},
	{"mw_bind", 6},
	{"bad response", 7},
	{"bad_resp", 7},
	{"local access", 8},
	{"loc_access", 8},
	{"remote invalid", 9},
	{"rem_inv_req", 9},
	{"remote_inv_req", 9},
	{"remote access", 10},
	{"rem_access", 10},
	{"remote operation", 11},
	{"rem_op", 11},
	{"remote abort", 16},
	{"rem_abort", 16},
	{"remote aborted", 16},
	{"fatal_err", 19},
	{"response timeout", 20},
	{"general_err", 21},
	{"general error", 21},
}

var (
	reStatus = regexp.MustCompile(`(?:status(?: number)?|with error|error|prov_errno|wc_\w+)[ =:(]+(\d{1,3})\b`)
	reParen  = regexp.MustCompile(`\((\d{1,2})\)`)
	reVendor = regexp.MustCompile(`(?:vendor(?:[ _](?:err(?:or)?|code|synd(?:rome)?))?|vend|syndrome?)[ =:(]+(0x[0-9a-f]{1,8}|\d{1,10})`)
	reSynd   = regexp.MustCompile(`\bsynd (0x[0-9a-f]{1,2})\b`)
)

// syndromes are those of an mlx5 completion, which UCX prints.
var syndromes = map[int]int{
	0x01: 1, 0x02: 2, 0x04: 4, 0x05: 5, 0x06: 6, 0x10: 7, 0x11: 8, 0x12: 9, 0x13: 10, 0x14: 11, 0x15: 12, 0x16: 13, 0x22: 16,
}

// status is the status of a work completion as libibverbs numbers it, 0 if the line
// does not say.
func status(low string) int {
	if m := reSynd.FindStringSubmatch(low); m != nil {
		if s := syndromes[integer(m[1])]; s != 0 {
			return s
		}
	}
	for _, w := range words {
		if strings.Contains(low, w.text) {
			return w.status
		}
	}
	for _, re := range []*regexp.Regexp{reStatus, reParen} {
		for _, m := range re.FindAllStringSubmatch(low, 4) {
			if n := integer(m[1]); n > 0 && n < 24 {
				return n
			}
		}
	}
	return 0
}

func vendor(low string) int {
	if m := reVendor.FindStringSubmatch(low); m != nil {
		return integer(m[1])
	}
	return 0
}

// texts of strerror.
var texts = []struct {
	text  string
	errno int
}{
	{"Cannot allocate memory", 12},
	{"Out of memory", 12},
	{"Invalid argument", 22},
	{"No such device or address", 6},
	{"No such device", 19},
	{"Connection timed out", 110},
	{"No data available", 61},
	{"Network is unreachable", 101},
	{"No route to host", 113},
	{"Connection refused", 111},
	{"Connection reset", 104},
	{"Operation not permitted", 1},
	{"Permission denied", 13},
	{"Bad address", 14},
	{"Resource temporarily unavailable", 11},
	{"No space left on device", 28},
	{"Device or resource busy", 16},
	{"Operation not supported", 95},
	{"Function not implemented", 38},
	{"Protocol not supported", 93},
	{"No such file or directory", 2},
	{"Cannot assign requested address", 99},
	{"Address already in use", 98},
	{"Input/output error", 5},
	{"File too large", 27},
}

var names = map[string]int{
	"EPERM": 1, "ENOENT": 2, "EIO": 5, "ENXIO": 6, "EAGAIN": 11, "ENOMEM": 12, "EACCES": 13, "EFAULT": 14, "EBUSY": 16, "ENODEV": 19, "EINVAL": 22,
	"ENOSPC": 28, "ENOSYS": 38, "ENODATA": 61, "EOPNOTSUPP": 95, "EADDRNOTAVAIL": 99, "ENETUNREACH": 101, "ETIMEDOUT": 110, "ECONNREFUSED": 111, "EHOSTUNREACH": 113,
}

var (
	reErrno = regexp.MustCompile(`(?:errno|error code|failed with(?: error)?|error|ret|status)[ =:(]+-?(\d{1,3})\b`)
	reEnd   = regexp.MustCompile(`[\[(]-?(\d{1,3})[\])]\s*$`)
	reName  = regexp.MustCompile(`\bE[A-Z]{2,12}\b`)
)

func errno(line, low string) int {
	for _, t := range texts {
		if strings.Contains(low, strings.ToLower(t.text)) {
			return t.errno
		}
	}
	for _, m := range reName.FindAllString(line, 8) {
		if n := names[m]; n != 0 {
			return n
		}
	}
	for _, re := range []*regexp.Regexp{reErrno, reEnd} {
		if m := re.FindStringSubmatch(low); m != nil {
			if n := integer(m[1]); n > 0 && n < 134 {
				return n
			}
		}
	}
	return 0
}

var (
	reNext = regexp.MustCompile(`(?i)(?:next state|to state|to)[ :=]+(?:IBV_QPS_)?(RESET|INIT|RTR|RTS|SQD|SQE|ERR)\b`)
	reTo   = regexp.MustCompile(`(?i)(?:->|→)\s*(?:IBV_QPS_)?(RESET|INIT|RTR|RTS|SQD|SQE|ERR)\b`)
	reFrom = regexp.MustCompile(`\b(?:IBV_QPS_)?(INIT|RTR|RTS)\b`)
)

// target is the state that a modify was to reach.
func target(line string) string {
	for _, re := range []*regexp.Regexp{reTo, reNext, reFrom} {
		if m := re.FindStringSubmatch(line); m != nil {
			return strings.ToUpper(m[1])
		}
	}
	return ""
}

var reSize = regexp.MustCompile(`(?:length|len|size)[ =:]+(0x[0-9a-f]{1,16}|\d{1,18})|(\d{1,18}) bytes`)

func size(low string) int64 {
	m := reSize.FindStringSubmatch(low)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseInt(m[1]+m[2], 0, 64)
	if err != nil {
		return 0
	}
	return n
}

var (
	reDevice = regexp.MustCompile(`\b((?:mlx[45]_(?:bond_)?|bnxt_re(?:_bond)?|irdma|rxe_?|siw_?|qedr|hns_|efa_|erdma_|rocep|roceo|ibp|hfi1_|ionic_|vrb)[0-9a-z]*)`)
	rePeer   = regexp.MustCompile(`(?:peer|remote|dest(?:ination)?|to|dst)[ =:(]+(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})`)
)

func device(line string) string { return first(reDevice, line) }

func peer(line string) string { return first(rePeer, strings.ToLower(line)) }

func first(re *regexp.Regexp, s string) string {
	if m := re.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

func integer(s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || n < 0 || n > 1<<31-1 {
		return 0
	}
	return int(n)
}
