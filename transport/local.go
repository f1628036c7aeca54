package transport

import (
	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
)

// SetBind puts a bind into the fields of a slot, as Local reads it.
func (w *SendWQE) SetBind(b *ib.Bind) {
	w.Remote = ib.Remote{Addr: b.Addr, RKey: b.RKey}
	w.Compare, w.SwapAdd = b.Len, uint64(b.Access)<<32|uint64(b.LKey)
}

// SetFlush puts what a flush asks for into the fields of a slot.
func (w *SendWQE) SetFlush(f *ib.FlushRange) {
	w.Compare, w.SwapAdd = uint64(f.Len), uint64(f.Placement)<<8|uint64(f.Level)
}

// FlushRange returns what SetFlush has put there.
func (w *SendWQE) FlushRange() ib.FlushRange {
	return ib.FlushRange{Len: uint32(w.Compare), Placement: ib.FlushPlacement(w.SwapAdd >> 8), Level: ib.FlushLevel(w.SwapAdd)}
}

// Local executes a work request that puts nothing on the wire: a bind or an
// invalidation. Engines call it once, when the request is reached. The fault is
// for the completion's VendorErr.
func (c *Config) Local(w *SendWQE) mem.Fault {
	if w.Op == ib.LocalInv {
		return c.Mem.Invalidate(c.PD, c.QPN, ib.RKey(w.Imm))
	}
	return c.Mem.Bind(c.PD, c.QPN, &ib.Bind{
		RKey: w.Remote.RKey, LKey: ib.LKey(w.SwapAdd), Addr: w.Remote.Addr, Len: w.Compare, Access: ib.Access(w.SwapAdd >> 32),
	})
}
