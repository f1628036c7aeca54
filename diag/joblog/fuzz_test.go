package joblog_test

import (
	"strings"
	"testing"

	"github.com/verbena-rdma/verbena/diag/joblog"
)

// FuzzParse: whatever a program printed, no more events come of it than it has lines, and
// the same lines say the same.
func FuzzParse(f *testing.F) {
	f.Add("Failed status 12: wr_id 0 syndrom 0x81")
	f.Add("NET/IB : Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 len=0 vendor err 129")
	f.Add("Failed to modify QP 17 to RTR\nCouldn't allocate MR\nibv_reg_mr failed: Cannot allocate memory")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		a, b := joblog.Parse(lines), joblog.Parse(lines)
		if len(a) > len(lines) || len(a) != len(b) {
			t.Errorf("%d and %d events of %d lines", len(a), len(b), len(lines))
		}
	})
}
