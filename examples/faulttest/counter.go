package faulttest

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/verbs"
)

// Counter adds to a 64-bit word in another host's memory.
type Counter struct {
	CQ     *verbs.CQ
	QP     *verbs.QP
	Result *verbs.MR // 8 bytes with local write
	At     ib.Remote // the word
}

// Add adds n and returns the value before.
func (c *Counter) Add(ctx context.Context, n uint64) (before uint64, err error) {
	err = c.QP.PostSend(ib.SendWR{Op: ib.FetchAdd, Flags: ib.Signaled, SGL: c.Result.SGE(0, 8), Remote: c.At, SwapAdd: n})
	if err != nil {
		return 0, err
	}
	var wcs [1]ib.WC
	if _, err := c.CQ.Wait(ctx, wcs[:]); err != nil {
		return 0, err
	}
	if wcs[0].Status != ib.Success {
		return 0, fmt.Errorf("add to counter: %v", wcs[0].Status)
	}
	return binary.NativeEndian.Uint64(c.Result.Bytes()), nil
}
