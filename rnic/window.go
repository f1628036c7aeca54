package rnic

import (
	"fmt"

	"github.com/verbena-rdma/verbena/ib"
	"github.com/verbena-rdma/verbena/mem"
)

// MWType is the type of a memory window, with libibverbs' numbers
// (ibv_mw_type).
type MWType uint8

// The types.
const (
	MWType1 MWType = 1
	MWType2 MWType = 2 // 2A or 2B, as the adapter has them
)

// WindowKind returns what windows of type 2 are here (IBA vol.1 10.6.7.2.2).
func (a *Adapter) WindowKind() mem.WindowKind {
	if a.cfg.MWType2A {
		return mem.Window2A
	}
	return mem.Window2B
}

// AllocMW makes a memory window, which opens nothing until a BindMW request has
// bound it. It matches ErrInvalid for an unknown type, ErrLimit when there are
// too many. Owner.
func (a *Adapter) AllocMW(pd mem.PD, t MWType) (*mem.Window, error) {
	refs, err := a.pd("allocate MW", pd)
	if err != nil {
		return nil, err
	}
	kind := mem.Window1
	switch t {
	case MWType1:
	case MWType2:
		kind = a.WindowKind()
	default:
		return nil, fmt.Errorf("allocate MW: type is %d, can be 1 or 2: %w", t, ErrInvalid)
	}
	if len(a.mws) >= a.limits.MaxMW {
		return nil, fmt.Errorf("allocate MW: there are %d of %d: %w", len(a.mws), a.limits.MaxMW, ErrLimit)
	}
	w := a.mem.AllocWindow(pd, kind)
	a.mws[w] = struct{}{}
	refs.mws++
	return w, nil
}

// DeallocMW removes a memory window, bound or not: from now on its key opens
// nothing. Owner.
func (a *Adapter) DeallocMW(w *mem.Window) error {
	if _, ok := a.mws[w]; !ok {
		return fmt.Errorf("deallocate MW: it does not exist: %w", ErrInvalid)
	}
	delete(a.mws, w)
	a.pds[w.PD()].mws--
	a.mem.FreeWindow(w)
	return nil
}

// MRChange says what of a memory region changes; the rest stays.
type MRChange struct {
	Move   bool // to Data under Base, else both mean nothing
	Data   []byte
	Base   uint64
	NewPD  bool
	PD     mem.PD
	Rights bool
	Access ib.Access
}

// ReregisterMR changes memory, domain or rights of a region, which keeps its
// keys, and returns what takes the place of r. A refused call leaves r as it was;
// it matches ErrBusy while windows are bound to r. Owner.
func (a *Adapter) ReregisterMR(r *mem.Region, c *MRChange) (*mem.Region, error) {
	if _, ok := a.mrs[r]; !ok {
		return nil, fmt.Errorf("re-register MR: it does not exist: %w", ErrInvalid)
	}
	if n := r.Windows(); n > 0 {
		return nil, fmt.Errorf("re-register MR 0x%x: %d memory windows are bound to it; invalidate or unbind those first: %w", uint32(r.LKey), n, ErrBusy)
	}
	pd, data, base, access := r.PD, r.Bytes(), r.Base, r.Access
	if c.NewPD {
		pd = c.PD
	}
	refs, err := a.pd("re-register MR", pd)
	if err != nil {
		return nil, err
	}
	if c.Move {
		data, base = c.Data, c.Base
	} else if r.Phantom() {
		return nil, fmt.Errorf("re-register MR 0x%x: it is phantom memory and cannot stay so: %w", uint32(r.LKey), ErrUnsupported)
	}
	if c.Rights {
		access = c.Access
	}
	if n := uint64(len(data)); n > a.limits.MaxMRSize {
		return nil, fmt.Errorf("re-register MR: %d bytes, can be up to %d: %w", n, a.limits.MaxMRSize, ErrInvalid)
	}
	to, err := a.mem.Reregister(r, pd, data, base, access)
	if err != nil {
		return nil, fmt.Errorf("re-register MR: %w: %w", err, ErrInvalid)
	}
	delete(a.mrs, r)
	a.mrs[to] = struct{}{}
	a.pds[r.PD].mrs--
	refs.mrs++
	return to, nil
}
