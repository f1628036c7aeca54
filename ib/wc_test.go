package ib

import "testing"

// A completion prints the fields that are valid, by name.
func TestWCString(t *testing.T) {
	for _, c := range []struct {
		wc   WC
		want string
	}{
		{WC{ID: 7, Op: WCWrite, QPN: 0x11}, "RDMA_WRITE SUCCESS: ID 7, QP 0x000011"},
		{WC{ID: 7, Op: WCRecv, QPN: 0x11, SrcQPN: 0x12, Bytes: 5, Flags: WCWithImm, Imm: 42}, "RECV SUCCESS: ID 7, QP 0x000011, 5 bytes, from QP 0x000012, immediate 0x2a"},
		{WC{Op: WCRecv, QPN: 0x11, Flags: WCWithInv, Imm: 0xabc}, "RECV SUCCESS: ID 0, QP 0x000011, invalidated rkey 0xabc"},
		{WC{ID: 9, Status: RemAccessErr, Op: WCRecv, Bytes: 5, QPN: 0x11, VendorErr: 98}, "REM_ACCESS_ERR: ID 9, QP 0x000011, vendor error 0x62"},
	} {
		if got := c.wc.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
